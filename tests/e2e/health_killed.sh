#!/bin/bash
# A replica is killed under load, and another one vanishes without a word: traffic leaves them, only their own requests fail; they come
# back cold, slowly, and in a new life. When all are gone, requests get a 503, and the first to return takes them at once.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

speed=20
lab_up --replicas 3 --servers none
run=$(tools/lab path run)

declare -A server
replica_start() { # index
	tools/lab exec "llm-$1" "$build/tools/simreplica" --host :: --port 8001 --name "llm-$1" --speed $speed --model rand-25m \
		--ctx-size 65536 >"$scratch/llm-$1.log" 2>&1 &
	server[$1]=$!
	disown
}
for index in 0 1 2; do replica_start $index; done
slow_start=$((3 * ${WAIT_FACTOR:-1}))
tools/lab config --services api --health http --slow-start $slow_start >"$run/agent.yaml"
tools/lab handoff start >"$scratch/output" 2>&1 || bail "warmpathd starts on the replicas"
tools/lab agent start >"$scratch/output" 2>&1 || bail "warmpathd starts"

field() { # name field
	warmpath replica list --json | jq -r --arg name "$1" ".replicas[] | select(.name == \$name) | .$2"
}
state_is() { [ "$(field "$1" state)" = "$2" ]; }
health_is() { [ "$(field "$1" health.state)" = "$2" ]; }
all_up() { health_is llm-0 up && health_is llm-1 up && health_is llm-2 up; }
check "the replicas are found well" wait_until 10 all_up

# --- what goes through it: 30 conversations, each request written down ---------------------------------------

cat >"$scratch/profile.json" <<'JSON'
{ "conversations": 30, "heavy_fraction": 0.0, "turns_min": 5000, "turns_max": 5000, "arrival_window_s": 5,
  "think_mean_s": 2, "think_max_s": 4, "heavy_document_words": 50, "system_prompt_words": 20, "max_tokens": 8,
  "max_context_tokens": 60000, "request_timeout_s": 40 }
JSON
began=0 traffic=0
model_now() { awk -v from="$began" -v to="$(date +%s.%N)" -v speed=$speed 'BEGIN { printf "%.3f", (to - from) * speed }'; }
traffic_begins() { # name
	began=$(date +%s.%N)
	tools/lab exec client "$build/tools/traffic" --url http://10.9.9.8:8000 --profile "$scratch/profile.json" --speed $speed \
		--csv "$scratch/$1.csv" --connections fresh --no-context-check >"$scratch/$1.said" 2>&1 &
	traffic=$!
}
traffic_ends() {
	kill -TERM $traffic
	wait $traffic
}
# conversation started ended status replica of each request
requests() { awk -F, 'NR > 1 { print $3, $6, $7, $8, ($9 == "" ? "-" : $9) }' "$scratch/$1.csv"; }
for conversation in $(seq -f 's1-c%03g' 0 29); do
	echo "$conversation $(warmpath route "$conversation" --service api --json | jq -r .home)"
done >"$scratch/homes"
seconds() { awk -v a="$1" -v b="$2" -v speed=$speed 'BEGIN { printf "%.2f", (b - a) / speed }'; }

# figures NAME REPLICA GONE LEFT BACK: what the requests say about the replica's absence (model time)
figures() {
	requests "$1" >"$scratch/requests"
	awk -v name="$2" -v gone="$3" -v left="$4" -v back="$5" -v slack=$speed '
		NR == FNR { home[$1] = $2; next }
		{ all++; failed = $4 != 200 }
		failed && home[$1] != name { others++ }
		failed && home[$1] == name { own++; if ($2 > last) last = $2 }
		failed && $2 + slack < gone { early++ }
		failed && $2 > left + slack { late++ }
		!failed && home[$1] == name && $2 > left && $3 < back && $5 != name { taken++ }
		!failed && $2 > left + slack && $3 < back && $5 == name { astray++ }
		END { printf "%d %d %d %d %d %d %d %.3f\n", all, own, others, early, late, taken, astray, last }
	' "$scratch/homes" "$scratch/requests"
}

# moves REPLICA FROM: conversations that changed replica more than once, or to another one than REPLICA, from that moment on
moves() {
	awk -v name="$1" -v from="$2" '
		$4 == 200 && $2 > from {
			if ($1 in at && at[$1] != $5 && (++changed[$1] > 1 || $5 != name)) wrong[$1]
			at[$1] = $5
		}
		END { for (id in wrong) print id; for (id in changed) print "moved", id >"/dev/stderr" }' "$scratch/requests" 2>"$scratch/moved"
}

# absence NAME REPLICA HOW: after `gone` has been set by taking the replica away
absence() {
	check "$2, $3: is found down" wait_until 20 state_is "$2" down
	left=$(model_now)
	matches "$2, $3: the reason is said" "$(field "$2" health.failure)" "$4"
	matches "$2, $3: also by status" "$(warmpath status)" "replica $2 of service api is down since .*: "
	sleep 1.5
}

# what is shown while it comes back: its shares, one after the other
returning() { # replica
	local share
	wait_until 20 state_is "$1" active
	while share=$(field "$1" slow_start) && [ "${share%.0}" != 1 ]; do
		echo "$share"
		sleep 0.05
	done | uniq >"$scratch/shares"
}

