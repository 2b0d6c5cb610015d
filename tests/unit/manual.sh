#!/bin/bash
# The manual pages and the completion as they are installed: the pages are well formed, and nothing that the programs take is missing from them;
# words are completed as the programs list them.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
export WARMPATH_SOCKET=$scratch/nobody.sock

make --no-print-directory install BUILD="$build" DESTDIR="$scratch/root" >"$scratch/output" 2>&1
result $? "make install"
man=$scratch/root/usr/local/share/man
: >"$scratch/output"

# --- pages ----------------------------------------------------------------------------------------------------

for page in man1/warmpath.1 man8/warmpathd.8 man5/warmpath.yaml.5; do
	[ -f "$man/$page" ]
	result $? "$page is installed"
	if ! command -v mandoc >/dev/null; then
		skip mandoc "$page is well formed"
		continue
	fi
	mandoc -T lint -W warning "$man/$page" >"$scratch/output" 2>&1
	result $? "$page is well formed"
done
: >"$scratch/output"

# plain words of a page, on one line
words() { sed -e 's/\\-/-/g; s/\\&//g; s/ Ns = Ns Ar /=/g' "$1" | tr -s ' \n' ' '; }

words "$man/man5/warmpath.yaml.5" >"$scratch/keys"
"$build/warmpathd" --list-keys | grep '^[^ ]' | while read -r key; do
	grep -qF -- ".It Sy $key " "$scratch/keys" || echo "$key"
done >"$scratch/output"
[ ! -s "$scratch/output" ] && [ "$("$build/warmpathd" --list-keys | grep -c '^[^ ]')" -gt 40 ]
result $? "every key of the configuration is in warmpath.yaml(5)"

subcommands() { # words of a command
	"$build/warmpath" "$@" --help | sed -n '1{/SUBCOMMAND/!q}; s/^  \([a-z-]*\)  *[A-Z].*/\1/p'
}
long_options() { # command...
	"$@" --help | sed -n 's/^ *\(-., \)\{0,1\}\(--[a-z-]*\).*/\2/p' | grep -vxE -- '--(help|usage)'
}
section() { # heading: its part of warmpath(1)
	sed 's/\\-/-/g' "$man/man1/warmpath.1" | awk -v heading=".Ss $1" '/^\.S[sh] /{inside = $0 == heading} inside'
}
missing_of() { # words of a command
	local word option
	for word in $(subcommands "$@"); do
		if [ -n "$(subcommands "$@" "$word")" ]; then
			missing_of "$@" "$word"
			continue
		fi
		section "${*:+$* }$word" >"$scratch/section"
		[ -s "$scratch/section" ] || echo "${*:+$* }$word"
		for option in $(long_options "$build/warmpath" "$@" "$word"); do
			grep -qE -- "(Fl -?|It also takes.*--)${option#--}\b" "$scratch/section" || echo "${*:+$* }$word $option"
		done
	done
}
missing_of >"$scratch/output"
[ ! -s "$scratch/output" ]
result $? "every subcommand and its options are in warmpath(1)"
for option in $(long_options "$build/warmpathd"); do
	grep -qF -- "Fl ${option#-}" <(sed 's/\\-/-/g' "$man/man8/warmpathd.8") || echo "$option"
done >"$scratch/output"
[ ! -s "$scratch/output" ]
result $? "every option of warmpathd is in warmpathd(8)"

# --- completion -------------------------------------------------------------------------------------------------

# shellcheck source=/dev/null
. "$scratch/root/usr/local/share/bash-completion/completions/warmpath"
PATH=$(cd "$build" && pwd):$PATH
completes() { # description expected words...: of the last word, which may be empty
	local description=$1 expected=$2
	shift 2
	COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
	_warmpath
	echo "got: ${COMPREPLY[*]}" >"$scratch/output"
	[ "${COMPREPLY[*]}" = "$expected" ]
	result $? "$description"
}
completes "a subcommand" "status" warmpath sta
completes "all of a table" "$(subcommands replica | xargs)" warmpath replica ""
completes "an option" "--address" warmpath replica add --ad
completes "an option behind an argument" "--prompt-tokens" warmpath explain conv1 --prompt
completes "words of an option" "native" warmpath attach eth0 --mode n
completes "words behind a sign of equality" "generic" warmpath attach eth0 --mode = g
completes "interfaces" "lo" warmpath attach lo
completes "interfaces, and all of them" "all" warmpath detach al
completes "a subcommand behind a socket" "reload" warmpath --socket /nowhere rel
completes "an option of warmpathd" "--check-running" warmpathd --check-r
completes "no names where no agent answers" "" warmpath replica drain ""
