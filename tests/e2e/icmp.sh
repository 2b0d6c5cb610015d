#!/bin/bash
# ICMP and MTU: smaller links on either side, closed ports, TTLs. The client is behind another router (gateway), so that errors
# about replies come from a machine on the way. A veth takes no frame larger than its own MTU: so each case is about the direction
# that leaves through the smaller link.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

for mode in native tc; do
	lab_up --replicas 2 --mode $mode --gateway
	agent_up --mode $mode
	run=$(tools/lab path run)
	ids 20 >"$scratch/ids"
	homes llm-0,llm-1 <"$scratch/ids" >"$scratch/homes"
	addressed "$scratch/ids" >"$scratch/addressed"
	address=$(awk 'NR == 1 {print $2}' "$scratch/addressed")
	home=$(awk 'NR == 1 {print $2}' "$scratch/homes")

	# sized: datagrams larger than the path's MTU, tried again once the error has come, are answered by their homes
	sized() { # description options...
		local description=$1
		shift
		for to in 10.9.9.9 fd00:9::9; do
			datagrams client --tries 4 --timeout 300 "$@" 8000 $to <"$scratch/ids" |
				grep -v '^total' >"$scratch/answers"
			same "$mode: $description, to $to" "$scratch/answers" "$scratch/homes"
		done
	}

	in_host router ip link set eth1 mtu 1400
	sized "a smaller MTU towards the replicas: datagrams of 1450 bytes" --size 1450
	is "$mode: a smaller MTU towards the replicas: an upload" \
		"$(in_host client curl -sS --max-time 20 --data-binary "@$run/large" "http://[$address]:8000/upload")" "$home 33554432"
	check "$mode: the router answered what was too big" test "$(counter answered_too_big)" -gt 0
	in_host router ip link set eth1 mtu 1500

	address=$(awk 'NR == 2 {print $2}' "$scratch/addressed")
	in_host gateway ip link set eth0 mtu 1350
	sized "a smaller MTU beyond the router: answers of 1450 bytes" --answer-size 1450
	is "$mode: a smaller MTU beyond the router: a download" \
		"$(in_host client curl -sS --max-time 20 "http://[$address]:8000/large" | sha256sum)" "$(sha256sum <"$run/large")"
	check "$mode: errors about answers reached the replicas" \
		test $(($(counter icmp_forwarded) + $(counter icmp_by_stack))) -gt 0
	in_host gateway ip link set eth0 mtu 1500

	address=$(awk 'NR == 3 {print $2}' "$scratch/addressed") home=$(awk 'NR == 3 {print $2}' "$scratch/homes")
	in_host router ip link set eth0 mtu 1300
	sized "a smaller MTU at the router itself: answers of 1450 bytes" --answer-size 1450
	is "$mode: a smaller MTU at the router itself: a download" \
		"$(in_host client curl -sS --max-time 20 "http://[$address]:8000/large" | sha256sum)" "$(sha256sum <"$run/large")"
	in_host router ip link set eth0 mtu 1500

	# closed ports: the error comes from the address that the client knows
	tools/lab servers stop "$home"
	id=$(awk 'NR == 3 {print $1}' "$scratch/homes")
	is "$mode: a closed port, IPv4" "$(echo "$id" | datagrams client 8000 10.9.9.9 | head -n 1)" "$id ! 3 3 10.9.9.9"
	is "$mode: a closed port, IPv6" "$(echo "$id" | datagrams client 8000 fd00:9::9 | head -n 1)" "$id ! 1 4 fd00:9::9"
	is "$mode: a closed port, the id in the address" \
		"$(echo "$id $address" | datagrams client 8000 | head -n 1)" "$id ! 1 4 $address"
	in_host client curl -sS --max-time 5 "http://[$address]:8000/x" >"$scratch/output" 2>&1
	is "$mode: a closed TCP port is refused, not left hanging" "$?" 7
	tools/lab servers start "$home"

	# the hops between: 1 the gateway, 2 the router (it answers for the service), 3 the replica
	is "$mode: TTL 1" "$(echo "$id" | datagrams client --ttl 1 8000 10.9.9.9 | head -n 1)" "$id ! 11 0 10.0.1.1"
	matches "$mode: TTL 2" "$(echo "$id" | datagrams client --ttl 2 8000 10.9.9.9 | head -n 1)" "^$id ! 11 0 (10.9.9.9|10.0.3.2)$"
	is "$mode: TTL 3" "$(echo "$id" | datagrams client --ttl 3 8000 10.9.9.9 | head -n 1)" "$id $home"
	is "$mode: hop limit 1" "$(echo "$id" | datagrams client --ttl 1 8000 fd00:9::9 | head -n 1)" "$id ! 3 0 fd00:1::1"
	matches "$mode: hop limit 2" "$(echo "$id" | datagrams client --ttl 2 8000 fd00:9::9 | head -n 1)" \
		"^$id ! 3 0 (fd00:9::9|fd00:3::2)$"
	is "$mode: hop limit 3" "$(echo "$id" | datagrams client --ttl 3 8000 fd00:9::9 | head -n 1)" "$id $home"
	check "$mode: the router answered where the TTL ended" test "$(counter answered_time_exceeded)" -gt 0
done