# --- killed ----------------------------------------------------------------------------------------------------

traffic_begins killed
sleep 1.5
life=$(field llm-1 incarnation)
gone=$(model_now)
kill -KILL "${server[1]}"
absence killed llm-1 killed 'no connection: Connection refused'
back=$(model_now)
replica_start 1
returning llm-1
check "llm-1, killed: comes back in a new life" test "$(field llm-1 incarnation)" -gt "$life"
check "llm-1, killed: its share has risen in steps" test "$(wc -l <"$scratch/shares")" -ge 2
is "llm-1, killed: and never fallen" "$(cat "$scratch/shares")" "$(sort -n "$scratch/shares")"
sleep 1
traffic_ends
read -r all own others early late taken astray last < <(figures killed llm-1 "$gone" "$left" "$back")
note "killed: off the ring after $(seconds "$gone" "$left") s (configured: 2 checks of 0.4 s, time-out 0.3 s);" \
	"$own of $all requests failed, the last one begun $(seconds "$gone" "$last") s after it"
is "llm-1, killed: no request at home elsewhere failed" "$others" 0
is "llm-1, killed: none failed before" "$early" 0
is "llm-1, killed: none failed after it was off the ring" "$late" 0
check "llm-1, killed: its conversations went on elsewhere ($taken requests)" test "$taken" -gt 0
is "llm-1, killed: nothing was answered by it meanwhile" "$astray" 0
is "llm-1, killed: conversations moved back to it once, and no others moved" "$(moves llm-1 "$(awk -v b="$left" 'BEGIN {print b + 10}')")" ""
note "killed: $(grep -c moved "$scratch/moved") conversations moved back during slow start of $slow_start s, shares seen: $(tr '\n' ' ' <"$scratch/shares")"

# --- black-holed -------------------------------------------------------------------------------------------------

warmpath policy set --service api name=llm-aware >/dev/null
own_id=$(awk '$2 == "llm-2" {print $1; exit}' "$scratch/homes")
ask() { # id
	in_host client curl -s -m 10 -o /dev/null -w '%{http_code}' -H "x-conversation-id: $1" -H 'x-prompt-tokens: 900' \
		-d '{"messages":[{"role":"user","content":"how are you"}],"max_tokens":2}' http://10.9.9.8:8000/v1/chat/completions
}
placed() { warmpath explain "$1" --service api --json | jq -r '.decision.placement.replica // "nowhere"'; }
is "a request is answered" "$(ask "$own_id")" 200
is "and remembered where it was served" "$(placed "$own_id")" llm-2
warmpath policy set --service api name=consistent >/dev/null

black_hole() { ip -n "$WARMPATH_LAB-switch" link set r"$1" nomaster; }
white_hole() { ip -n "$WARMPATH_LAB-switch" link set r"$1" master replicas; }
traffic_begins vanished
sleep 1.5
life=$(field llm-2 incarnation)
gone=$(model_now)
black_hole 2
absence vanished llm-2 vanished 'no (connection|answer) within 0.3 s|No route to host'
sleep 2 # the requests that were open are given up by their clients
back=$(model_now)
white_hole 2
returning llm-2
sleep 0.5
traffic_ends
read -r all own others early late taken astray last < <(figures vanished llm-2 "$gone" "$left" "$back")
note "vanished: off the ring after $(seconds "$gone" "$left") s; $own of $all requests failed (given up by their clients after 2 s)," \
	"the last one begun $(seconds "$gone" "$last") s after it"
is "llm-2, vanished: no request at home elsewhere failed" "$others" 0
is "llm-2, vanished: none failed after it was off the ring" "$late" 0
check "llm-2, vanished: its conversations went on elsewhere ($taken requests)" test "$taken" -gt 0
check "llm-2, vanished: comes back in a new life" test "$(field llm-2 incarnation)" -gt "$life"
warmpath policy set --service api name=llm-aware >/dev/null
is "llm-2, vanished: what was remembered of it is void" "$(placed "$own_id")" nowhere
warmpath policy set --service api name=consistent >/dev/null

# --- all gone ----------------------------------------------------------------------------------------------------

for index in 0 1 2; do kill -KILL "${server[$index]}"; done
all_down() { state_is llm-0 down && state_is llm-1 down && state_is llm-2 down; }
check "all are found down" wait_until 20 all_down
is "requests get a 503 then" "$(ask "$own_id")" 503
replica_start 0
check "the first to return is on the ring with its first good check" wait_until 20 state_is llm-0 active
is "with its whole share" "$(field llm-0 "slow_start * 100")" 100
is "and takes all" "$(ask "$own_id")" 200

# --- no checks, only what users meet -----------------------------------------------------------------------------

replica_start 1
replica_start 2
check "all are up again" wait_until 20 all_up
tools/lab config --services api | sed 's/passive_failures: none/passive_failures: 1/' >"$run/agent.yaml"
warmpath reload >/dev/null
is "without checks their health is not known" "$(field llm-2 health.state)" unchecked
kill -KILL "${server[2]}"
ask_until_down() {
	ask "$own_id" >/dev/null
	state_is llm-2 down
}
check "a replica that refuses users goes down" wait_until 20 ask_until_down
matches "and it is said why" "$(field llm-2 health.failure)" 'connections of users in a row refused or reset'
is "its conversations are answered by others" "$(ask "$own_id")" 200
