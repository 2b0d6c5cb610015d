#!/bin/bash
# What the documents name exists: counters, other documents, pictures, subcommands; and every counter is explained.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
warmpath=$build/warmpath

is_empty() { # description, what should not be
	is "$1" "$2" ""
}

# --- counters ----------------------------------------------------------------------------------------------------

counters=$(sed -n 's/^[[:space:]]*X(\([a-z_]*\),.*/\1/p' include/warmpath/outcome.h include/warmpath/connection_outcome.h | grep -vx name | sort -u)
# shellcheck disable=SC2016  # Markdown
named=$(grep -oE '`[a-z]+(_[a-z]+)*`' docs/data-path.md | tr -d '`' | sort -u)
is_empty "docs/data-path.md names every counter" "$(comm -23 <(echo "$counters") <(echo "$named"))"
is_empty "and no counter that there is not" "$(comm -13 <(echo "$counters") <(grep -E '^(drop|note|answered|reset|absorbed|icmp|returned|forwarded)_' <<<"$named"))"

# --- links ---------------------------------------------------------------------------------------------------------

broken=
for document in README.md docs/*.md; do
	while read -r link; do
		[ -e "$(dirname "$document")/${link%%#*}" ] || broken+="$document: $link"$'\n'
	done < <(grep -oE '\]\([^)]*\)' "$document" | sed 's/^](//; s/)$//' | grep -vE '^(https?:|#)')
done
is_empty "every link leads somewhere" "$broken"

# --- examples ---------------------------------------------------------------------------------------------------

(umask 077 && head -c 32 /dev/urandom >"$scratch/secret")
wrong=
for example in deploy/examples/*.yaml; do
	sed "s|/etc/warmpath/secret|$scratch/secret|" "$example" >"$scratch/$(basename "$example")"
	wrong+=$("$build/warmpathd" --check -c "$scratch/$(basename "$example")" 2>&1 >/dev/null)
done
is_empty "the examples are right, and state every key" "$wrong"

# --- commands ------------------------------------------------------------------------------------------------------

unknown=
while read -r command subcommand; do
	"$warmpath" "$command" --help >/dev/null 2>&1 || unknown+="warmpath $command"$'\n'
	# where there are subcommands of it, the next word is one
	if [ -n "$subcommand" ] && "$warmpath" "$command" --help 2>/dev/null | grep -q SUBCOMMAND; then
		[ "$command" = conversation ] ||
			"$warmpath" "$command" "$subcommand" --help >/dev/null 2>&1 || unknown+="warmpath $command $subcommand"$'\n'
	fi
done < <(grep -ohE '(^|`|\$\()warmpath [a-z]+( [a-z]+)?' README.md docs/*.md | sed 's/.*warmpath //' | sort -u)
is_empty "every subcommand that is named exists" "$unknown"
