#!/bin/bash
# Heads of requests in all their forms: where the conversation's id is, what is an id and what is not, what is refused.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/http.sh
. tests/http.sh

lab_up --replicas 3 --mode native --servers none
agent_up --mode native --services api
check "the replicas take connections over" tools/lab handoff start
http_servers_start node
{ ids 20 && printf '%0128d\n' 7; } | homes llm-0,llm-1,llm-2 >"$scratch/plan"
mapfile -t replicas4 < <(tools/lab list | awk '{print $1 "=" $2}')
mapfile -t replicas6 < <(tools/lab list | awk '{print $1 "=" $3}')
tap_of "IPv4" in_client "$build/tests/e2e/http_heads" $api4 8000 "$scratch/plan" 8001 "${replicas4[@]}"
check "tc instead of XDP" eval 'warmpath attach eth0 --mode tc && warmpath attach eth1 --mode tc'
tap_of "tc, IPv6" in_client "$build/tests/e2e/http_heads" $api6 8000 "$scratch/plan" 8001 "${replicas6[@]}"
is "every refusal was counted, with its answer" "$(counter answered_bad_request)" 24
http_servers_stop
