#!/bin/bash
# The simulated replica against curl and raw connections: the same sequences that were run on a real llama-server (docs/experiments.md),
# connections, streams, clients that leave, SIGTERM.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

lab_up --replicas 1 --servers none
at=10.0.2.10:8001 raw=/dev/tcp/10.0.2.10/8001

replica_start() { # options of simreplica
	tools/lab exec llm-0 "$build/tools/simreplica" --host 10.0.2.10 --name llm-0 --metrics "$@" &
	replica=$!
	wait_until 10 in_host client curl -sf "$at/slots" || bail "simreplica $* starts"
}

replica_stop() {
	kill "$replica"
	wait "$replica" 2>/dev/null
}

ask() { in_host client curl -s "$@"; }

numbers() { seq -s, "$1" "$2"; } # first last: token ids

# completion PROMPT [N_PREDICT]: prints cache_n and prompt_n
completion() {
	ask "$at/completion" -d "{\"prompt\":[$1],\"n_predict\":${2:-1}}" | jq -r '.timings | "\(.cache_n) \(.prompt_n)"'
}

with_answer() { # prompt, n_predict: the prompt, its answer's tokens as they came back
	ask "$at/completion" -d "{\"prompt\":[$1],\"n_predict\":$2}" | jq -r --arg prompt "$1" '$prompt + "," + (.tokens | map(tostring) | join(","))'
}

metric() { ask "$at/metrics" | sed -n "s/^llamacpp:$1 //p"; }

# --- what is cached ----------------------------------------------------------------------------------------

replica_start --slots 1 --ctx-size 8192 --cache-ram 0 --model rand-25m
first=$(with_answer "$(numbers 1 472)" 16)
is "the next turn finds prompt and answer but one" "$(completion "$first,$(numbers 9000 9029)")" "487 31"
is "the identical prompt costs one token" "$(completion "$first,$(numbers 9000 9029)")" "517 1"
is "cache_prompt false finds nothing" \
	"$(ask "$at/completion" -d "{\"prompt\":[$(numbers 1 100)],\"n_predict\":1,\"cache_prompt\":false}" | jq .timings.cache_n)" 0
is "but leaves its result" "$(completion "$(numbers 1 100)")" "99 1"

chat='{"messages":[{"role":"system","content":"be brief"},{"role":"user","content":"one two three"}],"max_tokens":0}'
is "max_tokens 0 warms the cache and gives one token" "$(ask "$at/v1/chat/completions" -d "$chat" | jq .usage.completion_tokens)" 1
is "so the next costs one token" "$(ask "$at/v1/chat/completions" -d "$chat" | jq -r '.timings.prompt_n, .usage.prompt_tokens - .usage.prompt_tokens_details.cached_tokens' | paste -sd ' ')" "1 1"
replica_stop

replica_start --slots 1 --ctx-size 8192 --model rand-70m
a=$(numbers 1 610),$(numbers 10001 10506) b=$(numbers 1 610),$(numbers 20001 20510)
whole=$(with_answer "$a" 9)
completion "$b" 9 >"$scratch/output"
is "two conversations with one system prompt fight for a slot" "$(completion "$whole,$(numbers 30001 30032)" 9)" "610 547"
times=$(ask "$at/completion" -d "{\"prompt\":[$(numbers 40000 41023)],\"n_predict\":100}" | jq -r '.timings | "\(.prompt_ms / 1045 * 100 | round) \(.predicted_ms / 99 / (2.47 + 0.00214 * 1074) * 100 | round)"')
read -r prompt decode <<<"$times"
check "prompt time within a quarter of what was measured ($prompt %)" test "$prompt" -ge 75 -a "$prompt" -le 125
check "decode time within a quarter of the cost function ($decode %)" test "$decode" -ge 75 -a "$decode" -le 125
replica_stop

