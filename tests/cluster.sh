# shellcheck shell=bash
# A stand-in for a Kubernetes cluster, to be sourced after tests/machines.sh and tests/discovery.sh: nodes are machines in hosts of the lab, a pod of a
# DaemonSet is a process with the root, mounts, capabilities and process ids that its manifest gives it, in the network of its node; a pod of the
# StatefulSet is a simulated replica. `docker` and `kubectl` do what the documents' commands ask of them, with the files that those name, and no more.
# shellcheck disable=SC2016  # words of other shells and jq stand in single quotes

cluster=$scratch/cluster
mkdir -p "$cluster/objects" "$cluster/secrets" "$cluster/labels" "$cluster/pods" "$cluster/image"

# What a node's runtime does: makes a root of the image, with what the manifest mounts in it, and runs the program in there. $plan: a line
# for each mount: bind SOURCE PATH ro|rw, or tmpfs SIZE PATH rw.
cat >"$cluster/run-pod" <<'RUN'
#!/bin/bash
set -e
root=$1 image=$2 plan=$3 environment=$4 capabilities=$5
shift 5
mount -t tmpfs tmpfs "$root"
mkdir "$root"/{usr,proc,sys,dev,etc,run,var}
mount -t overlay -o "lowerdir=$image/usr:/usr" overlay "$root/usr"
for link in bin sbin lib lib32 lib64 libx32; do [ ! -L "/$link" ] || ln -s "usr/$link" "$root/$link"; done
ln -s ../run "$root/var/run"
cp -a "$image/etc/." /etc/ssl /etc/ld.so.cache "$root/etc/"
mount -t proc proc "$root/proc"
mount --bind /sys "$root/sys"
mount -o remount,bind,ro "$root/sys"
mount --rbind /dev "$root/dev"
while read -r kind source path access; do
	[ -d "$root$path" ] || mkdir -p "$root$path"
	if [ "$kind" = tmpfs ]; then mount -t tmpfs -o "size=$source" tmpfs "$root$path"; else mount --bind "$source" "$root$path"; fi
	[ "$access" = rw ] || mount -o remount,bind,ro "$root$path"
done <"$plan"
mount -o remount,bind,ro "$root/usr"
mount -o remount,bind,ro "$root"
# shellcheck disable=SC2086 # words
exec chroot "$root" env -i $environment setpriv --no-new-privs --inh-caps=-all --bounding-set="$capabilities" "$@"
RUN
chmod +x "$cluster/run-pod"

refuse() {
	echo "$*" >&2
	return 1
}

object() { cat "$cluster/objects/$1-$2.json"; } # kind name

# --- docker build -t TAG -f FILE . --------------------------------------------------------------------------------

