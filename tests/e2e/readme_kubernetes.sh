#!/bin/bash
# The README's and docs/kubernetes.md's commands for Kubernetes, as they stand there, in a cluster made of namespaces (tests/cluster.sh): the manifests'
# configurations, arguments, capabilities and mounts, and an API server's stand-in that asks for the account's token, over TLS. Then what happens in
# a cluster, under requests: a pod is added, one is drained, one is killed, the router's pod is replaced.
# shellcheck disable=SC2016  # words of other shells and jq stand in single quotes
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/machines.sh
. tests/machines.sh
# shellcheck source=tests/discovery.sh
. tests/discovery.sh
# shellcheck source=tests/cluster.sh
. tests/cluster.sh

api_address=10.96.0.1 # as pods are told

# --- nodes on one link, with a router node among them; the API server ---------------------------------------------------

lab_up --replicas 3 --mode tc --servers none
for name in 0 1 2; do ip -n "$WARMPATH_LAB-switch" link set "r$name" master clients; done
in_host router ip link set dev eth1 down
in_host router ip addr flush dev eth1
in_host router ip addr add 10.0.2.1/24 dev eth0
for name in router llm-0 llm-1 llm-2; do machine_up $name; done
clients=$(in_host client ip -json -4 addr show dev eth0 | jq -r '.[0].addr_info[0].local' | sed 's/[0-9]*$/0\/24/')
for name in llm-0 llm-1 llm-2; do
	in_host $name ip route del default
	command=$(grep -o 'ip route replace CLIENTS via ROUTER-NODE' docs/kubernetes.md | sed "s|CLIENTS|$clients|; s|ROUTER-NODE|10.0.2.1|")
	check "$name: $command" in_host $name bash -c "$command"
done

api_certificate "$scratch/api.key" "$cluster/ca.crt" cluster "$api_address"
echo the-router-s-token >"$cluster/token"
echo -n warmpath >"$cluster/namespace"
in_host router ip addr add "$api_address/32" dev lo
check "the API server" api_behind_tls "$api_address:443" "$scratch/api.key" "$cluster/ca.crt"
api_start warmpath
api token the-router-s-token

# --- the commands --------------------------------------------------------------------------------------------------

# What looks at the result is typed again until it is there; what changes something is not.
soon() {
	local deadline=$((SECONDS + 15))
	until eval "$1" && { [[ $1 != *"service show"* ]] || cli service show llm | grep -q ' 2 active'; }; do
		[[ $1 == *" -- warmpath "* ]] && [ $SECONDS -lt $deadline ] || return
		sleep 0.2
	done
}

# run_block FILE MACHINE: each command of the blocks that are marked so, in this shell, as kubectl and docker are functions of it
run_block() {
	local command
	while IFS= read -r command; do
		command=${command%%  #*}
		command=${command%"${command##*[! ]}"}
		case $command in
		*"NODE... warmpath.io/replica"*) command=${command/NODE.../llm-0 llm-1 llm-2} ;;
		*"NODE... warmpath.io/router"*) command=${command/NODE.../router} ;;
		esac
		note "\$ $command"
		case $2 in
		client) check "$1: $command" in_host client bash -c "$command" ;;
		cluster) check "$1: $command" soon "$command" ;;
		*) check "$1: $command" eval "$command" ;;
		esac
		[ ! -s "$scratch/output" ] || note <"$scratch/output"
	done < <(blocks "$1" kubernetes "$2" | tr -d '\0' | grep -v '^#')
}

cli() { kubectl -n warmpath exec daemonset/warmpath-router -- warmpath "$@"; }
replica_is() { [ "$(cli replica list --json | jq -r --arg name "$1" '.replicas[] | select(.name == $name) | .state')" = "$2" ]; }
ask() { # id: who answers
	in_host client curl -sS -m 10 -o /dev/null -w '%{http_code} %header{x-served-by}' -H "x-conversation-id: $1" http://192.0.2.10:8000/v1/models
}
asked() { # PREFIX COUNT: "ID STATUS REPLICA" for each
	local number
	for number in $(seq "$2"); do echo "$1-$number $(ask "$1-$number")"; done
}
failed() { grep -vc ' 200 llm-[0-9]*$' "$1"; }

run_block README.md cluster
[ "$failure_count" = 0 ] || bail "without that there is nothing to try"
run_block README.md client
for name in warmpath-router-router warmpath-replica-llm-0 warmpath-replica-llm-1 warmpath-replica-llm-2; do
	mapfile -t probe < <(object DaemonSet "$(cut -d - -f 1,2 <<<"$name")" | jq -r '.spec.template.spec.containers[0].livenessProbe.exec.command[]')
	check "$name is alive: ${probe[*]}" pod_exec "$name" "${probe[@]}"
