#!/bin/bash
# Each key of the configuration is made wrong in turn, in the file of a running agent: the reload is refused and names the key, and nothing in the
# kernel has changed. The file is the shipped example, which states every key (a unit test sees to that).
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

lab_up --replicas 3
run=$(tools/lab path run)
pins=$(tools/lab path pin)
# without comments, a key a line; what lies on this machine is the lab's; no health checks that change the set meanwhile
sed -E -e 's/^( *)- \{ name: ([^,]*), addresses: (\[[^]]*\]), port: ([0-9]+), weight: ([0-9.]+) \}/\1- name: \2\n\1  addresses: \3\n\1  port: \4\n\1  weight: \5/' \
	-e 's/^( *interval: ).*/\13600/' -e 's/[[:space:]]*#.*//; /^[[:space:]]*$/d' -e "s|^pin_path:.*|pin_path: $pins|; s|^control_socket:.*|control_socket: $run/control.sock|" \
	-e "s|/etc/warmpath/secret|$run/secret|" deploy/warmpath.yaml >"$scratch/good.yaml"
cp "$scratch/good.yaml" "$run/agent.yaml"
tools/lab agent start >"$scratch/output" 2>&1 || {
	note <"$scratch/output"
	bail "warmpathd starts with the shipped example"
}

kernel() { # what the maps say of the configuration, and the interfaces
	local map
	for map in services replicas service_addresses replica_addresses http_services handoff_keys rings trace_settings redirect_devices; do
		bpftool -j map dump pinned "$pins/v1/$map" | jq -c '.[] | .formatted // .'
	done
	warmpath policy show --service chat --json
	warmpath status --json | jq -c '[.interfaces, (.services | map([.name, .generation, .policy]))]'
}
kernel >"$scratch/before"

refused=0 wrong=0
tried() { # key: the reload of agent.yaml is refused, names the key, and changes nothing
	local said
	wrong=$((wrong + 1))
	said=$(warmpath reload 2>&1)
	if [ $? != 1 ] || ! grep -qF "$1" <<<"$said"; then
		note "$1: $said"
		return
	fi
	if [ "$(bpftool -j map dump pinned "$pins/v1/services" | md5sum)" != "$services" ]; then
		note "$1: the services have changed"
		return
	fi
	refused=$((refused + 1))
}
services=$(bpftool -j map dump pinned "$pins/v1/services" | md5sum)

# a key with a value gets one that no key can have, and one without, or the first of an item, another name
declare -A seen
number=0
mapfile -t lines <"$scratch/good.yaml"
for line in "${lines[@]}"; do
	number=$((number + 1))
	[[ $line =~ ^([\ -]*)([a-z_]+):\ *(.*)$ ]] || continue
	key=${BASH_REMATCH[2]}
	# the same key of another service says nothing new
	[ -z "${seen[${BASH_REMATCH[1]//-/ }$key]-}" ] || continue
	seen[${BASH_REMATCH[1]//-/ }$key]=1
	if [ -n "${BASH_REMATCH[3]}" ]; then
		replacement="${BASH_REMATCH[1]}$key: {wrong: {}}"
	else
		replacement="${BASH_REMATCH[1]}x$key:"
	fi
	awk -v number=$number -v replacement="$replacement" 'NR == number {print replacement; next} {print}' \
		"$scratch/good.yaml" >"$run/agent.yaml"
	tried "$key"
done
note "$wrong keys made wrong"
is "each wrong key is refused, named, and changes nothing" "$refused" "$wrong"
check "which are all there are" test "$wrong" -ge 60

# wrong only when it comes to applying it
late() { # key sentence sed-expression...
	local key=$1 sentence=$2 said
	shift 2
	sed "$@" "$scratch/good.yaml" >"$run/agent.yaml"
	said=$(warmpath reload 2>&1)
	matches "$key that cannot be applied is refused" "$said" "$sentence"
}
late secret_file "no-secret does not exist: copy it from another machine" -e "s|secret_file: $run/secret|secret_file: $run/no-secret|"
late second_secret_file "no-secret does not exist: copy it from another machine" -e "s|second_secret_file: none|second_secret_file: $run/no-secret|"
late hash_key_file "no-key cannot be opened" -e "0,/hash_key_file: none/s|hash_key_file: none|hash_key_file: $run/no-key|"
late pin_path "another pin_path takes effect only with a restart" -e "s|^pin_path:.*|pin_path: $pins-other|"
late control_socket "another control_socket takes effect only with a restart" -e "s|^control_socket:.*|control_socket: $run/other.sock|"
late role "role: replica routes nothing" -e 's|^role:.*|role: replica|'
late shape "another shape takes effect only with a restart" -e 's|^shape:.*|shape: node-local|'
late limits "the limits are the sizes of tables in use" -e 's|  fragments: .*|  fragments: 4096|'
late vnodes "points" -e 's|vnodes: 100|vnodes: 900000|'
cp "$scratch/good.yaml" "$run/agent.yaml"
kernel >"$scratch/after"
same "after all of them the maps are as before" "$scratch/after" "$scratch/before"
check "and a good file is applied" warmpath reload
