#!/bin/bash
# warmpath doctor: each check is made to fail in a network namespace of its own, and what it says to do is done, and helps.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/http.sh
. tests/http.sh

router=$run/agent.yaml
replica=$run/llm-0/agent.yaml

doctor() { # HOST OPTIONS...: its exit status is the doctor's; what it says is then in $scratch/doctor
	local host=$1
	shift
	in_host "$host" "$build/warmpath" doctor --socket "$scratch/none" --json "$@" >"$scratch/doctor" 2>&1
}

# finds DESCRIPTION LEVEL CHECK EXPRESSION HOST OPTIONS...: the remedy is then in $scratch/remedy
finds() {
	local description=$1 level=$2 name=$3 expression=$4 status=0
	shift 4
	doctor "$@" || status=$?
	jq -r --arg level "$level" --arg check "$name" --arg expression "$expression" \
		'.findings[] | select(.level == $level and .check == $check and (.finding | test($expression))) | .remedy // ""' \
		<"$scratch/doctor" 2>/dev/null | head -n 1 >"$scratch/remedy"
	if [ -s "$scratch/remedy" ] && { [ "$level" = problem ] && [ $status = 1 ] || [ "$level" != problem ]; }; then
		ok "$description"
	else
		note "exit status $status, expected: $level of $name: $expression"
		note <"$scratch/doctor"
		not_ok "$description"
	fi
}

# well DESCRIPTION HOST OPTIONS...: no problem
well() {
	local description=$1
	shift
	check "$description" doctor "$@"
}

# changed FILE EXPRESSION: a copy of a configuration, edited
changed() {
	sed "$2" "$1" >"$scratch/changed.yaml"
	echo "$scratch/changed.yaml"
}

lab_up --replicas 2 --mode native
agent_up --mode native --services api
tools/lab handoff start >"$scratch/output" 2>&1

# --- all is well, with and without an agent ------------------------------------------------------------------
check "a router that is well: 0" in_host router "$build/warmpath" doctor
check "a replica that is well: 0" in_host llm-0 "$build/warmpath" --socket "$run/llm-0/control.sock" doctor
is "the first agent of a replica adopts nothing" "$(in_host llm-0 "$build/warmpath" --socket "$run/llm-0/control.sock" status --json | jq .adopted)" false
is "the running agent's configuration is the one looked at" \
	"$(in_host router "$build/warmpath" doctor --json | jq -r '"\(.configuration) \(.role) \(.agent_running) \(.ok)"')" "$router router true true"
fingerprint=$(in_host router "$build/warmpath" doctor | sed -n 's/.*has the fingerprint \([0-9a-f]*\).*/\1/p')
well "the fingerprint that the router has is expected of a replica" llm-0 -c "$replica" --expect-secret "$fingerprint"
check "the secret itself is not said" eval "! in_host router '$build/warmpath' doctor | grep -qF \"\$(od -An -tx1 '$run/secret' | tr -d ' \n' | head -c 16)\""
finds "no agent" warning agent 'no agent answers' router -c "$router"

in_host router sysctl -qw net.ipv4.ip_forward=0
is "what the agent and the doctor have both found is said once" \
	"$(in_host router "$build/warmpath" doctor | grep -c 'IPv4 forwarding is off on eth0')" 1
in_host router sysctl -qw net.ipv4.ip_forward=1
in_host router ip -6 route del fd00:2::/64 dev eth1
wait_until 5 eval "warmpath status --json | jq -e '.warnings[] | select(test(\"cannot be reached\"))'"
check "what the agent warns of is said" eval "in_host router '$build/warmpath' doctor | grep '^WARNING  agent .*cannot be reached'"
in_host router ip -6 route add fd00:2::/64 dev eth1 proto kernel

# --- settings whose remedy is a command ----------------------------------------------------------------------
cure() { # HOST FILE DESCRIPTION: does what was said
	local command
	command=$(cat "$scratch/remedy")
	in_host "$1" sh -c "$command" >"$scratch/output" 2>&1
	well "$3: cured by: $command" "$1" -c "$2"
}
while read -r host setting name expression; do
	file=$replica
	[ "$host" = llm-0 ] || file=$router
	in_host "$host" sysctl -qw "$setting"
	finds "$host: $setting" problem "$name" "$expression" "$host" -c "$file"
	cure "$host" "$file" "$host: $setting"
