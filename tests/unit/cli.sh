#!/bin/bash
# The command line as a whole: each subcommand has help with an example, says what is wrong in one sentence on standard error, and ends with the
# exit code of that kind of error: 0 done, 1 refused or failed, 2 asked wrongly, 3 no agent answers. Needs neither root nor an agent.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
warmpath=$build/warmpath
export WARMPATH_SOCKET=$scratch/nobody.sock

run() { # command...: $code, and what it says in $scratch/output and $scratch/error
	"$@" >"$scratch/output" 2>"$scratch/error" </dev/null
	code=$?
}

# --- help, over the tables ------------------------------------------------------------------------------------

subcommands() { # words of a command: the subcommands in its table; nothing if it has none
	"$warmpath" "$@" --help | sed -n '/SUBCOMMAND/,$s/^  \([a-z-]*\)  *[A-Z].*/\1/p'
}

seen=0
look_at() { # words of a command
	local word words
	words=$(subcommands "$@")
	if [ -n "$words" ] && "$warmpath" "$@" --help | head -n 1 | grep -q SUBCOMMAND; then
		for word in $words; do look_at "$@" "$word"; done
		return
	fi
	seen=$((seen + 1))
	run "$warmpath" "$@" --help
	[ "$code" = 0 ] && [ ! -s "$scratch/error" ] && grep -q "^Usage: warmpath $*" "$scratch/output" &&
		grep -qE '^Examples?:' "$scratch/output" && grep -qE "^ .*warmpath $*" "$scratch/output"
	result $? "$*: --help with an example"
	run "$warmpath" "$@" --no-such-option
	[ "$code" = 2 ] && [ ! -s "$scratch/output" ] && grep -q "^warmpath $*: unrecognized option '--no-such-option'" "$scratch/error"
	result $? "$*: an unknown option is named"
	"$warmpath" "$@" --help 2>"$scratch/error" >/dev/full
	[ $? = 1 ] && grep -q 'cannot be written: No space left' "$scratch/error"
	result $? "$*: a full disk is an error"
}
look_at
[ "$seen" -ge 25 ]
result $? "all $seen subcommands were looked at"

# --- errors ---------------------------------------------------------------------------------------------------

says() { # exit code, sentence, arguments...
	local wanted=$1 sentence=$2
	shift 2
	run "$warmpath" "$@"
	[ "$code" = "$wanted" ] && [ "$(head -n 1 "$scratch/error")" = "$sentence" ]
	result $? "$*: $sentence"
}

says 2 "warmpath replica drain: NAME is needed" replica drain
says 2 "warmpath replica weight: NAME WEIGHT is needed" replica weight llm-0
says 2 "warmpath explain: ID is needed" explain

nobody="warmpath: warmpathd is not running, or its control socket is not $scratch/nobody.sock (--socket)"
for command in status "replica list" "replica drain llm-0" "replica weight llm-0 2" "service list" "route conv1" \
	"address conv1" "attach eth0" "detach eth0" reload upgrade "policy show" "policy set epsilon=0.5" "explain conv1" trace watch "conversation show conv1" \
	"top --once" "ring show" "service show"; do
	# shellcheck disable=SC2086  # words of a command
	says 3 "$nobody" $command
done
for command in status "replica list" "route conv1" reload "policy show"; do
	# shellcheck disable=SC2086
	run "$warmpath" $command --json
	[ "$code" = 3 ] && [ "$(jq -c '[.ok, (.error | length > 20)]' "$scratch/output")" = '[false,true]' ]
	result $? "$command --json without an agent is JSON, too"
done
for command in trace watch; do
	run "$warmpath" $command --json
	[ "$code" = 3 ] && [ "$(wc -l <"$scratch/output")" = 1 ] && [ "$(jq .ok "$scratch/output")" = false ] && [ "$(cat "$scratch/error")" = "$nobody" ]
	result $? "$command --json without an agent is a line of JSON, and a sentence on standard error"
done
says 2 "warmpath: the socket path $(printf 'x%.0s' {1..200}) is too long" --socket "$(printf 'x%.0s' {1..200})" status
says 2 'warmpath attach: there is no mode "fast": use native, generic, tc or auto' attach eth0 -m fast
says 2 'warmpath policy set: epsilon is "0"; allowed: a number from 0.000001 to 100 with at most 6 digits after the point' \
	policy set epsilon=0
says 2 'warmpath decide: there is no ring dialect "sha1": use llm-ring or replica-router' decide -p bounded -d sha1
says 2 'warmpath: epsilon is "0"; allowed: a number from 0.000001 to 100 with at most 6 digits after the point' \
	decide -p bounded -s epsilon=0
says 2 'warmpath: --policy says bounded, and --set name says llm-aware: say one' decide -p bounded -s name=llm-aware
says 2 'warmpath: the weight "heavy" is not a number from 0.001 to 1000 with at most three decimals' replica weight llm-0 heavy
says 2 'warmpath: an argument is not UTF-8 text' route $'\xff'
says 2 'warmpath: there is no subcommand "stats"; "warmpath --help" lists them' stats
says 0 '' decide -p bounded -s name=bounded
