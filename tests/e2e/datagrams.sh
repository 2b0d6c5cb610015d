#!/bin/bash
# Datagrams with the id at an offset: each reaches the replica that the ring names, whatever its family or the way warmpath is
# attached; answers come from the public address (the client's sockets are connected, so others are lost).
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

ids 500 >"$scratch/ids"
homes llm-0,llm-1,llm-2 <"$scratch/ids" >"$scratch/homes"
is "the ring uses all replicas" "$(awk '{print $2}' "$scratch/homes" | sort -u | paste -sd ' ')" "llm-0 llm-1 llm-2"

for mode in native generic tc; do
	lab_up --replicas 3 --mode $mode
	agent_up --mode $mode
	routes chat <"$scratch/ids" >"$scratch/routes"
	same "$mode: warmpath route agrees with the ring" "$scratch/routes" "$scratch/homes"
	for address in 10.9.9.9 fd00:9::9; do
		datagrams client 8000 $address <"$scratch/ids" | grep -v '^total' >"$scratch/answers"
		same "$mode, $address: each id is answered by its home" "$scratch/answers" "$scratch/homes"
	done
	is "$mode: the first packet to a replica is not held up or lost" "$(counter drop_no_route)" 0
done

# many replicas, many ids
lab_up --replicas 64 --mode native --servers datagrams
agent_up --mode native --services chat
ids 10000 >"$scratch/ids"
homes "$(tools/lab list | awk '{print $1}' | paste -sd ,)" <"$scratch/ids" >"$scratch/homes"
datagrams client 8000 10.9.9.9 <"$scratch/ids" | grep -v '^total' >"$scratch/answers"
same "64 replicas, 10,000 ids: each is answered by its home" "$scratch/answers" "$scratch/homes"
