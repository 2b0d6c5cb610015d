#!/bin/bash
# warmpathd's life: start, commands, kill, adoption, reload, end. The data path goes on whatever happens to the agent, and a change
# that is refused changes nothing.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

lab_up --replicas 4
run=$(tools/lab path run)
pins=$(tools/lab path pin)
# the fourth replica of the lab is for commands to add
tools/lab config --services chat,web | sed '/name: llm-3,/d' >"$run/agent.yaml"
tools/lab agent start || bail "warmpathd starts"

refused() { # description expected-sentence command...: exit status 1 and the sentence
	local description=$1 expected=$2 said status
	shift 2
	said=$("$@" 2>&1 >/dev/null)
	status=$?
	is "$description: exit status" "$status" 1
	matches "$description: sentence" "$said" "$expected"
}

# what must be the same for every agent of one data path
lasting_status() {
	warmpath status --json |
		jq -S 'del(.process, .uptime_seconds, .configuration_applied, .adopted) | del(.interfaces[].program_id)'
}
lasting_replicas() {
	warmpath replica list --removed --json | jq -S 'del(.replicas[].flows, .replicas[].requests, .replicas[].tokens, .replicas[].decisions, .replicas[].addresses[].neighbour)'
}
states() { # service
	warmpath replica list --removed --service "$1" --json | jq -r '[.replicas[] | .name + "=" + .state] | join(" ")'
}
field() { # service name field
	warmpath replica list --removed --service "$1" --json | jq -r --arg name "$2" ".replicas[] | select(.name == \$name) | .$3"
}
routes_agree() { # description: where datagrams go is what `route` says
	local id
	ids 40 | datagrams client 8000 10.9.9.9 | head -n 40 >"$scratch/went"
	for id in $(ids 40); do
		echo "$id $(warmpath route "$id" --service chat --json | jq -r .home)"
	done >"$scratch/said"
	same "$1" "$scratch/went" "$scratch/said"
}

# --- what is shown -------------------------------------------------------------------------------------------

is "replicas are active" "$(states chat)" "llm-0=active llm-1=active llm-2=active"
routes_agree "datagrams go where route says"
is "route says the hash" "$(warmpath route conv1 --service chat --json | jq -r .hash)" 0x7b0e98587fc95488
is "the whole walk has each replica once" \
	"$(warmpath route conv1 --service chat --all --json | jq -r '.walk | sort | join(" ")')" "llm-0 llm-1 llm-2"
is "the address of an id is prefix and hash" "$(warmpath address conv1 --service web)" fd00:a::7b0e:9858:7fc9:5488
is "shares add up to one" \
	"$(warmpath replica list --service chat --json | jq '[.replicas[].share] | add * 1000000 | round')" 1000000
is "next hops are kept resolved" "$(warmpath replica list --json |
	jq -r '[.replicas[].addresses[].neighbour] | map(select(. != "reachable" and . != "delay" and . != "probe" and . != "stale")) | length')" 0
bpftool map dump pinned "$pins/v1/replicas" >"$scratch/dump"
matches "bpftool shows names" "$(cat "$scratch/dump")" '"name": "llm-1"'
matches "bpftool shows addresses" "$(cat "$scratch/dump")" '"address_text": "10.0.2.11:8001, \[fd00:2::11\]:8001"'
matches "bpftool shows states" "$(cat "$scratch/dump")" '"state": "REPLICA_ACTIVE"'
matches "counters explain themselves" "$(warmpath counters --explain)" '^forwarded +[0-9]+ +forward +client to replica'
for command in status "replica list" "service list" "route conv1 --service chat" "address conv1 --service web" counters version; do
	# shellcheck disable=SC2086  # a command of several words
	check "--json of $command is JSON" sh -c "tools/lab warmpath $command --json | jq -e ."
done

# --- exit codes ----------------------------------------------------------------------------------------------

