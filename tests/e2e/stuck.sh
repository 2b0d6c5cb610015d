#!/bin/bash
# One replica ten times slower than the others: how far it drags the conversations down under each policy. The same conversations under
# each; their turns, waiting times and shares are compared with each other, never with the clock.
# alone: it compares times.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

conversations=24 seconds=5 think=60 pace=4 stuck=llm-1

lab_up --replicas 3 --clients 1 --servers none
run=$(tools/lab path run)
agent_up --policy consistent --services chat

serve() { # name milliseconds-for-each-request
	if [ -f "$run/$1.pid" ]; then
		kill "$(cat "$run/$1.pid")"
	fi
	in_host "$1" "$build/tools/datagram-server" --name "$1" --port 8001 --pace "$2" --daemon "$run/$1.pid"
}

talk() { # file
	in_host client "$build/tests/e2e/conversations" --count $conversations --seconds $seconds --think $think \
		--quiet-after 5000 8000 10.9.9.9 >"$1"
}

# summary FILE: turns and median wait of conversations at home at the stuck replica, the same of all others, and the stuck one's share
summary() {
	awk -v stuck=$stuck '
		NR == FNR { home[$1] = $2; next }
		$1 == "total" { next }
		{
			at = home[$1] == stuck ? "stuck" : "other"
			for (i = 2; i <= NF; i++) {
				split($i, pair, "=")
				if (pair[1] == "turns") { turns[at] += pair[2]; all += pair[2] }
				if (pair[1] == "median_ms") wait[at] += pair[2]
				if (pair[1] == stuck) served += pair[2]
			}
			count[at]++
		}
		END {
			printf "%d %d %.1f %.1f %.1f\n", turns["stuck"] / count["stuck"], turns["other"] / count["other"],
				wait["stuck"] / count["stuck"], wait["other"] / count["other"], 100 * served / all
		}' "$scratch/homes" "$1"
}

for name in llm-0 llm-1 llm-2; do serve $name $pace; done
for number in $(seq 1 $conversations); do
	echo "talk-$number $(warmpath route "talk-$number" --service chat --json | jq -r .home)"
done >"$scratch/homes"
talk "$scratch/healthy"
read -r _ other_before _ wait_before share_before < <(summary "$scratch/healthy")
note "all well, consistent: turns of one conversation $other_before, median wait $wait_before ms, $stuck serves $share_before %"

serve $stuck $((pace * 10))
declare -A at_stuck others wait_others share
for policy in consistent bounded llm-aware; do
	warmpath policy set --service chat name=$policy >/dev/null
	talk "$scratch/$policy"
	read -r at_stuck[$policy] others[$policy] wait_stuck wait_others[$policy] share[$policy] < <(summary "$scratch/$policy")
	note "$stuck 10x slower, $policy: turns of one conversation at home there ${at_stuck[$policy]}, elsewhere ${others[$policy]};" \
		"median wait $wait_stuck and ${wait_others[$policy]} ms; $stuck serves ${share[$policy]} % of all"
	is "$policy: every turn is answered" "$(sed -n 's/^total .*lost=//p' "$scratch/$policy")" 0
done

less() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a < b) }'; }

for policy in consistent bounded llm-aware; do
	# the stuck one's overflow is at most a third more for the others
	check "$policy: conversations at home elsewhere go on as before (${others[$policy]} of $other_before turns)" \
		less "$((other_before * 6 / 10))" "${others[$policy]}"
done
for policy in bounded llm-aware; do
	check "$policy: those at home at the stuck replica get on with it (${at_stuck[$policy]} turns, consistent ${at_stuck[consistent]})" \
		less "$((at_stuck[consistent] * 2))" "${at_stuck[$policy]}"
	check "$policy: the stuck replica is left with a smaller share (${share[$policy]} %, all well $share_before %)" \
		less "${share[$policy]}" "$share_before"
done
nothing_in_flight() {
	[ "$(warmpath replica list --service chat --json | jq '[.replicas[].requests] | add')" = 0 ]
}
check "no load is left behind" wait_until 5 nothing_in_flight
