#!/bin/bash
# The Debian package on a clean root: installed with what it depends on, run on real traffic, installed again under it, removed, purged; nothing
# of it is left. `make test-deb` builds the package first. Needs a Debian mirror; the clean root is kept in $BUILD/package/clean.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

package=$(ls "$build"/deb/warmpath_*.deb 2>/dev/null)
[ -n "$package" ] || bail "there is a package: make deb"
for command in debootstrap lintian; do
	command -v $command >/dev/null || {
		skip "$command" "the package is installed on a clean root"
		exit 0
	}
done

lintian --fail-on warning "$package" >"$scratch/lintian" 2>/dev/null
status=$?
note <"$scratch/lintian"
is "lintian has nothing to say" "$status" 0

clean=$build/package/clean
if [ ! -e "$clean/etc/debian_version" ]; then
	rm -rf "$clean"
	mkdir -p "$clean"
	if ! debootstrap --variant=minbase bookworm "$clean" >"$scratch/debootstrap" 2>&1; then
		tail -n 5 "$scratch/debootstrap" | note
		rm -rf "$clean"
		skip "a Debian mirror" "the package is installed on a clean root"
		exit 0
	fi
	cp /etc/resolv.conf "$clean/etc/"
	for file in /etc/apt/sources.list /etc/apt/sources.list.d/debian.sources /etc/apt/apt.conf.d/*proxy*; do
		[ ! -e "$file" ] || cp "$file" "$clean$file"
	done
	printf '#!/bin/sh\nexit 101\n' >"$clean/usr/sbin/policy-rc.d"
	chmod 0755 "$clean/usr/sbin/policy-rc.d"
fi
root=$scratch/root
cp -a "$clean" "$root"
cp "$package" "$root/tmp/warmpath.deb"

lab_up --replicas 3 --mode native
run=$(tools/lab path run)
pins=$(tools/lab path pin)
# In mounts of its own, which go with its last process, and in the network of the lab's router or, for apt, in that of the machine.
# shellcheck disable=SC2016  # its own arguments
inside='
	mount --make-rprivate /
	mount --bind "$1" "$1"
	for directory in proc sys dev; do mount --rbind /$directory "$1/$directory"; done
	mount -t tmpfs tmpfs "$1/run"
	mkdir "$1/run/warmpath"
	mount --bind "$2" "$1/run/warmpath"
	shift 1
	exec chroot "$0" "${@:2}"'
mkdir "$scratch/run"
in_root() { DEBIAN_FRONTEND=noninteractive unshare -m bash -c "$inside" "$root" "$root" "$scratch/run" "$@"; }
in_routers_root() { tools/lab exec router unshare -m bash -c "$inside" "$root" "$root" "$scratch/run" "$@"; }

in_root apt-get update -q >"$scratch/output" 2>&1
check "it is installed with what it depends on" in_root apt-get install -y -q --no-install-recommends /tmp/warmpath.deb ||
	bail "the rest makes no sense without"
in_root dpkg -L warmpath >"$scratch/files"
for file in /usr/bin/warmpath /usr/sbin/warmpathd /lib/systemd/system/warmpathd.service /usr/share/man/man1/warmpath.1.gz \
	/usr/share/man/man8/warmpathd.8.gz /usr/share/man/man5/warmpath.yaml.5.gz /usr/share/doc/warmpath/examples/warmpath.yaml \
	/usr/share/bash-completion/completions/warmpath; do
	check "it has $file" grep -qxF "$file" "$scratch/files"
done
matches "its program runs" "$(in_root warmpath version)" '^warmpath [0-9.]+ \(map layout [0-9]+\)$'

tools/lab config | sed "s|^control_socket:.*|control_socket: /run/warmpath/control.sock|; s|$run/secret|/etc/warmpath/secret|" \
	>"$root/etc/warmpath/warmpath.yaml"
cp "$run/secret" "$root/etc/warmpath/secret"
check "its configuration is good" in_routers_root warmpathd --check -c /etc/warmpath/warmpath.yaml
in_routers_root warmpathd -c /etc/warmpath/warmpath.yaml >"$scratch/agent.log" 2>&1 &
agent=$!
answers() { "$build/warmpath" --socket "$scratch/run/control.sock" "$@"; }
check "the agent runs" wait_until 20 answers status || note <"$scratch/agent.log"
ids 50 >"$scratch/ids"
works() { is "$1" "$(datagrams client 8000 10.9.9.9 <"$scratch/ids" | tail -n 1 | grep -o 'received=[0-9]* lost=[0-9]*')" "received=50 lost=0"; }
works "and routes"
check "the package is installed once more" in_routers_root dpkg -i /tmp/warmpath.deb
works "the data path goes on meanwhile"
check "and the agent is upgraded in place" answers upgrade
works "which routes as well"
check "it is removed" in_routers_root dpkg --remove warmpath
wait_until 10 sh -c "! kill -0 $agent" 2>/dev/null
check "the agent has ended" sh -c "! kill -0 $agent"
check "no pin is left" test ! -e "$pins"
is "no program is left" "$(in_host router ip -d link show | grep -c xdp)" 0
is "nothing but the operator's files is left" "$(find "$root/etc/warmpath" -type f -printf '%f\n' | sort | xargs)" "secret warmpath.yaml"
rm "$root/etc/warmpath/secret" "$root/etc/warmpath/warmpath.yaml"
check "it is purged" in_routers_root dpkg --purge warmpath
while read -r file; do
	[ -d "$root$file" ] && [ "${file##*/}" != warmpath ] && continue
	[ ! -e "$root$file" ] || echo "$file"
done <"$scratch/files" >"$scratch/left"
is "no file of it is left" "$(cat "$scratch/left")" ""
is "and no trace in dpkg" "$(in_root dpkg -l warmpath 2>/dev/null | grep -c '^.i')" 0