warmpath route --service chat >/dev/null 2>&1
is "asked wrongly: exit status" $? 2
warmpath nonsense >/dev/null 2>&1
is "no such subcommand: exit status" $? 2
"$build/warmpath" --socket "$run/nobody.sock" status >/dev/null 2>&1
is "no agent: exit status" $? 3
refused "several services" "there are several services; name one with --service" warmpath route conv1
refused "an id that is none" '"a/b" is not an id' warmpath route a/b --service chat

# --- completion of names -------------------------------------------------------------------------------------

completed() { # words of a command line: what the last of them may become
	PATH=$(realpath "$build"):$PATH bash -c '
		. deploy/warmpath.bash-completion
		COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
		_warmpath
		echo "${COMPREPLY[*]}"' completion "$@"
}
is "names of replicas are completed" "$(completed warmpath replica drain ll)" "llm-0 llm-1 llm-2"
is "names of services are completed" "$(completed warmpath route conv1 --service w)" "web"
is "settings of the policy are completed" "$(completed warmpath policy set --service chat long_e)" "long_epsilon="

# --- commands ------------------------------------------------------------------------------------------------

refused "a replica that is there" "service chat has a replica llm-0 already" \
	warmpath replica add llm-0 --service chat --address 10.0.2.99 --address fd00:2::99 --port 8001
refused "a replica without IPv6" "replica llm-3 has no IPv6 address" \
	warmpath replica add llm-3 --service chat --address 10.0.2.13 --port 8001
generation=$(warmpath status --json | jq '.services[] | select(.name == "chat") | .generation')
check "a replica is added" warmpath replica add llm-3 --service chat --address 10.0.2.13 --address fd00:2::13 --port 8001
check "a replica is drained" warmpath replica drain llm-1 --service chat
check "a replica is removed" warmpath replica remove llm-2 --service chat
check "a replica is weighted" warmpath replica weight llm-0 2.5 --service chat
is "states after the commands" "$(states chat)" "llm-0=active llm-1=draining llm-2=removed llm-3=active"
is "the ring has the points of the weights" \
	"$(warmpath status --json | jq '.services[] | select(.name == "chat") | .points')" 350
is "each command swapped one ring" \
	"$(warmpath status --json | jq '.services[] | select(.name == "chat") | .generation')" $((generation + 4))
routes_agree "datagrams go where route says after the commands"
counted() { # slots of the replicas that loads are compared over
	bpftool -j map dump pinned "$pins/v1/replica_loads" | jq -c '[.[] | (.formatted // .) | select(.value.counted == 1) | .key]'
}
active() { # slots of the active replicas
	warmpath replica list --json | jq -c '[.replicas[] | select(.state == "active") | .slot] | sort'
}
is "the active replicas, and only they, are counted for the load" "$(counted)" "$(active)"
check "a drained replica comes back" warmpath replica undrain llm-1 --service chat
warmpath replica drain llm-1 --service chat >/dev/null

# --- kill and adopt ------------------------------------------------------------------------------------------

refused "a second agent" "another warmpathd runs on pin_path $pins" in_host router "$build/warmpathd" -c "$run/agent.yaml"
lasting_status >"$scratch/status-before"
lasting_replicas >"$scratch/replicas-before"
ids 100 | datagrams client --rate 1000 --seconds 6 8000 10.9.9.9 >"$scratch/ledger" &
sleep 1
tools/lab agent kill
ids 40 | datagrams client 8000 fd00:9::9 | head -n 40 >"$scratch/went"
cut -d ' ' -f 2 "$scratch/went" | sort | uniq -c | note
same "without an agent datagrams go on as before" "$scratch/went" "$scratch/said"
is "counters can be read without an agent" \
	"$("$build/warmpath" counters --pin-path "$pins" --json | jq '.counters.forwarded > 100')" true
