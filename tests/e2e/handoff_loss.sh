#!/bin/bash
# Loss, delay and repetition of every single packet of an exchange, between client and router and between router and replicas: the
# exchange completes, and every request reaches the home of its conversation.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

switch=$WARMPATH_LAB-switch
in_switch() { nsenter --net="/run/netns/$switch" "$@"; }

# wire_in PORT BRIDGE: takes a port out of its bridge; wire0 leads into the bridge, and a program carries between the two.
wire_in() {
	wire_out
	ip -n "$switch" link set "$1" nomaster
	ip -n "$switch" link add wire0 type veth peer name wire1
	in_switch ethtool -K wire0 tx off >/dev/null
	in_switch ethtool -K wire1 tx off >/dev/null
	ip -n "$switch" link set wire0 up
	ip -n "$switch" link set wire1 up master "$2"
	# takes what XDP redirects to it, without joining segments that are to be lost one by one
	ip -n "$switch" link set dev "$1" xdpdrv obj "$build/tests/datapath/pass.bpf.o" sec xdp.frags
	in_switch ethtool -K "$1" gro off tx off >/dev/null
	wired_port=$1 wired_bridge=$2
}

wire_out() {
	[ -n "${wired_port-}" ] || return 0
	ip -n "$switch" link del wire0
	ip -n "$switch" link set dev "$wired_port" xdpdrv off
	in_switch ethtool -K "$wired_port" gro on >/dev/null
	ip -n "$switch" link set "$wired_port" master "$wired_bridge"
	wired_port=
}

# homes_that_differ: two ids
two_ids() {
	local first id
	first=$(warmpath route conv-1 --service api | awk '{print $1}')
	for id in conv-2 conv-3 conv-4 conv-5 conv-6 conv-7 conv-8 conv-9; do
		if [ "$(warmpath route $id --service api | awk '{print $1}')" != "$first" ]; then
			echo "conv-1 $id"
			return
		fi
	done
}

# exchange DESCRIPTION PORT BRIDGE ADDRESS: the helper's TAP becomes ours
exchange() {
	local line ids
	read -r -a ids < <(two_ids)
	wire_in "$2" "$3"
	while read -r line; do
		case $line in
		'ok '*) ok "$1: ${line#* - }" ;;
		'not ok '*) not_ok "$1: ${line#* - }" ;;
		1..*) ;;
		*) echo "$line" ;;
		esac
	done < <("$build/tests/e2e/lossy_exchange" "$switch" "$2" wire0 "$WARMPATH_LAB-client-0" "$4" 8000 "${ids[@]}" 2>&1)
	wire_out
}

for mode in native tc; do
	lab_up --replicas 3 --mode $mode --servers http
	agent_up --mode $mode --services api
	check "$mode: the replicas take connections over" tools/lab handoff start
	if [ $mode = native ]; then
		exchange "$mode, router and replicas, IPv4" downlink replicas 10.9.9.8
		exchange "$mode, client and router, IPv6" uplink clients fd00:9::8
	else
		exchange "$mode, router and replicas, IPv6" downlink replicas fd00:9::8
		exchange "$mode, client and router, IPv4" uplink clients 10.9.9.8
	fi
	is "$mode: no connection was reset for being unknown" \
		"$(warmpath counters --json | jq '.counters.reset_unknown_connection // (.[] | select(.name=="reset_unknown_connection").packets)' 2>/dev/null | head -n 1)" 0
done
