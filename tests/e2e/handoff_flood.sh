#!/bin/bash
# A flood of SYNs at full speed beside live traffic: it costs cycles, but no connection and no memory. 100,000 of them; a million with
# WARMPATH_TEST_LONG=1.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/http.sh
. tests/http.sh

count=100000
[ -z "${WARMPATH_TEST_LONG-}" ] || count=1000000
maps="connections flows return_flows strangers held_heads requests"

entries() { # so many in each map
	local map
	for map in $maps; do
		echo "$map $(bpftool -j map dump pinned "$(tools/lab path pin)/v1/$map" | jq length)"
	done
}

all_opened() { [ "$(counter note_connection_opened)" -ge 48 ]; }

for mode in native tc; do
	lab_up --replicas 3 --clients 2 --mode $mode
	http_files 1000 20000
	agent_up --mode $mode --services api
	check "$mode: the replicas take connections over" tools/lab handoff start
	http_plan 100
	http_expect || bail "every replica answers directly"
	mac=$(in_host router ip -j link show eth0 | jq -r '.[0].address')

	# idle connections that are opened before the flood and used after it, and connections that are busy during it
	tools/lab exec client "$build/tests/e2e/http_requests" --requests 0 --connections 16 --pause 20 $api4 8000 "$scratch/plan" \
		"$scratch/expected" >"$scratch/busy" 2>&1 &
	busy=$!
	tools/lab exec client "$build/tests/e2e/http_requests" --requests 64 --connections 32 --pause 8000 $api4 8000 "$scratch/plan" \
		"$scratch/expected" >"$scratch/idle" 2>&1 &
	idle=$!
	wait_until 5 all_opened
	entries >"$scratch/before"
	handshakes=$(counter answered_handshake)
	in_host client-1 "$build/tests/e2e/frame_flood" eth0 "$mac" $api4 8000 $count >"$scratch/flood"
	note "$mode: $(cat "$scratch/flood")"
	answered=$(($(counter answered_handshake) - handshakes))
	# the rest found the queue of the link full, as floods do
	note "$mode: $answered SYNs answered"
	check "$mode: the flood arrived" [ $answered -gt $((count / 2)) ]
	entries >"$scratch/after"
	kill -TERM $busy
	wait $busy $idle
	same "$mode: no map has grown" <(grep -v '^requests ' "$scratch/after") <(grep -v '^requests ' "$scratch/before")
	requests_are_right "$mode: connections that were busy during the flood" "$scratch/busy" "$(counted requests <"$scratch/busy")"
	requests_are_right "$mode: connections that were idle during the flood" "$scratch/idle" 64
done
