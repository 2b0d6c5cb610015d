#!/bin/bash
# `warmpath ring study|show|plot` as they are typed: numbers, files, and a sentence and an exit code for what is wrong.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
warmpath=$build/warmpath
export WARMPATH_SOCKET=/nonexistent/control.sock

refuses() { # exit code, part of the sentence, arguments...
	local code=$1 sentence=$2
	shift 2
	"$warmpath" "$@" >"$scratch/output" 2>"$scratch/error" </dev/null
	[ $? = "$code" ] && grep -qF -- "$sentence" "$scratch/error"
	result $? "$sentence"
}

set=(--replicas 'llm-0,llm-1,llm-2')
shares() { jq -c "[.replicas[] | .$1 * 100000 | round]"; }
is "the published shares" "$("$warmpath" ring show "${set[@]}" --json | shares share)" '[32008,35782,32209]'
"$warmpath" ring show "${set[@]}" --diff +llm-3 --json >"$scratch/diff"
is "the published shares with a fourth replica" "$(shares share_after <"$scratch/diff")" \
	'[26574,23226,23523,26678]'
is "what moves goes to the new one" \
	"$(jq -c '[.added, (.moved - .replicas[3].gained | fabs < 1e-9), ([.replicas[].lost] | add - $moved | fabs < 1e-9)]' \
		--argjson moved "$(jq .moved "$scratch/diff")" "$scratch/diff")" '["llm-3",true,true]'
is "removing it moves the same back" \
	"$("$warmpath" ring show --replicas llm-0,llm-1,llm-2,llm-3 --diff -llm-3 --json | jq -c '[.removed, (.moved * 100000 | round)]')" \
	'["llm-3",26678]'
is "a weight is a due" \
	"$("$warmpath" ring show "${set[@]}" --weights llm-1=2 --json | jq -c '[.replicas[] | .due]')" '[0.25,0.5,0.25]'
LC_ALL=C "$warmpath" ring show "${set[@]}" >"$scratch/ascii"
LC_ALL=C.UTF-8 "$warmpath" ring show "${set[@]}" >"$scratch/unicode"
! LC_ALL=C grep -q $'[\x80-\xff]' "$scratch/ascii" && grep -q '##########' "$scratch/ascii" && grep -q '█████' "$scratch/unicode"
result $? "bars in ASCII and in Unicode"

for replicas in 1 3 64; do
	names=$(seq -s, -f 'llm-%.0f' "$replicas")
	for file in ring.svg ring.png; do
		"$warmpath" ring plot --replicas "$names" --diff +another --output "$scratch/$file" >/dev/null
		result $? "$replicas replicas and one more as $file"
	done
	"$warmpath" ring plot --replicas "$names" --output "$scratch/plain.svg" >/dev/null
	python3 -c 'import sys, xml.etree.ElementTree as tree; tree.parse(sys.argv[1])' "$scratch/plain.svg"
	result $? "the SVG of $replicas replicas is well-formed"
done
"$warmpath" ring plot --replicas solo --diff -solo --output "$scratch/none.svg" >/dev/null &&
	"$warmpath" ring show --replicas solo --diff -solo | grep -qx 'Removing solo leaves no replica'
result $? "removing the only replica"
is "a PNG is one" "$(head -c 8 "$scratch/ring.png" | od -An -tx1 | tr -d ' \n')" 89504e470d0a1a0a
"$warmpath" ring plot --replicas "$(seq -s, -f 'llm-%.0f' 1000)" --vnodes 1000 --output "$scratch/large.svg" >/dev/null &&
	[ "$(stat -c %s "$scratch/large.svg")" -lt 30000000 ]
result $? "a million points make no endless picture"

study=(ring study --replicas 5 --rings 20 --vnodes '40,10')
"$warmpath" "${study[@]}" --json --spread 1.3 --output "$scratch/study.svg" >"$scratch/study"
is "rows by virtual nodes, the recommended one among them" \
	"$(jq -c '.recommended.vnodes as $wanted | [.rows[].vnodes] | [. == sort, contains([10, 40, $wanted])]' "$scratch/study")" '[true,true]'
is "the recommended number keeps the spread" \
	"$(jq -c '.recommended as $it | .rows[] | select(.vnodes == $it.vnodes) | .max_mean.p90 <= 1.3' "$scratch/study")" true
[ -s "$scratch/study.svg" ]
result $? "a chart of the study"
if [ "$(id -u)" = 0 ]; then
	is "look-ups measured in the kernel" \
		"$(jq -c '[.rows[].look_up_nanoseconds] | all(. >= 0 and . < 100000)' "$scratch/study")" true
	setpriv --reuid=65534 --clear-groups --bounding-set=-all --inh-caps=-all "$(realpath "$warmpath")" "${study[@]}" >"$scratch/text" 2>&1 &&
		grep -q '^Look-ups were not measured: measuring in the kernel needs root' "$scratch/text" &&
		! grep -q 'LOOK-UP  *$' "$scratch/text"
	result $? "without privileges the column is left out, and it is said why"
else
	echo "ok $((number += 1)) - look-ups in the kernel # SKIP needs root"
fi

refuses 2 '"0" is not a number of replicas: give 1 to 1023' ring study --replicas 0
refuses 2 '"10x" is not a number of virtual nodes' ring study --replicas 3 --vnodes 10x
refuses 2 '"1" is not a spread: give the fullest replica' ring study --replicas 3 --spread 1
refuses 2 '"chart.jpg" does not end in .svg or .png' ring study --replicas 3 --output chart.jpg
refuses 2 '"ring.gif" does not end in .svg or .png' ring plot "${set[@]}" --output ring.gif
refuses 2 '"llm-3" is not a change: write +NAME, +NAME=WEIGHT or -NAME' ring show "${set[@]}" --diff llm-3
refuses 1 'replica llm-1 is on the ring already' ring show "${set[@]}" --diff +llm-1
refuses 1 'replica llm-7 is not on the ring, so removing it moves nothing' ring show "${set[@]}" --diff -llm-7
refuses 2 'the weight "0" is not a number from 0.001 to 1000' ring show "${set[@]}" --diff +llm-7=0
refuses 1 'cannot be written: No such file or directory' ring plot "${set[@]}" --output /nonexistent/ring.svg
refuses 1 'cannot be written: No such file or directory' ring plot "${set[@]}" --output /nonexistent/ring.png
refuses 3 'warmpathd is not running, or its control socket is not /nonexistent' ring show
for command in "ring study" "ring show" "ring plot"; do
	# shellcheck disable=SC2086  # words of a command
	"$warmpath" $command --help | grep -q '^Examples:'
	result $? "warmpath $command --help has examples"
done
