#!/bin/bash
# What happens around connections that are handed over while they are in use: the agent is killed, the ring is changed again and again, a
# replica is drained, killed and started again. Only the requests fail that were open on the killed replica. 60 changes of the ring; 1,000
# with WARMPATH_TEST_LONG=1.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/http.sh
. tests/http.sh

changes=60
[ -z "${WARMPATH_TEST_LONG-}" ] || changes=1000

declare -A busy
# begin NAME ADDRESS: requests over 16 connections until `end NAME`; its report is $scratch/NAME.report
begin() {
	tools/lab exec client "$build/tests/e2e/http_requests" --requests 0 --connections 16 --pause 5 "$2" 8000 "$scratch/plan" \
		"$scratch/expected" >"$scratch/$1.report" 2>&1 &
	busy[$1]=$!
}

end() { # NAME
	kill -TERM "${busy[$1]}"
	wait "${busy[$1]}"
	note "$1: $(tail -n 1 "$scratch/$1.report")"
}

number() { counted "$2" <"$scratch/$1.report"; } # NAME WHAT

# strays NAME HOMES-FILE: answers of replicas that are not the id's home in that file either
strays() { awk '$1 == "astray" {print $2, $3}' "$scratch/$1.report" | sort -u | grep -vxFf "$2"; }

lab_up --replicas 3 --mode native --servers none
http_files 0 1000 20000
agent_up --mode native --services api
check "the replicas take connections over" tools/lab handoff start
http_servers_start node
http_plan 120
ids 120 | homes llm-0,llm-1 >"$scratch/homes-2"
http_expect || bail "every replica answers directly"

# --- the agent is killed ---------------------------------------------------------------------------------------
begin one $api4
begin other $api6
sleep 1 # of ordinary traffic
tools/lab agent kill
sleep 1
tools/lab agent start
sleep 1
end one
end other
for name in one other; do
	requests_are_right "the agent killed and started again: $name" "$scratch/$name.report" "$(number $name requests)"
	check "the agent killed and started again: $name went on" [ "$(number $name requests)" -gt 500 ]
done

# --- the ring is changed ---------------------------------------------------------------------------------------
begin one $api4
begin other $api6
failures=0
for ((change = 0; change < changes; change += 2)); do
	warmpath replica drain llm-2 >>"$scratch/output" 2>&1 || failures=$((failures + 1))
	warmpath replica undrain llm-2 >>"$scratch/output" 2>&1 || failures=$((failures + 1))
done
is "$changes changes of the ring were accepted" $failures 0
end one
end other
for name in one other; do
	is "$changes changes of the ring: $name: nothing failed, nothing was reset, no byte differs" \
		"$(number $name failed) $(number $name reset) $(number $name different) $(($(number $name requests) - $(number $name answered)))" "0 0 0 0"
	is "$changes changes of the ring: $name: every answer is by the old home or the new one" "$(strays $name "$scratch/homes-2")" ""
	check "$changes changes of the ring: $name: they were seen" [ "$(number $name astray)" -gt 0 ]
done

# --- a replica is drained under open requests -----------------------------------------------------------------
# streams NAME: a stream of 2.5 s for each of 24 conversations, each on a connection of its own
streams() {
	local id address=$api4
	stream_processes=()
	while read -r id _; do
		tools/lab exec client curl -sS -N -H "x-conversation-id: $id" "http://$address:8000/events?count=50&interval=50" \
			>"$scratch/stream-$id" 2>/dev/null &
		stream_processes+=($!)
		if [ "$address" = $api4 ]; then address="[$api6]"; else address=$api4; fi
	done < <(head -n 24 "$scratch/plan")
	wait_until 5 all_streams_begun
}

all_streams_begun() {
	local id
	while read -r id _; do [ -s "$scratch/stream-$id" ] || return 1; done < <(head -n 24 "$scratch/plan")
}

# broken_streams: the conversations whose stream did not come whole, from its home
broken_streams() {
	local id home i
	while read -r id home; do
		cmp -s "$scratch/stream-$id" <(for ((i = 0; i < 50; i++)); do printf 'data: %s %s %d\n\n' "$home" "$id" $i; done) || echo "$id"
	done < <(head -n 24 "$scratch/plan")
}

begin one $api4
streams
warmpath replica drain llm-2 >"$scratch/output"
wait "${stream_processes[@]}"
is "a replica is drained: every open stream ends whole, those on it too" "$(broken_streams)" ""
end one
is "a replica is drained: nothing failed" "$(number one failed) $(number one reset) $(number one different)" "0 0 0"
begin one $api4
sleep 1
end one
is "drained: none of its conversations goes to it any more" \
	"$(awk '$1 == "astray" {print $2, $3}' "$scratch/one.report" | sort -u)" \
	"$(grep ' llm-2$' "$scratch/plan" | cut -d ' ' -f 1 | while read -r id; do grep "^$id " "$scratch/homes-2"; done | sort -u)"
warmpath replica undrain llm-2 >"$scratch/output"

# --- a replica is killed under open requests --------------------------------------------------------------------
grep ' llm-1$' "$scratch/plan" | cut -d ' ' -f 1 >"$scratch/on-llm-1"
begin one $api4
begin other $api6
streams
sleep 0.5
kill -KILL "$(cat "$run/llm-1/server.pid")"
wait "$(cat "$run/llm-1/server.pid")" 2>/dev/null
wait "${stream_processes[@]}"
is "a replica is killed: exactly the streams fail that were open on it" "$(broken_streams)" \
	"$(head -n 24 "$scratch/plan" | awk '$2 == "llm-1" {print $1}')"
end one
end other
for name in one other; do
	is "a replica is killed: $name: nothing fails but requests of its conversations" \
		"$(awk '$1 == "failed" {print $2}' "$scratch/$name.report" | sort -u | grep -vxFf "$scratch/on-llm-1")" ""
	note "$name: $(awk '$1 == "failed" {$1 = $2 = $3 = $4 = ""; print}' "$scratch/$name.report" | sort | uniq -c | tr -s ' ' | tr '\n' ';')"
	is "a replica is killed: $name: no byte differs" "$(number $name different)" 0
done
warmpath replica remove llm-1 >"$scratch/output"
begin one $api4
sleep 1
end one
is "removed: nothing fails" "$(number one failed) $(number one reset) $(number one different)" "0 0 0"

# --- and comes back -----------------------------------------------------------------------------------------------
tools/lab exec llm-1 node --max-http-header-size=65536 "$run/llm-1/server.js" >"$run/llm-1/server.log" 2>&1 &
echo $! >"$run/llm-1/server.pid"
http_servers_answer
begin other $api6
tools/lab replica add llm-1
sleep 1
end other
is "added again: nothing fails meanwhile" "$(number other failed) $(number other reset) $(number other different)" "0 0 0"
in_client "$build/tests/e2e/http_requests" --requests 1000 --connections 16 $api4 8000 "$scratch/plan" "$scratch/expected" >"$scratch/one.report" 2>&1
requests_are_right "added again: all as before" "$scratch/one.report" 1000
is "nothing is left charged" "$(warmpath replica list --json | jq '[.. | .requests? // empty] | add // 0')" 0
http_servers_stop
