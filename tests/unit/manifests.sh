#!/bin/bash
# deploy/kubernetes and deploy/Containerfile: what can be known of them without a cluster. Names that refer to each other do, selectors
# select, configurations are accepted by `warmpathd --check`, rights are no more than needed, the image has what its programs are linked with.
# shellcheck disable=SC2016 # what jq is given has variables of its own
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"

# holds DESCRIPTION JQ-FILTER: of all objects
holds() { check "$1" jq -e "$2" "$scratch/all.json"; }

to_json() { # files: all their documents as one list
	python3 -c 'import json, sys, yaml
print(json.dumps([d for f in sys.argv[1:] for d in yaml.safe_load_all(open(f))]))' "$@"
}

check "the manifests are YAML" to_json deploy/kubernetes/0*.yaml
cp "$scratch/output" "$scratch/all.json"
check "the cluster is YAML" to_json deploy/kubernetes/kind-cluster.yaml
cp "$scratch/output" "$scratch/kind.json"

# --- what refers to what --------------------------------------------------------------------------------------

objects='def named(kind): [.[] | select(.kind == kind)]; def workloads: [.[] | select(.spec.template)];
	def one_of(list): . as $value | any(list[]; . == $value);
	def config(name): named("ConfigMap")[] | select(.metadata.name == name);'
holds "every object has a name, a kind and a version" 'all(.[]; .apiVersion and .kind and .metadata.name)'
holds "no object is there twice" '([.[] | [.kind, .metadata.namespace, .metadata.name]] | length) == ([.[] | [.kind, .metadata.namespace, .metadata.name]] | unique | length)'
holds "all but the namespace are in the namespace" "$objects"'named("Namespace")[0].metadata.name as $name | all(.[] | select(.kind != "Namespace"); .metadata.namespace == $name)'
is "they come in the order in which they need each other" \
	"$(jq -r '[.[].kind] | map(select(. == "Namespace" or . == "Role" or . == "ConfigMap" or . == "DaemonSet" or . == "StatefulSet")) | reduce .[] as $k ([]; if .[-1] == $k then . else . + [$k] end) | join(" ")' "$scratch/all.json")" \
	"Namespace Role ConfigMap DaemonSet StatefulSet"
holds "selectors select the pods of their template" "$objects"'all(workloads[]; .spec.template.metadata.labels as $labels | .spec.selector.matchLabels | to_entries | all($labels[.key] == .value))'
holds "no two workloads select the same pods" "$objects"'[workloads[].spec.selector.matchLabels] | length == (unique | length)'
holds "service accounts exist" "$objects"'[named("ServiceAccount")[].metadata.name] as $names | all(workloads[].spec.template.spec | select(.serviceAccountName); .serviceAccountName | one_of($names))'
holds "the binding binds the role to the router's account" "$objects"'named("RoleBinding")[0] as $binding | $binding.roleRef.name == named("Role")[0].metadata.name and $binding.subjects[0].name == (named("DaemonSet")[] | select(.metadata.name == "warmpath-router") | .spec.template.spec.serviceAccountName)'
holds "configuration maps exist" "$objects"'[named("ConfigMap")[].metadata.name] as $names | all(workloads[].spec.template.spec.volumes[]? | select(.configMap); .configMap.name | one_of($names))'
check "the secret is made by a command that is stated" grep -q "kubectl -n warmpath create secret generic $(jq -r "$objects"'[workloads[].spec.template.spec.volumes[]? | select(.secret) | .secret.secretName] | unique | join(" ")' "$scratch/all.json") " deploy/kubernetes/03-configuration.yaml
holds "mounts are of volumes that exist" "$objects"'all(workloads[].spec.template.spec; [.volumes[].name] as $names | all(.containers[].volumeMounts[]; .name | one_of($names)))'
holds "the headless service selects the servers and names their port" "$objects"'named("Service")[0] as $service | named("StatefulSet")[0] as $set | $service.spec.clusterIP == "None" and $set.spec.serviceName == $service.metadata.name and ($service.spec.selector == $set.spec.selector.matchLabels) and ($service.spec.ports[0].targetPort == $set.spec.template.spec.containers[0].ports[0].name) and ($service.spec.ports[0].port == $set.spec.template.spec.containers[0].ports[0].containerPort)'
holds "probes ask ports that exist" "$objects"'all(workloads[].spec.template.spec.containers[]; [.ports[]?.name] as $names | all(.readinessProbe, .startupProbe, .livenessProbe | select(.httpGet?); .httpGet.port | one_of($names)))'
holds "the disruption budget is the servers'" "$objects"'named("PodDisruptionBudget")[0].spec.selector.matchLabels == named("StatefulSet")[0].spec.selector.matchLabels'
holds "the servers listen on the port of the service" "$objects"'named("StatefulSet")[0].spec.template.spec.containers[0] | (.args | .[index("--port") + 1]) == (.ports[0].containerPort | tostring)'
check "every node selector is a label of the cluster" jq -e -n --slurpfile all "$scratch/all.json" --slurpfile kind "$scratch/kind.json" \
	"$objects"'[$kind[0][0].nodes[].labels // {} | to_entries[] | [.key, .value]] as $labels | all($all[0][] | select(.spec.template) | .spec.template.spec.nodeSelector | to_entries[] | [.key, .value]; . | one_of($labels))'
check "and is explained" sh -c 'grep -q "label node NODE warmpath.io/replica=true" deploy/kubernetes/04-replica.yaml && grep -q "label node NODE warmpath.io/router=true" deploy/kubernetes/05-router.yaml'
check "nodes of the cluster do not share a directory of pins" jq -e '[.[0].nodes[].extraMounts[]? | select(.containerPath == "/sys/fs/bpf") | .hostPath] | length == (unique | length)' "$scratch/kind.json"