done

# --- requests go to where the ring says ------------------------------------------------------------------------------

# a new server's share of the ring grows in the first seconds
check "the servers have their whole share" wait_until 60 eval '[ "$(cli status --json | jq ".unwell | length")" = 0 ]'
asked chat 40 >"$scratch/asked"
is "each request is answered" "$(failed "$scratch/asked")" 0
ids 40 chat | homes llm-0,llm-1 >"$scratch/homes"
same "by the home of its conversation" <(awk '{print $1, $3}' "$scratch/asked") "$scratch/homes"
is "all of them handed over by the router" "$(($(cli counters --json | jq '[.. | .note_request_handed? // empty] | add') >= 40))" 1

# --- day to day, under requests -----------------------------------------------------------------------------------------

(until [ -e "$scratch/enough" ]; do asked busy 20; done) >"$scratch/busy" 2>&1 &
busy=$!
run_block docs/kubernetes.md day
check "the pod that was added has its place on the ring" replica_is llm-2 active
check "the pod that was deleted is gone" eval '! cli replica list --json | grep -q "\"llm-1\""'
matches "it was drained before, and it is said why its conversations moved" \
	"$(for id in $(ids 20 busy); do cli conversation show --count 100 "$id"; done)" 'MOVED from llm-1: llm-1 (is draining|was removed)'
servers_scale 3
check "it comes again" wait_until 10 replica_is llm-1 active
sleep 1
touch "$scratch/enough"
wait "$busy"
note "$(wc -l <"$scratch/busy") requests meanwhile"
is "no request has failed meanwhile" "$(failed "$scratch/busy")" 0 || grep -v ' 200 llm-[0-9]*$' "$scratch/busy" | head -n 5 | note
matches "the new pod has answered some" "$(asked fresh 60)" ' llm-2$'

home=$(ask victim | cut -d ' ' -f 2)
kill -KILL "${server_process[$home]}"
wait "${server_process[$home]}" 2>/dev/null
check "a server that is killed is down" wait_until 20 replica_is "$home" down
matches "its conversations go on elsewhere" "$(ask victim)" '^200 llm-'
matches "and it is said why" "$(cli conversation victim)" "MOVED from $home: $home (is down|had just refused a connection|has just refused)"
check "the doctor says so" eval 'cli doctor | grep -q "replica $home of service llm is down"'

# --- pods are replaced ----------------------------------------------------------------------------------------------------

check "the router's pod ends" pod_end warmpath-router-router TERM
asked alone 10 >"$scratch/asked"
is "the data path goes on without it" "$(failed "$scratch/asked")" 0
check "another takes its place" kubelet
is "and takes the data path over" "$(cli status --json | jq .adopted)" true
check "the pod of a replica's node is killed" pod_end warmpath-replica-llm-2 KILL
check "and comes again" kubelet
asked again 10 >"$scratch/asked"
is "requests are answered" "$(failed "$scratch/asked")" 0

# --- another configuration ------------------------------------------------------------------------------------------------

cp -r deploy/kubernetes "$scratch/kubernetes"
sed -i 's/epsilon: 0.25/epsilon: 0.5/' "$scratch/kubernetes/03-configuration.yaml"
kubectl apply -f "$scratch/kubernetes/03-configuration.yaml" >"$scratch/output"
is "a configuration counts when it is reloaded: before" "$(cli policy show --json | jq '.. | .epsilon? // empty' | head -n 1)" 0.25
check "reload" cli reload
is "and after" "$(cli policy show --json | jq '.. | .epsilon? // empty' | head -n 1)" 0.5
sed -i 's/epsilon: 0.5/epsilon: much/' "$scratch/kubernetes/03-configuration.yaml"
kubectl apply -f "$scratch/kubernetes/03-configuration.yaml" >"$scratch/output"
matches "a wrong one is refused with its line" "$(cli reload 2>&1)" '/etc/warmpath/warmpath.yaml:[0-9]+: services\[0\].policy.epsilon is "much"'
run_block docs/kubernetes.md change
is "the file's again" "$(cli policy show --json | jq '.. | .epsilon? // empty' | head -n 1)" 0.25

# --- what the commands name ---------------------------------------------------------------------------------------------

missing_files=
while read -r file; do
	[ -e "$file" ] || missing_files+="$file "
done < <((sed -n '/^### Kubernetes/,/^## /p' README.md && cat docs/kubernetes.md) | grep -oE 'deploy/[A-Za-z]+(/[A-Za-z0-9-]+\.yaml)?' | sort -u)
is "the files that are named are there" "$missing_files" ""
