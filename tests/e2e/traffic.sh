#!/bin/bash
# The traffic program against simulated replicas, without a router: what it asks, what it writes down, what it refuses.
# alone: it compares times.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

lab_up --replicas 2 --servers none
quick=tools/profiles/quick.json

replica_start() { # number, options of simreplica
	local number=$1
	shift
	tools/lab exec "llm-$number" "$build/tools/simreplica" --host "10.0.2.1$number" --name "llm-$number" --speed 40 "$@" &
	wait_until 10 in_host client curl -sf "10.0.2.1$number:8001/health" || bail "simreplica starts"
}

traffic() { # options of traffic
	in_host client "$build/tools/traffic" --speed 40 "$@"
}

rows() { tail -n +2 "$1" | wc -l; }
column() { # file, name: its values
	awk -F, -v name="$2" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) c = i; next } { print $c }' "$1"
}

replica_start 0 --slots 1 --slot-prompt-similarity 0
first=$!
replica_start 1 --slots 1 --slot-prompt-similarity 0
second=$!
one=(--url http://10.0.2.10:8001) both=(--url http://10.0.2.10:8001 --url http://10.0.2.11:8001)

traffic "${one[@]}" --profile $quick --csv "$scratch/a.csv" --answers "$scratch/a" --summary "$scratch/a.json" --run-id one --policy 'x:y=1,z=2' >"$scratch/said"
is "the header of the CSV" "$(head -n 1 "$scratch/a.csv")" \
	"run_id,policy,conversation_id,heavy,turn,t_start_s,t_end_s,status,replica,route_reason,latency_ms,est_prompt_tokens,cache_n,prompt_n,prompt_ms,predicted_n,predicted_ms,error"
is "as many rows as requests" "$(rows "$scratch/a.csv")" "$(jq .requests "$scratch/a.json")"
is "no errors" "$(jq .errors "$scratch/a.json")" 0
matches "a policy with commas is one column" "$(sed -n 2p "$scratch/a.csv")" '^one,"x:y=1,z=2",s1-c00'
is "conversations" "$(column <(sed 's/"x:y=1,z=2"/x/' "$scratch/a.csv") conversation_id | sort -u | paste -sd ' ')" \
	"s1-c000 s1-c001 s1-c002 s1-c003 s1-c004 s1-c005"
matches "what it says at the end" "$(cat "$scratch/said")" '^[0-9]+ requests in .* 0 errors, hit rate [0-9.]+ %'

# on one replica that loses nothing, a follow-up turn finds all of the conversation but the last token of the answer
awk -F, 'NR > 1 { gsub(/"[^"]*"/, "x"); if ($5 > 1 && $13 != held[$3] - 1) print; held[$3] = $13 + $14 + $16 }' "$scratch/a.csv" >"$scratch/misses"
is "what is cached is what was held" "$(wc -l <"$scratch/misses")" 0
is "estimates are within a tenth of the true prompt" \
	"$(awk -F, 'NR > 1 { gsub(/"[^"]*"/, "x"); t = $13 + $14; if ($12 < 0.9 * t || $12 > 1.2 * t) print }' "$scratch/a.csv" | wc -l)" 0

traffic "${both[@]}" --profile $quick --csv "$scratch/b.csv" --answers "$scratch/b" --stream --connections fresh >/dev/null
traffic "${both[@]}" --profile $quick --csv "$scratch/c.csv" --answers "$scratch/c" --connections shared --id-in none >/dev/null
sort "$scratch/a" >"$scratch/a.sorted"
for run in b c; do
	sort "$scratch/$run" >"$scratch/$run.sorted"
	same "the same answers, whichever replica, streamed or not ($run)" "$scratch/$run.sorted" "$scratch/a.sorted"
