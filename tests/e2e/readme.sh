#!/bin/bash
# The README's commands, as they stand there: each set-up is done in a lab, on machines with /etc, /usr/local and /run of their own, and then
# the commands that come after it. A block is marked <!-- try SHAPE MACHINE... --> ("all machines": on each).
# shellcheck disable=SC2016  # words of other shells, jq and Markdown stand in single quotes
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

unset WARMPATH_SOCKET # the README does not know of it

declare -A machine_process

# machine_up NAME [LIKE]: a mount namespace in which installing and configuring changes nothing of this machine; with what is installed on
# LIKE, and its secret
machine_up() {
	local name=$1 like=()
	[ $# = 1 ] || like=(nsenter --mount --target "$(sleeper "$2")" --wd="$PWD" --)
	mkdir -p "$scratch/$name"
	[ $# = 1 ] || on "$2" mkdir -p "$scratch/$name"
	in_host "$name" "${like[@]}" unshare --mount --propagation private bash -e -c '
		mount -t tmpfs tmpfs "$0"
		for directory in /etc /usr/local; do
			mkdir -p "$0$directory/upper" "$0$directory/work"
			mount -t overlay -o "lowerdir=$directory,upperdir=$0$directory/upper,workdir=$0$directory/work" overlay $directory
		done
		mount -t tmpfs tmpfs /run
		mount -t bpf bpf /sys/fs/bpf
		touch "$0/ready"
		exec sleep 600' "$scratch/$name" &
	machine_process[$name]=$!
	wait_until 20 on "$name" test -f "$scratch/$name/ready" || bail "machine $name"
}

on() { # machine command...: unshare became what it ran
	local name=$1
	shift
	nsenter --mount --net --target "$(sleeper "$name")" --wd="$PWD" -- "$@"
}

# The process that holds the namespaces: the background job of this shell, or its child.
sleeper() {
	local pid=${machine_process[$1]} child
	while child=$(pgrep -P "$pid" | head -n 1) && [ -n "$child" ]; do pid=$child; done
	echo "$pid"
}

machines_down() {
	local name pid
	for name in "${!machine_process[@]}"; do
		on "$name" bash -c '[ ! -f /run/warmpathd.pid ] || kill "$(cat /run/warmpathd.pid)"' 2>/dev/null
		pid=$(sleeper "$name")
		kill "$pid" 2>/dev/null
		wait "${machine_process[$name]}" 2>/dev/null
	done
	machine_process=()
}
trap 'status=$?; machines_down; clean_up || status=1; exit $status' EXIT

# There is no systemd in a namespace: what its unit starts is started, as installed.
cat >"$scratch/systemctl" <<'SYSTEMCTL'
#!/bin/bash
[ "$*" = "enable --now warmpathd" ] || exit 1
unit=$(find /etc/systemd/system /lib/systemd/system /usr/local -name warmpathd.service 2>/dev/null | head -n 1)
mkdir -p /run/warmpath
$(sed -n 's/^ExecStart=//p' "$unit") >/run/warmpathd.log 2>&1 </dev/null &
echo $! >/run/warmpathd.pid
for _ in $(seq 100); do
	grep -q 'info: ready' /run/warmpathd.log && exit 0
	sleep 0.1
done
cat /run/warmpathd.log
exit 1
SYSTEMCTL
chmod +x "$scratch/systemctl"

# The blocks that are marked for a machine in a shape, one after the other, each closed by a line with a NUL
blocks() { # shape machine
	awk -v shape="$1" -v machine="$2" '
		/^<!-- try / {
			wanted = wanted || ($0 ~ "<!-- try all machines" && machine == "router") || ($3 == shape && index($0, " " machine " "))
			next
		}
		/^```sh$/ { inside = 1; next }
		/^```$/ { if (inside && wanted) printf "%c", 0; inside = wanted = 0; next }
		inside && wanted { print }
		!inside && NF && !/^<!--/ { wanted = 0 }' README.md
}

# run_blocks SHAPE MACHINE FROM TO: those of these numbers, from 1
run_blocks() {
	local shape=$1 machine=$2 first=$3 last=$4 number=0 block
	while IFS= read -r -d '' block; do
		number=$((number + 1))
		if [ $number -lt "$first" ] || [ $number -gt "$last" ]; then continue; fi
		printf '%s\n' "$block" | sed 's/^/  $ /' | note
		if [ "$machine" = client ]; then
			check "$shape: the client's command" in_host client bash -e -c "$block"
		else
			check "$shape: block $number on $machine" on "$machine" env PATH="$scratch:/usr/local/sbin:/usr/local/bin:$PATH" bash -e -o pipefail -c "$block"
		fi
	done < <(blocks "$shape" "$machine")
}

ask() { # address path: the answer's first word is the replica's name
	in_host client curl -sS -m 10 -H 'x-conversation-id: chat-4711' "http://$1:8000/" | cut -d ' ' -f 1
}

cli() { on router /usr/local/bin/warmpath "$@"; }

# Why did it move? With our own commands alone.
moved() { # shape address
	local home second
	home=$(cli conversation chat-4711 --json | jq -r .home)
	is "$1: the conversation is at its home" "$(ask "$2")" "$home"
	cli replica drain "$home" >/dev/null
	second=$(ask "$2")
	matches "$1: drained: another replica answers" "$second" '^llm-[0-2]$'
	is "$1: it is another one" "$([ "$second" != "$home" ] && echo yes)" yes
	matches "$1: and it is said why" "$(cli conversation chat-4711)" "MOVED from $home: $home is draining"
	cli replica undrain "$home" >/dev/null
}

# --- one machine ---------------------------------------------------------------------------------------------

lab_up --replicas 3 --shape node-local --mode tc
machine_up router
run_blocks node-local router 1 2
run_blocks node-local client 1 9
moved node-local 10.0.1.1
run_blocks node-local router 3 9
machines_down

# --- a router ------------------------------------------------------------------------------------------------

lab_up --replicas 3 --mode native
machine_up router
run_blocks inline router 1 2
for name in llm-0 llm-1 llm-2; do
	machine_up $name router
	run_blocks inline $name 1 9
done
run_blocks inline router 3 3
run_blocks inline client 1 9
moved inline 10.9.9.8
run_blocks inline router 4 9

# --- Kubernetes ----------------------------------------------------------------------------------------------

missing=
while read -r file; do
	[ -e "$file" ] || missing+="$file "
done < <(sed -n '/^### Kubernetes/,/^## /p' README.md | grep -oE 'deploy/[A-Za-z]+(/[A-Za-z0-9-]+\.yaml)?' | sort -u)
is "Kubernetes: the files that are named are there" "$missing" ""
is "Kubernetes: the same commands as in docs/kubernetes.md" \
	"$(sed -n '/^### Kubernetes/,/^## /p' README.md | grep -E '^(docker|kubectl|for )' | sed 's/ *#.*//')" \
	"$(sed -n '/^```sh/,/^```/p' docs/kubernetes.md | grep -E '^(docker|kubectl|for )' | sed 's/ *#.*//' | head -n 6)"
