#!/bin/bash
# make test-kubernetes: discovery against a real kube-apiserver (tests/kubernetes/server builds it): rights, lists, watches, bookmarks, their clean
# end, 410, a token that ends and is renewed, v1beta1 and v1; and the shipped manifests, as far as an API server judges them.
# Off the default path: building takes a quarter of an hour of processor time once, running some minutes.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/discovery.sh
. tests/discovery.sh

tests/kubernetes/server >"$scratch/server.log" 2>&1 || {
	tail -n 20 "$scratch/server.log" | note
	bail "kube-apiserver can be built"
}
programs=$build/kubernetes/bin
lab_up --replicas 4 --mode native --servers none
run=$(tools/lab path run)
server=https://127.0.0.1:6443

# --- etcd and the API server, in the router's network -------------------------------------------------------------

certificates() {
	openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj "/CN=$1" -keyout "$scratch/$1-ca.key" -out "$scratch/$1-ca.pem"
	openssl req -newkey rsa:2048 -nodes -subj /CN=kube-apiserver -keyout "$scratch/$1.key" -out "$scratch/$1.csr"
	openssl x509 -req -days 2 -in "$scratch/$1.csr" -CA "$scratch/$1-ca.pem" -CAkey "$scratch/$1-ca.key" -CAcreateserial \
		-extfile <(echo subjectAltName=IP:127.0.0.1) -out "$scratch/$1.pem"
}

kubernetes_server_start() { # kube-apiserver's options
	tools/lab exec router "$programs/kube-apiserver" --etcd-servers=http://127.0.0.1:2379 --bind-address=127.0.0.1 --advertise-address=10.0.1.1 --secure-port=6443 \
		--tls-cert-file="$scratch/server.pem" --tls-private-key-file="$scratch/server.key" --cert-dir="$scratch" \
		--service-account-issuer=https://kubernetes.default.svc --service-account-key-file="$scratch/server.key" \
		--service-account-signing-key-file="$scratch/server.key" --authorization-mode=RBAC --token-auth-file="$scratch/admins" \
		--service-cluster-ip-range=10.0.0.0/24 --audit-policy-file="$scratch/audit-policy" --audit-log-path="$scratch/audit.log" \
		--feature-gates=EndpointSliceTerminatingCondition=true --endpoint-reconciler-type=none "$@" >>"$scratch/api.log" 2>&1 &
	api_process=$!
	wait_until 60 tools/lab exec router curl -sf --cacert "$scratch/server-ca.pem" -H "Authorization: Bearer admins-token" $server/readyz
}

kubernetes_server_stop() {
	kill "$api_process"
	wait "$api_process" 2>/dev/null
}

kubectl() {
	tools/lab exec router "$programs/kubectl" --server=$server --token=admins-token --certificate-authority="$scratch/server-ca.pem" \
		--cache-dir="$scratch/kubectl" "$@"
}

new_token() { # a token of the router's service account, as a projected volume would have it
	tools/lab exec router curl -sf --cacert "$scratch/server-ca.pem" -H "Authorization: Bearer admins-token" -H 'Content-Type: application/json' \
		-d '{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 600}}' \
		"$server/api/v1/namespaces/warmpath/serviceaccounts/warmpath-router/token" | jq -r .status.token >"$scratch/token.new" &&
		mv "$scratch/token.new" "$scratch/token"
}

asked() { # verb version code: how often warmpathd has asked so, as the server's audit log has it
	jq -r --arg verb "$1" --arg version "$2" --arg code "$3" 'select(.stage == "ResponseComplete" or (.stage == "ResponseStarted" and .verb == "watch")) |
		select(.user.username // "" | test("warmpath-router|anonymous")) | select(.verb == $verb and (.requestURI | contains("/" + $version + "/")) and
		(.responseStatus.code | tostring) == $code) | .stage' "$scratch/audit.log" | grep -c "$([ "$1" = watch ] && echo ResponseStarted || echo ResponseComplete)"
}
asked_more() { [ "$(asked "$1" "$2" "$3")" -gt "$4" ]; }

slice() { # name family endpoints...: POD=ADDRESS[=terminating]
	local name=$1 family=$2 endpoint pod address terminating first=
	shift 2
	{
		printf '{"apiVersion": "discovery.k8s.io/%s", "kind": "EndpointSlice", "metadata": {"name": "%s", "namespace": "warmpath",
			"labels": {"kubernetes.io/service-name": "llm"}}, "addressType": "%s", "ports": [{"name": "http", "port": 8001}], "endpoints": [' "$version" "$name" "$family"
		for endpoint in "$@"; do
			IFS='=' read -r pod address terminating <<<"$endpoint"
			printf '%s{"addresses": ["%s"], "conditions": {"ready": %s, "terminating": %s}, "targetRef": {"kind": "Pod", "name": "%s", "uid": "uid-%s"}}' \
				"$first" "$address" "$([ -n "$terminating" ] && echo false || echo true)" "$([ -n "$terminating" ] && echo true || echo false)" "$pod" "$pod"
			first=,
		done
		printf ']}'
	} | kubectl apply --validate=false -f - >"$scratch/output" 2>&1 || note <"$scratch/output"
}

