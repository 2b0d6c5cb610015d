#!/bin/bash
# The policies on the wire: decisions, loads, placements, traces, and changes of the policy, with real datagrams and connections.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

# --- what the agent says -------------------------------------------------------------------------------------

in_flight() { # service: requests and tokens at all its replicas
	warmpath replica list --service "$1" --json |
		jq -r '[.replicas[].requests] as $r | [.replicas[].tokens] as $t | "\($r | add) \($t | add)"'
}

nothing_in_flight() { [ "$(in_flight "$1")" = "0 0" ]; }

requests_at() { # service replica
	warmpath replica list --service "$1" --json | jq -r --arg name "$2" '.replicas[] | select(.name == $name) | .requests'
}

explained() { # id filter [options]: a value of the explanation
	local id=$1 filter=$2
	shift 2
	warmpath explain "$id" --service chat --json "$@" | jq -r ".decision$filter"
}

chat_turn() { # id prompt-tokens: prints who answered
	echo "$1" | datagrams client --prompt-tokens "$2" --max-tokens 48 8000 10.9.9.9 | awk 'NR == 1 { print $2 }'
}

start_trace() { # file options...
	local file=$1
	shift
	tools/lab warmpath trace "$@" >"$file" 2>&1 &
	trace_pid=$!
	# the trace begins when the agent has answered
	wait_until 5 followed || note "the trace is slow to begin"
}

followed() {
	[ -e "/proc/$trace_pid" ] && chat_turn warm-up 10 >/dev/null && sleep 0.1 && [ -s "$file" ]
}

lines() { # pattern count file: at least so many lines have it
	[ "$(grep -c -- "$1" "$3")" -ge "$2" ]
}

stop_trace() {
	kill "$trace_pid" 2>/dev/null
	wait "$trace_pid" 2>/dev/null
}

lab_up --replicas 3 --clients 1
agent_up --policy llm-aware

# --- a conversation --------------------------------------------------------------------------------------------

is "before anything was served there is no placement" "$(explained talk .placement)" null
home=$(explained talk .home)
is "the first turn goes home" "$(chat_turn talk 500)" "$home"
is "its answer is remembered, with its size" "$(explained talk .placement.prompt_tokens)" 500
is "and where it was served" "$(explained talk .placement.replica)" "$home"
is "the next turn costs its new tokens only" "$(explained talk .cost --prompt-tokens 560 --max-tokens 48)" 108
is "explaining changes nothing" "$(in_flight chat)" "0 0"
ids 200 | datagrams client --prompt-tokens 300 --max-tokens 20 8000 10.9.9.9 >"$scratch/two-hundred"
is "200 conversations are answered" "$(total "$scratch/two-hundred" received)" 200
is "and nothing stays in flight" "$(in_flight chat)" "0 0"

# --- traces ----------------------------------------------------------------------------------------------------

start_trace "$scratch/trace"
chat_turn talk 900 >/dev/null
# the warm-up's completion and this one's
wait_until 5 lines "answered on" 2 "$scratch/trace"
stop_trace
matches "a decision is told with its numbers" "$(cat "$scratch/trace")" "id talk, client 10.0.1.10:[0-9]+, prompt_tokens=900, max_tokens=48"
matches "with the placement it was made from" "$(cat "$scratch/trace")" \
	"placement memory: last served on $home with 500 prompt tokens → preferred=$home"
matches "and its completion" "$(cat "$scratch/trace")" "request [0-9]+ of chat answered on $home"
start_trace "$scratch/trace.json" --json
chat_turn talk 950 >/dev/null
wait_until 5 lines '"completion"' 2 "$scratch/trace.json"
stop_trace
is "each line of --json is an object" "$(jq -r .event "$scratch/trace.json" | sort -u | tr '\n' ' ')" "completion decision "
is "with all the numbers" \
	"$(jq -c 'select(.event == "decision" and .id == "talk") | [.replica, .prompt_tokens, .cost, .load_metric]' "$scratch/trace.json" | tail -n 1)" \
	"[\"$home\",950,98,\"tokens\"]"

# --- a restart of the agent keeps everything -----------------------------------------------------------------------

tools/lab agent kill
is "with the agent gone, decisions are still made" "$(chat_turn talk 1000)" "$home"
tools/lab agent start
is "and placements were written: a new agent finds them" "$(explained talk .placement.prompt_tokens)" 1000

# --- a placement ends with its replica's life -----------------------------------------------------------------------

warmpath replica drain "$home" --service chat >/dev/null
is "a drained replica's placement is void" "$(explained talk .placement)" null
is "and it is neither counted nor asked" "$(explained talk .replica_count)" 2
other=$(chat_turn talk 1050)
check "its conversation goes elsewhere" [ "$other" != "$home" ]
warmpath replica undrain "$home" --service chat >/dev/null
is "and stays there, where its cache is now" "$(chat_turn talk 1100)" "$other"
is "with the reason" "$(explained talk .reason --prompt-tokens 1150)" sticky
warmpath replica remove "$other" --service chat >/dev/null
warmpath reload >/dev/null
is "a replica that was removed and added again is another life" "$(explained talk .placement)" null

# --- policies at run time -----------------------------------------------------------------------------------------------

chat_turn talk 1150 >/dev/null
warmpath policy set --service chat epsilon=0.5 long_epsilon=2 >/dev/null
is "another epsilon leaves the memory alone" "$(explained talk .placement.prompt_tokens)" 1150
matches "a wrong value is named with what is allowed" "$(warmpath policy set --service chat epsilon=x 2>&1)" \
	'epsilon is "x"; allowed: a number from 0.000001 to 100'
