#!/bin/bash
# Answers in all their forms, and what follows them on the same connection.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/http.sh
. tests/http.sh

lab_up --replicas 3 --mode native --servers none
agent_up --mode native --services api
check "the replicas take connections over" tools/lab handoff start
http_servers_start node
http_plan 20
read -r -a two < <(two_homes ipv4)
tap_of "IPv4" in_client "$build/tests/e2e/http_answers" $api4 8000 "${two[@]}" 8001
check "tc instead of XDP" eval 'warmpath attach eth0 --mode tc && warmpath attach eth1 --mode tc'
read -r -a two < <(two_homes ipv6)
tap_of "tc, IPv6" in_client "$build/tests/e2e/http_answers" $api6 8000 "${two[@]}" 8001
is "nothing is left charged" "$(warmpath replica list --json | jq '[.. | .requests? // empty] | add // 0')" 0
http_servers_stop