mkdir "$scratch/saved"
replica_start --slots 2 --ctx-size 600 --speed 5 --slot-prompt-similarity 0 --slot-save-path "$scratch/saved"
ask "$at/completion" -d "{\"prompt\":[$(numbers 1 200)],\"n_predict\":5,\"id_slot\":3}" >"$scratch/answer"
is "id_slot is taken modulo the number of slots" "$(jq .id_slot "$scratch/answer")" 1
is "a slot is saved" "$(ask "$at/slots/1?action=save" -d '{"filename":"talk"}' | jq .n_saved)" 204
is "and erased" "$(ask "$at/slots/1?action=erase" -d '' | jq .n_erased)" 204
is "and restored into another" "$(ask "$at/slots/0?action=restore" -d '{"filename":"talk"}' | jq .n_restored)" 204
is "where it is found" \
	"$(ask "$at/completion" -d "{\"prompt\":[$(numbers 1 200)],\"n_predict\":1,\"id_slot\":0}" | jq .timings.cache_n)" 199
is "a file outside the directory is refused" "$(ask "$at/slots/0?action=save" -d '{"filename":"../x"}' | jq .error.code)" 400

# --- answers ------------------------------------------------------------------------------------------------

hello='{"messages":[{"role":"user","content":"hello there"}],"max_tokens":6}'
stream=${hello%\}},\"stream\":true\}
is "fields of a chat answer" "$(ask "$at/v1/chat/completions" -d "$hello" | jq -r 'keys | join(" ")')" \
	"choices created id model object system_fingerprint timings usage"
is "a stream says the same as a whole answer" \
	"$(ask "$at/v1/chat/completions" -d "$stream" | sed -n 's/^data: {/{/p' | jq -rj '.choices[0].delta.content // ""')" \
	"$(ask "$at/v1/chat/completions" -d "$hello" | jq -rj '.choices[0].message.content')"
is "a stream ends with timings and [DONE]" \
	"$(ask "$at/v1/chat/completions" -d "$stream" | grep -v '^$' | tail -n 2 | sed 's/.*"timings".*/timings/' | paste -sd ' ')" "timings data: [DONE]"
length=$(ask "$at/v1/chat/completions" -d "$stream" | grep -m 1 '"content":" ' | wc -c)
check "an event has about 245 bytes ($length)" test "$length" -gt 220 -a "$length" -lt 270
is "usage on demand, in an event without choices" \
	"$(ask "$at/v1/chat/completions" -d "${stream%\}},\"stream_options\":{\"include_usage\":true}}" | sed -n 's/^data: {/{/p' | jq -c 'select(.usage) | [.choices, .usage.completion_tokens]')" "[[],6]"
is "too long a prompt is refused with both numbers" \
	"$(ask "$at/completion" -d "{\"prompt\":[$(numbers 1 700)]}" | jq -c '.error | [.code, .type, .n_prompt_tokens, .n_ctx]')" \
	'[400,"exceed_context_size_error",700,600]'
is "malformed JSON" "$(ask -o /dev/null -w '%{http_code}' "$at/v1/chat/completions" -d '{"mess')" 500
is "an unknown path" "$(ask "$at/nothing" | jq -r .error.type)" not_found_error
is "who answered" "$(ask -o /dev/null -D - "$at/health" | tr -d '\r' | sed -n 's/^X-Served-By: //p')" llm-0
is "slots" "$(ask "$at/slots" | jq -c '[length, .[0].n_ctx, .[0].is_processing]')" '[2,600,false]'
is "the context of a slot among the properties" "$(ask "$at/props" | jq .default_generation_settings.n_ctx)" 600
check "counters" test "$(metric prompt_tokens_cached_total)" -ge 199

# --- connections --------------------------------------------------------------------------------------------

