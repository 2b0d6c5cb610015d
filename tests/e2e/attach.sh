#!/bin/bash
# Where warmpathd attaches its programs: each mode, changing modes under traffic, what is not to be had, programs of others,
# interfaces that come and go.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

lab_up --replicas 2
run=$(tools/lab path run)
pins=$(tools/lab path pin)
agent_up --services chat --mode native
cp "$run/agent.yaml" "$scratch/good.yaml"

refused() { # description expected-sentence command...: exit status 1 and the sentence
	local description=$1 expected=$2 said status
	shift 2
	said=$("$@" 2>&1 >/dev/null)
	status=$?
	is "$description: exit status" "$status" 1
	matches "$description: sentence" "$said" "$expected"
}

attached() { # interface: how
	warmpath status --json | jq -r --arg name "$1" '.interfaces[] | select(.name == $name) | .attached'
}
is_attached() { # interface how
	[ "$(attached "$1")" = "$2" ]
}
problem() { # interface
	warmpath status --json | jq -r --arg name "$1" '.interfaces[] | select(.name == $name) | .problem'
}
xdp_of() { # interface: what the kernel says: xdp, xdpgeneric or nothing
	in_host router ip -d link show "$1" | grep -oE '\bxdp(generic)?\b' | head -n 1
}
filters_of() { # interface direction
	in_host router tc filter show dev "$1" "$2" | grep -c warmpath_
}
works() { # description
	is "$1" "$(ids 10 | datagrams client 8000 10.9.9.9 | tail -n 1 | grep -o 'received=[0-9]*')" received=10
}

# --- the modes, one after the other under traffic --------------------------------------------------------------

is "native XDP" "$(attached eth0) $(xdp_of eth0)" "native xdp"
works "datagrams in mode native"

# A device that is given an XDP program, or rid of one, may lose what is in its queues; an exchange of programs loses nothing.
over_a_new_agent() { # stop|kill
	local ledger
	ids 100 | datagrams client --rate 500 --seconds 3 8000 10.9.9.9 >"$scratch/ledger" &
	ledger=$!
	sleep 0.5
	tools/lab agent "$1"
	sleep 0.3
	tools/lab agent start
	wait $ledger
}
over_a_new_agent kill
is "native: a new agent takes the link over" "$(attached eth0) $(xdp_of eth0)" "native xdp"
is "native: no datagram is lost meanwhile" "$(total "$scratch/ledger" lost)" 0
sed 's/mode: native/mode: tc/' "$scratch/good.yaml" >"$run/agent.yaml"
check "native to tc" warmpath reload
is "tc" "$(attached eth0) $(xdp_of eth0) $(filters_of eth0 ingress) $(filters_of eth0 egress)" "tc  1 0"
works "datagrams in mode tc"
over_a_new_agent stop
is "tc: a new agent's filter replaces the old one" "$(attached eth0) $(filters_of eth0 ingress)" "tc 1"
is "tc: no datagram is lost meanwhile" "$(total "$scratch/ledger" lost)" 0
cp "$scratch/good.yaml" "$run/agent.yaml"
check "tc to native" warmpath reload
is "native again, no filter left" "$(attached eth0) $(xdp_of eth0) $(filters_of eth0 ingress)" "native xdp 0"
is "nor the hook" "$(in_host router tc qdisc show dev eth0 | grep -c clsact)" 0
works "datagrams in mode native again"

sed 's/mode: native/mode: generic/' "$scratch/good.yaml" >"$run/agent.yaml"
check "native to generic" warmpath reload
is "generic" "$(attached eth0) $(xdp_of eth0)" "generic xdpgeneric"
works "datagrams in mode generic"
sed 's/mode: native/mode: auto/' "$scratch/good.yaml" >"$run/agent.yaml"
check "generic to auto" warmpath reload
is "auto takes tc on a veth" "$(attached eth0) $(xdp_of eth0)" "tc "
works "datagrams in mode auto"

# --- by command -------------------------------------------------------------------------------------------------

refused "no such interface" "there is no interface eth9" warmpath attach eth9
refused "native where the driver has none" "interface lo \(driver .*\) cannot run XDP in the driver" warmpath attach lo --mode native
is "and it is not listed" "$(attached lo)" ""
check "generic works there" warmpath attach lo --mode generic
is "it is listed" "$(attached lo)" generic
tools/lab agent kill
tools/lab agent start
is "what a command attached stays over a restart" "$(attached lo)" generic
check "it is detached by command" warmpath detach lo
is "and gone" "$(attached lo) $(xdp_of lo)" " "
warmpath attach lo --mode tc >/dev/null
check "or by a reload" warmpath reload
is "then it is gone, too" "$(attached lo) $(filters_of lo ingress)" " 0"
check "a mode can be changed by command" warmpath attach eth0 --mode native
is "then it is so" "$(attached eth0) $(filters_of eth0 ingress)" "native 0"
works "datagrams after changing one interface"