matches "an unknown setting is named with those there are" "$(warmpath policy set --service chat colour=red 2>&1)" \
	'no policy setting "colour"; there are: name, epsilon'
matches "settings that do not go together are refused" "$(warmpath policy set --service chat long_epsilon=0.1 2>&1)" \
	"long_epsilon is 0.1, but must not be smaller than epsilon, which is 0.5"
is "and a refused change changes nothing" "$(warmpath policy show --service chat --json | jq -r .policy.long_epsilon)" 2
ids 100 | datagrams client --rate 2000 --seconds 3 8000 10.9.9.9 >"$scratch/under-change" &
client=$!
for name in bounded consistent mod-n round-robin llm-aware bounded llm-aware; do
	warmpath policy set --service chat name="$name" >/dev/null
	sleep 0.2
done
wait $client
is "nothing is lost while the policy changes" "$(total "$scratch/under-change" lost)" 0
is "another policy begins with an empty memory" "$(explained talk .placement)" null
wait_until 5 nothing_in_flight chat
is "and no load is left behind" "$(in_flight chat)" "0 0"
tools/lab agent stop
tools/lab agent start
is "a policy set at run time survives a restart" "$(warmpath policy show --service chat --json | jq -r .policy.epsilon)" 0.5
warmpath reload >/dev/null
is "and a reload takes the file's" "$(warmpath policy show --service chat --json | jq -r .policy.epsilon)" 0.25
# the whole set replaced by another, several times, under traffic
ids 100 | datagrams client --rate 2000 --seconds 3 8000 10.9.9.9 >"$scratch/under-change" &
client=$!
cp "$(tools/lab path run)/agent.yaml" "$scratch/agent.yaml"
for only in llm-0 llm-1 llm-2 llm-0; do
	awk -v only="$only" '/- [{] name: llm-/ && $0 !~ only { next } { print }' "$scratch/agent.yaml" >"$(tools/lab path run)/agent.yaml"
	warmpath reload >/dev/null
	sleep 0.3
done
cp "$scratch/agent.yaml" "$(tools/lab path run)/agent.yaml"
warmpath reload >/dev/null
wait $client
is "nothing is lost while every replica is replaced by another" "$(total "$scratch/under-change" lost)" 0

# --- loads -----------------------------------------------------------------------------------------------------------------

warmpath policy set --service chat name=consistent >/dev/null
home=$(explained quiet .home)
tools/lab servers stop "$home"
echo quiet | datagrams client --tries 1 --timeout 200 8000 10.9.9.9 >/dev/null
is "a request without an answer is in flight" "$(requests_at chat "$home")" 1
echo quiet | datagrams client --tries 1 --timeout 200 8000 10.9.9.9 >/dev/null
warmpath policy set --service chat name=llm-aware >/dev/null
is "a change of policy keeps loads" "$(in_flight chat | cut -d ' ' -f 1)" 2
warmpath replica drain "$home" --service chat >/dev/null
is "so does a drain" "$(requests_at chat "$home")" 2
warmpath replica undrain "$home" --service chat >/dev/null
sed -i 's/request_timeout: 300/request_timeout: 1/' "$(tools/lab path run)/agent.yaml"
warmpath reload >/dev/null
wait_until 10 nothing_in_flight chat
is "what is not answered in time is given back" "$(in_flight chat)" "0 0"
is "under its counter" "$(counter note_request_timed_out)" 2
tools/lab servers start "$home"

# --- requests without an id ---------------------------------------------------------------------------------------------------

for name in bounded llm-aware; do
	warmpath policy set --service chat name=$name >/dev/null
	in_host client "$build/tests/e2e/conversations" --count 4 --seconds 1 --think 20 --no-id 8000 10.9.9.9 >"$scratch/no-id"
	is "$name: requests without an id are answered" "$(sed -n 's/^total .*lost=//p' "$scratch/no-id")" 0
	is "$name: and spread over all replicas" "$(grep -o 'llm-[0-9]=' "$scratch/no-id" | sort -u | wc -l)" 3
	wait_until 5 nothing_in_flight chat
	is "$name: and are given back when they are answered" "$(in_flight chat)" "0 0"
done

# --- connections: one request each ---------------------------------------------------------------------------------------------

warmpath policy set --service web name=llm-aware >/dev/null
address=$(warmpath address talk --service web --json | jq -r '.addresses[0]')
in_host client bash -c "exec 3<>/dev/tcp/$address/8000; sleep 3" &
wait_until 5 bash -c "[ \"\$(tools/lab warmpath replica list --service web --json | jq '[.replicas[].requests] | add')\" = 1 ]"
is "an open connection is one request in flight" "$(in_flight web | cut -d ' ' -f 1)" 1
wait $!
wait_until 5 nothing_in_flight web
is "which ends with it" "$(in_flight web)" "0 0"
is "one that was closed without an answer leaves no placement" \
	"$(warmpath explain talk --service web --json | jq -r .decision.placement)" null
check "an answer over HTTP" in_host client curl -sf "http://[$address]:8000/" -o /dev/null
wait_until 5 nothing_in_flight web
is "leaves one" "$(warmpath explain talk --service web --json | jq -r .decision.placement.replica)" \
	"$(warmpath explain talk --service web --json | jq -r .decision.home)"
