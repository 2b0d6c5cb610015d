#!/bin/bash
# One fault after another, drawn from a seed, under live HTTP and UDP traffic: the agent killed and stopped; a replica killed, paused, cut off without
# a word; the ring, the policy changed; floods; tables that overflow; a trace that nobody takes; a full disk. Every request is accounted for, only what a
# replica's own fault reached may fail, in the end nothing is charged, and the agent has not grown.
#
#   tests/e2e/soak.sh                                     about half a minute
#   SOAK_SECONDS=3600 SOAK_SEED=7 tests/e2e/soak.sh       longer, and another order
#
# Left out: jumps of the clock, which no namespace has to itself (tests/kernels/clock.sh, in virtual machines).
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/http.sh
. tests/http.sh

seconds=${SOAK_SECONDS:-20}
RANDOM=${SOAK_SEED:-1}
modes=(native tc)
mode=${modes[RANDOM % 2]}
note "seed ${SOAK_SEED:-1}, $seconds s, $mode"

lab_up --replicas 5 --clients 2 --mode "$mode"
http_files 0 1447 20000
# what the agent has in files is on a disk of its own: control socket, configuration, log
disk=$run/disk
mkdir "$disk"
mount -t tmpfs -o size=1m,nr_inodes=32,mode=0755 "$WARMPATH_LAB" "$disk" || bail "a small tmpfs can be mounted"
for name in control.sock agent.yaml agent.log; do ln -s "$disk/$name" "$run/$name"; done
tools/lab config --mode "$mode" --services chat,api | sed "s|^control_socket: .*|control_socket: $disk/control.sock|" >"$disk/agent.yaml"
# small tables, so that a flood fills them; what no answer ends is given back after a while
sed -i 's/^  flows: .*/  flows: 2048/; s/^  requests: .*/  requests: 8192/; s/^\( *\)request_timeout: .*/\1request_timeout: 5/' "$disk/agent.yaml"
http_plan 200
http_expect || bail "every replica answers directly"
tools/lab handoff start >"$scratch/output" 2>&1 || bail "warmpathd starts on the replicas"
tools/lab agent start >"$scratch/output" 2>&1 || bail "warmpathd starts"

# --- traffic -------------------------------------------------------------------------------------------------

now() { date +%s.%N; }

declare -A http_process
# each line of a failure with the time at which it was written
http_start() { # NAME OPTIONS...
	local name=$1
	shift
	{
		# a command and no function, so that the process noted is the client itself
		tools/lab exec client "$build/tests/e2e/http_requests" --requests 0 --connections 8 --pause 10 "$@" $api4 8000 "$scratch/plan" \
			"$scratch/expected" &
		echo $! >"$scratch/$name.pid"
		wait $!
	} 2>&1 | while read -r line; do echo "$(now) $line"; done >"$scratch/$name.report" &
	http_process[$name]=$!
}

ids 300 udp >"$scratch/udp"
http_start kept
http_start fresh --fresh
traffic_start datagrams "$scratch/udp" client --rate 500 8000 10.9.9.9

agent_memory() { awk '/^VmRSS:/ {print $2}' "/proc/$(cat "$run/agent.pid")/status"; }
agent_files() { find "/proc/$(cat "$run/agent.pid")/fd" -type l | wc -l; }
charged() { warmpath replica list --json | jq '[.replicas[] | .requests // 0] | add'; }
sleep 1
memory=$(agent_memory) files=$(agent_files)

# --- faults --------------------------------------------------------------------------------------------------

: >"$scratch/faults"
# A replica's own faults: what is on its way to it may fail from now on until it is back.
replica_fault_begins() { echo "$(now) $1" >"$scratch/fault"; }
replica_fault_ends() { echo "$(cat "$scratch/fault") $(now)" >>"$scratch/faults"; }

server_processes() { # replica
	local pid
	for pid in $(ip netns pids "$WARMPATH_LAB-$1"); do
		case $(cat "/proc/$pid/comm" 2>/dev/null) in nginx | datagram-serve*) echo "$pid" ;; esac
	done
}
signal_servers() { # signal replica
	server_processes "$2" | xargs -r kill "-$1"
}
servers_gone() { [ -z "$(server_processes "$1")" ]; }

