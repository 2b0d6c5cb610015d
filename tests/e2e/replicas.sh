#!/bin/bash
# 3 -> 4 -> 3 replicas under continuous traffic: only the conversations that the ring says move, nothing is lost, no connection
# breaks, not the idle one and not the long download. Draining, undraining, removing.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

lab_up --replicas 3 --mode native
agent_up --mode native
run=$(tools/lab path run)
started=$SECONDS

ids 300 >"$scratch/ids"
homes llm-0,llm-1,llm-2 <"$scratch/ids" >"$scratch/homes-3"
homes llm-0,llm-1,llm-2,llm-3 <"$scratch/ids" >"$scratch/homes-4"
differing "$scratch/homes-3" "$scratch/homes-4" >"$scratch/to-move"
check "the fourth replica takes some of the ids" test -s "$scratch/to-move"
addressed "$scratch/ids" >"$scratch/addressed"
head -n 50 "$scratch/addressed" >"$scratch/addressed-50"

download() { # name address: a long download, 16 s
	tools/lab exec client curl -sS "http://[$2]:8000/slow" 2>"$scratch/$1.error" | sha256sum >"$scratch/$1.sum" &
	downloads="${downloads-} $!"
}

downloaded() { # description name
	is "$1" "$(cat "$scratch/$2.sum" "$scratch/$2.error")" "$(sha256sum <"$run/large")"
}

connections_start idle "$scratch/addressed-50" client 8000
is "connections are open before the change" "$(connections_round idle)" "round answered=50 broken=0 moved=0"
connections_start busy "$scratch/addressed-50" client 8000
connections_round busy >"$scratch/output"
traffic_start offset-ipv4 "$scratch/ids" client --rate 1500 8000 10.9.9.9
traffic_start offset-ipv6 "$scratch/ids" client --rate 500 8000 fd00:9::9
traffic_start by-address "$scratch/addressed" client --rate 500 8000
first=$(awk 'NR == 1 {print $2}' "$scratch/addressed")
download early "$first"
sleep 2

tools/lab add-replica >"$scratch/output"
tools/lab replica add llm-3
routes chat <"$scratch/ids" >"$scratch/routes"
same "3 -> 4: warmpath routes as the ring of four" "$scratch/routes" "$scratch/homes-4"
is "3 -> 4: connections in use stay where they are" "$(connections_round busy rounds 10 50)" \
	"round answered=50 broken=0 moved=0"
connections_start late "$scratch/addressed" client 8000
is "3 -> 4: new connections work" "$(connections_round late)" "round answered=300 broken=0 moved=0"
same "3 -> 4: and go where the ring of four says" "$scratch/late.round" "$scratch/homes-4"
# a download from the new replica, which is to be drained under it
moving=$(join <(sort "$scratch/to-move") <(sort "$scratch/addressed") | awk 'NR == 1 {print $2}')
download from-the-new "$moving"
sleep 2

tools/lab replica drain llm-3
routes chat <"$scratch/ids" >"$scratch/routes"
same "drained: warmpath routes as the ring of three" "$scratch/routes" "$scratch/homes-3"
is "drained: connections to the drained replica stay" "$(connections_round late rounds 10 50)" \
	"round answered=300 broken=0 moved=0"
connections_start fresh "$scratch/addressed" client 8000
is "drained: new connections work" "$(connections_round fresh)" "round answered=300 broken=0 moved=0"
same "drained: and none goes to the drained replica" "$scratch/fresh.round" "$scratch/homes-3"
connections_stop fresh
sleep 2
traffic_stop offset-ipv4
traffic_stop offset-ipv6
traffic_stop by-address
for traffic in offset-ipv4 offset-ipv6; do
	traffic_is_whole $traffic
	is "$traffic: no id was answered by any but its two homes" \
		"$(unexpected "$scratch/$traffic.ledger" "$scratch/homes-3" "$scratch/homes-4")" ""
	same "$traffic: exactly the ids that the ring says moved" \
		<(moved "$scratch/$traffic.ledger") <(sort "$scratch/to-move")
	is "$traffic: each of them there and back, once" \
		"$(awk '$1 != "total" && $5 ~ /,/ && $4 != 2' "$scratch/$traffic.ledger")" ""
done
traffic_is_whole by-address
is "by-address: datagrams of one flow stay at their replica, as connections do" "$(moved "$scratch/by-address.ledger")" ""
is "by-address: which is the home they had at first" "$(unexpected "$scratch/by-address.ledger" "$scratch/homes-3")" ""

tools/lab replica undrain llm-3
routes chat <"$scratch/ids" >"$scratch/routes"
same "undrained: warmpath routes as the ring of four again" "$scratch/routes" "$scratch/homes-4"
is "undrained: connections stay" "$(connections_round late)" "round answered=300 broken=0 moved=0"
tools/lab replica remove llm-3
routes chat <"$scratch/ids" >"$scratch/routes"
same "removed: warmpath routes as the ring of three" "$scratch/routes" "$scratch/homes-3"
is "removed: connections to the removed replica go on to their end" "$(connections_round late rounds 3 50)" \
	"round answered=300 broken=0 moved=0"
# shellcheck disable=SC2086  # a list of numbers
wait $downloads
downloaded "a download begun before the change is whole" early
downloaded "a download from the replica that was drained and removed under it is whole" from-the-new
# the idle connections have not been used since the start: wait for their minute to be full
while [ $((SECONDS - started)) -lt 62 ]; do sleep 1; done
is "connections idle for a minute, through all of this, still work" "$(connections_round idle)" \
	"round answered=50 broken=0 moved=0"
same "and are where they were" "$scratch/idle.round" <(head -n 50 "$scratch/homes-3")
connections_stop idle
connections_stop busy
connections_stop late
