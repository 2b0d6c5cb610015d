#!/bin/bash
# The simulation: deterministic, moves the conversations that the ring says, releases every load, names what is wrong.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

standard=tools/profiles/standard.json
simulate() { "$build/tools/simulate" "$@"; }
rows() { tail -n +2 "$1" | sed 's/"[^"]*"/x/'; }

policies=(-P round-robin -P mod-n -P consistent -P bounded -P "bounded:load_metric=tokens,epsilon=0.5" -P llm-aware -P llm-aware:placement_memory=false)
simulate --profile $standard "${policies[@]}" --seeds 1-2 --out "$scratch/a" >"$scratch/said" || bail "simulate runs"
simulate --profile $standard "${policies[@]}" --seeds 1-2 --out "$scratch/b" >/dev/null
is "a run for each policy and seed" "$(find "$scratch/a" -name '*.csv' | wc -l)" 14
is "run again it is the same, byte for byte" "$(cd "$scratch/a" && sha256sum ./*.csv)" "$(cd "$scratch/b" && sha256sum ./*.csv)"
is "the plan is the same under every policy" \
	"$(for run in "$scratch"/a/*-s1-r1.csv; do rows "$run" | cut -d, -f3,5,12 | sort | sha256sum; done | sort -u | wc -l)" 1
is "no load is left at the end" "$(jq -s '[.[].router_state_at_end.loads[]] | add' "$scratch"/a/*.json)" 0
is "no errors" "$(jq -s '[.[].errors] | add' "$scratch"/a/*.json)" 0
is "what was set is written down" "$(jq -r '.policy_params | "\(.epsilon) \(.load_metric)"' "$scratch/a/bounded_load_metric=tokens_epsilon=0.5-s1-r1.json")" "0.5 tokens"
is "round-robin goes round" "$(rows "$scratch/a/round-robin-s1-r1.csv" | sort -t, -k6n | cut -d, -f9 | sort | uniq -c | awk '{ print $1 }' | sort -u | awk 'NR == 1 { a = $1 } { b = $1 } END { print (b - a <= 1) }')" 1
is "consistent keeps every conversation where it is" \
	"$(rows "$scratch/a/consistent-s1-r1.csv" | cut -d, -f3,9 | sort -u | wc -l)" 50
simulate --profile $standard "${policies[@]}" --seeds 1-3 --out "$scratch/a" >"$scratch/said"
is "runs that are there are not repeated" "$(grep -c 'is there already' "$scratch/said")" 14
is "the others are" "$(find "$scratch/a" -name '*.csv' | wc -l)" 21

# 3 -> 4 replicas when every conversation has turns before and after: the published numbers of conversations that move
moved() { # policy, seed: conversations whose replica differs after the scale-up
	rows "$scratch/scaled/$1-s$2-r1.csv" | awk -F, '$6 < 41.2 { old[$3] = $9 } $6 >= 41.2 && !($3 in new) { new[$3] = $9 }
		END { for (c in old) if (new[c] != old[c]) n++; print n }'
}
simulate --profile $standard -P consistent -P mod-n --seeds 1,2,42 --scale-to 4 --scale-at 40 --out "$scratch/scaled" >/dev/null
is "consistent moves 17, 14, 14 of 50 conversations" "$(for seed in 1 2 42; do moved consistent $seed; done | paste -sd ' ')" "17 14 14"
is "mod-n moves 40, 41, 38" "$(for seed in 1 2 42; do moved mod-n $seed; done | paste -sd ' ')" "40 41 38"
is "when the new replica was ready" "$(jq .new_replica_ready_s "$scratch/scaled/mod-n-s1-r1.json")" 41.2
simulate --profile tools/profiles/quick.json -P bounded --scale-to 4 --scale-at 1000 --out "$scratch/late" >/dev/null
is "a scale-up after the end is skipped" "$(jq -c '[.scale_skipped, .new_replica_ready_s]' "$scratch/late/bounded-s1-r1.json")" '[true,null]'

simulate --profile $standard -P llm-aware --kill 1@40 --drain 2@60 --out "$scratch/killed" >/dev/null
run=$scratch/killed/llm-aware-s1-r1
check "a replica that dies fails what it had" test "$(jq .errors "$run.json")" -ge 1
is "after it is known nothing goes there" "$(rows "$run.csv" | awk -F, '$6 > 42 && $9 == "llm-1"' | wc -l)" 0
is "nor to one that is drained" "$(rows "$run.csv" | awk -F, '$6 > 60 && $9 == "llm-2"' | wc -l)" 0
is "no load is left" "$(jq -c .router_state_at_end.loads "$run.json")" '{"llm-0":0}'
jq '.request_timeout_s = 8' $standard >"$scratch/impatient.json"
simulate --profile "$scratch/impatient.json" -P bounded --out "$scratch/impatient" >/dev/null
check "impatient clients" test "$(grep -c ',timeout$' "$scratch/impatient/bounded-s1-r1.csv")" -ge 10
is "leave no load behind" "$(jq '[.router_state_at_end.loads[]] | add' "$scratch/impatient/bounded-s1-r1.json")" 0

simulate --trace tests/data/mooncake-conversation-excerpt.jsonl --size-scale 0.1 --ctx-size 8192 --answer-tokens 2000 --replicas 4 -P llm-aware --out "$scratch/trace" >/dev/null 2>"$scratch/said"
left_out=$(grep -oE '[0-9]+ of the trace' "$scratch/said" | cut -d' ' -f1)
is "a trace's requests" "$(jq .requests "$scratch/trace/llm-aware-s1-r1.json")" $((150 - ${left_out:-0}))
matches "how the cost grows" "$(simulate --profile $standard -P consistent --growth 1)" '^ +1 +1000 +1[0-9]{4} '

refused() { # description, expression, arguments: simulate fails and says so
	local description=$1 expression=$2
	shift 2
	simulate --out "$scratch/refused" "$@" >"$scratch/said" 2>&1 && not_ok "$description: it ran"
	matches "$description" "$(cat "$scratch/said")" "$expression"
}
refused "an unknown policy is named" '"fastest".*llm-aware' --profile $standard -P fastest
refused "an unknown setting is named" 'colour' --profile $standard -P bounded:colour=red
refused "a wrong value is named" 'epsilon' --profile $standard -P bounded:epsilon=-1
refused "seeds that are none" '--seeds "1-x"' --profile $standard -P bounded --seeds 1-x
refused "fewer replicas to scale to" '--scale-to 3' --profile $standard -P bounded --scale-to 3 --scale-at 5
refused "a context that is too small, with both numbers" '4000.*4000' --profile $standard -P bounded --ctx-size 4000
refused "a replica that is not there" '--kill 7' --profile $standard -P bounded --kill 7@3
matches "a full disk is named" "$(ulimit -f 40; simulate --profile $standard -P bounded --seeds 1-2 --out "$scratch/full" 2>&1)" \
	'cannot write .*bounded-s1-r1.csv: File too large'
