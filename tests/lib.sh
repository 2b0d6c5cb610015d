# shellcheck shell=bash
# Common to the end-to-end tests, to be sourced by them: TAP (tests/tap.sh), a lab of the test's own, warmpathd in it, cleaning up.
# The lab is called $WARMPATH_LAB-NAME-OF-THE-TEST, so that tests may run side by side; what an earlier run that crashed left of
# it is removed by `tools/lab up`.

# shellcheck source=tests/tap.sh
. "$(dirname "${BASH_SOURCE[0]}")/tap.sh"
WARMPATH_LAB=${WARMPATH_LAB:-warmpath}-$(basename "$0" .sh)
export WARMPATH_LAB BUILD=$build
WARMPATH_SOCKET=$(tools/lab path run)/control.sock
export WARMPATH_SOCKET
missing=

# --- cleaning up -------------------------------------------------------------------------------------------

clean_up() {
	trap - EXIT
	if [ "$failure_count" -gt 0 ]; then
		[ -f "$(tools/lab path run)/agent.log" ] && tail -n 40 "$(tools/lab path run)/agent.log" | note
		warmpath counters 2>&1 | note
		warmpath status 2>&1 | note
	fi
	# what runs in the background in this shell, not in a host of the lab: loops that start one client after the other
	# shellcheck disable=SC2046 # a list of process ids
	kill $(jobs -p) 2>/dev/null
	tools/lab down
	tap_end
}
trap 'status=$?; clean_up || status=1; exit $status' EXIT

# --- lab and warmpathd -------------------------------------------------------------------------------------

in_host() { tools/lab exec "$@"; }
warmpath() { "$build/warmpath" "$@"; }

lab_up() { # options of tools/lab up
	if ! tools/lab up "$@" >"$scratch/output" 2>&1; then
		note <"$scratch/output"
		missing=$(sed -n 's/^lab: this kernel has no //p' "$scratch/output")
		if [ -n "$missing" ]; then
			skip "$missing" "the lab comes up: tools/lab up $*"
			exit 0
		fi
		bail "the lab comes up: tools/lab up $*"
	fi
}

# agent_up [OPTIONS OF tools/lab config]: warmpathd with a fresh configuration
agent_up() {
	tools/lab config "$@" >"$(tools/lab path run)/agent.yaml"
	if ! tools/lab agent start >"$scratch/output" 2>&1; then
		note <"$scratch/output"
		bail "warmpathd starts"
	fi
}

datagrams() { # HOST OPTIONS...: ids on standard input
	local host=$1
	shift
	in_host "$host" "$build/tools/datagram-client" "$@"
}

ids() { # count [prefix]
	seq -f "${2:-conv}-%.0f" 1 "$1"
}

total() { # file name: a number of the last line of datagram-client's report
	sed -n "s/^total .*\\b$2=\\([0-9]*\\).*/\\1/p" "$1"
}

counter() { # name: what warmpath has counted
	warmpath counters --json | jq -r --arg name "$1" '.. | objects | select(has($name)) | .[$name]' | head -n 1
}

# --- what must come out ------------------------------------------------------------------------------------

# homes REPLICA,REPLICA,... < IDS: "ID HOME" for each, as the ring says; computed in user space, without lab or kernel
homes() {
	xargs "$build/warmpath" ring walk --replicas "$1" | jq -r '.id + " " + .walk[0]'
}

# unexpected LEDGER HOMES-FILE...: lines of a ledger (ID SENT RECEIVED CHANGES REPLICA,...) whose replicas are not among the id's
# homes in any of the files; nothing if all went where it should
unexpected() {
	local ledger=$1
	shift
	cat "$@" | awk -v ledger="$ledger" '
		{ allowed[$1, $2] = 1 }
		END {
			while ((getline line < ledger) > 0) {
				split(line, field, " ")
				if (field[1] == "total") continue
				count = split(field[5], replica, ",")
				for (i = 1; i <= count; i++)
					if (!((field[1], replica[i]) in allowed)) print line
			}
		}'
}

# moved LEDGER: the ids answered by more than one replica
moved() { awk '$1 != "total" && $5 ~ /,/ {print $1}' "$1" | sort; }

# differing HOMES-FILE HOMES-FILE: the ids whose home is not the same in both
differing() { join <(sort "$1") <(sort "$2") | awk '$2 != $3 {print $1}'; }

# routes SERVICE < IDS: "ID REPLICA" for each, as warmpathd says
routes() {
	local id
	while read -r id; do
		echo "$id $(warmpath route "$id" --service "$1" | cut -d ' ' -f 1)"
	done
}

ring_generation() { # service
	warmpath service list --json | jq --arg name "$1" '.services[] | select(.name == $name) | .generation'
}

# addressed IDS-FILE: "ID ADDRESS" for each id of the file, in service web
addressed() {
	local id
	while read -r id; do echo "$id $(warmpath address --service web "$id")"; done <"$1"
}

# --- traffic in the background -----------------------------------------------------------------------------

declare -A traffic_process connections_process connections_input

# traffic_start NAME IDS-FILE HOST OPTIONS...: continuous datagrams; its ledger will be $scratch/NAME.ledger
traffic_start() {
	local name=$1 ids=$2 host=$3
	shift 3
	tools/lab exec "$host" "$build/tools/datagram-client" "$@" <"$ids" >"$scratch/$name.ledger" 2>"$scratch/$name.notes" &
	traffic_process[$name]=$!
}

traffic_stop() { # name
	kill -TERM "${traffic_process[$1]}"
	wait "${traffic_process[$1]}"
	note <"$scratch/$1.notes"
	note "$1: $(tail -n 1 "$scratch/$1.ledger")"
}

# traffic_is_whole NAME: nothing of it was lost, corrupt or an error
traffic_is_whole() {
	matches "$1: every datagram was answered, by the public address" "$(tail -n 1 "$scratch/$1.ledger")" \
		'sent=[1-9][0-9]* .*lost=0 duplicate=0 corrupt=0 errors=0'
}

# connections_start NAME FILE HOST OPTIONS...: TCP connections, see tests/e2e/connections.c
connections_start() {
	local name=$1 file=$2 host=$3 input
	shift 3
	rm -f "$scratch/$name.input"
	mkfifo "$scratch/$name.input"
	: >"$scratch/$name.rounds"
	tools/lab exec "$host" "$build/tests/e2e/connections" "$@" "$file" \
		<"$scratch/$name.input" >>"$scratch/$name.rounds" 2>&1 &
	connections_process[$name]=$!
	exec {input}>"$scratch/$name.input"
	connections_input[$name]=$input
}

# connections_round NAME [rounds N PAUSE]: uses them; the lines "ID REPLICA" are then in $scratch/NAME.round, and the summary is printed
connections_round() {
	local name=$1 before
	shift
	before=$(grep -c '^round ' "$scratch/$name.rounds")
	echo "${*:-round}" >&"${connections_input[$name]}"
	until [ "$(grep -c '^round ' "$scratch/$name.rounds")" -gt "$before" ]; do
		kill -0 "${connections_process[$name]}" 2>/dev/null || break
		sleep 0.05
	done
	awk '/^round /{last = lines; lines = ""; summary = $0; next} {lines = lines $0 "\n"} END {printf "%s", last}' \
		"$scratch/$name.rounds" >"$scratch/$name.round"
	grep '^round ' "$scratch/$name.rounds" | tail -n 1
}

connections_stop() { # name
	local input=${connections_input[$1]}
	echo end >&"$input" # closing is not enough: what was started since has the pipe open as well
	exec {input}>&-
	wait "${connections_process[$1]}"
	rm -f "$scratch/$1.input"
}