# --- configurations -------------------------------------------------------------------------------------------------

head -c 32 /dev/urandom >"$scratch/secret"
for role in router replica; do
	jq -r "$objects"'config("warmpath-'$role'").data["warmpath.yaml"]' "$scratch/all.json" >"$scratch/$role.yaml"
	# the secret is not here: another file of its kind stands for it
	sed "s|/run/secrets/warmpath/secret|$scratch/secret|" "$scratch/$role.yaml" >"$scratch/checked.yaml"
	check "the configuration of role $role is good" "$build/warmpathd" --check -c "$scratch/checked.yaml"
	check "it is role $role's" grep -qx "role: $role" "$scratch/$role.yaml"
done
to_json "$scratch/router.yaml" "$scratch/replica.yaml" >"$scratch/configurations.json"
check "the router follows the headless service by its port's name" jq -e -n --slurpfile all "$scratch/all.json" --slurpfile configured "$scratch/configurations.json" \
	'($all[0][] | select(.kind == "Service")) as $service | $configured[0][0].services[0].discovery[0] | .service == $service.metadata.name and .port_name == $service.spec.ports[0].name'
check "files of the configurations are in mounts, pins below the mounted file system" jq -e -n --slurpfile all "$scratch/all.json" --slurpfile configured "$scratch/configurations.json" '
	def mounted($path): any(.[]; . as $mount | $path | startswith($mount + "/"));
	[range(2) as $role | ($configured[0][$role]) as $c | [$all[0][] | select(.kind == "DaemonSet" and .metadata.name == "warmpath-" + $c.role) |
		.spec.template.spec.containers[0].volumeMounts[].mountPath] |
		mounted($c.handoff.secret_file), mounted($c.pin_path), mounted($c.control_socket), mounted("/etc/warmpath/warmpath.yaml")] | all'
is "the two roles do not share pins, should they be on one node" "$(jq -r '[.[].pin_path] | unique | length' "$scratch/configurations.json")" 2

# --- rights -----------------------------------------------------------------------------------------------------------

is "rights on the API: endpointslices, list and watch, nothing else" \
	"$(jq -c "$objects"'[named("Role")[].rules[] | [.apiGroups, .resources, .verbs]] + [named("ClusterRole")[]]' "$scratch/all.json")" \
	'[[["discovery.k8s.io"],["endpointslices"],["list","watch"]]]'
holds "only the router has a token" "$objects"'[workloads[] | select(.spec.template.spec.automountServiceAccountToken != false) | .metadata.name] == ["warmpath-router"]'
holds "host network, all capabilities dropped, root file system read only, no privileges" "$objects"'all(named("DaemonSet")[].spec.template.spec; .hostNetwork and .containers[0].securityContext == {runAsUser: 0, privileged: false, allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {drop: ["ALL"], add: .containers[0].securityContext.capabilities.add}})'
is "capabilities are those of the systemd unit" \
	"$(jq -r "$objects"'[named("DaemonSet")[].spec.template.spec.containers[0].securityContext.capabilities.add | map("CAP_" + .) | sort | join(" ")] | unique | join(" / ")' "$scratch/all.json")" \
	"$(sed -n 's/^CapabilityBoundingSet=//p' deploy/warmpathd.service | tr ' ' '\n' | sort | xargs)"
holds "the file system of BPF is the node's" "$objects"'all(named("DaemonSet")[].spec.template.spec; any(.volumes[]; .hostPath.path? == "/sys/fs/bpf"))'

# --- the image ----------------------------------------------------------------------------------------------------------

packages() { # stage: what the Containerfile installs in it
	awk -v wanted="$1" '/^FROM/ {stage++} stage == wanted' deploy/Containerfile | tr -c 'a-z0-9.+-' '\n' | grep -E '^(lib[a-z0-9.+-]+|[a-z0-9-]+)$' | grep -vx lib | sort -u
}

linked() { # the packages that hold the libraries that the programs are linked with, but for those of a build with sanitizers
	objdump -p "$build/warmpathd" "$build/warmpath" | awk '/NEEDED/ {library[$2]}
		END {
			for (name in library) if (name ~ /^libasan\./) delete library["libgcc_s.so.1"]
			for (name in library) if (name !~ /^lib(a|ub)san\./) print "*/" name
		}' | sort -u | xargs -d '\n' dpkg -S 2>/dev/null |
		grep -v '^libc6' | cut -d : -f 1 | sort -u
}
is "packages that the programs need and the image lacks" "$(comm -23 <(linked) <(packages 2) | xargs)" ""
is "packages that the image has for nothing" "$(comm -13 <(linked) <(packages 2) | grep '^lib' | xargs)" ""
is "packages for building that tools/deps does not have" \
	"$(packages 1 | grep -E -- '-dev$|^clang$|^bpftool$|^build-essential$' | comm -23 - <(tr ' ' '\n' <tools/deps | sort -u) | xargs)" ""
is "libraries that the image is built with and the package is not" \
	"$(packages 1 | grep -E '^lib.*-dev$' | comm -23 - <(sed -n '/^Build-Depends/,/^Standards/p' deploy/debian/control | grep -oE 'lib[a-z0-9.+-]+' | sort -u) | xargs)" ""
is "the image's version is the programs'" "$(jq -r "$objects"'[named("DaemonSet")[].spec.template.spec.containers[0].image] | unique | join(" ")' "$scratch/all.json")" \
	"warmpath:$("$build/warmpath" version 2>/dev/null | grep -oE '[0-9]+\.[0-9]+\.[0-9]+' | head -n 1 || true)"
check "what is copied into it exists" sh -c 'sed -n "s/^COPY \([^-].*\) .*/\1/p" deploy/Containerfile | xargs ls -d'
