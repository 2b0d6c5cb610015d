#!/bin/bash
# Experiments on the real data path: what is measured agrees with the simulation, answers are those of the replicas, evidence matches, runs
# are not repeated, mistakes are named.
# alone: it compares times.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

real=$scratch/real simulated=$scratch/simulated
model=(--slots 1 --slot-prompt-similarity 0 --speed 40 --id-in address)
slower=${WAIT_FACTOR:-1} # what happens in mid-run must not come after its end where all takes longer
experiment() { tools/experiment --no-analysis "$@" >"$scratch/said" 2>&1; }
column() { # file name
	sed 's/"[^"]*"/x/g' "$1" | awk -F, -v name="$2" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) c = i; next } { print $c }'
}
hit_rate() { # file: in tenths of a percent
	sed 's/"[^"]*"/x/g' "$1" | awk -F, 'NR > 1 && $5 > 1 { c += $13; p += $13 + $14 } END { printf "%d", 1000 * c / p }'
}

# Every request is a connection, so the last conversations' ends are seen.
if ! experiment --policy consistent --router haproxy:hash --router rotation "${model[@]}" --out "$real"; then
	note <"$scratch/said"
	bail "an experiment runs"
fi
is "a run for each" "$(basename -a "$real"/*.json | paste -sd ' ')" "consistent-s1-r1.json haproxy_hash-s1-r1.json rotation-s1-r1.json"
is "no errors" "$(jq -s 'map(.errors) | add' "$real"/*.json)" 0
is "all of the plan" "$(jq -s 'map(.requests) | unique | length' "$real"/*.json)" 1
is "fields of a run" "$(jq -r 'keys_unsorted | join(" ")' "$real/consistent-s1-r1.json")" \
	"run_id policy policy_params repeat seed profile base_replicas scale_to scale_at_s started_at new_replica_ready_s scale_skipped speed simulated duration_s requests errors router_state_at_end evidence"
is "for every request the replica that answered is the one of the router's own trace" \
	"$(jq -c '[.evidence.agree == .requests, .evidence.differ, .evidence.unpaired]' "$real/consistent-s1-r1.json")" "[true,0,0]"