done <<-SETTINGS
	llm-0 net.ipv4.tcp_syncookies=0 tcp_syncookies tcp_syncookies
	llm-0 net.ipv4.tcp_rfc1337=1 tcp_rfc1337 closed.first
	llm-0 net.ipv4.tcp_timestamps=0 tcp_timestamps timestamps
	llm-0 net.ipv4.tcp_sack=0 tcp_sack selective
	llm-0 net.ipv4.tcp_window_scaling=0 tcp_window_scaling scale
	router net.ipv4.ip_forward=0 forwarding IPv4.forwarding
	router net.ipv6.conf.all.forwarding=0 forwarding IPv6.forwarding
	router net.ipv4.conf.eth1.rp_filter=1 rp-filter strict
SETTINGS
in_host llm-0 sysctl -qw net.ipv4.conf.eth0.rp_filter=1
finds "llm-0: strict reverse-path filtering" warning rp-filter 'requests of clients' llm-0 -c "$replica"

# --- interfaces -------------------------------------------------------------------------------------------------
finds "an interface that is not there" problem interface 'no interface eth7' router -c "$(changed "$router" 's/name: eth1/name: eth7/')"
in_host router ip link add plain type bridge
finds "an interface that is down" problem interface 'plain is down' router -c "$(changed "$router" 's/name: eth1/name: plain/')"
finds "a driver without XDP, and mode native" problem attach-mode 'plain .driver bridge. cannot run XDP' router -c "$scratch/changed.yaml"
finds "checksums that XDP cannot tell" warning offloads 'eth0 .driver veth' router -c "$router"
in_host router ip link set eth1 mtu 1400
finds "interfaces of different MTU" warning mtu 'eth1 is 1400.* eth0 1500' router -c "$router"
in_host router ip link set eth1 mtu 1000
finds "an MTU that is too small" problem mtu 'eth1 is 1000' router -c "$router"
in_host router sh -c "$(cat "$scratch/remedy") && ip -6 addr add fd00:2::1/64 dev eth1 nodad"
well "an MTU that is too small: cured by: $(cat "$scratch/remedy")" router -c "$router"

# --- replicas ---------------------------------------------------------------------------------------------------
finds "no route to a replica" problem replica 'no route to replica llm-0 at 203.0.113.7' router \
	-c "$(changed "$router" 's/10\.0\.2\.10/203.0.113.7/')"
finds "a replica on the router itself" problem replica 'llm-0 at 10.0.2.1 is on this machine' router \
	-c "$(changed "$router" 's/"10\.0\.2\.10"/"10.0.2.1"/')"
in_host router curl -sS --max-time 4 http://10.0.2.99:8001/ >"$scratch/output" 2>&1
finds "a replica that does not answer for its address" problem neighbour '10.0.2.99, does not answer' router \
	-c "$(changed "$router" 's/10\.0\.2\.10/10.0.2.99/')"
in_host router ip addr add 10.9.9.8/32 dev lo
finds "a public address that is the machine's own" warning public-address '10.9.9.8 of service api' router -c "$router"
in_host router ip addr del 10.9.9.8/32 dev lo

# --- the secret -------------------------------------------------------------------------------------------------
finds "another secret than expected" problem secret 'not 0123456789abcdef' llm-0 -c "$replica" --expect-secret 0123456789abcdef
(umask 077 && head -c 32 /dev/urandom >"$scratch/secret")
finds "another secret in the file than in use" problem secret-loaded 'other secrets' llm-0 -c "$(changed "$replica" "s|secret_file: $run.*|secret_file: $scratch/secret|")"
chmod 0644 "$scratch/secret"
finds "a secret that others may read" problem secret 'others than its owner' llm-0 -c "$scratch/changed.yaml"
sh -c "$(cat "$scratch/remedy")"
doctor llm-0 -c "$scratch/changed.yaml"
is "a secret that others may read: cured by: $(cat "$scratch/remedy")" "$(grep -c 'others than its owner' "$scratch/doctor")" 0

