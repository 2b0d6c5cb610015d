#!/bin/bash
# Clients that programs use, over connections that are handed over: Python's http.client, Node's fetch, the openai package, wrk and h2load.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/http.sh
. tests/http.sh
# shellcheck source=tests/http_clients.sh
. tests/http_clients.sh

# all_at_home DESCRIPTION ROUNDS FILE: so many answers for each id of the plan, each by its home
all_at_home() {
	same "$1" <(sort "$3") <(for _ in $(seq "$2"); do cat "$scratch/plan"; done | sort)
}

lab_up --replicas 3 --mode native --servers none
agent_up --mode native --services api
check "the replicas take connections over" tools/lab handoff start
http_servers_start node
http_plan 10
for address in $api4 "[$api6]"; do
	python_client "$(tr -d '[]' <<<"$address")" "$scratch/plan" 20 >"$scratch/answers" 2>&1
	all_at_home "Python's http.client, 10 conversations in turn on one connection, $address" 20 "$scratch/answers"
	node_client "$address" "$scratch/plan" 20 >"$scratch/answers" 2>&1
	all_at_home "Node's fetch, 10 conversations at a time, $address" 20 "$scratch/answers"
	if openai_client_ready; then
		openai_client "$address" "$scratch/plan" 6 >"$scratch/answers" 2>&1
		all_at_home "the openai package, streamed and whole answers in turn, $address" 6 "$scratch/answers"
	else
		skip "the openai package: no npm, or its registry cannot be reached" "the openai package, $address"
	fi
	read -r id _ <"$scratch/plan"
	in_client wrk -t 1 -c 16 -d 1 -H "X-Conversation-Id: $id" "http://$address:8000/x" >"$scratch/wrk" 2>&1
	note "wrk: $(grep -E 'Requests/sec|requests in' "$scratch/wrk" | tr -s ' \n' ' ')"
	check "wrk: 16 connections, neither socket errors nor other answers than 200, $address" \
		eval "grep -q 'requests in' '$scratch/wrk' && ! grep -qE 'Socket errors|Non-2xx' '$scratch/wrk'"
	in_client h2load --h1 -n 2000 -c 16 -H "x-conversation-id: $id" "http://$address:8000/x" >"$scratch/h2load" 2>&1
	matches "h2load --h1: 2000 requests over 16 connections, $address" "$(grep '^requests:' "$scratch/h2load")" \
		'2000 done, 2000 succeeded, 0 failed, 0 errored, 0 timeout'
done
is "nothing is left charged" "$(warmpath replica list --json | jq '[.. | .requests? // empty] | add // 0')" 0
http_servers_stop
