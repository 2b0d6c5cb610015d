#!/bin/bash
# warmpathd is killed under traffic: the data path goes on, nothing is lost; the next one adopts what it finds. Reloading.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

# what must be the same before and after: all but what says when and by which process
lasting_status() { warmpath status --json | jq -S 'del(.process, .uptime_seconds, .configuration_applied, .adopted) | del(.interfaces[].program_id)'; }

for mode in native tc; do
	lab_up --replicas 3 --mode $mode
	agent_up --mode $mode
	run=$(tools/lab path run)
	ids 200 >"$scratch/ids"
	homes llm-0,llm-1,llm-2 <"$scratch/ids" >"$scratch/homes-3"
	homes llm-0,llm-1,llm-2,llm-3 <"$scratch/ids" >"$scratch/homes-4"
	homes llm-0,llm-2 <"$scratch/ids" >"$scratch/homes-drained"
	addressed "$scratch/ids" >"$scratch/addressed"
	tools/lab replica drain llm-1
	connections_start hold "$scratch/addressed" client --source-port 4444 8000
	is "$mode: connections are open" "$(connections_round hold)" "round answered=200 broken=0 moved=0"
	traffic_start killed "$scratch/ids" client --rate 2000 8000 10.9.9.9
	lasting_status >"$scratch/status-before"

	tools/lab agent kill
	is "$mode: without warmpathd connections go on" "$(connections_round hold rounds 5 100)" \
		"round answered=200 broken=0 moved=0"
	connections_start meanwhile "$scratch/addressed" client 8000
	is "$mode: without warmpathd new connections are made" "$(connections_round meanwhile)" \
		"round answered=200 broken=0 moved=0"
	same "$mode: where the ring says" "$scratch/meanwhile.round" "$scratch/homes-drained"
	connections_stop meanwhile

	check "$mode: the next warmpathd starts" tools/lab agent start
	lasting_status >"$scratch/status-after"
	same "$mode: its status is the same, the drain included" "$scratch/status-after" "$scratch/status-before"
	tools/lab agent stop
	is "$mode: stopped in order, traffic goes on as well" "$(connections_round hold)" "round answered=200 broken=0 moved=0"
	check "$mode: and another one starts" tools/lab agent start
	lasting_status >"$scratch/status-after"
	same "$mode: with the same status" "$scratch/status-after" "$scratch/status-before"
	is "$mode: connections have stayed throughout" "$(connections_round hold)" "round answered=200 broken=0 moved=0"
	sleep 1
	traffic_stop killed
	traffic_is_whole killed
	is "$mode: every datagram was answered by its home" "$(unexpected "$scratch/killed.ledger" "$scratch/homes-drained")" ""
	check "$mode: a second warmpathd beside the running one is refused" bash -c \
		"! tools/lab exec router $build/warmpathd -c '$run/agent.yaml'"

	# reloading, under traffic
	tools/lab replica undrain llm-1
	tools/lab add-replica >"$scratch/output"
	traffic_start reload "$scratch/ids" client --rate 2000 8000 fd00:9::9
	cp "$run/agent.yaml" "$scratch/three.yaml"
	tools/lab config --mode $mode >"$run/agent.yaml"
	tools/lab agent reload
	wait_until 5 routes_are "$scratch/homes-4"
	routes chat <"$scratch/ids" >"$scratch/routes"
	same "$mode: reloaded with four replicas it routes as the ring of four" "$scratch/routes" "$scratch/homes-4"
	sed 's/vnodes: 100/vnodes: many/' "$scratch/three.yaml" >"$run/agent.yaml"
	tools/lab agent reload
	wait_until 5 grep -q 'many' "$run/agent.log"
	matches "$mode: a wrong file is named in the log" "$(cat "$run/agent.log")" 'agent.yaml:[0-9]+: .*vnodes.*many'
	routes chat <"$scratch/ids" >"$scratch/routes"
	same "$mode: and changes nothing" "$scratch/routes" "$scratch/homes-4"
	cp "$scratch/three.yaml" "$run/agent.yaml"
	tools/lab agent reload
	wait_until 5 routes_are "$scratch/homes-3"
	routes chat <"$scratch/ids" >"$scratch/routes"
	same "$mode: reloaded with three it routes as the ring of three" "$scratch/routes" "$scratch/homes-3"
	is "$mode: connections have stayed throughout" "$(connections_round hold)" "round answered=200 broken=0 moved=0"
	connections_stop hold
	traffic_stop reload
	traffic_is_whole reload
	is "$mode: every answer is of a home of its id" \
		"$(unexpected "$scratch/reload.ledger" "$scratch/homes-3" "$scratch/homes-4")" ""
done