docker() {
	local work=$cluster/build step words stage=0 directory
	[ "$1 $2 $4 $6" = "build -t -f ." ] || refuse "docker $*: not done here" || return
	mkdir -p "$work/source"
	# what is built of the same files already
	[[ $build == /* ]] || tar -c "$build/bpf" "$build/user" "$build"/*.* "$build"/warmpath* | tar -x -C "$work/source"
	while read -r step; do
		read -ra words <<<"$step"
		case $step in
		FROM*) stage=$((stage + 1)) ;;
		"COPY --from=build /image /")
			# BuildKit refuses this; its predecessor makes the link a directory, and no program runs any more
			while read -r directory; do
				[ ! -L "/$directory" ] || refuse "cannot copy to non-directory: /$directory" || return
			done < <(cd "$work/image" && find . -mindepth 1 -type d -printf '%P\n')
			cp -a "$work/image/." "$cluster/image/"
			;;
		COPY*)
			if [ ${#words[@]} = 3 ] && [ -d "${words[1]}" ]; then
				mkdir -p "$work${words[2]}"
				cp -a "${words[1]}/." "$work${words[2]}"
			else
				cp -a "${words[@]:1:${#words[@]}-2}" "$work${words[-1]}"
			fi || return
			;;
		"RUN make"*)
			step=${step#RUN }
			(cd "$work/source" && bash -e -c "${step/DESTDIR=\/image/DESTDIR=$work/image}") || return
			;;
		ENTRYPOINT*) jq -r '.[]' <<<"${step#ENTRYPOINT}" >"$cluster/image/entrypoint" ;;
		"RUN apt-get"* | WORKDIR* | CMD* | "#"* | "") ;; # the packages: tests/unit/manifests.sh
		*) refuse "$5: what is $step?" || return ;;
		esac
	done < <(sed -e ':join' -e '/\\$/{N;s/\\\n//;b join' -e '}' "$5")
	[ $stage = 2 ] || refuse "$5: two stages are known here" || return
	echo "$3" >"$cluster/image/tag"
	rm -rf "$work"
}

# --- pods of DaemonSets ------------------------------------------------------------------------------------------

# As the kubelet lays out the files of a ConfigMap or a Secret: a directory that is exchanged at once, and links into it.
volume_write() { # directory mode: KEY TEXT-IN-BASE64 in lines
	local key text next
	next=..$(date +%s%N)
	mkdir -p "$1/$next"
	while read -r key text; do
		base64 -d <<<"$text" >"$1/$next/$key"
		chmod "$2" "$1/$next/$key"
		ln -sfn "..data/$key" "$1/$key"
	done
	ln -sfn "$next" "$1/..new"
	mv -T "$1/..new" "$1/..data"
}

config_map_write() { # name directory
	object ConfigMap "$1" | jq -r '.data | to_entries[] | "\(.key) \(.value | @base64)"' | volume_write "$2" 0644
}

# A line for each mount of a pod, see run-pod; what is to be mounted is made.
mounts_plan() { # pod, its specification on standard input
	local pod=$1 name path access kind source mode
	jq -r '.volumes as $volumes | .containers[0].volumeMounts[] | . as $mount | $volumes[] | select(.name == $mount.name) |
		[.name, $mount.mountPath, (if $mount.readOnly then "ro" else "rw" end)] +
		(if .configMap then ["configMap", .configMap.name, 0] elif .secret then ["secret", .secret.secretName, .secret.defaultMode]
		elif .hostPath then ["hostPath", .hostPath.path, 0] else ["emptyDir", .emptyDir.sizeLimit, 0] end) | join(" ")' |
		while read -r name path access kind source mode; do
			case $kind in
			configMap) config_map_write "$source" "$pod/volumes/$name" && echo "bind $pod/volumes/$name $path $access" ;;
			secret)
				[ -d "$cluster/secrets/$source" ] || refuse "secret $source not found" || return
				(cd "$cluster/secrets/$source" && for key in *; do echo "$key $(base64 -w0 "$key")"; done) |
					volume_write "$pod/volumes/$name" "$(printf '%o' "$mode")"
				echo "bind $pod/volumes/$name $path $access"
				;;
			hostPath) echo "bind $source $path $access" ;;
			emptyDir) echo "tmpfs ${source%i} $path $access" ;;
			esac
		done
}

pod_start() { # daemonset node
	local pod=$cluster/pods/$1-$2 specification capabilities token
	mkdir -p "$pod/root" "$pod/volumes/token"
	specification=$(object DaemonSet "$1" | jq -c .spec.template.spec)
	[ "$(jq -r '.containers[0].image' <<<"$specification")" = "$(cat "$cluster/image/tag")" ] || refuse "no such image" || return
	[ -f "$cluster/objects/ServiceAccount-$(jq -r .serviceAccountName <<<"$specification").json" ] || refuse "no such account" || return
	mounts_plan "$pod" <<<"$specification" >"$pod/plan" || return
	token=/var/run/secrets/kubernetes.io/serviceaccount
	if [ "$(jq .automountServiceAccountToken <<<"$specification")" = true ]; then
		cp "$cluster/token" "$cluster/ca.crt" "$cluster/namespace" "$pod/volumes/token/"
		echo "bind $pod/volumes/token $token ro" >>"$pod/plan"
	fi
	capabilities=$(jq -r '"-all" + (.containers[0].securityContext.capabilities.add | map(",+" + ascii_downcase) | join(""))' <<<"$specification")
	echo "$capabilities" >"$pod/capabilities"
	mapfile -t arguments < <(cat "$cluster/image/entrypoint" && jq -r '.containers[0].args[]' <<<"$specification")
	on "$2" unshare --mount --pid --fork --kill-child --propagation private "$cluster/run-pod" "$pod/root" "$cluster/image" "$pod/plan" \
		"PATH=/usr/sbin:/usr/bin KUBERNETES_SERVICE_HOST=$api_address KUBERNETES_SERVICE_PORT=443" "$capabilities" "${arguments[@]}" \
		>>"$pod/log" 2>&1 </dev/null &
	wait_until 20 first_process $! "$pod/first" || return
	mapfile -t probe < <(jq -r '.containers[0].startupProbe.exec.command[]' <<<"$specification")
	wait_until 60 pod_exec "$1-$2" "${probe[@]}" || { cat "$pod/log" >&2 && return 1; }
}

# The process that is the first of its own: the child of `unshare` below the job of this shell.
first_process() { # job file
	local pid=$1
	until [ "$(cat "/proc/$pid/comm")" = unshare ]; do pid=$(pgrep -P "$pid" | head -n 1) && [ -n "$pid" ] || return; done
	pgrep -P "$pid" >"$2"
}

pod_exec() { # pod command...
	local pod=$cluster/pods/$1
	shift
	nsenter --target "$(cat "$pod/first")" --mount --pid --net --root --wd -- \
		setpriv --no-new-privs --inh-caps=-all --bounding-set="$(cat "$pod/capabilities")" env PATH=/usr/sbin:/usr/bin "$@"
}

pod_end() { # pod signal
	kill "-$2" "$(cat "$cluster/pods/$1/first")"
	wait_until 20 eval "! kill -0 $(cat "$cluster/pods/$1/first")"
	rm -f "$cluster/pods/$1/first"
}

# Every pod that should be there and is not; a ConfigMap that has changed gets to where it is mounted.
kubelet() {
	local file name node pod
	for file in "$cluster"/objects/DaemonSet-*.json; do
		[ -f "$file" ] || continue
		name=$(jq -r .metadata.name "$file")
		while read -r node; do
			[ -f "$cluster/pods/$name-$node/first" ] || pod_start "$name" "$node" || return
		done < <(nodes_of "$(jq -r '.spec.template.spec.nodeSelector | to_entries[] | "\(.key)=\(.value)"' "$file")")
		for pod in "$cluster/pods/$name"-*; do
			[ ! -d "$pod/volumes/configuration" ] || config_map_write "$name" "$pod/volumes/configuration"
		done
	done
}

nodes_of() { grep -lxF "$1" "$cluster"/labels/* 2>/dev/null | xargs -r -n 1 basename | sort; } # label

# --- pods of the StatefulSet: servers, and their endpoints ---------------------------------------------------------

declare -A server_state=() server_process=() server_uid=() # of each pod: ready, or terminating

argument() { object StatefulSet llm | jq -r --arg name "--$1" '.spec.template.spec.containers[0].args | .[index($name) + 1]'; }

server_start() { # pod: on the node of its number
	local node
	node=$(nodes_of warmpath.io/replica=true | sed -n "$((${1##*-} + 1))p")
	[ -n "$node" ] || refuse "pod $1: no node is left" || return
	(exec nsenter --net="/run/netns/$WARMPATH_LAB-$node" "$build/tools/simreplica" --host "$(argument host)" --port "$(argument port)" --name "$1" \
		--metrics --answer-tokens 4 >>"$cluster/$1.log" 2>&1) &
	server_process[$1]=$!
	server_uid[$1]=uid-$1-$!
	wait_until 20 in_host "$node" curl -sSf "http://127.0.0.1:$(argument port)$(object StatefulSet llm | jq -r '.spec.template.spec.containers[0].readinessProbe.httpGet.path')" ||
		refuse "pod $1 does not become ready" || return
	server_state[$1]=ready
	server_node[$1]=$node
}
declare -A server_node=()

endpoints_write() {
	local pod words=()
	for pod in "${!server_state[@]}"; do
		words+=("$pod=$(tools/lab list | awk -v node="${server_node[$pod]}" '$1 == node {print $2}'),${server_uid[$pod]}$([ "${server_state[$pod]}" = ready ] || echo ,terminating)")
	done
	api "slice llm-7xk2p IPv4 $(object Service llm | jq -r '.spec.ports[0] | "\(.name):\(.port)"') ${words[*]}"
}

servers_scale() { # replicas
	local number
	for ((number = 0; number < $1; number++)); do
		[ -n "${server_state[llm-$number]:-}" ] || server_start "llm-$number" || return
	done
	endpoints_write
}

server_delete() { # pod: is drained, ends, and comes again
	local stop
	mapfile -t stop < <(object StatefulSet llm | jq -r '.spec.template.spec.containers[0].lifecycle.preStop.exec.command[]')
	server_state[$1]=terminating
	endpoints_write
	"${stop[@]}"
	kill "${server_process[$1]}"
	wait "${server_process[$1]}" 2>/dev/null
	unset "server_state[$1]"
	endpoints_write
}

# --- kubectl -------------------------------------------------------------------------------------------------------

apply() { # file
	local document kind name namespace
	while read -r document; do
		read -r kind name namespace < <(jq -r '"\(.kind) \(.metadata.name) \(.metadata.namespace // "")"' <<<"$document")
		[ -z "$namespace" ] || [ -f "$cluster/objects/Namespace-$namespace.json" ] || refuse "namespaces \"$namespace\" not found" || return
		echo "$document" >"$cluster/objects/$kind-$name.json"
		echo "$kind/$name configured"
		if [ "$kind" = StatefulSet ]; then servers_scale "$(jq .spec.replicas <<<"$document")" || return; fi
	done < <(python3 -c 'import json, sys, yaml
for document in yaml.safe_load_all(open(sys.argv[1])): print(json.dumps(document))' "$1")
	kubelet
}

kubectl() {
	local pod key
	if [ "$1" = -n ]; then
		[ "$2" = warmpath ] || refuse "namespaces \"$2\" not found" || return
		shift 2
	fi
	case "$1 $2" in
	"apply -f") apply "$3" ;;
	"create secret")
		key=${5#--from-file=}
		mkdir -p "$cluster/secrets/$4"
		cat "${key#*=}" >"$cluster/secrets/$4/${key%%=*}"
		;;
	"label node") for pod in "${@:3:$#-3}"; do echo "${*: -1}" >>"$cluster/labels/$pod"; done ;;
	"rollout status") object DaemonSet "${3#daemonset/}" >/dev/null ;; # pods have started when `apply` ends
	"scale statefulset") servers_scale "${4#--replicas=}" ;;
	"delete pod") server_delete "$3" ;;
	"exec "*)
		pod=$2
		[[ $pod != daemonset/* ]] || pod=$(cd "$cluster/pods" && find . -name first | cut -d / -f 2 | grep "^${pod#daemonset/}-" | sort | head -n 1)
		pod_exec "$pod" "${@:4}"
		;;
	*) refuse "kubectl $*: not done here" ;;
	esac
}

cluster_down() {
	local pod
	for pod in "$cluster"/pods/*/first; do [ ! -f "$pod" ] || kill "$(cat "$pod")" 2>/dev/null; done
	for pod in "${!server_process[@]}"; do
		kill "${server_process[$pod]}" 2>/dev/null
		wait "${server_process[$pod]}" 2>/dev/null
	done
}
trap 'status=$?; cluster_down; machines_down; clean_up || status=1; exit $status' EXIT
