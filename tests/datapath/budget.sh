#!/bin/bash
# Each program's verified instructions against its budget (tests/datapath/budgets), and the stack of its deepest chain of calls against
# what Linux 6.1 allows, for every compiler that is installed.
#
#   tests/datapath/budget.sh            check; prints TAP
#   tests/datapath/budget.sh --write    write the present counts into the table (all compilers are needed)
set -u
cd "$(dirname "$0")/../.." || exit 1
build=${BUILD:-build}
table=tests/datapath/budgets
compilers="clang-14 clang-19"
tolerance=10 # percent
stack_limit=512 # bytes

if [ "$(id -u)" != 0 ]; then
	printf '1..1\nok 1 # SKIP needs root\n'
	exit 0
fi

objects_of() { # compiler: builds the objects, prints their paths
	local directory=$build/budget/$1 source object
	for source in bpf/*.bpf.c; do
		# what is left of it for the verifier depends on what libxdp fills in
		[ "$source" != bpf/libxdp_dispatcher.bpf.c ] || continue
		object=$directory/bpf/$(basename "$source" .c).o
		make -s CLANG="$1" BUILD="$directory" "$object" >&2 || return 1
		echo "$object"
	done
}

declare -A counts stacks
# those of the table, so that one that is not built any more is missed
programs=()
[ "${1-}" = --write ] || mapfile -t programs < <(awk '/^[^#]/ {print $1}' "$table")
for compiler in $compilers; do
	command -v "$compiler" >/dev/null || continue
	mapfile -t objects < <(objects_of "$compiler")
	while read -r _ program count stack; do
		counts[$program/$compiler]=$count
		# two objects may have a program of one name: the deeper one counts
		[ "$stack" -le "${stacks[$program/$compiler]-0}" ] || stacks[$program/$compiler]=$stack
		[[ " ${programs[*]-} " = *" $program "* ]] || programs+=("$program")
	done < <("$build/tools/verified" "${objects[@]}")
done

if [ "${1-}" = --write ]; then
	sed -i '/^[^#]/d' "$table"
	for program in "${programs[@]}"; do
		printf '%-25s %8s  %8s\n' "$program" "${counts[$program/clang-14]}" "${counts[$program/clang-19]}" >>"$table"
	done
	exit 0
fi

number=0 failed=0
for compiler in $compilers; do
	column=$([ "$compiler" = clang-14 ] && echo 2 || echo 3)
	if ! command -v "$compiler" >/dev/null; then
		echo "ok $((number += 1)) - $compiler # SKIP $compiler is not installed"
		continue
	fi
	for program in "${programs[@]}"; do
		count=${counts[$program/$compiler]-0}
		budget=$(awk -v name="$program" -v column="$column" '$1 == name { print $column }' "$table")
		verdict=ok
		if [ -z "$budget" ]; then
			verdict='not ok' budget=none
		elif [ "$count" = 0 ] || [ "$count" -gt $((budget + budget * tolerance / 100)) ]; then
			verdict='not ok'
		fi
		[ "$verdict" = ok ] || failed=1
		echo "$verdict $((number += 1)) - $program by $compiler: $count verified instructions, budget $budget"
		verdict=ok stack=${stacks[$program/$compiler]-0}
		[ "$stack" -gt 0 ] && [ "$stack" -le "$stack_limit" ] || verdict='not ok' failed=1
		echo "$verdict $((number += 1)) - $program by $compiler: $stack bytes of stack as 6.1 counts, limit $stack_limit"
	done
done
[ "$number" -gt 0 ] || failed=1
echo "1..$number"
exit "$failed"
