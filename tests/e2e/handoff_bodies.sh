#!/bin/bash
# Bodies of 0 bytes to 8 MB up and to 64 MB down, and streams of server-sent events, over connections that are handed over; connections
# that are closed when idle. The streams last seconds; five minutes with WARMPATH_TEST_LONG=1.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/http.sh
. tests/http.sh

events=60 interval=50
[ -z "${WARMPATH_TEST_LONG-}" ] || events=3000 interval=100

lab_up --replicas 3 --mode native --servers none
http_files 0 1 1448 65536 1000000 67108864
agent_up --mode native --services api
check "the replicas take connections over" tools/lab handoff start
http_servers_start node
http_plan 12

# streams: one for each conversation, half of them over IPv6, beside everything below
streams=()
while read -r id home; do
	if [ $((${#streams[@]} % 2)) = 0 ]; then address=$api4; else address="[$api6]"; fi
	# curl of "lab exec", not of a function: what is waited for is the process itself
	tools/lab exec client curl -sS -N -H "x-conversation-id: $id" "http://$address:8000/events?count=$events&interval=$interval" \
		>"$scratch/stream-$id" 2>&1 &
	streams+=($!)
done <"$scratch/plan"

# connections that are idle for longer than the servers' five seconds, beside all of that
mkdir "$scratch/expected"
for name in llm-0 llm-1 llm-2; do
	mkdir "$scratch/expected/$name"
	cp "$run/$name/files/f1448" "$scratch/expected/$name"
done
tools/lab exec client "$build/tests/e2e/http_requests" --requests 64 --connections 32 --pause 7500 $api4 8000 "$scratch/plan" "$scratch/expected" \
	>"$scratch/idle" 2>&1 &
idle=$!

for size in 0 1 1448 65536 1048576 8388608; do
	head -c "$size" "$run/llm-0/files/f67108864" >"$scratch/body"
	expected="$size $(sha256sum <"$scratch/body" | cut -d ' ' -f 1)"
	for address in $api4 "[$api6]"; do
		read -r id home < <(shuf -n 1 --random-source="$scratch/body" "$scratch/plan" 2>/dev/null || head -n 1 "$scratch/plan")
		answer=$(in_client curl -sS --max-time 60 -H "x-conversation-id: $id" -D "$scratch/head" --data-binary "@$scratch/body" "http://$address:8000/upload")
		is "$size bytes up, $address: whole, at $home" "$answer $(tr -d '\r' <"$scratch/head" | sed -n 's/^X-Replica: //p')" "$expected $home"
	done
	answer=$(in_client curl -sS --max-time 60 -H "x-conversation-id: $id" -H "Transfer-Encoding: chunked" --data-binary "@$scratch/body" "http://$api4:8000/upload")
	is "$size bytes up in chunks" "$answer" "$expected"
done

read -r id home <"$scratch/plan"
for file in "$run/$home/files"/*; do
	for address in $api4 "[$api6]"; do
		is "${file##*/f} bytes down, $address" \
			"$(in_client curl -sS --max-time 60 -H "x-conversation-id: $id" "http://$address:8000/files/${file##*/}" | sha256sum)" \
			"$(sha256sum <"$file")"
	done
done
# up, down and up again on one connection that goes from replica to replica
mapfile -t plan < <(head -n 6 "$scratch/plan")
arguments=()
for line in "${plan[@]}"; do
	[ ${#arguments[@]} = 0 ] || arguments+=(--next)
	arguments+=(-sS --max-time 60 -H "x-conversation-id: ${line% *}" --data-binary "@$scratch/body" "http://$api4:8000/upload"
		--next -sS --max-time 60 -H "x-conversation-id: ${line% *}" "http://$api4:8000/files/f1000000")
done
is "8 MB up and 1 MB down in turn, for six conversations, on one connection" \
	"$(in_client curl "${arguments[@]}" | sha256sum)" \
	"$(for line in "${plan[@]}"; do echo "$expected" && cat "$run/${line#* }/files/f1000000"; done | sha256sum)"

wait $idle
requests_are_right "connections that their servers close when idle, and others in their place" "$scratch/idle" 64
check "the servers have closed them" [ "$(counted connections <"$scratch/idle")" -gt 32 ]
failed=0
for stream in "${streams[@]}"; do wait "$stream" || failed=$((failed + 1)); done
is "${#streams[@]} streams of $((events * interval / 1000)) s ended as they should" $failed 0
wrong=
while read -r id home; do
	cmp -s "$scratch/stream-$id" <(for ((i = 0; i < events; i++)); do printf 'data: %s %s %d\n\n' "$home" "$id" $i; done) || wrong+=" $id"
done <"$scratch/plan"
is "every event of every stream came, in order, from the home of its conversation" "$wrong" ""

# --- clients that give up ---------------------------------------------------------------------------------------
charged() { warmpath replica list --json | jq '[.. | .requests? // empty] | add // 0'; }
nothing_is_charged() { [ "$(charged)" = 0 ]; }

aborted=()
given_back=$(counter note_request_failed)
for ((i = 1; i <= 24; i++)); do
	id=$(sed -n "$((i % 12 + 1))s/ .*//p" "$scratch/plan")
	case $((i % 3)) in
	0) asked=("http://$api4:8000/events?count=1000&interval=20") ;;
	1) asked=(--limit-rate 1M --data-binary "@$scratch/body" "http://[$api6]:8000/upload") ;;
	2) asked=(--limit-rate 1M "http://$api4:8000/files/f67108864") ;;
	esac
	timeout "1.$((10 + 3 * i))" tools/lab exec client curl -sS -N -o /dev/null -H "x-conversation-id: $id" "${asked[@]}" 2>/dev/null &
	aborted+=($!)
done
wait "${aborted[@]}"
check "clients give up: their requests end without a full answer" [ $(($(counter note_request_failed) - given_back)) -gt 12 ]
check "clients give up in mid-upload, in mid-stream, in mid-download: nothing stays charged" wait_until 10 nothing_is_charged
is "and nothing of it was a timeout" "$(counter note_request_timed_out)" 0
is "nothing is left charged" "$(warmpath replica list --json | jq '[.. | .requests? // empty] | add // 0')" 0
http_servers_stop
