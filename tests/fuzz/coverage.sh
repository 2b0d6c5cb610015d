#!/bin/bash
# What the fuzzers reach: runs each target over its seeds and what earlier runs have found (build/fuzz), and prints, for each file that it is about,
# how many lines were reached and which were not. Needs clang's llvm-cov. Not a test: build/coverage/report is for reading.
#
#   tests/fuzz/coverage.sh [TARGET...]      targets: names of tests/fuzz/fuzz_TARGET.c
set -eu
cd "$(dirname "$0")/../.."
build=build/coverage
found=${BUILD:-build}/fuzz
tools=$(dirname "$(readlink -f "$(command -v "${FUZZ_CLANG:-clang}")")")
if [ $# = 0 ]; then
	for source in tests/fuzz/fuzz_*.c; do
		source=${source#tests/fuzz/fuzz_}
		set -- "$@" "${source%.c}"
	done
fi
# BPF objects and their headers are the same
mkdir -p $build
ln -sfn "$(realpath "${BUILD:-build}/bpf")" $build/bpf
ln -sfn "$(realpath "${BUILD:-build}/vmlinux.h")" $build/vmlinux.h

for target in "$@"; do
	make -s BUILD=$build FUZZ_FLAGS="-fsanitize=fuzzer -fprofile-instr-generate -fcoverage-mapping" CFLAGS="-O1 -g" \
		"$build/tests/fuzz/fuzz_$target" >&2
	directories=()
	for directory in "tests/fuzz/corpus/$target" "$found/fuzz_$target"; do [ -d "$directory" ] && directories+=("$directory"); done
	LLVM_PROFILE_FILE=$build/$target.profraw "$build/tests/fuzz/fuzz_$target" -runs=0 "${directories[@]}" >"$build/$target.log" 2>&1 || {
		tail -n 5 "$build/$target.log" >&2
		exit 1
	}
	"$tools/llvm-profdata" merge -o "$build/$target.profdata" "$build/$target.profraw"
	echo "== $target"
	"$tools/llvm-cov" export --format=lcov --instr-profile="$build/$target.profdata" "$build/tests/fuzz/fuzz_$target" 2>/dev/null |
		awk -F '[:,]' '
			/^SF:/ { file = $2; sub(".*/(include|user)/", "", file); whose = /\/include\/warmpath\// ? "include/" : "user/" }
			/^SF:/ { ours = $2 ~ "/(include/warmpath|user/(agent|lib))/" }
			/^DA:/ && ours { lines[whose file]++; if ($3 > 0) reached[whose file]++; else missed[whose file] = missed[whose file] " " $2 }
			END {
				for (name in lines)
					printf "%s: %d of %d lines\n", name, reached[name], lines[name]
				for (name in missed)
					printf "%s: not reached:%s\n", name, missed[name]
			}' | sort
done | tee $build.report
