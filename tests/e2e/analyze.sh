#!/bin/bash
# The analysis of runs made by hand, whose numbers can be worked out on paper.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

runs=$scratch/runs
mkdir "$runs"
header=run_id,policy,conversation_id,heavy,turn,t_start_s,t_end_s,status,replica,route_reason,latency_ms,est_prompt_tokens,cache_n,prompt_n,prompt_ms,predicted_n,predicted_ms,error

run() { # name policy seed ready rows...: a run; `ready` is the second of the new replica, or null
	local name=$1 policy=$2 seed=$3 ready=$4 row
	shift 4
	jq -n --arg name "$name" --arg policy "$policy" --argjson seed "$seed" --argjson ready "$ready" '{run_id: $name, policy: $policy, seed: $seed,
		repeat: 1, profile: "p.json", base_replicas: 2, scale_to: 3, scale_at_s: (if $ready then 9 else null end), new_replica_ready_s: $ready,
		scale_skipped: false, duration_s: 20, requests: 6, errors: 1}' >"$runs/$name.json"
	echo $header >"$runs/$name.csv"
	# conversation turn start replica reason latency cache_n prompt_n predicted_n error
	for row in "$@"; do
		awk -v OFS=, '{ print "r", "p", $1, 0, $2, $3, $3 + $6 / 1000, $10 == "" ? 200 : 503, $4, $5, $6, 1, $7, $8, 1, $9, 1, $10 }' <<<"$row"
	done >>"$runs/$name.csv"
}

# a: 100 of 200 and 90 of 100 cached in follow-up turns; c moves at once, d with the new replica; e fails
run one bounded 1 10 "c 1 0 llm-0 home 1000 0 100 10" "c 2 2 llm-1 overflow 3000 100 100 10" "d 1 3 llm-0 home 2000 0 50 10" \
	"d 2 11 llm-2 home 4000 90 10 10" "c 3 12 llm-1 home 5000 160 40 10" "e 1 13 llm-0 home-long 9000 0 0 0 gone"
run two llm-aware 1 10 "c 1 0 llm-0 home 1000 0 100 10" "c 2 2 llm-0 sticky 2000 190 10 10" "d 1 3 llm-1 home 2000 0 50 10" \
	"d 2 11 llm-1 home-long 1000 90 10 10" "c 3 12 llm-0 sticky-long 2000 195 5 10"
run three bounded 2 null "c 1 0 llm-0 home 1000 0 100 10" "c 2 2 llm-0 home 3000 50 50 10"
run four llm-aware 2 null "c 1 0 llm-0 home 1000 0 100 10" "c 2 2 llm-0 home 3000 50 50 10"

check "it runs" "$build/tools/analyze" --results-dir "$runs" --out-dir "$scratch/out"
row() { grep "^\"$1\"" "$scratch/out/per_run.csv" | cut -d, -f7-; }
is "columns, errors first" "$(head -n 1 "$scratch/out/per_run.csv" | cut -d, -f7-)" \
	"errors,hit_rate_percent,hit_rate_after_percent,moved_percent,redirects,sticky,long,p50_s,p95_s,imbalance,requests,duration_s"
# hit rate (100+90+160)/(200+100+200); after (90+160)/300; of c and d only d moved; redirects: c's second turn and d's;
# p50 of 1 2 3 4 5 s; before the new replica llm-0 worked 110+60, llm-1 110: 170 over the mean of 140
is "bounded, seed 1" "$(row one)" "1,70,83.3333,50,2,0,1,3,4.8,1.21429,6,20"
is "llm-aware, seed 1" "$(row two)" "0,95,95,0,0,2,2,2,2,1.36842,5,20"
is "without a new replica" "$(row three)" "0,50,,,0,0,0,2,2.9,2,2,20"
is "means with intervals" "$(grep '^| bounded |' "$scratch/out/summary.md" | head -n 1 | cut -d'|' -f3-5)" " 2 | 0.5 ± 6.4 | 60.0 ± 127.1 "
# differences of hit rate: 25 and 0
is "paired differences" "$(sed -n '/^## Against bounded/,$p' "$scratch/out/summary.md" | grep '^| llm-aware |' | cut -d'|' -f3-4)" " 2 | +12.5 ± 158.8 "
for picture in summary hit_rate_over_time latency_cdf work_per_replica; do
	is "$picture.png is a picture" "$(head -c 4 "$scratch/out/$picture.png" | tail -c 3)" PNG
done

refused() { # description expression arguments
	local description=$1 expression=$2
	shift 2
	"$build/tools/analyze" --out-dir "$scratch/refused" "$@" >"$scratch/said" 2>&1 && not_ok "$description: it ran"
	matches "$description" "$(cat "$scratch/said")" "$expression"
}
mkdir "$scratch/empty"
refused "a directory without runs" 'there is no run' --results-dir "$scratch/empty"
refused "a reference that is not there" 'mod-n' --results-dir "$runs" --reference mod-n
echo 'r,p,c,0,1,x,1,200,llm-0,home,1000,1,0,100,1,10,1,' >>"$runs/two.csv"
refused "a malformed row is named" 'two.csv, line 7: column t_start_s' --results-dir "$runs"
rm "$runs/two.csv"
refused "a CSV that is missing is named" 'two.csv: cannot be read' --results-dir "$runs"
echo '{"run_id":1}' >"$runs/two.json"
refused "a malformed JSON is named" 'two.json: the field "run_id"' --results-dir "$runs"