is "with the router's reason" "$(column "$real/consistent-s1-r1.csv" route_reason | sort -u)" home
check "the simulation of the same" experiment --sim --policy consistent --slots 1 --slot-prompt-similarity 0 --out "$simulated"
for name in conversation_id replica; do column "$real/consistent-s1-r1.csv" $name >"$scratch/$name.real"; done
for name in conversation_id replica; do column "$simulated/consistent-s1-r1.csv" $name >"$scratch/$name.simulated"; done
paste "$scratch/conversation_id.simulated" "$scratch/replica.simulated" | sort -u >"$scratch/expected"
paste "$scratch/conversation_id.real" "$scratch/replica.real" | sort -u >"$scratch/got"
same "every conversation is served where the simulation says" "$scratch/got" "$scratch/expected"
difference=$(($(hit_rate "$real/consistent-s1-r1.csv") - $(hit_rate "$simulated/consistent-s1-r1.csv")))
check "hit rates agree within 2 points ($difference tenths)" test ${difference#-} -le 20

experiment --policy consistent --router rotation "${model[@]}" --out "$real"
is "runs that are there are not repeated" "$(grep -c 'is there already' "$scratch/said")" 2
experiment --policy consistent --seeds 2 --scale-to 4 --scale-at 4 "${model[@]}" --speed $((8 / slower)) --out "$real"
check "a new replica in mid-run is ready after it was started" \
	jq -e '.new_replica_ready_s > 4 and .scale_skipped == false and .errors == 0' "$real/consistent-s2-r1.json"
is "and on the ring at the end" "$(jq -r '.router_state_at_end.replicas[] | select(.name == "llm-3").state' "$real/consistent-s2-r1.json")" active
experiment --policy consistent --seeds 3 --kill 1@3 "${model[@]}" --speed $((40 / slower)) --out "$real"
check "a replica that is killed is an error in the file" jq -e '.errors > 0' "$real/consistent-s3-r1.json"

# ids and sizes in headers, connections kept alive: handed over from replica to replica. One of the plan's pauses is as long as a replica keeps an
# idle connection: where it closes first, the client sends its request once more, on a new one.
handed() { jq ".router_state_at_end.counters.$1" "$real/llm-aware-s4-r1.json"; }
if experiment --policy llm-aware --seeds 4 "${model[@]}" --id-in header --speed 20 --out "$real"; then
	is "header: no errors" "$(jq .errors "$real/llm-aware-s4-r1.json")" 0
	is "header: for every request the replica that answered is the router's" \
		"$(jq -c '[.evidence.agree == .requests, .evidence.differ, .evidence.unpaired]' "$real/llm-aware-s4-r1.json")" "[true,0,0]"
	is "header: every request was handed over or stayed" "$(($(handed note_request_handed) + $(handed note_request_stayed)))" \
		"$(jq '.requests + .evidence.repeated' "$real/llm-aware-s4-r1.json")"
	check "header: connections serve several requests" test "$(handed note_connection_opened)" -lt "$(jq .requests "$real/llm-aware-s4-r1.json")"
elif grep -qE 'kernel|bpf_sk_assign_tcp_reqsk' "$scratch/said"; then
	skip "the kernel cannot take connections over" "ids in headers"
else
	note <"$scratch/said"
	not_ok "an experiment with ids in headers runs"
fi

# evidence: of two decisions on a request that the client sent twice, the one that failed is left out, and no other is
reasons() { # lines of the trace
	head -n 3 "$real/consistent-s1-r1.csv" | sed -e '2s/.*/r,p,twice,0,1,0,1,200,llm-1,,1,1,0,1,1,1,1,/' -e '3s/.*/r,p,twice,0,2,2,3,200,llm-1,,1,1,0,1,1,1,1,/' >"$scratch/twice.csv"
	printf '%s\n' "$@" >"$scratch/twice.jsonl"
	"$build/tools/route-reasons" "$scratch/twice.csv" "$scratch/twice.jsonl" | jq -c '[.agree, .differ, .unpaired, .repeated]'
}
twice=0x$(printf twice | b2sum -l 64 | cut -c1-16)
event() { # kind number replica status
	jq -nc --arg event "$1" --argjson number "$2" --arg replica "$3" --arg status "${4-}" --arg hash "$twice" \
		'{event: $event, number: $number, hash: $hash, replica: $replica, reason: "home", status: $status}'
}
first=("$(event decision 1 llm-1)" "$(event completion 1 llm-1 success)")
is "evidence: a request that failed and was sent again counts once" \
	"$(reasons "${first[@]}" "$(event decision 2 llm-0)" "$(event completion 2 llm-0 failed)" "$(event decision 3 llm-1)")" '[2,0,0,1]'
is "evidence: one that failed is not left out where none was repeated" \
	"$(reasons "${first[@]}" "$(event decision 2 llm-0)" "$(event completion 2 llm-0 failed)")" '[1,1,0,0]'
is "evidence: a decision too many is not explained away" "$(reasons "${first[@]}" "$(event decision 2 llm-1)" "$(event decision 3 llm-1)")" '[0,0,2,0]'

# answers through warmpath, and the replica's word against the router's
lab_up --replicas 3 --servers none
for index in 0 1 2; do
	tools/lab exec llm-$index "$build/tools/simreplica" --host :: --name llm-$index --speed 40 &
	disown
done
for index in 0 1 2; do wait_until 10 in_host client curl -sf "10.0.2.1$index:8001/health"; done
agent_up --services web
quick=tools/profiles/quick.json
in_host client "$build/tools/traffic" --url 'http://[fd00:a::]:8000' --id-in address --profile $quick --speed 40 --csv "$scratch/through.csv" \
	--answers "$scratch/through" >"$scratch/output" 2>&1
in_host client "$build/tools/traffic" --url http://10.0.2.10:8001 --profile $quick --speed 40 --csv "$scratch/direct.csv" --answers "$scratch/direct" >"$scratch/output" 2>&1
sort "$scratch/direct" >"$scratch/direct.sorted"
sort "$scratch/through" >"$scratch/through.sorted"
same "answers through warmpath are those of the replicas, byte for byte" "$scratch/through.sorted" "$scratch/direct.sorted"
paste <(column "$scratch/through.csv" conversation_id) <(column "$scratch/through.csv" replica) | sort -u >"$scratch/got"
cut -f1 "$scratch/got" | while read -r id; do printf '%s\t%s\n' "$id" "$(warmpath route --json "$id" | jq -r .home)"; done >"$scratch/expected"
same "the replica that says it answered is the one that the router names" "$scratch/got" "$scratch/expected"

refused() { # description expression arguments
	local description=$1 expression=$2
	shift 2
	if experiment --out "$scratch/refused" "$@"; then not_ok "$description: it ran"; else matches "$description" "$(cat "$scratch/said")" "$expression"; fi
}
refused "an unknown policy is named" '"fastest".*llm-aware' --policy fastest
refused "an unknown setting is named" '"colour=red".*epsilon' --policy bounded:colour=red
refused "an unknown router is named" 'haproxy:leastconn' --router haproxy:fastest
refused "a profile that is not there" 'there is no profile tools/profiles/huge.json' --profile huge --policy bounded
refused "seeds that are none" '--seeds "a"' --seeds a --policy bounded
refused "a wrong value is named by warmpathd" 'epsilon' --policy bounded:epsilon=-1 "${model[@]}"
refused "other routers are not simulated" 'haproxy:hash' --sim --router haproxy:hash
jq '.max_context_tokens = 5000' $quick >"$scratch/large.json"
refused "a profile that does not fit, with both numbers" '5000.*4096' --profile "$scratch/large.json" --policy consistent "${model[@]}"