tools/lab agent start >"$scratch/output" 2>&1 || bail "a new agent starts"
wait $! 2>/dev/null
wait
is "datagrams across the kill: none lost" "$(total "$scratch/ledger" lost)" 0
is "datagrams across the kill: none changed replica" "$(awk 'NF == 5 && $4 != 0' "$scratch/ledger" | wc -l)" 0
lasting_status >"$scratch/status-after"
lasting_replicas >"$scratch/replicas-after"
same "the new agent's status is the former's" "$scratch/status-after" "$scratch/status-before"
is "the same replicas are counted" "$(counted)" "$(active)"
same "the new agent's replicas are the former's" "$scratch/replicas-after" "$scratch/replicas-before"
is "it says that it adopted" "$(warmpath status --json | jq .adopted)" true

# --- killed in the middle of changes ------------------------------------------------------------------------

changes() {
	while :; do
		warmpath replica drain llm-0 --service chat
		warmpath replica undrain llm-0 --service chat
		warmpath replica remove llm-3 --service chat
		warmpath replica add llm-3 --service chat --address 10.0.2.13 --address fd00:2::13 --port 8001
	done >/dev/null 2>&1
}
consistent=0
for pause in 0.11 0.23 0.37 0.41 0.53; do
	changes &
	changer=$!
	sleep "$pause"
	tools/lab agent kill
	kill $changer
	wait $changer 2>/dev/null
	tools/lab agent start || break
	[ "$(counted)" = "$(active)" ] && consistent=$((consistent + 1))
done
is "killed in the middle of changes: the next agent finds or makes it whole" "$consistent" 5
routes_agree "datagrams go where route says after that"
warmpath replica undrain llm-0 --service chat >/dev/null 2>&1
warmpath replica add llm-3 --service chat --address 10.0.2.13 --address fd00:2::13 --port 8001 >/dev/null 2>&1
# a replica that was removed and added again has lost the weight given to it by command
warmpath replica weight llm-0 2.5 --service chat >/dev/null
lasting_status >"$scratch/status-before"
lasting_replicas >"$scratch/replicas-before"

# --- reload --------------------------------------------------------------------------------------------------

cp "$run/agent.yaml" "$scratch/good.yaml"
sed -i '0,/vnodes: 100/s//vnodes: many/' "$run/agent.yaml"
refused "a bad file" 'agent.yaml:[0-9]+: services\[0\].ring.vnodes is "many"; allowed: a whole number from 1' warmpath reload
sed 's/^  flows: .*/  flows: 4096/' "$scratch/good.yaml" >"$run/agent.yaml"
refused "another limit" "the limits are the sizes of tables in use and cannot change" warmpath reload
sed 's/^    mode: .*/    mode: tc/; s/port: 8001, weight: 1.0/port: 8001, weight: 1000/' "$scratch/good.yaml" |
	sed 's/vnodes: 100/vnodes: 100000/' >"$run/agent.yaml"
refused "too many points in a file" "points" warmpath reload
lasting_status >"$scratch/status-after"
lasting_replicas >"$scratch/replicas-after"
same "after bad files the status is as before" "$scratch/status-after" "$scratch/status-before"
same "after bad files the replicas are as before" "$scratch/replicas-after" "$scratch/replicas-before"

cp "$scratch/good.yaml" "$run/agent.yaml"
tools/lab agent reload
check "SIGHUP applies the file" wait_until 5 sh -c \
	"tools/lab warmpath replica list --removed --service chat --json | jq -e '.replicas[] | select(.name == \"llm-3\") | .state == \"removed\"'"
# llm-3 may be forgotten by now, as it has no connections
is "the set is the file's, but for drains" "$(states chat | sed 's, llm-3=removed,,')" "llm-0=active llm-1=draining llm-2=active"
is "the weight is the file's" "$(field chat llm-0 points)" 100
is "a replica that comes again has another life" "$(field chat llm-2 incarnation)" 2
warmpath replica undrain llm-1 --service chat >/dev/null
routes_agree "datagrams go where route says after the reload"

# llm-2 moves to where llm-3's server is
sed 's/name: llm-2, addresses: \["10.0.2.12", "fd00:2::12"\]/name: llm-2, addresses: ["10.0.2.13", "fd00:2::13"]/' \
	"$scratch/good.yaml" >"$run/agent.yaml"