fault_agent_killed() {
	tools/lab agent kill
	sleep 0.5
	tools/lab agent start
}
fault_agent_stopped() {
	local pid
	pid=$(cat "$run/agent.pid")
	kill -STOP "$pid"
	sleep 1
	kill -CONT "$pid"
}
fault_replica_killed() {
	replica_fault_begins llm-4
	signal_servers KILL llm-4
	wait_until 5 servers_gone llm-4
	sleep 0.5
	rm -f "$run/llm-4/nginx.pid" "$run/llm-4/datagram-server.pid"
	tools/lab servers start llm-4
	replica_fault_ends
}
fault_replica_paused() {
	replica_fault_begins llm-3
	signal_servers STOP llm-3
	sleep 1
	signal_servers CONT llm-3
	replica_fault_ends
}
fault_replica_cut_off() {
	replica_fault_begins llm-4
	in_host llm-4 nft -f - <<-NFT
		table inet cut {
			chain input {
				type filter hook input priority 0; policy drop;
			}
		}
	NFT
	sleep 0.7
	in_host llm-4 nft delete table inet cut
	replica_fault_ends
}
fault_replica_drained() {
	tools/lab replica drain llm-2
	sleep 0.5
	tools/lab replica undrain llm-2
}
fault_replica_removed() {
	tools/lab replica drain llm-1
	wait_until 6 nothing_at llm-1
	tools/lab replica remove llm-1
	sleep 0.3
	tools/lab replica add llm-1
}
nothing_at() {
	[ "$(warmpath replica list --json | jq --arg name "$1" '[.replicas[] | select(.name == $name) | .requests // 0] | add')" = 0 ]
}
fault_policy_changed() {
	local policies=(llm-aware consistent bounded mod-n)
	warmpath policy set --service api "name=${policies[RANDOM % 4]}"
	warmpath policy set --service chat "name=${policies[RANDOM % 4]}"
	sleep 0.3
	warmpath policy set --service api name=consistent
}
fault_reload() {
	tools/lab agent reload
	sleep 0.3
}
fault_syn_flood() {
	in_host client-1 "$build/tests/e2e/syn_flood" --count 100000 10.0.1.100 $api4 8000
}
# more pairs of addresses and ports than the table has room for
fault_flood_of_flows() {
	ids 2500 flood | sed 's/$/ 10.9.9.9/' | in_host client-1 "$build/tools/datagram-client" 8000 | tail -n 1
}
# Not one byte and not one file more goes onto the disk, and meanwhile the agent is reloaded, asked and begun anew as the seed draws. Nothing may fail for that.
fault_disk_full() {
	local asked result=0
	fill_disk || result=1
	for asked in 1 2 3; do
		case $((RANDOM % 5)) in
		0) warmpath reload ;;
		1) tools/lab agent kill && tools/lab agent start ;;
		2) tools/lab agent stop && tools/lab agent start ;;
		3) warmpath upgrade ;;
		4) tools/lab replica drain llm-2 && tools/lab replica undrain llm-2 ;;
		esac || { echo "the full disk, asked for the ${asked}th time: this failed" && result=1; }
		warmpath status --json | jq -e '.ok' || result=1
		sleep 0.3
	done
	disk_is_full || result=1
	rm -f "$disk"/filler*
	warmpath status || result=1
	return $result
}
# A file takes whole pages: what is free in the log's last one is filled up as well.
fill_disk() {
	local left number
	head -c 4M /dev/zero >"$disk/filler"
	left=$((4096 - $(stat -c %s "$disk/agent.log") % 4096))
	[ "$left" = 4096 ] || printf "%$((left - 1))s\n" "" >>"$disk/agent.log"
	for number in {1..32}; do : >"$disk/filler-$number"; done
	disk_is_full
}
disk_is_full() {
	! echo >>"$disk/agent.log" && ! : >"$disk/filler-more"
}

faults=(agent_killed agent_stopped replica_killed replica_paused replica_cut_off replica_drained replica_removed policy_changed reload
	syn_flood flood_of_flows disk_full)
# every one once at least, in an order of the seed, and then as they are drawn
shuffle=$RANDOM # not in the substitution, where bash would draw from another seed
order=$(printf '%s\n' "${faults[@]}" | awk -v seed="$shuffle" 'BEGIN {srand(seed)} {print rand(), $0}' | sort -n | cut -d ' ' -f 2)
finish=$((SECONDS + seconds)) count=0
for fault in $order; do
	note "$((SECONDS)) s: $fault"
	check "$fault" "fault_$fault"
	count=$((count + 1))
done
while [ $SECONDS -lt $finish ]; do
	fault=${faults[RANDOM % ${#faults[@]}]}
	"fault_$fault" >"$scratch/output" 2>&1 || check "$fault, as number $count" false
	count=$((count + 1))
done
note "$count faults"

# --- the ledger ----------------------------------------------------------------------------------------------

sleep 1
for name in kept fresh; do
	kill -TERM "$(cat "$scratch/$name.pid")"
	wait "${http_process[$name]}" 2>/dev/null
	summary=$(tail -n 1 "$scratch/$name.report" | cut -d ' ' -f 2-)
	note "$name: $summary"
	is "$name: every request was answered or has failed" \
		"$(sed -n 's/.*requests=\([0-9]*\) answered=\([0-9]*\) failed=\([0-9]*\).*/\1 \2 \3/p' <<<"$summary" |
			awk '{print ($1 > 100 && $1 == $2 + $3)}')" 1
	matches "$name: no answer was another one's, or mixed" "$summary" ' different=0 '
	# time it was reported, id, home, seconds before
	is "$name: no request failed but under a replica's own fault" \
		"$(awk 'NR == FNR { begin[NR] = $1; last[NR] = $3; count = NR; next }
			$2 == "failed" {
				for (i = 1; i <= count; i++)
					if ($1 - $5 <= last[i] + 1 && $1 >= begin[i]) next
				print
			}' "$scratch/faults" "$scratch/$name.report" | head -n 5)" ""
done
traffic_stop datagrams
matches "datagrams: none came back corrupt or twice, none drew an error that no fault explains" \
	"$(tail -n 1 "$scratch/datagrams.ledger")" 'duplicate=0 corrupt=0'
nothing_charged() { [ "$(charged)" = 0 ]; }
check "in the end nothing is charged" wait_until 15 nothing_charged
note "memory of the agent: $memory KB, then $(agent_memory) KB; files: $files, then $(agent_files)"
# the sanitizers' allocator keeps what was freed for a while
allowed=$((memory / 2 + 8192))
is "the agent has not grown" "$(($(agent_memory) < memory + allowed))" 1
is "nor has it more files open" "$(($(agent_files) <= files + 2))" 1
check "and it is well" warmpath status
