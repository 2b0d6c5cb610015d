#!/bin/bash
# Packets given to the other end of a veth: that they are, that answers are the same, and that nothing is passed by: queueing disciplines and filters of
# others, ends in this namespace, configurations that do not want it.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

lab_up --replicas 2 --mode tc
run=$(tools/lab path run)
check "replicas take connections over" tools/lab handoff start
agent_up --services chat,web,api --mode tc

peer() { # interface: as the agent says
	warmpath status --json | jq --arg name "$1" '.interfaces[] | select(.name == $name) | .redirect_peer'
}
is_peer() { [ "$(peer "$1")" = "$2" ]; }
sent() { # interface: packets that went out of it
	in_host router ip -s -j link show "$1" | jq '.[0].stats64.tx.packets'
}
requests() { # description: 20 datagrams and as many requests of each kind, all answered
	local failed=0 index
	[ "$(ids 20 | datagrams client 8000 10.9.9.9 | tail -n 1 | grep -o 'received=[0-9]*')" = received=20 ] || failed=1
	for ((index = 0; index < 20; index++)); do
		in_host client curl -sf -m 5 -o /dev/null -H "x-conversation-id: peer-$index" http://10.9.9.8:8000/ || failed=1
		in_host client curl -sf -m 5 -o /dev/null -H "x-conversation-id: peer-$index" 'http://[fd00:9::8]:8000/' || failed=1
		in_host client curl -sf -m 5 -o /dev/null "http://[$(warmpath address peer-$index --service web)]:8000/" || failed=1
	done
	is "$1" $failed 0
}
devices() { # what is in the map
	in_host router bpftool -j map dump pinned "$(tools/lab path pin)/v1/redirect_devices" | jq -c '.[].formatted'
}
device() { # interface: its value there
	devices | jq -c --argjson index "$(in_host router ip -j link show "$1" | jq '.[0].ifindex')" 'select(.key == $index) | .value'
}
entries_are() { [ "$(devices | wc -l)" = "$1" ]; }
few() { # description interface before most: how many packets have gone out since
	local count=$(($(sent "$2") - $3))
	check "$1 ($count)" test $count -le "$4"
}
many() {
	local count=$(($(sent "$2") - $3))
	check "$1 ($count)" test $count -ge "$4"
}

is "both interfaces are ends of veths across namespaces" "$(peer eth0) $(peer eth1)" "true true"
is "in the map" "$(devices | jq -c .value.peer | paste -sd ' ')" "1 1"
requests "requests are answered" # neighbours are known from now on
before=$(sent eth1) back=$(sent eth0)
requests "and again"
few "none of them went through the queue to the replicas" eth1 "$before" 40
few "nor back" eth0 "$back" 40

# what is on the way out is not passed by
in_host router tc qdisc add dev eth1 root pfifo
check "a queueing discipline is noticed" wait_until 5 is_peer eth1 false
is "on that interface alone" "$(peer eth0)" true
sleep 0.2 # the data path remembers a next hop for 0.1 s
before=$(sent eth1)
requests "requests are answered through it"
many "and go by it" eth1 "$before" 150
is "as it says itself" "$(in_host router tc -s -j qdisc show dev eth1 root | jq 'map(select(.kind == "pfifo"))[0].packets >= 150')" true
in_host router tc qdisc del dev eth1 root
check "without it, the other end is given packets again" wait_until 5 is_peer eth1 true

in_host router tc qdisc replace dev eth0 clsact
in_host router tc filter add dev eth0 egress bpf bytecode '1,6 0 0 0,' flowid 1:1
check "so is a filter of others" wait_until 5 is_peer eth0 false
sleep 0.2
before=$(sent eth0)
requests "requests are answered through it, too"
many "and go by it, too" eth0 "$before" 150
in_host router tc filter del dev eth0 egress
check "without it, the other end is given packets again, too" wait_until 5 is_peer eth0 true

# a tcx program comes without an event: it is looked for every 10 s
tools/lab exec router "$build/tests/e2e/tcx_egress" eth1 >"$scratch/tcx" 2>&1 &
wait_until 5 test -s "$scratch/tcx"
if grep -qx attached "$scratch/tcx"; then
	check "so is a tcx program of others" wait_until 15 is_peer eth1 false
	kill $!
elif { wait $!; [ $? = 3 ]; }; then
	skip "the kernel has no tcx" "a tcx program of others"
else
	note <"$scratch/tcx"
	not_ok "a tcx program is attached"
fi

# a veth with both ends here: its other end may not be given packets. There are more veths than the map has room for, which the interfaces that
# are attached have nevertheless.
for ((pod = 1; pod <= 1100; pod++)); do echo "link add pod$pod up type veth peer name pod$pod netns $WARMPATH_LAB-client-0"; done | in_host router ip -batch -
in_host router ip link add near type veth peer name far
in_host router ip link set near up
in_host router ip link set far up
check "more veths than there is room for" wait_until 15 entries_are 1024
warmpath attach near --mode tc >/dev/null
is "a veth with both ends here" "$(peer near)" false
check "XDP on both of its ends" warmpath attach near --mode native
warmpath attach far --mode native >/dev/null # an end takes frames if the other has a program
is "it may be redirected to" "$(device near | jq -c '[.usable, .peer]')" '[1,0]'
warmpath detach near >/dev/null
warmpath detach far >/dev/null
in_host router ip link del near
for ((pod = 1; pod <= 1100; pod++)); do echo "link del pod$pod"; done | in_host router ip -batch -
check "those that are gone are not in the map" wait_until 15 entries_are 2
is "a list that changes while it is read is read to its end" "$(grep -c 'Device or resource busy' "$run/agent.log")" 0

sed -i 's/^redirect_peer: .*/redirect_peer: false/' "$run/agent.yaml"
check "the configuration can do without" warmpath reload
is "on all interfaces" "$(peer eth0) $(peer eth1)" "false false"
sleep 0.2
before=$(sent eth1)
requests "requests are answered"
many "through the queue" eth1 "$before" 150
sed 's/^  - name: eth1/  - {name: lo, mode: native}\n  - name: eth1/; s/^redirect_peer: .*/redirect_peer: true/' "$run/agent.yaml" >"$scratch/bad.yaml"
cp "$run/agent.yaml" "$scratch/good.yaml"
cp "$scratch/bad.yaml" "$run/agent.yaml"
matches "a configuration that cannot be done" "$(warmpath reload 2>&1)" 'interface lo .*cannot run XDP in the driver'
is "changes nothing of it" "$(peer eth0) $(peer eth1)" "false false"
sed 's/^redirect_peer: .*/redirect_peer: perhaps/' "$scratch/good.yaml" >"$run/agent.yaml"
matches "another word is refused" "$(warmpath reload 2>&1)" 'redirect_peer.*(true|false)'
sed -i 's/^redirect_peer: .*/redirect_peer: true/' "$run/agent.yaml"
check "and with it again" warmpath reload
is "it is back" "$(peer eth0) $(peer eth1)" "true true"

warmpath attach eth0 --mode native >/dev/null
warmpath attach eth1 --mode native >/dev/null
is "XDP has its own way" "$(peer eth0) $(peer eth1)" "false false"
