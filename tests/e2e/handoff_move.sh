#!/bin/bash
# Connections that move leave nothing behind: the socket at the former replica is closed at once, and the client hears nothing of it. A replica
# whose server has gone costs one request a sentence, and the agent says which replica it was.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

lab_up --replicas 3 --mode native --servers http
agent_up --mode native --services api
check "the replicas take connections over" tools/lab handoff start
ids 30 >"$scratch/ids"
homes llm-0,llm-1,llm-2 <"$scratch/ids" | awk '{print $2}' >"$scratch/homes"

established() { # of all replicas: "NAME COUNT", of those that have any
	local number count
	for number in 0 1 2; do
		count=$(in_host llm-$number ss -Htn state established "sport = :8001" | wc -l)
		[ "$count" = 0 ] || echo "llm-$number $count"
	done
}
only_at() { [ "$(established)" = "$1 1" ]; }

# client ADDRESS: one connection, a request for each id on standard input; says who answered, or what went wrong
client() {
	in_host client python3 -uc '
import http.client, sys
connection = http.client.HTTPConnection(sys.argv[1], 8000, timeout=20)
for line in sys.stdin:
    try:
        connection.request("GET", "/x", headers={"x-conversation-id": line.strip()})
        answer = connection.getresponse()
        print(answer.read().decode().split()[0] if answer.status == 200 else answer.status)
    except OSError as error:
        print(error)
' "$1"
}

all_answered() { [ "$(wc -l <"$scratch/answers")" = 30 ]; }
for address in 10.9.9.8 fd00:9::8; do
	mkfifo "$scratch/requests"
	client "$address" <"$scratch/requests" >"$scratch/answers" &
	exec 5>"$scratch/requests"
	cat "$scratch/ids" >&5
	wait_until 60 all_answered
	same "$address: each request of one connection is answered by the home of its conversation" "$scratch/answers" "$scratch/homes"
	wait_until 10 only_at "$(tail -n 1 "$scratch/homes")"
	is "$address: only the last replica has a socket of it" "$(established)" "$(tail -n 1 "$scratch/homes") 1"
	is "$address: and is counted there" "$(warmpath replica list --json | jq -r '.. | objects | select(.flows? > 0) | "\(.name) \(.flows)"')" \
		"$(tail -n 1 "$scratch/homes") 1"
	exec 5>&-
	wait
	rm "$scratch/requests"
done
is "no replica had to be told so a second time" "$(counter reset_stale_socket)" 0

# the server of the first id's home ends, and does not come back
gone=$(head -n 1 "$scratch/homes")
one=$(head -n 1 "$scratch/ids")
tools/lab servers stop "$gone"
answers=$(printf '%s\n' "$one" "$one" | client 10.9.9.8)
is "the request that its replica refuses is answered at once" "$(head -n 1 <<<"$answers")" 503
matches "and the next one elsewhere" "$(tail -n 1 <<<"$answers")" '^llm-[0-9]$'
told() { grep -q "replica $gone of service api refuses connections" "$(tools/lab path run)/agent.log"; }
wait_until 10 told
check "the agent says which replica refuses" told
tools/lab servers start "$gone"
back() { [ "$(client 10.9.9.8 <<<"$one")" = "$gone" ]; }
check "the replica serves its conversations again once its server is back" wait_until 20 back

# the same servers behind an id in the path: connections are routed once
agent_yaml=$(tools/lab path run)/agent.yaml
sed -e 's/from: header/from: offset/' -e 's/names: \[x-conversation-id\]/offset: 7/' -e 's/key_bytes: 256/length: 32/' \
	-e 's/trust_token_headers: true/prompt_tokens_offset: none\n      max_tokens_offset: none/' "$agent_yaml" >"$scratch/offset.yaml"
cp "$scratch/offset.yaml" "$agent_yaml"
check "id.from: offset over TCP is a change like any other" tools/lab agent reload
while read -r id; do
	for address in 10.9.9.8 '[fd00:9::8]'; do
		in_host client curl -sS --max-time 10 "http://$address:8000/c/$id/v1" | awk '{print $1}'
	done
done <"$scratch/ids" >"$scratch/answers"
# every id twice, by both families
awk '{print; print}' "$scratch/homes" >"$scratch/homes-twice"
same "the id in the path, GET /c/ID/v1: each is answered by its home" "$scratch/answers" "$scratch/homes-twice"
charged() { warmpath replica list --json | jq '[.. | objects | select(has("requests")).requests] | add'; }
mkfifo "$scratch/hold"
in_host client python3 -c '
import socket, sys
connection = socket.create_connection(("10.9.9.8", 8000))
connection.sendall(b"GET /c/conv-1/v1 HTTP/1.1\r\nHost: a\r\n\r\n")
connection.recv(1000)
sys.stdin.read()' <"$scratch/hold" &
exec 6>"$scratch/hold"
charged_are() { [ "$(charged)" = "$1" ]; }
check "a connection is charged as long as it is open" wait_until 10 charged_are 1
exec 6>&-
check "and not longer" wait_until 10 charged_are 0