slow=${stream/hello there/$(seq -s ' ' 400)} # so that the first token is some time behind the head
request=$(printf 'POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s' ${#slow} "$slow")
first_read=$(in_host client bash -c "exec 3<>$raw; printf '%s' \"\$1\" >&3; dd bs=65536 count=1 status=none <&3" - "$request")
matches "the head of a stream comes by itself" "$(tail -c 40 <<<"$first_read" | tr -d '\r\n')" 'Transfer-Encoding: chunked$'
printf 'GET /health HTTP/1.1\r\nHost: x\r\n\r\n%.0s' 1 2 >"$scratch/two"
pipelined=$(in_host client timeout 20 bash -c "exec 3<>$raw; cat '$scratch/two' >&3; cat <&3")
is "two requests in one segment get one answer, then the connection ends" "$(grep -c 'HTTP/1.1 200' <<<"$pipelined")" 1
for _ in $(seq 101); do printf 'url = "http://%s/health"\noutput = /dev/null\n' "$at"; done >"$scratch/many"
is "a connection serves 100 requests" "$(ask -w '%{num_connects}\n' -K "$scratch/many" | grep -c 1)" 2
is "a body in chunks, and 100-continue" \
	"$(ask -H 'Transfer-Encoding: chunked' -H 'Expect: 100-continue' "$at/v1/chat/completions" -d "$hello" | jq .usage.completion_tokens)" 6
replica_stop

# --- clients that leave, streams taken up again ---------------------------------------------------------------

replica_start --slots 1 --ctx-size 8192 --model rand-70m --speed 4 --answer-tokens 5000
predicted() { ask "$at/slots" | jq '.[0].is_processing'; }
long='{"messages":[{"role":"user","content":"go on"}],"max_tokens":5000}'
long_stream=${long%\}},\"stream\":true\}
abandon() { # curl's options: a client that leaves after half a second
	in_host client timeout 0.5 curl -s -o /dev/null "$at/v1/chat/completions" "$@"
}

abandon -d "$long_stream"
check "a stream without client ends at the next token" wait_until 5 test "$(sleep 0.2; predicted)" = false
poll() { # for three seconds, many to a process: less than a second lies between two of them on a busy machine, too
	local started=$SECONDS
	until [ $((SECONDS - started)) -ge 3 ]; do ask -o "$scratch/slots" "$at/slots?[1-200]"; done
}
poll &
polls=$!
abandon -d "$long"
wait "$polls"
is "polling /slots hides that a client has left" "$(jq '.[0].is_processing' "$scratch/slots")" true
sleep 1.5
is "a second without results shows it" "$(predicted)" false

abandon -H 'X-Conversation-Id: talk' -d "$long_stream"
is "with X-Conversation-Id an answer goes on without its client" "$(predicted)" true
tools/lab exec client curl -s -N "$at/v1/stream?conv_id=talk&from=0" >"$scratch/replayed" &
replay=$!
sleep 0.3
is "and is found" "$(ask "$at/v1/streams/lookup" -d '{"conversation_ids":["talk","other"]}' | jq -c '[.[] | [.conversation_id, .is_done]]')" '[["talk",false]]'
ask -H 'X-Conversation-Id: talk' "$at/v1/chat/completions" -d "${stream}" >"$scratch/second"
wait "$replay"
is "a second request with the same id ends the first stream" "$(grep -c DONE "$scratch/replayed")" 0
check "which was played up to there" grep -q '"content"' "$scratch/replayed"
is "a finished stream is played whole" "$(ask "$at/v1/stream?conv_id=talk&from=0" | sha256sum)" "$(sha256sum <"$scratch/second")"
is "or from a byte on" "$(ask "$at/v1/stream?conv_id=talk&from=100" | wc -c)" "$(($(wc -c <"$scratch/second") - 100))"
is "deleted" "$(ask -X DELETE -o /dev/null -w '%{http_code}' "$at/v1/stream?conv_id=talk")" 204
is "it is gone" "$(ask -o /dev/null -w '%{http_code}' "$at/v1/stream?conv_id=talk")" 404

tools/lab exec client curl -s -N "$at/v1/chat/completions" -d "$long_stream" >"$scratch/frozen" &
client=$!
wait_until 5 test -s "$scratch/frozen"
kill "$replica"
sleep 0.3
is "after SIGTERM nobody gets in" "$(ask -o /dev/null -w '%{http_code}' "$at/health")" 000
size=$(wc -c <"$scratch/frozen")
sleep 0.5
is "a running stream freezes" "$(wc -c <"$scratch/frozen")" "$size"
check "and stays open" kill -0 "$client"
check "and so does the process" kill -0 "$replica"
kill "$client"
check "until the client leaves" wait_until 5 sh -c "! kill -0 $replica"

tools/lab exec llm-0 "$build/tools/simreplica" --host 10.0.2.10 --load-time 2 &
replica=$!
wait_until 10 in_host client curl -s -o /dev/null "$at/health"
is "503 while the model is loading" "$(ask "$at/v1/chat/completions" -d "$hello" | jq -r .error.type)" unavailable_error
check "then it answers" wait_until 10 in_host client curl -sf "$at/health"
replica_stop
matches "a model that does not exist is named" "$("$build/tools/simreplica" --model rand-7b 2>&1)" 'rand-7b.*rand-25m'
