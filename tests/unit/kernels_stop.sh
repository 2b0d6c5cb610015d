#!/bin/bash
# The kernels' tests under emulation when they are stopped: they end at once, and nothing that they have started goes on. In place of what
# takes long, a command that takes longer.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"

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
	wait_until 20 test -s "$scratch/emulated"
	result $? "$signal: what takes long has begun"
	kill -$signal $matrix
	wait_until 20 gone "$matrix"
	result $? "$signal: the run ends without waiting for it"
	wait $matrix
	[ $? = 143 ]
	result $? "$signal: and says so by its exit status"
	wait_until 20 gone "$(cat "$scratch/emulated")"
	result $? "$signal: what it has started has ended too"
	[ -z "$(find "$scratch/store" -name 'run.*')" ]
	result $? "$signal: nothing is left of it"
done