# --- what warmpathd makes of it ------------------------------------------------------------------------------------------

configuration() {
	tools/lab config --mode native --services chat | sed '/^    replicas:/,$d; /discovery: \[\]/d'
	cat <<-YAML
		    discovery:
		      - from: kubernetes
		        api_server: $server
		        token_file: $scratch/token
		        ca_file: $1
		        namespace: warmpath
		        service: llm
		        port_name: http
		        weight: 1.0
		    replicas: []
	YAML
}

says() { source_value problem | grep -qE "$1"; }
well() { state_is good; }
younger() { [ "$(source_value age_seconds | cut -d . -f 1)" -lt "$1" ]; }

m0="llm-0 active 10.0.2.10,fd00:2::10" m1="llm-1 active 10.0.2.11,fd00:2::11"

certificates server >"$scratch/output" 2>&1
certificates other >"$scratch/output" 2>&1
echo 'admins-token,admin,1,"system:masters"' >"$scratch/admins"
printf '%s\n' 'apiVersion: audit.k8s.io/v1' 'kind: Policy' 'rules:' '  - level: Metadata' '    resources:' '      - group: discovery.k8s.io' \
	'  - level: None' >"$scratch/audit-policy"
mkdir "$scratch/etcd"
tools/lab exec router "$programs/etcd" --data-dir "$scratch/etcd" --listen-client-urls http://127.0.0.1:2379 \
	--advertise-client-urls http://127.0.0.1:2379 --listen-peer-urls http://127.0.0.1:2380 >"$scratch/etcd.log" 2>&1 &
check "kube-apiserver starts" kubernetes_server_start || {
	tail -n 20 "$scratch/api.log" | note
	exit 1
}
note "$("$programs/kube-apiserver" --version)"

# --- the manifests ---------------------------------------------------------------------------------------------------------

check "01-namespace.yaml is accepted" kubectl apply -f deploy/kubernetes/01-namespace.yaml
for file in deploy/kubernetes/0[3-6]*.yaml; do
	# policy/v1 came with Kubernetes 1.21; the rest of the object is the same in v1beta1
	sed 's|^apiVersion: policy/v1$|apiVersion: policy/v1beta1|' "$file" >"$scratch/manifest.yaml"
	check "$(basename "$file") is accepted" kubectl apply --dry-run=server -f "$scratch/manifest.yaml"
done

# --- rights, trust -----------------------------------------------------------------------------------------------------------

version=v1beta1
sed '/^kind: RoleBinding/,$d' deploy/kubernetes/02-rbac.yaml | sed '$d' >"$scratch/accounts.yaml"
check "the accounts without their rights" kubectl apply -f "$scratch/accounts.yaml"
check "a token of the router's account" new_token
configuration "$scratch/other-ca.pem" >"$run/agent.yaml"
check "warmpathd starts" tools/lab agent start
check "another certificate authority is not trusted" wait_until 15 says 'cannot be asked: .*certificate'
configuration "$scratch/server-ca.pem" >"$run/agent.yaml"
check "the right one" warmpath reload
check "without the binding it is 403, said in the server's words" \
	wait_until 15 says 'in namespace warmpath \(403\): endpointslices.discovery.k8s.io is forbidden: User "system:serviceaccount:warmpath:warmpath-router"'
check "02-rbac.yaml is accepted" kubectl apply -f deploy/kubernetes/02-rbac.yaml
check "with its rights it is well" wait_until 30 well
check "after v1, which Kubernetes 1.20 does not have, v1beta1 was asked" test "$(asked list v1 404)" -ge 1 -a "$(asked list v1beta1 200)" -ge 1

# --- lists and watches -----------------------------------------------------------------------------------------------------

slice llm-4 IPv4 llm-0=10.0.2.10 llm-1=10.0.2.11
slice llm-6 IPv6 llm-0=fd00:2::10 llm-1=fd00:2::11
become "slices come in the watch" "$m0" "$m1"
lists=$(asked list v1beta1 200) watches=$(asked watch v1beta1 200)
slice llm-4 IPv4 llm-0=10.0.2.10 llm-1=10.0.2.11=terminating
slice llm-6 IPv6 llm-0=fd00:2::10 llm-1=fd00:2::11=terminating
become "a pod that terminates is drained" "$m0" "llm-1 draining 10.0.2.11,fd00:2::11"
slice llm-4 IPv4 llm-0=10.0.2.12
slice llm-6 IPv6 llm-0=fd00:2::12
become "a pod goes, an address changes" "llm-0 active 10.0.2.12,fd00:2::12"
# more slices than a page of a list has
for number in $(seq 12); do slice "empty-$number" IPv4; done
slice llm-4 IPv4 llm-0=10.0.2.10 llm-1=10.0.2.11
slice llm-6 IPv6 llm-0=fd00:2::10 llm-1=fd00:2::11
become "and back" "$m0" "$m1"
generation=$(ring_generation chat)
check "nothing has happened for a while" wait_until 40 eval '! younger 8'
check "a bookmark confirms the set" wait_until 100 younger 3
is "and makes no new ring" "$(ring_generation chat)" "$generation"
check "the watch ends cleanly and goes on" wait_until 130 asked_more watch v1beta1 200 "$watches"
is "without a list, without a failure" "$(asked list v1beta1 200) $(source_value state)" "$lists good"

