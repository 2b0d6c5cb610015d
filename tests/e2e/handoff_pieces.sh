#!/bin/bash
# Requests in pieces reach the home of their conversation with every byte: cut anywhere, a byte a segment, heads of several segments.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/http.sh
. tests/http.sh

for mode in native tc; do
	lab_up --replicas 3 --mode "$mode" --servers none
	agent_up --mode $mode --services api
	check "$mode: the replicas take connections over" tools/lab handoff start
	http_servers_start node
	http_plan 20
	if [ $mode = native ]; then family=ipv4 address=$api4; else family=ipv6 address=$api6; fi
	read -r -a two < <(two_homes $family)
	tap_of "$mode, $family" in_client "$build/tests/e2e/http_cuts" $address 8000 "${two[@]}" 8001
	check "$mode: heads were held" [ "$(counter note_head_held)" -gt 100 ]
	is "$mode: nothing was reset" "$(counter reset_held_lost) $(counter reset_unknown_connection)" "0 0"
	http_servers_stop
done
