#!/bin/bash
# What replicas themselves say about their load: shown beside the router's own numbers, in the words of three servers; what others have sent
# to them counts where that is configured, and no longer than it is said.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

lab_up --replicas 3 --servers none
run=$(tools/lab path run)
declare -A server
replica_start() { # index options of simreplica...
	local index=$1
	shift
	tools/lab exec "llm-$index" "$build/tools/simreplica" --host :: --port 8001 --name "llm-$index" --speed 0.1 --model rand-25m \
		--slots 1 --answer-tokens 100000 "$@" >"$scratch/llm-$index.log" 2>&1 &
	server[$index]=$!
	disown
}
servers() { # dialect
	local index
	for index in 0 1 2; do
		[ -z "${server[$index]-}" ] || kill -KILL "${server[$index]}"
		replica_start $index --metrics --metrics-dialect "$1"
	done
}
servers llama.cpp
tools/lab config --services api --policy bounded --reported-load llama.cpp --metrics '"127.0.0.1"' >"$run/agent.yaml"
tools/lab handoff start >"$scratch/output" 2>&1 || bail "warmpathd starts on the replicas"
tools/lab agent start >"$scratch/output" 2>&1 || bail "warmpathd starts"

field_is() { [ "$(field "$1" "$2")" = "$3" ]; }
says() { # name running waiting
	[ "$(field "$1" '| [.reported.running, .reported.waiting] | map(. // -1 | floor) | join(" ")')" = "$2 $3" ]
}
field() { # name, a field or what jq is to do with the replica
	case $2 in
	'|'*) warmpath replica list --json | jq -r --arg name "$1" ".replicas[] | select(.name == \$name) $2" ;;
	*) warmpath replica list --json | jq -r --arg name "$1" ".replicas[] | select(.name == \$name) | .$2" ;;
	esac
}
ask() { # host url; without the header that has the server go on for a client that is gone
	exec tools/lab exec "$1" curl -s -N -m 60 -o /dev/null \
		-d '{"messages":[{"role":"user","content":"how are you"}],"max_tokens":100000,"stream":true}' "$2/v1/chat/completions"
}
declare -a asking
stop_asking() {
	kill "${asking[@]}" 2>/dev/null
	wait "${asking[@]}" 2>/dev/null
	asking=()
}

# --- three servers, by their own words ------------------------------------------------------------------------------

for dialect in llama.cpp vllm sglang; do
	if [ $dialect != llama.cpp ]; then
		servers $dialect
		tools/lab config --services api --policy bounded --reported-load $dialect --metrics '"127.0.0.1"' >"$run/agent.yaml"
		warmpath reload >/dev/null
	fi
	check "$dialect: an idle replica says so" wait_until 10 says llm-0 0 0
	for _ in 1 2 3; do
		ask router http://10.0.2.10:8001 &
		asking+=($!)
	done
	check "$dialect: a busy one says what runs and what waits" wait_until 10 says llm-0 1 2
	check "$dialect: which counts as load of others" wait_until 10 field_is llm-0 reported.foreign_requests 3
	is "$dialect: and not as requests of ours" "$(field llm-0 requests)" 0
	if [ $dialect != llama.cpp ]; then
		check "$dialect: says how full its cache is" test "$(field llm-0 '| .reported.cache_usage > 0')" = true
	fi
	[ $dialect = sglang ] && break
	stop_asking
	check "$dialect: it is seen that they are gone" wait_until 20 field_is llm-0 reported.foreign_requests 0
done

# --- what it is for ---------------------------------------------------------------------------------------------------

for id in $(ids 60); do
	[ "$(warmpath route "$id" --service api --json | jq -r .home)" = llm-0 ] && break
done
matches "a conversation at home there goes elsewhere, as others have filled it" \
	"$(warmpath explain "$id" --service api --json | jq -r '.decision | .replica + " " + .reason')" '^llm-[12] overflow$'
is "metrics have it" "$(in_host router curl -s http://127.0.0.1:9798/metrics |
	sed -n 's/^warmpath_\(foreign_requests\|reported_requests_running\|reported_requests_waiting\){.*"llm-0"} //p' | tr '\n' ' ')" "1 2 3 "
is "the drain of an idle replica does not wait for others" "$(warmpath replica drain llm-0 --service api --deadline 2 | tail -n 1)" \
	"drained: llm-0 has nothing open any more"
warmpath replica undrain llm-0 --service api >/dev/null
sleep 2.5 # two passes of the comparison of loads with open requests
is "comparing loads with open requests leaves it alone" "$(field llm-0 reported.foreign_requests) $(counter note_load_repaired)" "3 0"
bpf_requests() { bpftool -j map lookup pinned "$(tools/lab path pin)/v1/replica_loads" key "$(field llm-0 slot)" 0 0 0 | jq '(.formatted // .).value.requests'; }
is "it stands in the map that decisions are made from" "$(bpf_requests)" 3

# --- a restart, told by the metrics alone -----------------------------------------------------------------------------

before=$(field llm-1 incarnation)
kill -KILL "${server[1]}"
sleep 1
replica_start 1 --metrics --metrics-dialect sglang
reborn() { [ "$(field llm-1 incarnation)" = $((before + 1)) ]; }
check "a replica that says that it was started anew has a new life" wait_until 10 reborn
is "without having been seen down" "$(field llm-1 state)" active

# --- silence -----------------------------------------------------------------------------------------------------------

kill -KILL "${server[0]}"
stop_asking
check "who says nothing any more has no load of others" wait_until 20 field_is llm-0 reported.foreign_requests 0
matches "and it is said why" "$(field llm-0 reported.failure)" '[Cc]onnect'
tools/lab agent stop
is "an agent that ends takes it back" "$(bpftool -j map dump pinned "$(tools/lab path pin)/v1/replica_loads" |
	jq '[.[] | (.formatted // .).value.requests] | add')" 0
