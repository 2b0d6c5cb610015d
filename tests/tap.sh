# shellcheck shell=bash
# What every test in shell needs, to be sourced by it: it runs at the top of the tree, has a folder of its own ($scratch), prints TAP, and ends with
# the plan and an exit status.

set -u
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
# shellcheck disable=SC2034 # for the test
build=${BUILD:-build}
scratch=$(mktemp -d "${TMPDIR:-/tmp}/$(basename "$0" .sh).XXXXXX")
test_count=0 failure_count=0 status=0

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

# result STATUS DESCRIPTION: passes if the exit status is 0; if not, what lies in $scratch/output and $scratch/error is shown
result() {
	local file
	if [ "$1" = 0 ]; then
		ok "$2"
	else
		for file in "$scratch/output" "$scratch/error"; do
			[ -s "$file" ] && note <"$file"
		done
		not_ok "$2"
		return 1
	fi
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
	if diff "$3" "$2" >"$scratch/output" 2>&1; then
		ok "$1"
	else
		echo "$(grep -c '^<' "$scratch/output") lines of what is expected (<) are not so (>), the first ones:" | note
		grep '^<' "$scratch/output" | head -n 5 | note
		grep '^>' "$scratch/output" | head -n 5 | note
		not_ok "$1"
		return 1
	fi
}

wait_until() { # seconds command...; WAIT_FACTOR times as many where everything takes longer
	local deadline=$((SECONDS + $1 * ${WAIT_FACTOR:-1}))
	shift
	until "$@" >/dev/null 2>&1; do
		[ $SECONDS -lt $deadline ] || return 1
		sleep 0.1
	done
}

# Gives up: without what failed here the rest makes no sense.
bail() {
	not_ok "$*"
	exit 1
}

# --- the end -----------------------------------------------------------------------------------------------

# Fails if a test has failed.
tap_end() {
	rm -rf "$scratch"
	echo "1..$test_count"
	[ "$failure_count" = 0 ]
}
trap 'status=$?; tap_end || status=1; exit $status' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
