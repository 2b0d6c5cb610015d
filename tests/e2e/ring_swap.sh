#!/bin/bash
# The ring is swapped 1,000 times under load: every datagram goes to the old answer or the new one, and none is lost.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

lab_up --replicas 4 --clients 2 --mode native
agent_up --mode native --services chat

ids 500 >"$scratch/ids"
homes llm-0,llm-1,llm-2,llm-3 <"$scratch/ids" >"$scratch/homes-4"
homes llm-0,llm-1,llm-2 <"$scratch/ids" >"$scratch/homes-3"
differing "$scratch/homes-3" "$scratch/homes-4" >"$scratch/to-move"
before=$(ring_generation chat)
traffic_start one "$scratch/ids" client-0 --rate 2500 8000 10.9.9.9
traffic_start other "$scratch/ids" client-1 --rate 2500 8000 fd00:9::9
failures=0
for ((swap = 0; swap < 500; swap++)); do
	warmpath replica drain llm-3 --service chat >>"$scratch/output" 2>&1 || failures=$((failures + 1))
	warmpath replica undrain llm-3 --service chat >>"$scratch/output" 2>&1 || failures=$((failures + 1))
done
traffic_stop one
traffic_stop other
is "all 1,000 changes were accepted" "$failures" 0
is "each of them swapped the ring" "$(($(ring_generation chat) - before))" 1000
for name in one other; do
	traffic_is_whole $name
	is "$name: every answer is the old one or the new one" \
		"$(unexpected "$scratch/$name.ledger" "$scratch/homes-3" "$scratch/homes-4")" ""
	is "$name: ids that are the same in both never moved" \
		"$(join -v 1 <(moved "$scratch/$name.ledger") <(sort "$scratch/to-move"))" ""
	check "$name: the changes were seen in the traffic" test "$(moved "$scratch/$name.ledger" | wc -l)" -gt 50
done