# --- the kernel and what may be done ------------------------------------------------------------------------------
read -r offset size < <(readelf -SW "$build/bpf/control.bpf.o" | sed -n 's/.* \.BTF  *PROGBITS  *[0-9a-f]* \([0-9a-f]*\) \([0-9a-f]*\) .*/\1 \2/p')
tail -c "+$((16#$offset + 1))" "$build/bpf/control.bpf.o" | head -c $((16#$size)) >"$scratch/types"
in_host llm-0 unshare -m sh -c "mount --bind '$scratch/types' /sys/kernel/btf/vmlinux && exec '$build/warmpath' doctor --socket none -c '$replica' --json" \
	>"$scratch/doctor" 2>&1
is "a kernel without the function that takes connections over" \
	"$(jq -r '.findings[] | select(.check == "kernel-functions") | "\(.level): \(.remedy)"' <"$scratch/doctor")" "problem: run Linux 6.9 or newer here"
finds "pins on a disk" problem pin-path 'not on a BPF file system' router -c "$(changed "$router" "s|^pin_path: .*|pin_path: $scratch|")"
in_host router setpriv --bounding-set=-bpf --inh-caps=-bpf "$build/warmpath" doctor --socket none -c "$router" --json >"$scratch/doctor" 2>&1
is "a process without CAP_BPF" "$(jq -r '.findings[] | select(.check == "capabilities") | "\(.level): \(.finding)"' <"$scratch/doctor")" \
	"problem: this process lacks CAP_BPF: it cannot load programs and make maps"

# --- servers ----------------------------------------------------------------------------------------------------
in_host llm-1 /usr/bin/python3 -c 'import socket, time
server = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)
server.bind(("", 8008))
server.listen()
print("listens", flush=True)
time.sleep(60)' >"$scratch/mptcp" 2>&1 &
if wait_until 5 grep -q listens "$scratch/mptcp"; then
	finds "a server that listens with MPTCP" problem listeners 'port 8008 listens with MPTCP' llm-1 -c "$run/llm-1/agent.yaml"
else
	skip "this kernel has no MPTCP" "a server that listens with MPTCP"
fi
finds "node-local: no server where a replica should be" warning listeners 'nothing listens at 10.0.2.10 port 8001' router \
	-c "$(changed "$router" 's/^shape: .*/shape: node-local/')"
finds "node-local: a replica that is another machine" problem replica 'llm-0 at 10.0.2.10 is not on this machine' router -c "$scratch/changed.yaml"
finds "the same with the id at an offset, whose connections are handed over as well" warning listeners 'nothing listens at 10.0.2.10 port 8001' router \
	-c "$(changed "$router" 's/^shape: .*/shape: node-local/
		s/from: header/from: offset/; /^      names: /d; s/key_bytes: .*/offset: 8/
		s/trust_token_headers: .*/length: 16\n      prompt_tokens_offset: none\n      max_tokens_offset: none/')"
tools/lab servers stop llm-0
for id in conv-1 conv-2 conv-3 conv-4; do
	in_client curl -sS -o /dev/null --max-time 5 -H "x-conversation-id: $id" "http://$api4:8000/" 2>/dev/null
done
finds "a server that is not there, by what the replica counted" warning counted 'no_listener: [1-9]' llm-0 -c "$replica"
finds "a server that is not there, by what the router counted" warning counted 'note_replica_refused: [1-9]' router -c "$router"

# --- a pin that somebody deletes -----------------------------------------------------------------------------------
rm "$(tools/lab path pin)/v1/trace_settings"
finds "a deleted pin" warning agent 'the pin .*/v1/trace_settings was deleted: .*warmpath detach all' router --socket "$run/control.sock"

# --- asked wrongly -----------------------------------------------------------------------------------------------
doctor router -c "$scratch/nothing"
is "no such file: 1, and a sentence" "$? $(jq -r .ok <"$scratch/doctor") $(jq -r .error <"$scratch/doctor")" \
	"1 false $scratch/nothing: cannot be read: No such file or directory"
doctor router -c "$router" --expect-secret xyz
is "no fingerprint: 2" $? 2
