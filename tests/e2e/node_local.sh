#!/bin/bash
# Several servers on one machine behind one public port: shape node-local.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/http.sh
. tests/http.sh

lab_up --replicas 4 --mode tc --shape node-local
agent_up --mode tc
run=$(tools/lab path run)
ids 200 >"$scratch/ids"
homes llm-0,llm-1,llm-2,llm-3 <"$scratch/ids" >"$scratch/homes-4"
homes llm-0,llm-1,llm-2 <"$scratch/ids" >"$scratch/homes-3"
addressed "$scratch/ids" >"$scratch/addressed"

for address in 10.0.1.1 fd00:1::1; do
	datagrams client 8000 $address <"$scratch/ids" | grep -v '^total' >"$scratch/answers"
	same "datagrams to $address, port 8000: each id is answered by its home" "$scratch/answers" "$scratch/homes-4"
done
connections_start hold "$scratch/addressed" client --source-port 4444 8000
is "connections from one source port, the id in the address" "$(connections_round hold)" "round answered=200 broken=0 moved=0"
same "each of them is at its home" "$scratch/hold.round" "$scratch/homes-4"
address=$(awk 'NR == 1 {print $2}' "$scratch/addressed")
is "HTTPS" "$(in_host client curl -sSk --max-time 5 "https://[$address]:8443/x" | awk '{print $1}')" \
	"$(awk 'NR == 1 {print $2}' "$scratch/homes-4")"
is "a large download arrives as it was sent" \
	"$(in_host client curl -sS "http://[$address]:8000/large" | sha256sum)" "$(sha256sum <"$run/large")"
is "a large upload arrives whole" \
	"$(in_host client curl -sS --data-binary "@$run/large" "http://[$address]:8000/upload")" \
	"$(awk 'NR == 1 {print $2}' "$scratch/homes-4") 33554432"
is "what is not for a service is not touched: a server's own port" \
	"$(in_host client curl -sS 10.0.1.1:8003/x)" "llm-2 /x"

# Local ports come again while the server's side of them is still in TIME-WAIT: what the router itself says to the client on the way out is no
# answer of the old connection.
http_files 0 1448
http_plan 100
http_expect || bail "every server answers directly"
in_host client "$build/tests/e2e/http_requests" --requests 2000 --fresh --connections 4 --ports 40000-40099 10.0.1.1 8000 "$scratch/plan" \
	"$scratch/expected" >"$scratch/fresh"
matches "a connection for each request, each local port twenty times" "$(tail -n 1 "$scratch/fresh")" \
	'^requests=2000 answered=2000 failed=0 reset=0 astray=0 different=0 '
handshakes=$(counter answered_handshake)
check "the last step of each handshake ends at the router: $handshakes" [ "$(counter absorbed_handshake)" -ge $((handshakes * 99 / 100)) ]
in_host client "$build/tests/e2e/http_requests" --requests 2000 --connections 4 10.0.1.1 8000 "$scratch/plan" "$scratch/expected" >"$scratch/kept"
matches "connections that move between servers of one machine" "$(tail -n 1 "$scratch/kept")" \
	'^requests=2000 answered=2000 failed=0 reset=0 astray=0 different=0 '

traffic_start drained "$scratch/ids" client --rate 1500 8000 10.0.1.1
sleep 1
tools/lab replica drain llm-3
sleep 1
is "a drained replica keeps its connections" "$(connections_round hold)" "round answered=200 broken=0 moved=0"
traffic_stop drained
traffic_is_whole drained
is "every datagram was answered by a home of its id" \
	"$(unexpected "$scratch/drained.ledger" "$scratch/homes-3" "$scratch/homes-4")" ""
connections_start fresh "$scratch/addressed" client 8000
connections_round fresh >"$scratch/output"
same "and gets no new ones" "$scratch/fresh.round" "$scratch/homes-3"
connections_stop fresh
connections_stop hold
