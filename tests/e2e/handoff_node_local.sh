#!/bin/bash
# Several servers on one machine behind one public port (shape node-local), which listen on loopback alone: every request reaches the server of
# its conversation, over IPv4 and IPv6, also when one is drained, killed and started again.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/http.sh
. tests/http.sh

# Each server twice, on either loopback address.
server_start() { # NAME PORT
	local host
	node_server "$1" "$run/$1" "$2" >"$run/$1/server.js"
	for host in 127.0.0.1 ::1; do
		sed "s/host: '::'/host: '$host'/" "$run/$1/server.js" >"$run/$1/server-$host.js"
		tools/lab exec router node "$run/$1/server-$host.js" >"$run/$1/server.log" 2>&1 &
		echo $! >"$run/$1/server-$host.pid"
	done
	for host in 127.0.0.1 "[::1]"; do
		wait_until 15 in_host router curl -sS -o /dev/null "http://$host:$2/" || bail "$1 answers at $host port $2"
	done
}

requests() { # NAME DESCRIPTION COUNT OPTIONS... ADDRESS
	local name=$1 description=$2 count=$3
	shift 3
	in_client "$build/tests/e2e/http_requests" --requests "$count" "$@" 8000 "$scratch/plan" "$scratch/expected" \
		>"$scratch/$name.report" 2>&1
	requests_are_right "$description" "$scratch/$name.report" "$count"
}

lab_up --replicas 3 --mode tc --shape node-local --servers none
http_files 0 1000 20000
http_plan 120
while read -r name _ _ port _; do
	server_start "$name" "$port"
	mkdir -p "$scratch/expected/$name"
	for file in "$run/$name/files"/*; do
		in_host router curl -sS "http://127.0.0.1:$port/files/${file##*/}" >"$scratch/expected/$name/${file##*/}"
	done
done < <(tools/lab list)
check "every server answers directly" diff -r "$scratch/expected/llm-2" "$run/llm-2/files"
tools/lab config --mode tc --services api | sed '/name: llm-/s/"10[^]]*"/"127.0.0.1", "::1"/' >"$run/agent.yaml"
check "replicas may be on loopback" "$build/warmpathd" --check -c "$run/agent.yaml"
check "warmpathd starts" tools/lab agent start
is "the first one adopts nothing" "$(warmpath status --json | jq .adopted)" false
well=$(in_host router "$build/warmpath" doctor --quiet)
is "the doctor has nothing to say" "$(grep -c '^PROBLEM\|^WARNING' <<<"$well")" 0 || note "$well"

requests four "3000 requests over 32 connections, IPv4" 3000 --connections 32 10.0.1.1
requests six "3000 requests over 32 connections, IPv6" 3000 --connections 32 fd00:1::1
requests fresh4 "500 local ports, each three times, IPv4" 1500 --fresh --connections 16 --ports 20000-20499 10.0.1.1
requests fresh6 "500 local ports, each three times, IPv6" 1500 --fresh --connections 16 --ports 20000-20499 fd00:1::1

ids 120 | homes llm-0,llm-1 >"$scratch/homes-2"
cp "$scratch/plan" "$scratch/plan-3"
warmpath replica drain llm-2 >"$scratch/output"
cp "$scratch/homes-2" "$scratch/plan"
requests drained "a server is drained" 1000 --connections 16 10.0.1.1
warmpath replica undrain llm-2 >"$scratch/output"
cp "$scratch/plan-3" "$scratch/plan"

tools/lab exec client "$build/tests/e2e/http_requests" --requests 0 --connections 16 --pause 5 10.0.1.1 8000 "$scratch/plan" \
	"$scratch/expected" >"$scratch/killed.report" 2>&1 &
busy=$!
sleep 1
kill -KILL "$(cat "$run/llm-1/server-127.0.0.1.pid")" "$(cat "$run/llm-1/server-::1.pid")"
sleep 1
warmpath replica remove llm-1 >"$scratch/output"
sleep 1
kill -TERM $busy
wait $busy
note "$(tail -n 1 "$scratch/killed.report")"
is "a server is killed: nothing fails but requests of its conversations" \
	"$(awk '$1 == "failed" {print $2}' "$scratch/killed.report" | sort -u | grep -vxFf <(grep ' llm-1$' "$scratch/plan" | cut -d ' ' -f 1))" ""
is "a server is killed: no byte differs" "$(counted different <"$scratch/killed.report")" 0
server_start llm-1 8002
check "it comes back" warmpath replica add llm-1 --service api --address 127.0.0.1 --address ::1 --port 8002
requests back "all as before" 1000 --connections 16 fd00:1::1
is "nothing is left charged" "$(warmpath replica list --json | jq '[.. | .requests? // empty] | add // 0')" 0