# --- 410 ---------------------------------------------------------------------------------------------------------------------

tools/lab exec router curl -sf --cacert "$scratch/server-ca.pem" -H "Authorization: Bearer admins-token" \
	"$server/apis/discovery.k8s.io/v1beta1/namespaces/warmpath/endpointslices?limit=10" | jq -r .metadata.resourceVersion >"$scratch/version"
lists=$(asked list v1beta1 200)
kubernetes_server_stop
check "the server is away: said, the replicas stay" wait_until 20 says '6443'
is "they do" "$(members)" "$(printf '%s\n' "$m0" "$m1")"
# What is written meanwhile is nothing to the API server, but makes the versions before it too old for the one that starts now.
tools/lab exec router curl -sf -d '{"key": "b3RoZXI=", "value": "b3RoZXI="}' http://127.0.0.1:2379/v3/kv/put >"$scratch/output"
check "the server starts again" kubernetes_server_start
kubectl -n warmpath delete endpointslice llm-4 llm-6 >"$scratch/output" 2>&1
slice llm-4 IPv4 llm-0=10.0.2.10
slice llm-6 IPv6 llm-0=fd00:2::10
tools/lab exec router timeout 3 curl -s --cacert "$scratch/server-ca.pem" -H "Authorization: Bearer admins-token" \
	"$server/apis/discovery.k8s.io/v1beta1/namespaces/warmpath/endpointslices?watch=true&resourceVersion=1" >"$scratch/old-watch"
matches "a watch from a version it has forgotten gets 410 in its stream" "$(head -n 1 "$scratch/old-watch")" '"type":"ERROR".*"code":410'
become "who has gone meanwhile is gone" "$m0"
check "and it is well" wait_until 30 well
check "by a new list" asked_more list v1beta1 200 "$lists"
check "because the watch got 410" complained 1 'service chat: kubernetes warmpath/llm: what came after version [0-9]+ is not known any more \(410\)'

# --- the token --------------------------------------------------------------------------------------------------------------

kubectl -n warmpath delete serviceaccount warmpath-router >"$scratch/output" 2>&1
kubectl apply -f deploy/kubernetes/02-rbac.yaml >"$scratch/output" 2>&1
kubernetes_server_stop # so that the watch, which was let in before, asks again
check "the server starts once more" kubernetes_server_start
check "a token that does not count any more is 401" wait_until 60 says "refuses the token in $scratch/token \\(401\\)"
is "the replicas stay" "$(members)" "$m0"
check "a new token" new_token
check "is noticed without a reload" wait_until 30 well

# --- v1 -----------------------------------------------------------------------------------------------------------------------

# Kubernetes 1.20 has no discovery.k8s.io/v1: its own group is switched off, and the same resource registered in v1
kubectl -n warmpath delete endpointslice --all >"$scratch/output" 2>&1
kubernetes_server_stop
check "the server with v1" kubernetes_server_start --runtime-config=discovery.k8s.io/v1beta1=false
kubectl apply --validate=false -f - >"$scratch/output" 2>&1 <<-YAML
	apiVersion: apiextensions.k8s.io/v1
	kind: CustomResourceDefinition
	metadata:
	  name: endpointslices.discovery.k8s.io
	  annotations: {api-approved.kubernetes.io: "https://github.com/kubernetes/kubernetes/pull/1"}
	spec:
	  group: discovery.k8s.io
	  scope: Namespaced
	  names: {plural: endpointslices, singular: endpointslice, kind: EndpointSlice, listKind: EndpointSliceList}
	  versions:
	    - name: v1
	      served: true
	      storage: true
	      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
YAML
version=v1
wait_until 20 kubectl -n warmpath get endpointslices.v1.discovery.k8s.io
slice llm-4 IPv4 llm-0=10.0.2.10 llm-1=10.0.2.11
slice llm-6 IPv6 llm-0=fd00:2::10 llm-1=fd00:2::11
become "slices of v1" "$m0" "$m1"
check "v1 is listed" asked_more list v1 200 0
# of a registered resource the log tells the beginning of a watch when it is received, its status when it ends
watched_v1() { jq -r 'select(.verb == "watch" and (.requestURI | contains("/v1/"))) | .user.username // ""' "$scratch/audit.log" | grep -q warmpath-router; }
check "and watched" wait_until 20 watched_v1
slice llm-4 IPv4 llm-0=10.0.2.10 llm-1=10.0.2.11=terminating
slice llm-6 IPv6 llm-0=fd00:2::10 llm-1=fd00:2::11=terminating
become "and followed" "$m0" "llm-1 draining 10.0.2.11,fd00:2::11"
kubernetes_server_stop
