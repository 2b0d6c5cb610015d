#!/bin/bash
# Fuzzes each target from its seeds, with as many inputs as show that a parser was broken, always the same ones. To look for deep faults, with
# other inputs each time: FUZZ_SECONDS=3600 tests/fuzz/short.sh. What that finds new is kept in $BUILD/fuzz/NAME, so that a next run goes on from there.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
seconds=${FUZZ_SECONDS-}

for target in "$build"/tests/fuzz/fuzz_*; do
	case $target in *.d | *.o | *'*') continue ;; esac
	name=$(basename "$target")
	found=$build/fuzz/$name
	if [ -z "$seconds" ]; then
		found=$build/fuzz/short/$name
		rm -rf "$found"
	fi
	mkdir -p "$found"
	seeds=tests/fuzz/corpus/${name#fuzz_}
	dictionary=tests/fuzz/${name#fuzz_}
	dictionary=${dictionary%%_*}.dict
	arguments=(-timeout=20 -rss_limit_mb=2048 -verbosity=1 -artifact_prefix="$found/" -print_final_stats=1)
	if [ -n "$seconds" ]; then arguments+=(-max_total_time="$seconds"); else arguments+=(-seed=1 -runs=30000 -max_total_time=60); fi
	[ -f "$dictionary" ] && arguments+=(-dict="$dictionary")
	if "$target" "${arguments[@]}" "$found" "$seeds" >"$found.log" 2>&1; then
		runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$found.log")
		if [ "${runs:-0}" -gt 1000 ]; then
			ok "$name: $runs inputs${seconds:+ in $seconds s}"
			continue
		fi
	fi
	tail -n 30 "$found.log" | note
	not_ok "$name: see $found.log; the input that failed lies in $found/"
done
[ "$test_count" -gt 0 ] || bail "there are targets"
