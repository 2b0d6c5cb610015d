#!/bin/bash
# `warmpath ring walk` against recorded answers of an independent implementation of the ring: both dialects, keyed too, 1 to 64 replicas, more than
# 100,000 ids, each ring in the recorded order of insertion and in the opposite one.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"

ids() { # case, count
	awk -v number="$1" -v count="$2" 'BEGIN {
		for (n = 0; n < count; n++) {
			line = sprintf("s%d-c%05d", number, n)
			for (k = 0; k < n % 12; k++)
				line = line sprintf(":%d.%d", n * (k + 3), k)
			print line
		}
	}'
}

opposite() { # a,b,c -> c,b,a
	tr ',' '\n' <<<"$1" | tac | paste -sd,
}

check_walk() { # case dialect vnodes key count sha256 replicas description
	local answer=$scratch/answer sum arguments=(--dialect "$2" --vnodes "$3" --replicas "$7")
	if [ "$4" != - ]; then
		# shellcheck disable=SC2059,SC2001  # the key's bytes are the format
		printf "$(sed 's/../\\x&/g' <<<"$4")" >"$scratch/key"
		arguments+=(--hash-key-file "$scratch/key")
	fi
	ids "$1" "$5" | "$build/warmpath" ring walk "${arguments[@]}" >"$answer" 2>"$scratch/error"
	sum=$(sha256sum <"$answer")
	if [ "${sum%% *}" = "$6" ]; then
		ok "case $1: $2 x $3, $8"
		return
	fi
	not_ok "case $1: $2 x $3, $8"
	head -n "$(wc -l <"$scratch/expected")" "$answer" | diff "$scratch/expected" - | head -n 4 | sed 's/^/# /'
	head -n 1 "$scratch/error" | sed 's/^/# /'
}

ids_checked=0
run_case() {
	[ -n "${current[*]:-}" ] || return
	check_walk "${current[@]}" "order as recorded"
	check_walk "${current[@]:0:6}" "$(opposite "${current[6]}")" "opposite order"
	ids_checked=$((ids_checked + current[4]))
}

current=()
while read -r line; do
	case $line in
	'#'*) ;;
	'case '*)
		run_case
		read -r -a current <<<"${line#case }"
		: >"$scratch/expected"
		;;
	*) echo "$line" >>"$scratch/expected" ;;
	esac
done < <(gzip -dc tests/data/ring-walks.txt.gz)
run_case

[ "$ids_checked" -ge 100000 ]
result $? "at least 100,000 ids in all: $ids_checked"
