#!/bin/bash
# The clock is set, forward and backward, by a minute, an hour, a day, a month, under HTTP on kept and on fresh connections and under datagrams. Refused
# is at most what was between its handshake and its first request, all else goes on: connections, placements, loads, the agents. Only for a
# machine that nobody else uses, as those of tests/kernels/run are.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/http.sh
. tests/http.sh

if [ "${WARMPATH_CLOCK-}" != own ]; then
	skip "a clock of its own (WARMPATH_CLOCK=own, in the machines of tests/kernels/run)" "the clock is set"
	exit 0
fi

kept=4 fresh=2
lab_up --replicas 3 --mode native
http_files 100 20000
tools/lab config --mode native --services chat,web,api --policy llm-aware --health http >"$run/agent.yaml"
# so that neither load nor a slow machine sends anything away from its home; still less than the clock is set by
sed -i 's/^\( *\)\(long_\|\)epsilon: .*/\1\2epsilon: 10.0/; s/^\( *\)long_stickiness: .*/\1long_stickiness: false/; s/^\( *\)request_timeout: .*/\1request_timeout: 900/
	s/^\( *\)interval: .*/\1interval: 10.0/; s/^\( *\)timeout: .*/\1timeout: 10.0/' "$run/agent.yaml"
http_plan 12
http_expect || bail "every replica answers directly"
if ! tools/lab handoff start >"$scratch/output" 2>&1; then
	matches "a kernel that cannot take connections over says what it lacks" "$(cat "$scratch/output")" \
		'bpf_sk_assign_tcp_reqsk is missing \(Linux 6.9'
	skip "bpf_sk_assign_tcp_reqsk (Linux 6.9)" "the clock is set"
	exit 0
fi
tools/lab agent start >"$scratch/output" 2>&1 || bail "warmpathd starts"

# --- what goes on meanwhile --------------------------------------------------------------------------------------

uptime() { # seconds by the clock that nobody can set
	local seconds
	read -r seconds _ </proc/uptime
	echo "$seconds"
}

# $SECONDS goes by the clock that is set here
soon() { # command...: within a minute
	local deadline
	deadline=$(($(uptime | cut -d . -f 1) + 60))
	until "$@" >/dev/null 2>&1; do
		[ "$(uptime | cut -d . -f 1)" -lt $deadline ] || return 1
		sleep 0.1
	done
}

declare -A http_process
# each line of a failure with the time at which it was written
http_start() { # NAME OPTIONS...
	local name=$1
	shift
	{
		tools/lab exec client "$build/tests/e2e/http_requests" --requests 0 --pause 300 "$@" "$scratch/plan" "$scratch/expected" &
		echo $! >"$scratch/$name.pid"
		wait $!
	} 2>&1 | while read -r line; do echo "$(uptime) $line"; done >"$scratch/$name.report" &
	http_process[$name]=$!
}

http_start kept --connections $kept $api4 8000
http_start fresh --connections $fresh --fresh "$api6" 8000
ids 60 >"$scratch/udp"
traffic_start datagrams "$scratch/udp" client --rate 10 8000 10.9.9.9
ids 8 >"$scratch/held"
addressed "$scratch/held" >"$scratch/held.connections"
connections_start held "$scratch/held.connections" client --timeout 30000 8000
is "connections with the id in the address" "$(connections_round held)" "round answered=8 broken=0 moved=0"

placements() { # "ID REPLICA" where each conversation of the plan was last served, as the data path remembers it
	local id
	while read -r id _; do echo "$id $(warmpath conversation show "$id" --service api --json | jq -r '.placement.replica')"; done <"$scratch/plan"
}
placed_at_home() { placements | cmp -s - "$scratch/plan"; }
charged() { warmpath replica list --json | jq '[.replicas[] | .requests // 0] | add'; }
nothing_charged() { [ "$(charged)" = 0 ]; }

agents() { paste -sd ' ' "$run/agent.pid" "$run"/llm-*/agent.pid; }
# which of them do not run any more
dead_agents() {
	local pid
	for pid in $(agents); do [ -d "/proc/$pid" ] || echo "$pid"; done
}

check "every conversation is served by its home, which is remembered" soon placed_at_home
running=$(agents)

# --- what is under way when the clock is set ---------------------------------------------------------------------

# A connection that says nothing until it is told to; then what it is answered.
quiet_open() {
	rm -f "$scratch"/quiet.*
	# shellcheck disable=SC2016 # for that shell to expand
	in_host client bash -c '
		exec 3<>"/dev/tcp/$1/8000" && : >"$2.open"
		until [ -e "$2.go" ]; do sleep 0.05; done
		printf "GET /quiet HTTP/1.1\r\nHost: x\r\nX-Conversation-Id: conv-1\r\nConnection: close\r\n\r\n" >&3
		timeout 100 cat <&3 || echo failed' - $api4 "$scratch/quiet" >"$scratch/quiet.answer" 2>&1 &
	quiet_process=$!
	soon test -e "$scratch/quiet.open"
}

# A large answer that takes some seconds, so that most of it comes after the clock was set.
slow_open() {
	in_host client curl -sS --max-time 120 --limit-rate 50k -r 0-249999 -H 'x-conversation-id: conv-2' "http://$api4:8000/large" \
		>"$scratch/slow" 2>"$scratch/slow.error" &
	slow_process=$!
	soon test -s "$scratch/slow"
}

set_clock() { # seconds to add
	local from
	from=$(uptime)
	date -s "@$(($(date +%s) + $1))" >/dev/null
	echo "$from $(uptime)" >>"$scratch/jumps"
}

