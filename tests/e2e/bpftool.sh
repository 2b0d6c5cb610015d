#!/bin/bash
# docs/bpftool.md against running maps: each pinned map is there, with exactly the fields that are printed.
#
#   tests/e2e/bpftool.sh            compare
#   tests/e2e/bpftool.sh --write    write what the maps have into the document
# shellcheck disable=SC2016  # words of other shells, jq and Markdown stand in single quotes
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
document=docs/bpftool.md
write=${1-}

lab_up --replicas 3 --clients 1
agent_up --policy llm-aware
check "the replicas take connections over" tools/lab handoff start
router=$(tools/lab path pin)/v1 replica=$(tools/lab path pin)/llm-0/v1

# --- something in each map -----------------------------------------------------------------------------------

ids 6 chat | datagrams client --prompt-tokens 900 --max-tokens 120 8000 10.9.9.9 >"$scratch/ledger"
is "datagrams" "$(total "$scratch/ledger" received)" 6
ids 3 large | datagrams client --size 4000 --answer-size 5000 8000 10.9.9.9 >"$scratch/ledger" 2>&1
check "HTTP, handed over" in_host client curl -sf -m 5 -H 'x-conversation-id: talk-1' http://10.9.9.8:8000/
# half a head: the router holds it; the connection is then forgotten, and what comes behind is from a stranger
cat >"$scratch/half" <<'HALF'
exec 3<>/dev/tcp/10.9.9.8/8000
printf 'GET / HTTP/1.1\r\nx-conv' >&3
read -r
printf 'ersation-id: half\r\n' >&3
sleep 30
HALF
mkfifo "$scratch/go"
in_host client bash "$scratch/half" <"$scratch/go" &
half=$!
exec {go}>"$scratch/go"
# numbers that jq would round are text meanwhile
exact() { sed -E 's/\b([0-9]{16,})\b/"\1"/g'; }
dump_first() {
	case $1 in
	*/ring_index-* | */ring_points-* | */replicas | */replica_loads | */replica_contacts) # large arrays
		bpftool map lookup pinned "$1" key 0 0 0 0 | exact
		;;
	*) bpftool map dump pinned "$1" | exact | jq '[.[] | select(.value.settings.name_count? != 0)][0]' ;;
	esac
}
# keep MAP: its first entry as soon as there is one; it will not stay
keep() { dump_first "$router/$1" >"$scratch/$1" && grep -q '"key"' "$scratch/$1"; }
check "a head is held" wait_until 5 keep held_heads
bpftool -j map dump pinned "$router/connections" | jq -r '.[] | select(.formatted.value.state == 1) | .key | join(" ")' |
	while read -r key; do
		# shellcheck disable=SC2086  # bytes of the key
		bpftool map delete pinned "$router/connections" key $key
	done
echo >&"$go"
check "a stranger" wait_until 5 keep strangers
tools/lab servers stop llm-0
ids 60 open | datagrams client --timeout 0.2 --tries 1 --window 60 --prompt-tokens 100 8000 10.9.9.9 >"$scratch/ledger" 2>&1
check "an open request" wait_until 5 keep requests

# --- the document ----------------------------------------------------------------------------------------------

where() { # map: the pinned file whose entries are documented
	case $1 in
	rings | ring_points | ring_index | ring_members | placements) echo "$router/inner/$1-0" ;;
	handoff_counters) echo "$replica/$1" ;;
	*) echo "$router/$1" ;;
	esac
}

entry() { # map: its first entry
	if [ -f "$scratch/$1" ]; then cat "$scratch/$1"; else dump_first "$(where "$1")"; fi
}

# What is short stands in one line; of long lists the beginning is enough.
pretty='
def inline: (tojson | length) < 90;
def show($indent):
	if type == "array" and length > 8 and all(.[]; type != "object") then (.[:4] + ["..."]) | tojson
	elif inline then tojson
	elif type == "object" then "{\n" + ([to_entries[] | $indent + "  " + (.key | tojson) + ": " + (.value | show($indent + "  "))] | join(",\n")) + "\n" + $indent + "}"
	elif type == "array" then "[\n" + ([.[] | $indent + "  " + show($indent + "  ")] | join(",\n")) + "\n" + $indent + "]"
	else tojson end;
show("")'
# the secrets of a lab are none, but nobody should see any in a document
public='if .value.cookie? then .value |= walk(if type == "object" and has("word") then .word |= map(0) else . end) else . end'

documented() { # map: the entry that is printed
	awk -v marker="<!-- dump $1 -->" '$0 == marker {found = 1; next} found && /^```$/ {exit} found && !/^```/ {print}' "$document"
}

fields() { jq -r '[paths | map(if type == "number" then "[]" else . end) | join(".")] | unique[]'; }

maps=$(sed -n 's/^<!-- dump \(.*\) -->$/\1/p' "$document")
if [ "$write" = --write ]; then
	for map in $maps; do
		entry "$map" | jq -r "$public | $pretty" | sed -E 's/"([0-9]{16,})"/\1/g' >"$scratch/entry"
		awk -v marker="<!-- dump $map -->" -v file="$scratch/entry" '
			$0 == marker {print; getline; print; while ((getline line < file) > 0) print line; skip = 1; next}
			skip && /^```$/ {skip = 0}
			!skip {print}' "$document" >"$scratch/document"
		cat "$scratch/document" >"$document"
	done
fi
for map in $maps; do
	entry "$map" >"$scratch/entry"
	documented "$map" | fields >"$scratch/documented"
	fields <"$scratch/entry" >"$scratch/found"
	[ -s "$scratch/found" ] || echo "no entry" >"$scratch/found"
	same "$map: the fields are those printed" "$scratch/documented" "$scratch/found" ||
		note "tests/e2e/bpftool.sh --write brings the document up to date"
done
for file in "$router"/* "$replica"/*; do
	[ -f "$file" ] || continue
	name=$(basename "$file")
	grep -q "^### .*\`$name\`" "$document" || echo "$name"
done | sort -u >"$scratch/missing"
is "every map that is pinned has its section" "$(cat "$scratch/missing")" ""
for map in rings ring_points ring_index ring_members placements; do
	[ -e "$(where "$map")" ]
	is "inner maps are pinned as the document says: $map" $? 0
done

exec {go}>&-
kill "$half" 2>/dev/null
wait "$half" 2>/dev/null
true
