#!/bin/bash
# Connections handed over, end to end, with real servers and clients, briefly: for kernels under emulation (tests/e2e asks for much more).
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

conversations=12
ids $conversations >"$scratch/ids"
homes llm-0,llm-1 <"$scratch/ids" | awk '{ print $2 " /x" }' >"$scratch/expected"

# one_connection ADDRESS: a request for each id, all on one connection
one_connection() {
	local id arguments=()
	while read -r id; do
		[ ${#arguments[@]} = 0 ] || arguments+=(--next)
		arguments+=(-sS --max-time 60 -H "x-conversation-id: $id" "http://$1:8000/x")
	done <"$scratch/ids"
	in_host client curl "${arguments[@]}" 2>&1
}

# What doctor finds about taking connections over: "ok" or "problem".
doctor_says() {
	in_host llm-0 "$build/warmpath" doctor --json -c "$(tools/lab path run)/llm-0/agent.yaml" |
		jq -r '.findings[] | select(.check == "kernel-functions") | .level'
}

transfers() { # description address
	local run id=conv-1
	run=$(tools/lab path run)
	one_connection "$2" >"$scratch/answers"
	same "$1: each request of one connection is answered by its home" "$scratch/answers" "$scratch/expected"
	is "$1: a large answer arrives as it was sent" \
		"$(in_host client curl -sS --max-time 90 -r 0-1999999 -H "x-conversation-id: $id" "http://$2:8000/large" | sha256sum)" \
		"$(head -c 2000000 "$run/large" | sha256sum)"
	head -c 500000 "$run/large" >"$scratch/body"
	is "$1: a large request arrives whole" \
		"$(in_host client curl -sS --max-time 90 -H "x-conversation-id: $id" --data-binary "@$scratch/body" "http://$2:8000/upload")" \
		"$(head -n 1 "$scratch/expected" | cut -d ' ' -f 1) 500000"
}

for mode in native tc; do
	lab_up --replicas 2 --mode $mode --servers http
	agent_up --mode $mode --services api
	# of Linux 5.16 and newer; what warmpathd does on older ones (probing now and then) is never needed where its programs load
	is "$mode: the kernel itself keeps the addresses of replicas resolved" \
		"$(in_host router ip -d neigh show dev eth1 | grep -c managed)" 4
	if ! tools/lab handoff start >"$scratch/output" 2>&1; then
		matches "a kernel that cannot take connections over says what it lacks" "$(cat "$scratch/output")" \
			'bpf_sk_assign_tcp_reqsk is missing \(Linux 6.9'
		is "doctor says so, too" "$(doctor_says)" problem
		is "a client is told so" "$(in_host client curl -sS -o /dev/null -w '%{http_code}' --max-time 60 -H 'x-conversation-id: a' http://10.9.9.8:8000/x)" 503
		skip "no bpf_sk_assign_tcp_reqsk (Linux 6.9)" "connections handed over"
		exit 0
	fi
	is "$mode: doctor says that connections can be taken over" "$(doctor_says)" ok
	transfers "$mode, IPv4" 10.9.9.8
	transfers "$mode, IPv6" '[fd00:9::8]'
done

lab_up --replicas 2 --mode tc --shape node-local --servers http
agent_up --mode tc --services api
transfers "node-local" 10.0.1.1
