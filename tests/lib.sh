# shellcheck shell=bash
# Common to the end-to-end tests, to be sourced by them: TAP, a lab of the test's own, warmpathd in it, cleaning up.
# The lab is called $WARMPATH_LAB-NAME-OF-THE-TEST, so that tests may run side by side; what an earlier run that crashed left of
# it is removed by `tools/lab up`.

set -u
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
build=${BUILD:-build}
WARMPATH_LAB=${WARMPATH_LAB:-warmpath}-$(basename "$0" .sh)
export WARMPATH_LAB BUILD=$build
scratch=$(mktemp -d "${TMPDIR:-/tmp}/$WARMPATH_LAB.XXXXXX")
test_count=0 failure_count=0

# --- TAP ---------------------------------------------------------------------------------------------------

note() { # text, also of many lines, on standard input if there are no arguments
	if [ $# -gt 0 ]; then echo "# $*"; else sed 's/^/# /'; fi
}

ok() { # description
	test_count=$((test_count + 1))
	echo "ok $test_count - $*"
}

not_ok() { # description
	test_count=$((test_count + 1))
	failure_count=$((failure_count + 1))
	echo "not ok $test_count - $*"
}

skip() { # feature, description
	test_count=$((test_count + 1))
	echo "ok $test_count - $2 # SKIP $1"
}

# check DESCRIPTION COMMAND...: passes if the command succeeds; its output is shown if not
check() {
	local description=$1
	shift
	if "$@" >"$scratch/output" 2>&1; then
		ok "$description"
	else
		note "failed: $*"
		note <"$scratch/output"
		not_ok "$description"
		return 1
	fi
}

# is DESCRIPTION GOT EXPECTED
is() {
	if [ "$2" = "$3" ]; then
		ok "$1"
	else
		printf 'got:      %s\nexpected: %s\n' "$2" "$3" | note
		not_ok "$1"
		return 1
	fi
}

# matches DESCRIPTION GOT EXTENDED-REGULAR-EXPRESSION
matches() {
	if grep -qE -- "$3" <<<"$2"; then
		ok "$1"
	else
		printf 'got:      %s\nexpected: /%s/\n' "$2" "$3" | note
		not_ok "$1"
		return 1
	fi
}

# same DESCRIPTION FILE EXPECTED-FILE
same() {
	if diff -u "$3" "$2" >"$scratch/output" 2>&1; then
		ok "$1"
	else
		head -n 20 "$scratch/output" | note
		not_ok "$1"
		return 1
	fi
}

# Gives up: without what failed here the rest makes no sense.
bail() {
	not_ok "$*"
	exit 1
}

# --- cleaning up -------------------------------------------------------------------------------------------

clean_up() {
	trap - EXIT
	if [ "$failure_count" -gt 0 ]; then
		[ -f "$(tools/lab path run)/agent.log" ] && tail -n 40 "$(tools/lab path run)/agent.log" | note
	fi
	tools/lab down
	rm -rf "$scratch"
	echo "1..$test_count"
	[ "$failure_count" = 0 ]
}
trap 'status=$?; clean_up || status=1; exit $status' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# --- lab and warmpathd -------------------------------------------------------------------------------------

in_host() { tools/lab exec "$@"; }
warmpath() { tools/lab warmpath "$@"; }

lab_up() { # options of tools/lab up
	if ! tools/lab up "$@" >"$scratch/output" 2>&1; then
		note <"$scratch/output"
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
	seq -f "${2:-conversation}-%g" 1 "$1"
}

total() { # file name: a number of the last line of datagram-client's report
	sed -n "s/^total .*\\b$2=\\([0-9]*\\).*/\\1/p" "$1"
}

counter() { # name: what warmpath has counted
	warmpath counters --json | jq -r --arg name "$1" '.. | objects | select(has($name)) | .[$name]' | head -n 1
}

wait_until() { # seconds command...
	local deadline=$((SECONDS + $1))
	shift
	until "$@" >/dev/null 2>&1; do
		[ $SECONDS -lt $deadline ] || return 1
		sleep 0.1
	done
}
