#!/bin/bash
# Ids in the IPv6 address: any TCP or UDP client, TLS included, many connections of one client at once, also from one port.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

ids 200 >"$scratch/ids"
homes llm-0,llm-1,llm-2 <"$scratch/ids" >"$scratch/homes"

for mode in native tc; do
	lab_up --replicas 3 --mode $mode
	agent_up --mode $mode
	addressed "$scratch/ids" >"$scratch/addressed"
	is "$mode: each id has an address of its own in the prefix" \
		"$(awk '{print $2}' "$scratch/addressed" | grep -c '^fd00:a:' || true) $(awk '{print $2}' "$scratch/addressed" | sort -u | wc -l)" \
		"200 200"

	while read -r id address; do
		echo "$id $(in_host client curl -sS --max-time 5 "http://[$address]:8000/$id" | awk '{print $1}')"
	done < <(head -n 20 "$scratch/addressed") >"$scratch/answers" 2>&1
	same "$mode: HTTP to an id's address is answered by its home" "$scratch/answers" <(head -n 20 "$scratch/homes")

	while read -r id address; do
		printf 'url = "https://[%s]:8443/%s"\noutput = "%s"\n' "$address" "$id" "$scratch/tls-$id"
	done <"$scratch/addressed" >"$scratch/curl"
	in_host client curl --no-progress-meter -k --max-time 20 --parallel --parallel-max 100 --config "$scratch/curl" 2>&1 | note
	while read -r id; do echo "$id $(cut -d ' ' -f 1 "$scratch/tls-$id" 2>/dev/null)"; done <"$scratch/ids" >"$scratch/answers"
	same "$mode: HTTPS, 200 in parallel, each answered by its home" "$scratch/answers" "$scratch/homes"
	rm -f "$scratch"/tls-*

	connections_start hold "$scratch/addressed" client --source-port 4444 8000
	is "$mode: 200 connections from one source port work at once" "$(connections_round hold)" \
		"round answered=200 broken=0 moved=0"
	same "$mode: each of them is at its home" "$scratch/hold.round" "$scratch/homes"
	is "$mode: and they stay there" "$(connections_round hold rounds 5 50)" "round answered=200 broken=0 moved=0"
	check "$mode: where they would collide, the port was translated" test "$(counter note_port_translated)" -gt 0
	connections_stop hold

	datagrams client 8000 <"$scratch/addressed" | grep -v '^total' >"$scratch/answers"
	same "$mode: datagrams to an id's address are answered by its home" "$scratch/answers" "$scratch/homes"
	datagrams client --source-port 4445 8000 <"$scratch/addressed" | grep -v '^total' >"$scratch/answers"
	same "$mode: the same from one source port" "$scratch/answers" "$scratch/homes"

	run=$(tools/lab path run)
	address=$(awk 'NR == 1 {print $2}' "$scratch/addressed")
	is "$mode: a large download arrives as it was sent" \
		"$(in_host client curl -sS "http://[$address]:8000/large" | sha256sum)" "$(sha256sum <"$run/large")"
	is "$mode: a large upload arrives whole" \
		"$(in_host client curl -sS --data-binary "@$run/large" "http://[$address]:8000/upload")" \
		"$(awk 'NR == 1 {print $2}' "$scratch/homes") 33554432"
done