# --- a reload that cannot be done -----------------------------------------------------------------------------------

cp "$scratch/good.yaml" "$run/agent.yaml"
warmpath reload >/dev/null
sed 's/^  - name: eth1/  - {name: lo, mode: native}\n  - name: eth1/; s/mode: native$/mode: tc/' "$scratch/good.yaml" >"$run/agent.yaml"
refused "a file with a mode that is not to be had" "interface lo \(driver .*\) cannot run XDP in the driver" warmpath reload
is "everything is as before" "$(attached eth0) $(attached eth1) $(attached lo) $(filters_of eth0 ingress)" "native native  0"
works "datagrams after that"
tools/lab agent stop
refused "the same at a start" "interface lo \(driver .*\) cannot run XDP in the driver" in_host router "$build/warmpathd" -c "$run/agent.yaml"
works "a failed start does not end what is running"
cp "$scratch/good.yaml" "$run/agent.yaml"
tools/lab agent start

# --- programs of others: another warmpathd is one ---------------------------------------------------------------------

other_pins=$pins-other
sed "s#^pin_path:.*#pin_path: $other_pins#; s#^control_socket:.*#control_socket: $run/other.sock#" "$scratch/good.yaml" >"$run/other.yaml"
other() { "$build/warmpath" --socket "$run/other.sock" "$@"; }
# shellcheck disable=SC2120 # check passes some
start_other() { # options: in the background, until it answers
	in_host router "$build/warmpathd" -c "$run/other.yaml" "$@" >"$run/other.log" 2>&1 &
	wait_until 10 "$build/warmpath" --socket "$run/other.sock" status
}
refused "another agent's XDP program" "another warmpathd, with pin_path $pins, serves interface eth0 \(XDP program [0-9]+\): let it detach \(\`warmpath detach eth0\` there\), or take its place with --force" \
	in_host router "$build/warmpathd" -c "$run/other.yaml"
check "a first start that fails leaves nothing behind" test ! -e "$other_pins"
is "and does not claim to have detached anything" "$(in_host router "$build/warmpathd" -c "$run/other.yaml" 2>&1 | grep -c detached)" 0
works "and changes nothing"
sed -i 's/mode: native/mode: tc/' "$run/other.yaml"
warmpath attach eth0 --mode tc >/dev/null
warmpath attach eth1 --mode tc >/dev/null
refused "another agent's filter at our place" "another warmpathd, with pin_path $pins, serves interface eth0 \(tc ingress program [0-9]+\): let it detach" \
	in_host router "$build/warmpathd" -c "$run/other.yaml"
tools/lab agent stop
check "forced, it is replaced" start_other --force
is "by one of its own" "$(filters_of eth0 ingress)" 1
works "which works"
other detach all >/dev/null
wait_until 5 test ! -e "$other_pins"
tools/lab agent start
is "a mode set by command survives the agent" "$(attached eth0)" tc
warmpath detach eth1 >/dev/null
tools/lab agent stop
tools/lab agent start
is "so does a detachment" "$(warmpath status --json | jq -c '[.interfaces[].name]')" '["eth0"]'
warmpath reload >/dev/null
is "after a reload the file counts for both" "$(attached eth0) $(attached eth1)" "native native"
sed -i 's/mode: tc/mode: native/' "$run/other.yaml"
is "native again" "$(attached eth0)" native
tools/lab agent stop
# another agent in another network, on an interface with the same index
sed "s#^pin_path:.*#pin_path: $pins-elsewhere#; s#^control_socket:.*#control_socket: $run/elsewhere.sock#; /name: eth1/,+1d" \
	"$scratch/good.yaml" >"$run/elsewhere.yaml"
in_host client "$build/warmpathd" -c "$run/elsewhere.yaml" >"$run/elsewhere.log" 2>&1 &
wait_until 10 "$build/warmpath" --socket "$run/elsewhere.sock" status
elsewhere() { in_host client ip -j link show dev eth0 | jq -c '.[0] | [.ifindex, .xdp.prog.id]'; }
before=$(elsewhere)
is "the two interfaces have the same index" "$(in_host router ip -j link show dev eth0 | jq '.[0].ifindex')" \
	"$(in_host client ip -j link show dev eth0 | jq '.[0].ifindex')"