check "a replica moves to another address" warmpath reload
is "it keeps its slot and begins another life" "$(field chat llm-2 incarnation)" 3
id=$(for id in $(ids 40); do
	[ "$(warmpath route "$id" --service chat --json | jq -r .home)" = llm-2 ] && echo "$id" && break
done)
is "its conversations go to the new address" "$(echo "$id" | datagrams client 8000 10.9.9.9 | head -n 1)" "$id llm-3"

# --- the kernel's own forwarding -----------------------------------------------------------------------------

in_host router sysctl -qw net.ipv4.ip_forward=0
matches "forwarding that is off is warned of" "$(warmpath status)" 'warning: IPv4 forwarding is off on eth0.*net.ipv4.ip_forward=1'
in_host router sysctl -qw net.ipv4.ip_forward=1
is "and no longer when it is on" "$(warmpath status | grep -c 'IPv4 forwarding is off')" 0

warmpath replica add here --service chat --address 10.0.2.1 --address fd00:2::1 --port 8001 >/dev/null
warmpath replica add nowhere --service chat --address 192.0.2.1 --address 2001:db8::1 --port 8001 >/dev/null
matches "a replica on the router itself is warned of" "$(warmpath status)" \
	'warning: replica here of service chat \(and 1 more\): 10.0.2.1 is an address of this machine, .* use shape: node-local'
matches "so is one without a route" "$(warmpath status)" 'warning: replica nowhere of service chat \(and 1 more\): 192.0.2.1 cannot be reached'
warmpath replica remove here --service chat >/dev/null
warmpath replica remove nowhere --service chat >/dev/null
is "and no longer when they are gone" "$(warmpath status | grep -c 'warning: replica')" 0

# --- another size, and the end ---------------------------------------------------------------------------------

tools/lab agent stop
check "the socket is gone" test ! -e "$run/control.sock"
sed 's/^  flows: .*/  flows: 4096/' "$scratch/good.yaml" >"$run/agent.yaml"
refused "another limit at a start" \
	"limits.flows is 4096, but the pinned map $pins/v1/(return_)?flows has room for [0-9]+ .*--detach" \
	in_host router "$build/warmpathd" -c "$run/agent.yaml"
cp "$scratch/good.yaml" "$run/agent.yaml"
is "after that the data path goes on" "$(ids 5 | datagrams client 8000 10.9.9.9 | tail -n 1 | grep -o 'received=5')" received=5
tools/lab agent start
check "detach all" warmpath detach all
check "the agent ends" wait_until 5 sh -c "! kill -0 $(cat "$run/agent.pid") 2>/dev/null"
check "no pin is left" test ! -e "$pins"
is "no program is left" "$(in_host router ip -d link show | grep -c 'xdp')" 0
is "nothing is routed any more" "$(ids 2 | datagrams client --tries 1 --timeout 300 8000 10.9.9.9 | tail -n 1 | grep -o 'received=0')" received=0
rm -f "$run/agent.pid"
check "without a data path --detach has nothing to do" in_host router "$build/warmpathd" --detach -c "$run/agent.yaml"
sed -i 's/^shape:.*/shape: nonsense/' "$run/agent.yaml"
refused "--check of a bad file" 'shape is "nonsense"; allowed: one of inline, node-local' "$build/warmpathd" --check -c "$run/agent.yaml"
sed "s|/etc/warmpath/secret|$run/secret|" deploy/warmpath.yaml >"$scratch/example.yaml"
is "--check of the shipped example" "$("$build/warmpathd" --check -c "$scratch/example.yaml")" \
	"$scratch/example.yaml: good; 3 services, 1 interface"
sed -i "s|$run/secret|$run/no-secret|" "$scratch/example.yaml"
refused "--check of an example without its secret" "the secret file $run/no-secret does not exist: copy it from another machine of the cluster, or make the first one: .*>$run/no-secret" \
	"$build/warmpathd" --check -c "$scratch/example.yaml"
