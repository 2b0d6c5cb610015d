#!/bin/bash
# The lab itself: hosts reach each other by plain routing, the traffic programs see what is there, nothing is left behind.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

lab_up --replicas 3 --clients 2
run=$(tools/lab path run)

is "the lab lists its replicas" "$(tools/lab list | tail -n 1)" "llm-2 10.0.2.12 fd00:2::12 8001 8443"
for address in 10.0.2.11 '[fd00:2::11]'; do
	is "HTTP to $address" "$(in_host client curl -s "$address:8001/x")" "llm-1 /x"
	is "HTTPS to $address" "$(in_host client-1 curl -sk "https://$address:8443/x")" "llm-1 /x"
done
is "a large download arrives as it was sent" \
	"$(in_host client curl -s 10.0.2.10:8001/large | sha256sum)" "$(sha256sum <"$run/large")"
is "a large upload arrives whole" \
	"$(in_host client curl -s --data-binary "@$run/large" '[fd00:2::12]:8001/upload')" "llm-2 33554432"

cat >"$scratch/targets" <<-TARGETS
	a 10.0.2.10
	b fd00:2::11
	c 10.0.2.12
TARGETS
datagrams client --source-port 5000 8001 <"$scratch/targets" >"$scratch/answers"
is "each datagram is answered by whom it was sent to" "$(head -n 3 "$scratch/answers" | paste -sd ' ')" \
	"a llm-0 b llm-1 c llm-2"
ids 100 | datagrams client --rate 2000 --seconds 1 8001 fd00:2::10 >"$scratch/ledger"
is "continuous datagrams: none lost" "$(total "$scratch/ledger" lost)" 0
is "continuous datagrams: each id has its line" "$(grep -c ' 0 llm-0$' "$scratch/ledger")" 100
is "datagrams in fragments, both ways" \
	"$(echo a | datagrams client --size 9000 --answer-size 30000 8001 10.0.2.10 | head -n 1)" "a llm-0"
is "a closed port is reported, with who said so" \
	"$(echo a | datagrams client 9 10.0.2.10 | head -n 1)" "a ! 3 3 10.0.2.10"
is "a TTL that ends at the router is reported" \
	"$(echo a | datagrams client --ttl 1 8001 fd00:2::10 | head -n 1)" "a ! 3 0 fd00:1::1"

# every 4-tuple differs in the address only
printf '%s\n' "a 10.0.2.10" "b 10.0.2.11" "c 10.0.2.12" >"$scratch/targets"
printf 'round\nrounds 3 10\n' |
	in_host client "$build/tests/e2e/connections" --source-port 5001 8001 "$scratch/targets" >"$scratch/rounds"
is "connections from one port to several addresses" "$(grep -c 'round answered=3 broken=0 moved=0' "$scratch/rounds")" 2
{
	echo round
	tools/lab servers stop llm-1
	sleep 0.3
	echo round
} | in_host client "$build/tests/e2e/connections" 8001 "$scratch/targets" >"$scratch/rounds"
is "a connection that breaks is noticed" "$(tail -n 1 "$scratch/rounds")" "round answered=2 broken=1 moved=0"
is "a server that is away is noticed" "$(echo a | datagrams client 8001 10.0.2.11 | head -n 1)" "a ! 3 3 10.0.2.11"
tools/lab servers start llm-1
is "and it comes back" "$(in_host client curl -s 10.0.2.11:8001/x)" "llm-1 /x"

is "a replica can be added" "$(tools/lab add-replica)" "llm-3 10.0.2.13 fd00:2::13 8001 8443"
is "and answers" "$(in_host client curl -s '[fd00:2::13]:8001/x')" "llm-3 /x"

lab_up --shape node-local --gateway --replicas 2
is "node-local: servers on ports of the router, behind another router" \
	"$(in_host client curl -s '[fd00:3::2]:8002/x')" "llm-1 /x"
matches "making a lab of the same name again leaves one" "$(ip netns list | grep -c "^$WARMPATH_LAB-router")" '^1$'

sleep 1000 &
outside=$!
in_host router sleep 1000 &
inside=$!
tools/lab down
left=$(compgen -G "/run/netns/$WARMPATH_LAB-*" || compgen -G "$run*")
is "nothing is left of it" "$left" ""
check "a process that ran in it is gone" bash -c "! kill -0 $inside"
check "a process outside is not touched" kill -0 $outside
kill $outside
