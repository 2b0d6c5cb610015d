#!/bin/bash
# libxdp's dispatcher: warmpath beside XDP programs of others on one interface, in either order; handed connections through it; a new
# agent with the same programs, and with others; taken away, the others stay.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

for program in xdp-loader xdp-filter; do
	if ! command -v $program >/dev/null; then
		skip "$program (package xdp-tools)" "warmpath beside other XDP programs"
		exit 0
	fi
done
if ! bpftool feature probe kernel 2>/dev/null | grep -q 'program_type ext is available'; then
	skip "XDP programs that extend others, of which libxdp's dispatcher is made" "warmpath beside other XDP programs"
	exit 0
fi

lab_up --replicas 2 --servers http
run=$(tools/lab path run)

chain() { # interface: the programs of its dispatcher in order
	in_host router xdp-loader status "$1" | awk '$1 == "=>" { print $3 }' | paste -sd ' '
}
program_id() { warmpath status --json | jq -r '.interfaces[] | select(.name == "eth0") | .program_id'; }
dispatched() { warmpath status --json | jq -r '.interfaces[] | select(.name == "eth0") | "\(.attached) \(.dispatcher)"'; }
home=$(echo conv-1 | homes llm-0,llm-1 | awk '{ print $2 }')
serves() { # description
	is "$1: a connection with the id in the address" "$(in_host client curl -sS --max-time 10 "http://[$address]:8000/x")" "$home /x"
	if [ "$handed" = yes ]; then
		is "$1: a connection that is handed over" \
			"$(in_host client curl -sS --max-time 10 -H 'x-conversation-id: conv-1' http://10.9.9.8:8000/x http://10.9.9.8:8000/y | paste -sd ' ')" \
			"$home /x $home /y"
	fi
}
past_the_filter() { # the status with which port 8443 of a replica answers plain HTTP; 000: it does not answer
	in_host client curl -sS -o /dev/null -w '%{http_code}' --max-time "$1" http://10.0.2.10:8443/ 2>/dev/null
}
filtered() { # description: xdp-filter, which runs before warmpath, drops what it was told to drop
	is "$1: the filter drops its port" "$(past_the_filter 2)" 000
}

# --- other programs are there first ------------------------------------------------------------------------------

is "a port answers" "$(past_the_filter 10)" 400
check "xdp-filter on the interface" in_host router xdp-filter load -m native -f tcp,udp eth0
check "that drops a port" in_host router xdp-filter port 8443
check "and a program that runs late" in_host router xdp-loader load -m native -s xdp -P 90 eth0 "$build/tools/veth-pass.bpf.o"
agent_up --services web,api --mode native
address=$(warmpath address --service web conv-1)
is "warmpath joins them" "$(dispatched)" "native true"
beside=$(chain eth0)
matches "between them, by its priority" "$beside" '^xdpfilt_[a-z_]* warmpath_router_xdp [a-z_]+$'
handed=no
if tools/lab handoff start >"$scratch/output" 2>&1; then
	handed=yes
else
	note <"$scratch/output"
	matches "this kernel does not hand connections over, and says so" "$(cat "$scratch/output")" 'bpf_sk_assign_tcp_reqsk'
	skip "bpf_sk_assign_tcp_reqsk" "connections handed over through the dispatcher"
fi
serves "beside others"
filtered "beside others"

# --- a new agent -----------------------------------------------------------------------------------------------------

before=$(program_id)
tools/lab agent kill
serves "with the agent gone"
tools/lab agent start
is "a new agent of the same programs leaves its program where it is" "$(program_id) $(chain eth0)" "$before $beside"
if [ -n "${WARMPATH_OTHER_BUILD-}" ]; then
	tools/lab agent stop
	check "a new agent of other programs starts" env BUILD="$WARMPATH_OTHER_BUILD" tools/lab agent start
	is "it is in the chain, once" "$(dispatched) $(chain eth0)" "native true $beside"
	check "in the place of the former" test "$(program_id)" != "$before"
	serves "with other programs"
else
	skip "a second build (WARMPATH_OTHER_BUILD)" "a new agent of other programs"
fi

# --- others come and go -------------------------------------------------------------------------------------------------

late=$(in_host router xdp-loader status eth0 | awk '$1 == "=>" && $2 == 90 { print $4 }')
if [ -e "$run/xdp-dispatcher.o" ]; then
	# this kernel lets warmpath's program into no other dispatcher once it is attached: others come before it
	check "where warmpath uses a dispatcher of its own, others cannot leave meanwhile" \
		bash -c "! tools/lab exec router xdp-loader unload -i $late eth0"
	is "and nothing changes" "$(chain eth0)" "$beside"
else
	check "another program can leave" in_host router xdp-loader unload -i "$late" eth0
	check "another can come" in_host router xdp-loader load -m native -s xdp -P 60 eth0 "$build/tools/veth-pass.bpf.o"
	is "warmpath stays where it is" "$(chain eth0 | awk '{print $2, NF}')" "warmpath_router_xdp 3"
fi
serves "after others came and went"

# --- and warmpath goes -------------------------------------------------------------------------------------------------

tools/lab agent stop
check "warmpath leaves" in_host router "$build/warmpathd" --detach -c "$run/agent.yaml"
matches "the others stay" "$(chain eth0)" '^xdpfilt_[a-z_]* [a-z_]+$'
filtered "without warmpath"
is "where it was alone no program is left" "$(in_host router ip -d link show eth1 | grep -cE '\bxdp')" 0
