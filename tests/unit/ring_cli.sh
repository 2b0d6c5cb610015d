#!/bin/bash
# The command line of `warmpath ring walk`: where ids come from, options, and a sentence and an exit code for what is wrong.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
warmpath=$build/warmpath

answers() { # description, expected standard output, arguments...; standard input is passed on
	local description=$1 expected=$2
	shift 2
	"$warmpath" "$@" >"$scratch/output" 2>"$scratch/error" &&
		[ "$(cat "$scratch/output")" = "$expected" ] && [ ! -s "$scratch/error" ]
	result $? "$description"
}

refuses() { # exit code, part of the sentence, arguments...
	local code=$1 sentence=$2
	shift 2
	"$warmpath" "$@" >"$scratch/output" 2>"$scratch/error" </dev/null
	[ $? = "$code" ] && grep -qF -- "$sentence" "$scratch/error"
	result $? "$sentence"
}

conv1='{"id": "conv1", "hash": "0x7b0e98587fc95488", "walk": ["llm-1", "llm-0", "llm-2"]}'
walk=(ring walk --replicas 'llm-0,llm-1,llm-2')

answers "an id as an argument" "$conv1" "${walk[@]}" conv1
answers "100 virtual nodes unless one says otherwise" "$conv1" "${walk[@]}" --vnodes 100 conv1
answers "any order, and one replica twice" "$conv1" ring walk --replicas llm-2,llm-0,llm-2,llm-1 conv1
answers "ids from standard input" "$conv1"$'\n'"$conv1" "${walk[@]}" < <(printf 'conv1\nconv1\n')
answers "the last line without a newline" "$conv1" "${walk[@]}" < <(printf 'conv1')
answers "the id - stands for standard input" "$conv1"$'\n'"$conv1"$'\n'"$conv1" "${walk[@]}" conv1 - conv1 <<<conv1
answers "no id at all" "" "${walk[@]}" </dev/null
answers "the dialect replica-router has 3 virtual nodes" \
	'{"id": "conv1", "hash": "0xe8b3a7c3371770f855a40e50a4323344", "walk": ["R2", "R1", "R3"]}' \
	ring walk --dialect replica-router --replicas R1,R2,R3 conv1
answers "the published escapes of JSON" \
	'{"id": "\u00e9\"\\\u001f\u007f", "hash": "0xe08b5faf56d1a648", "walk": ["a"]}' \
	ring walk --replicas a $'\u00e9"\\\x1f\x7f'

# A weight changes how many ids a replica is home to, and the others' ids only towards it.
seq 3000 | "$warmpath" "${walk[@]}" | grep -c '\["llm-1"' >"$scratch/before"
seq 3000 | "$warmpath" "${walk[@]}" --weights llm-1=3,llm-2=1.0 | grep -c '\["llm-1"' >"$scratch/after"
before=$(cat "$scratch/before") after=$(cat "$scratch/after")
[ "$before" -gt 800 ] && [ "$before" -lt 1300 ] && [ "$after" -gt 1600 ] && [ "$after" -lt 2100 ]
result $? "weight 3 among 1, 1: $before of 3000 before, $after after"

printf 'secret' >"$scratch/key"
"$warmpath" "${walk[@]}" --hash-key-file "$scratch/key" conv1 | grep -qF '"hash": "0x7b0e98587fc95488"'
[ $? = 1 ]
result $? "a key changes the hash"

"$warmpath" "${walk[@]}" conv1 >/dev/full 2>"$scratch/error"
[ $? = 1 ] && grep -q 'the answer cannot be written' "$scratch/error"
result $? "a full disk is an error"

refuses 2 'say which replicas: --replicas NAME,...' ring walk conv1
refuses 2 'there is no ring dialect "sha1": use llm-ring or replica-router' "${walk[@]}" --dialect sha1 conv1
refuses 2 '"0" is not a number of virtual nodes: give 1 to 1048576' "${walk[@]}" --vnodes 0 conv1
refuses 2 '"12x" is not a number of virtual nodes' "${walk[@]}" --vnodes 12x conv1
refuses 2 '"-1" is not a number of virtual nodes' "${walk[@]}" --vnodes=-1 conv1
refuses 2 "unrecognized option '--nodes'" "${walk[@]}" --nodes 3 conv1
refuses 2 'there is no subcommand "walc"; "warmpath ring --help" lists them' ring walc
refuses 2 'there is no subcommand "rinse"; "warmpath --help" lists them' rinse
refuses 2 'Usage: warmpath ring SUBCOMMAND' ring
refuses 1 "a replica's name is empty" ring walk --replicas a,,b conv1
refuses 1 'the replica name "a b" has a character (number 2)' ring walk --replicas 'a b' conv1
refuses 1 'the ring would have 3000000 points' "${walk[@]}" --vnodes 1000000 conv1
refuses 1 '"llm-1" is not a weight: write NAME=WEIGHT' "${walk[@]}" --weights llm-1 conv1
refuses 1 'the weight "1001" is not a number from 0.001 to 1000' "${walk[@]}" --weights llm-1=1001 conv1
refuses 1 'there is a weight for replica llm-9, which is not among the replicas' "${walk[@]}" --weights llm-9=1 conv1
refuses 1 'the hash key file /nonexistent cannot be opened' "${walk[@]}" --hash-key-file /nonexistent conv1
refuses 1 'only possible with the ring dialect llm-ring' \
	"${walk[@]}" --dialect replica-router --hash-key-file "$scratch/key" conv1
refuses 1 'an id is not valid UTF-8' "${walk[@]}" $'\xff'

for command in "" "ring" "ring walk" "version"; do
	# shellcheck disable=SC2086  # words of a command
	"$warmpath" $command --help >"$scratch/output" 2>&1 && grep -q '^Usage: warmpath' "$scratch/output"
	result $? "warmpath $command --help"
done
"$warmpath" ring walk --help | grep -q '^Example:'
result $? "an example in the help"
answers "version" '{"version": "'"$("$warmpath" version | cut -d' ' -f2)"'", "layout": 1}' version --json
