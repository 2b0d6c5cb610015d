#!/bin/bash
# The kernels' tests under emulation when they are stopped: they end at once, and nothing that they have started goes on. In place of what
# takes long, a command that takes longer.
set -u
cd "$(dirname "$0")/../.." || exit 1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
count=0 failed=0

result() { # description; of the command before
	if [ $? = 0 ]; then set -- ok "$1"; else set -- "not ok" "$1" && failed=1; fi
	count=$((count + 1))
	echo "$1 $count - $2"
}

wait_until() { # command...
	local i
	for ((i = 0; i < 200; i++)); do
		"$@" && return
		sleep 0.1
	done
	return 1
}

# every package seems to be there, and fetching the kernels does not come to an end
mkdir "$scratch/bin"
cat >"$scratch/bin/dpkg-query" <<-'SCRIPT'
	#!/bin/sh
	echo install ok installed
SCRIPT
cat >"$scratch/bin/apt-get" <<-SCRIPT
	#!/bin/sh
	echo \$\$ >"$scratch/emulated"
	exec sleep 600
SCRIPT
chmod +x "$scratch"/bin/*

# shellcheck disable=SC2317 # wait_until calls it
gone() { ! kill -0 "$1" 2>/dev/null; }
for signal in TERM HUP; do
	rm -f "$scratch/emulated"
	PATH=$scratch/bin:$PATH WARMPATH_KERNELS=$scratch/store tests/kernels/run 6.1 >"$scratch/output" 2>&1 &
	matrix=$!
	wait_until test -s "$scratch/emulated"
	result "$signal: what takes long has begun"
	kill -$signal $matrix
	wait_until gone "$matrix"
	result "$signal: the run ends without waiting for it"
	wait $matrix
	[ $? = 143 ]
	result "$signal: and says so by its exit status"
	wait_until gone "$(cat "$scratch/emulated")"
	result "$signal: what it has started has ended too"
	[ -z "$(find "$scratch/store" -name 'run.*')" ]
	result "$signal: nothing is left of it"
done
echo "1..$count"
exit $failed
