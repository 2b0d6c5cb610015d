# shellcheck shell=bash
# Common to the tests of the README's commands, to be sourced by them after tests/lib.sh: machines that are set up as a reader would, on hosts of
# the lab, and the commands as they stand in a document.
# shellcheck disable=SC2016  # words of other shells and Markdown stand in single quotes

unset WARMPATH_SOCKET # the documents do not know of it

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

# blocks FILE SHAPE MACHINE: those that are marked for a machine in a shape, one after the other, each closed by a line with a NUL
blocks() {
	awk -v shape="$2" -v machine="$3" '
		/^<!-- try / {
			wanted = wanted || ($0 ~ "<!-- try all machines" && machine == "router") || ($3 == shape && index($0, " " machine " "))
			next
		}
		/^```sh$/ { inside = 1; next }
		/^```$/ { if (inside && wanted) printf "%c", 0; inside = wanted = 0; next }
		inside && wanted { print }
		!inside && NF && !/^<!--/ { wanted = 0 }' "$1"
}
