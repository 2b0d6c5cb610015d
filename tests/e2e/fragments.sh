#!/bin/bash
# Datagrams larger than the MTU, in fragments both ways: each is answered by the home of its id, intact (the client checks every byte).
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

ids 30 >"$scratch/ids"
homes llm-0,llm-1,llm-2 <"$scratch/ids" >"$scratch/homes"

fragmented() { # description options...
	local description=$1
	shift
	datagrams client --size 4000 --answer-size 20000 "$@" | grep -v '^total' >"$scratch/answers"
	same "$description" "$scratch/answers" "$scratch/homes"
}

for arrangement in native generic tc node-local; do
	if [ $arrangement = node-local ]; then
		lab_up --replicas 3 --mode tc --shape node-local
		agent_up --mode tc
		public="10.0.1.1 fd00:1::1"
	else
		lab_up --replicas 3 --mode $arrangement
		agent_up --mode $arrangement
		public="10.9.9.9 fd00:9::9"
	fi
	addressed "$scratch/ids" >"$scratch/addressed"
	for address in $public; do
		fragmented "$arrangement: to $address" 8000 "$address" <"$scratch/ids"
	done
	fragmented "$arrangement: to the address of each id" 8000 <"$scratch/addressed"
	fragmented "$arrangement: to the address of each id, from one port" --source-port 4444 8000 <"$scratch/addressed"
	is "$arrangement: no fragment went astray" "$(counter drop_fragment_unknown) $(counter drop_fragment_table_full)" "0 0"
done