check "forced, a link is replaced" start_other --force
works "which works, too"
is "and none of another network is touched" "$(elsewhere)" "$before"
"$build/warmpath" --socket "$run/elsewhere.sock" detach all >/dev/null
wait_until 5 test ! -e "$pins-elsewhere"
other detach all >/dev/null
wait_until 5 test ! -e "$other_pins"
is "nothing is left of it" "$(xdp_of eth0)" ""
tools/lab agent start
is "the first one notices that it is no longer attached, and attaches" "$(attached eth0) $(xdp_of eth0)" "native xdp"
works "and works"

# --- by force, while the agent runs: a link of another process is found only with rights that it has given up --------------

warmpath detach eth1 >/dev/null
sed -i '/name: eth0/,+1d' "$run/other.yaml"
# shellcheck disable=SC2119 # none here
start_other
refused "another agent's link, while this one runs" "another warmpathd, with pin_path $other_pins, serves interface eth1 .* take its place with --force" \
	warmpath attach eth1 --mode native
refused "forced by somebody who may not" "is held by a link of another process, which takes CAP_SYS_ADMIN to replace: end that process, or let root call \`warmpath attach eth1 --force\`" \
	setpriv --bounding-set -sys_admin --inh-caps -sys_admin "$build/warmpath" attach eth1 --mode native --force
is "then the other has it still" "$("$build/warmpath" --socket "$run/other.sock" status --json | jq -r '.interfaces[].attached')" native
is "forced by root it is replaced" "$(warmpath attach eth1 --mode native --force)" "attached (native)"
is "by this one's program" "$(attached eth1) $(xdp_of eth1)" "native xdp"
works "which works"
other detach all >/dev/null
wait_until 5 test ! -e "$other_pins"
is "and stays when the other goes" "$(attached eth1) $(xdp_of eth1)" "native xdp"

# --- what is taken away from outside comes back --------------------------------------------------------------------------

warmpath attach eth0 --mode tc >/dev/null
in_host router tc qdisc del dev eth0 clsact
check "a filter that someone took away is attached again" wait_until 15 sh -c \
	"tools/lab exec router tc filter show dev eth0 ingress | grep -q warmpath_"
bpftool link detach pinned "$pins/v1/links/xdp_eth1"
check "so is a link" wait_until 15 sh -c "tools/lab exec router ip link show eth1 | grep -q 'prog/xdp'"
warmpath attach eth0 --mode native >/dev/null
works "and all works again"

# --- interfaces that come and go ---------------------------------------------------------------------------------------

sed 's/^  - name: eth1/  - {name: late0.5, mode: native}\n  - name: eth1/' "$scratch/good.yaml" >"$run/agent.yaml"
check "an interface that is not there yet is no error" warmpath reload
is "it is waited for" "$(attached late0.5): $(problem late0.5)" "not attached: there is no such interface at present"
in_host router ip link add late0.5 type veth peer name late1
check "it is attached when it appears" wait_until 5 is_attached late0.5 native
in_host router ip link del late0.5
check "that it vanished is noticed" wait_until 5 is_attached late0.5 "not attached"
in_host router ip link add late0.5 type veth peer name late1
check "a new one of its name is attached again" wait_until 5 is_attached late0.5 native
is "under the name as the file has it" "$(xdp_of late0.5)" xdp
works "meanwhile datagrams go on"

# --- the end ---------------------------------------------------------------------------------------------------------------

tools/lab agent stop
check "--detach takes all away without an agent" in_host router "$build/warmpathd" --detach -c "$run/agent.yaml"
is "no program is left" "$(in_host router ip -d link show | grep -cE '\bxdp')" 0
check "no pin is left" test ! -e "$pins"

# --- node-local: the way back is on egress ------------------------------------------------------------------------------------

lab_up --shape node-local --replicas 2 --mode tc
agent_up --services chat --mode tc
is "node-local: router and handoff on ingress, return on egress" "$(attached eth0) $(filters_of eth0 ingress) $(filters_of eth0 egress)" "tc 2 1"
check "--detach" warmpath detach all
is "nothing is left" "$(filters_of eth0 ingress) $(filters_of eth0 egress) $(in_host router tc qdisc show dev eth0 | grep -c clsact)" "0 0 0"
rm -f "$run/agent.pid"