done
is "several addresses are taken in rotation" "$(column "$scratch/b.csv" replica | sort | uniq -c | awk '{print $1 - '"$(rows "$scratch/b.csv")"' / 2 < 1}' | paste -sd ' ')" "1 1"
traffic "${one[@]}" --profile $quick --seed 2 --csv "$scratch/d.csv" >/dev/null
matches "another seed, another plan" "$(column "$scratch/d.csv" conversation_id | head -n 1)" '^s2-c00'

# a trace
traffic "${both[@]}" --trace tests/data/mooncake-conversation-excerpt.jsonl --size-scale 0.05 --time-scale 0.5 --context 3000 \
	--csv "$scratch/trace.csv" >/dev/null 2>"$scratch/said"
matches "requests of a trace that do not fit are counted" "$(cat "$scratch/said")" '[0-9]+ of the trace.s requests do not fit 3000 tokens'
left_out=$(grep -oE '^traffic: [0-9]+' "$scratch/said" | grep -oE '[0-9]+')
is "the others are sent" "$(rows "$scratch/trace.csv")" $((150 - left_out))
is "all of them answered" "$(column "$scratch/trace.csv" status | sort -u)" 200
check "the first block is common to all" test "$(column "$scratch/trace.csv" cache_n | sort -n | sed -n 20p)" -ge 25

# what it refuses
jq '.max_context_tokens = 5000' $quick >"$scratch/large.json"
matches "a profile that does not fit the replica is refused with both numbers" \
	"$(traffic "${one[@]}" --profile "$scratch/large.json" --csv "$scratch/x.csv" 2>&1)" '5000.*4096'
jq '.turns_max = "many"' $quick >"$scratch/bad.json"
matches "a malformed profile is named" "$(traffic "${one[@]}" --profile "$scratch/bad.json" --csv "$scratch/x.csv" 2>&1)" 'bad.json: "turns_max" is "many"'
printf '{"timestamp":0}\n' >"$scratch/bad.jsonl"
matches "a malformed trace line is named" "$(traffic "${one[@]}" --trace "$scratch/bad.jsonl" --csv "$scratch/x.csv" 2>&1)" 'bad.jsonl, line 1: "input_length"'
matches "a replica that is missing is named" \
	"$(traffic --url http://10.0.2.10:9999 --profile $quick --csv "$scratch/x.csv" 2>&1)" 'no replica answers at http://10.0.2.10:9999'
matches "a full disk is named, and what was measured is kept" \
	"$(in_host client bash -c "ulimit -f 1; exec '$build/tools/traffic' --speed 40 --url http://10.0.2.10:8001 --profile $quick --seed 3 --csv '$scratch/full.csv'" 2>&1)" \
	'cannot write .*full.csv: File too large; the [0-9]+ requests before are in it'
check "rows up to there" test "$(rows "$scratch/full.csv")" -ge 5

# a replica that dies in mid-run: the rest goes on, the failures are written down
(sleep 0.15; kill -9 "$second") &
traffic "${both[@]}" --profile $quick --csv "$scratch/killed.csv" --summary "$scratch/killed.json" >/dev/null
check "failures are counted" test "$(jq .errors "$scratch/killed.json")" -ge 1
is "and written down with a reason" "$(awk -F, 'NR > 1 && $8 == 0 && $NF == ""' "$scratch/killed.csv" | wc -l)" 0
check "the other replica's requests are answered" test "$(awk -F, '$8 == 200' "$scratch/killed.csv" | wc -l)" -ge 5
tools/lab exec client "$build/tools/traffic" "${one[@]}" --profile tools/profiles/standard.json --csv "$scratch/interrupted.csv" >/dev/null 2>"$scratch/said" &
client=$!
wait_until 20 test "$(rows "$scratch/interrupted.csv" 2>/dev/null || echo 0)" -ge 0
sleep 0.5
kill -INT "$client"
wait "$client"
is "an interrupt ends it" $? 130
matches "and says so" "$(cat "$scratch/said")" 'what was measured so far is kept'
kill "$first"
