#!/bin/bash
# Draining while an answer is being streamed: it comes to its end, the next turn is served elsewhere, and the drain says when nothing is
# open any more. The stream takes a few seconds, or as many as WARMPATH_STREAM_SECONDS says (60 for the long form).
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

seconds=${WARMPATH_STREAM_SECONDS:-$((4 * ${WAIT_FACTOR:-1}))}
# 13.4 ms for each and 0.0083 ms more for each that is there already: tools/simreplica's model at a tenth of its speed
tokens=$(awk -v s="$seconds" 'BEGIN { printf "%d", (sqrt(13.4 * 13.4 + 4 * 0.00415 * s * 1000) - 13.4) / (2 * 0.00415) }')
lab_up --replicas 3 --servers none
run=$(tools/lab path run)
for index in 0 1 2; do
	tools/lab exec "llm-$index" "$build/tools/simreplica" --host :: --port 8001 --name "llm-$index" --speed 0.1 --model rand-25m \
		--ctx-size 65536 --answer-tokens 100000 >"$scratch/llm-$index.log" 2>&1 &
	disown
done
tools/lab config --services api,web >"$run/agent.yaml"
tools/lab handoff start >"$scratch/output" 2>&1 || bail "warmpathd starts on the replicas"
tools/lab agent start >"$scratch/output" 2>&1 || bail "warmpathd starts"

ask() { # id file max-tokens options of curl...
	local id=$1 file=$2 tokens=$3
	shift 3
	in_host client curl -s -N -m $((seconds + 60)) -D "$file.head" -o "$file" -H "x-conversation-id: $id" "$@" \
		-d '{"messages":[{"role":"user","content":"how are you"}],"max_tokens":'"$tokens"',"stream":true}' \
		"${url:-http://10.9.9.8:8000}/v1/chat/completions"
}
served_by() { sed -n 's/^X-Served-By: \([^\r]*\).*/\1/ip' "$1.head"; }
complete() { tail -n 3 "$1" | grep -q '^data: \[DONE\]'; }
home_of() { warmpath route "$1" --service "$2" --json | jq -r .home; }
decisions() { warmpath replica list --service api --json | jq -r --arg name "$1" '.replicas[] | select(.name == $name) | .decisions'; }
busy() { [ "$(warmpath replica list --service "$2" --json | jq --arg name "$1" '.replicas[] | select(.name == $name) | .requests')" = 1 ]; }
answering() { grep -q '^data: ' "$1"; }

wait_until 10 ask warm "$scratch/warm" 1
home=$(home_of talk api)
other=$(for id in $(ids 40); do [ "$(home_of "$id" api)" = "$home" ] && echo "$id" && break; done)

# --- a stream, and the drain of its replica ---------------------------------------------------------------------

ask talk "$scratch/talk" "$tokens" &
stream=$!
check "an answer is being streamed" wait_until 10 answering "$scratch/talk"
warmpath replica drain "$home" --service api --wait >"$scratch/drain" 2>"$scratch/drain.said" &
drain=$!
draining() { warmpath replica list --service api --json | jq -e --arg name "$home" '.replicas[] | select(.name == $name) | .state == "draining"'; }
check "the replica is draining" wait_until 5 draining
before=$(decisions "$home")
ask "$other" "$scratch/other" 1
check "another conversation of its is served elsewhere meanwhile" test "$(served_by "$scratch/other")" != "$home"
is "it gets no new requests" "$(decisions "$home")" "$before"
check "the drain waits for the stream" kill -0 $drain
check "and so does the stream go on" kill -0 $stream
wait $stream
is "the stream ends well" $? 0
is "it was the drained replica's" "$(served_by "$scratch/talk")" "$home"
check "it is complete" complete "$scratch/talk"
check "to the last token ($tokens)" test "$(grep -c '"content"' "$scratch/talk")" -ge "$tokens"
wait $drain
is "then the drain is done: exit status" $? 0
note <"$scratch/drain"
matches "it has shown what was open" "$(head -n 1 "$scratch/drain")" "^$home: 1 open request, 1 connection, [0-9]+ s$"
is "and says so" "$(tail -n 1 "$scratch/drain")" "drained: $home has nothing open any more"
ask talk "$scratch/next" 1
check "the next turn is served elsewhere" test "$(served_by "$scratch/next")" != "$home"
is "where route says" "$(served_by "$scratch/next")" "$(home_of talk api)"
check "what is drained is drained at once when asked again" warmpath replica drain "$home" --service api --wait

# --- deadline -----------------------------------------------------------------------------------------------------

warmpath replica undrain "$home" --service api >/dev/null
ask talk "$scratch/long" 100000 &
stream=$!
wait_until 10 answering "$scratch/long"
warmpath replica drain "$home" --service api --deadline 1 >"$scratch/drain" 2>"$scratch/drain.said"
is "a deadline that passes: exit status" $? 1
is "and its sentence" "$(cat "$scratch/drain.said")" \
	"warmpath: replica $home still has 1 open request, 1 connection after 1 s; it goes on draining"
is "as JSON" "$(warmpath replica drain "$home" --service api --deadline 1 --json 2>/dev/null | jq -c '[.ok, .done, .requests]')" '[false,"draining",1]'
# a file of its own, as the other one says "open" from before
warmpath replica drain "$home" --service api --wait >"$scratch/meanwhile" 2>"$scratch/drain.said" &
drain=$!
wait_until 20 grep -q open "$scratch/meanwhile"
warmpath replica undrain "$home" --service api >/dev/null
wait $drain
is "undrained meanwhile: exit status" $? 1
matches "and the sentence" "$(cat "$scratch/drain.said")" "replica $home is not being drained any more"
kill $stream
warmpath replica drain nobody --service api --wait >/dev/null 2>"$scratch/drain.said"
is "a replica that is not there: exit status" $? 1
matches "and the sentence" "$(cat "$scratch/drain.said")" "there is no replica nobody in service api"
warmpath replica drain "$home" --service api --deadline soon >/dev/null 2>&1
is "no number of seconds: exit status" $? 2

# --- by address: the connection is what has to end -----------------------------------------------------------------

url="http://[$(warmpath address talk --service web)]:8000"
home=$(home_of talk web)
ask talk "$scratch/address" "$((tokens / 2))" &
stream=$!
wait_until 10 answering "$scratch/address"
check "by address: the drain waits for the connection" warmpath replica drain "$home" --service web --wait
matches "by address: until the stream has ended" "$(tail -c 200 "$scratch/address")" '\[DONE\]'
wait $stream
is "by address: the stream ends well" $? 0
is "by address: it was the drained replica's" "$(served_by "$scratch/address")" "$home"
