#!/bin/bash
# Replicas that are found are checked as others are; what discovery says and what checks say do not undo each other.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/discovery.sh
. tests/discovery.sh

lab_up --replicas 2 --mode native
run=$(tools/lab path run)
echo token >"$scratch/token"
echo default >"$scratch/namespace"
: >"$scratch/ca.pem"

slices() { # NUMBER [what]: both families of a pod
	api slice "v4-$1" IPv4 http:8001 "llm-$1=10.0.2.$((10 + $1))${2-}"
	api slice "v6-$1" IPv6 http:8001 "llm-$1=fd00:2::$((10 + $1))${2-}"
}
health() { warmpath replica list --json | jq -r --arg name "$1" '.replicas[] | select(.name == $name) | .health.state'; }
is_healthy() { [ "$(health "$1")" = "$2" ]; }
incarnation() { warmpath replica list --json | jq --arg name "$1" '.replicas[] | select(.name == $name) | .incarnation'; }

m0="llm-0 active 10.0.2.10,fd00:2::10" a1="10.0.2.11,fd00:2::11"
api_start default
slices 0
slices 1
kubernetes_configuration http://127.0.0.1:6443 --health tcp --metrics '"127.0.0.1"' >"$run/agent.yaml"
check "warmpathd starts" tools/lab agent start
become "both are found" "$m0" "llm-1 active $a1"
check "and checked" wait_until 20 is_healthy llm-1 up
metric() { tools/lab exec router curl -s http://127.0.0.1:9798/metrics | sed -n "s|^warmpath_discovery_$1{service=\"chat\",source=\"kubernetes in-cluster/llm\",number=\"0\"} ||p"; }
is "metrics have the source: up, its members, failures" "$(metric up) $(metric members) $(metric failures_total)" "1 4 0"
matches "and its age" "$(metric age_seconds)" '^[0-9]+(\.[0-9]+)?$'
tools/lab servers stop llm-1
become "one does not answer: down" "$m0" "llm-1 down $a1"
slices 1 ,terminating
become "and ends: draining" "$m0" "llm-1 draining $a1"
before=$(incarnation llm-1)
slices 1 ,another-pod
become "another pod takes its place, and does not answer, either: down" "$m0" "llm-1 down $a1"
check "it is another life" test "$(incarnation llm-1)" -gt "$before"
tools/lab servers start llm-1
become "it answers: active" "$m0" "llm-1 active $a1"
check "drained by command" warmpath replica drain llm-1
slices 1 ,another-pod,terminating
become "while it ends" "$m0" "llm-1 draining $a1"
slices 1 ,third-pod
sleep 0.5
become "what the operator drained stays drained, whichever pod it is" "$m0" "llm-1 draining $a1"
check "until it is undrained" warmpath replica undrain llm-1
become "until it is undrained: active" "$m0" "llm-1 active $a1"
api_stop