# One new connection for each of some conversations, without a second try: what is answered in place of their homes' answers
refused() {
	local id home address answer
	head -n 2 "$scratch/plan" | while read -r id home; do
		for address in $api4 "[$api6]"; do
			answer=$(in_host client curl -sS --max-time 60 -H "x-conversation-id: $id" "http://$address:8000/new" 2>&1)
			[ "$answer" = "$home /new" ] || echo "$id, of $home: $answer"
		done
	done
}

quiet_home=$(awk '$1 == "conv-1" {print $2}' "$scratch/plan")
large=$(head -c 250000 "$run/large" | sha256sum)
jump() { # description seconds what becomes of a connection that has not said anything yet: answered|reset
	quiet_open || not_ok "$1: a connection before"
	slow_open || not_ok "$1: a large answer before"
	set_clock "$2"
	is "$1: new connections are served at once" "$(refused)" ""
	: >"$scratch/quiet.go"
	is "$1: so are those with the id in the address, which were there before" "$(connections_round held)" "round answered=8 broken=0 moved=0"
	wait $slow_process
	is "$1: a large answer under way comes whole" "$(sha256sum <"$scratch/slow")" "$large"
	wait $quiet_process
	if [ "$3" = answered ]; then
		is "$1: what a connection asks first is answered" "$(tail -n 1 "$scratch/quiet.answer")" "$quiet_home /quiet"
	else
		matches "$1: a connection that had not asked yet is reset" "$(cat "$scratch/quiet.answer")" 'reset by peer'
	fi
	is "$1: the agents go on" "$(dead_agents)" ""
	check "$1: the agent answers" warmpath status
}

: >"$scratch/jumps"
# the slots of cookies are 137 s, and the neighbours of the present one are good
jump "a minute forward" 60 answered
jump "an hour back" -3600 reset
jump "a day forward" 86400 reset
jump "a minute back" -60 answered
jump "an hour forward" 3600 reset
jump "a day back" -86400 reset

# --- the ledger --------------------------------------------------------------------------------------------------

check "every conversation is still remembered, and at its home" placed_at_home
for name in kept fresh; do
	kill -TERM "$(cat "$scratch/$name.pid")"
	wait "${http_process[$name]}" 2>/dev/null
	summary=$(tail -n 1 "$scratch/$name.report" | cut -d ' ' -f 2-)
	note "$name: $summary"
	[ $name = fresh ] ||
		matches "$name: none failed, on the connections of the beginning" "$summary" " failed=0 reset=0 .* connections=$kept "
	matches "$name: no answer was another one's, or of another replica than its home" "$summary" ' astray=0 different=0 '
	is "$name: every request was answered or has failed, and there were some" \
		"$(sed -n 's/.*requests=\([0-9]*\) answered=\([0-9]*\) failed=\([0-9]*\).*/\1 \2 \3/p' <<<"$summary" |
			awk '{print ($1 > 20 && $1 == $2 + $3)}')" 1
done
# time it was reported, "failed", id, home, seconds before
is "fresh: none failed but those whose handshake was under way when the clock was set" \
	"$(awk 'NR == FNR { begin[NR] = $1; end[NR] = $2; count = NR; next }
		$2 == "failed" {
			for (i = 1; i <= count; i++)
				if ($1 - $5 >= begin[i] - 1 && $1 - $5 <= end[i] + 0.5) next
			print
		}' "$scratch/jumps" "$scratch/fresh.report" | head -n 5)" ""
connections_stop held
traffic_stop datagrams
traffic_is_whole datagrams
check "in the end nothing is charged" soon nothing_charged
is "no request was given up by the agent, no load had to be repaired" \
	"$(counter note_request_timed_out) $(counter note_load_repaired)" "0 0"
is "no replica was found down" "$(warmpath replica list --json | jq -r '.replicas[] | .state' | sort -u)" active
is "the agents of the replicas are those of the beginning" "${running#* }" "$(agents | cut -d ' ' -f 2-)"

# --- a new agent takes over meanwhile ----------------------------------------------------------------------------

warmpath upgrade --json >"$scratch/upgrade" 2>&1 &
upgrade_process=$!
sleep 0.5
set_clock 86400
wait $upgrade_process || note <"$scratch/upgrade"
is "an upgrade goes on when the clock is set" "$(jq .adopted "$scratch/upgrade")" true
set_clock -86400
is "new connections are served after it" "$(refused)" ""

# --- and nothing is left to do -----------------------------------------------------------------------------------

# hundredths of a second that warmpathd has computed in five seconds, in the router and on the replicas
computed_in_all() {
	local file sum=0 fields
	for file in "$run/agent.pid" "$run"/llm-*/agent.pid; do
		read -r -a fields <"/proc/$(cat "$file")/stat"
		sum=$((sum + fields[13] + fields[14]))
	done
	echo $sum
}
computed() {
	local before
	before=$(computed_in_all)
	sleep 5
	echo $(($(computed_in_all) - before))
}

# A timer that the clock makes expire, again and again, or that waits for a time of day: seen best where there is nothing else to do.
idle=$(computed)
for seconds in -2592000 5184000 -2592000; do
	set_clock $seconds
	busy=$(computed)
	note "the clock set by $seconds s: warmpathd computes $busy hundredths of a second in 5 s, $idle before"
	is "the clock set by $seconds s: no agent computes without an end" $((busy < idle + 200)) 1
done
