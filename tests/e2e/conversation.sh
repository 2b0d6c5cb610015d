#!/bin/bash
# Why did this conversation move? `warmpath conversation` and `warmpath watch`, while replicas come and go, and over a restart of the agent.
# shellcheck disable=SC2016  # words of other shells, jq and Markdown stand in single quotes
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

turn() { # id prompt-tokens: prints who answered
	echo "$1" | datagrams client --prompt-tokens "$2" --max-tokens 48 8000 10.9.9.9 | awk 'NR == 1 { print $2 }'
}

conversation() { # id filter: a value of what is known of it
	warmpath conversation "$1" --service chat --json | jq -r "$2"
}

seen() { # filter: an event of that kind was watched
	jq -e -n "[inputs | select($1)] | length > 0" <"$scratch/watched"
}

lab_up --replicas 3 --clients 1
agent_up --policy llm-aware
"$build/warmpath" watch --service chat >"$scratch/watched" &
watcher=$!
"$build/warmpath" watch --service chat --moved --text >"$scratch/moved" &
moves=$!

is "nothing is known of a conversation that has not been" "$(conversation talk '[.placement, (.decisions | length), (.open | length)] | tostring')" '[null,0,0]'
home=$(conversation talk .home)
# the watchers are there when they have seen something
wait_until 10 eval 'turn warm-up 10 >/dev/null; seen "true"'
turn talk 500 >/dev/null
check "its completion is told" wait_until 5 seen '.event == "completion" and .id == "talk" and .status == "success"'
is "placement and tokens" "$(conversation talk '"\(.placement.replica) \(.placement.prompt_tokens) \(.placement.counts)"')" "$home 500 true"
is "the last decision" "$(conversation talk '.decisions[0] | "\(.replica) \(.reason) \(.status) \(.moved_from)"')" "$home home success null"

warmpath replica drain "$home" --service chat >/dev/null
second=$(turn talk 900)
check "the change is told, with what it moves" wait_until 5 \
	seen ".event == \"change\" and .change == \"draining\" and .replica == \"$home\" and .moved > 0.3 and .on_ring == 2"
is "drained: it moved, and why" "$(conversation talk '.decisions[0] | "\(.moved_from) \(.move_cause) \(.move_reason)"')" \
	"$home left $home is draining"
matches "the same in words" "$(warmpath conversation talk --service chat)" "$second  home, 900\\+48 tokens  MOVED from $home: $home is draining"
matches "explained by its numbers" "$(warmpath conversation show talk --service chat --explain --count 1)" 'placement memory: nothing'
warmpath replica undrain "$home" --service chat >/dev/null
is "back on the ring: it stays where its cache is" "$(turn talk 1000)" "$second"
warmpath replica remove "$second" --service chat >/dev/null
turn talk 1100 >/dev/null
is "removed: it moved, and why" "$(conversation talk '.decisions[0] | "\(.moved_from) \(.move_reason)"')" "$second $second has left the service"
is "all of its decisions, the newest first" "$(conversation talk '[.decisions[].prompt_tokens] | tostring')" '[1100,1000,900,500]'
wait_until 5 eval '[ "$(grep -c MOVED "$scratch/moved")" = 2 ]'
is "watch --moved shows just the moves" "$(grep -c . "$scratch/moved"): $(grep -c ' talk -> .*MOVED from' "$scratch/moved")" "2: 2"

is "forgotten" "$(warmpath conversation forget talk --service chat --json | jq -r '"\(.placement.prompt_tokens) \(.decisions)"')" "1100 4"
is "it has no placement any more" "$(conversation talk '[.placement, (.decisions | length)] | tostring')" '[null,0]'
is "forgotten twice" "$(warmpath conversation forget talk --service chat 2>&1)" "warmpath: nothing is remembered of conversation talk"
is "not an id" "$(warmpath conversation 'a b' --service chat 2>&1)" \
	'warmpath: "a b" is not an id: 1 to 128 letters, digits and . _ : -'

# --- the live ring --------------------------------------------------------------------------------------------

# `ring show` builds the ring again from its members; the agent's shares are of the ring that the kernel has
same_shares() { # description service
	is "$1" "$(warmpath ring show --service "$2" --json | jq -c '[.replicas[] | [.name, .state, (.share * 1e9 | round)]] | sort')" \
		"$(warmpath replica list --service "$2" --json | jq -c '[.replicas[] | [.name, .state, (.share * 1e9 | round)]] | sort')"
}
warmpath replica weight "$home" 2.5 --service chat >/dev/null
warmpath replica drain llm-2 --service web >/dev/null
same_shares "the live ring, with a weight" chat
same_shares "and with one that drains" web
warmpath replica weight "$home" 1 --service chat >/dev/null
third=$(warmpath ring show --service chat --diff "+$second" --json | jq '.moved * 1e9 | round')
warmpath replica add "$second" --service chat --address 10.0.2.10 --address fd00:2::10 --port 9 >/dev/null
check "what --diff said is what the change moved" wait_until 5 \
	seen ".event == \"change\" and .change == \"added\" and .replica == \"$second\" and (.moved * 1e9 | round) == $third"
warmpath replica remove "$second" --service chat >/dev/null
check "drawn" warmpath ring plot --service web --output "$scratch/live.png"
matches "studied, with the live ring's own spread" "$(warmpath ring study --service web --rings 5 --vnodes 100)" \
	'ring of service web at present \(100 virtual nodes\): max/min 1\.[0-9]+'

# --- slow start -----------------------------------------------------------------------------------------------

tools/lab config --policy llm-aware --slow-start 2 >"$(tools/lab path run)/agent.yaml"
warmpath reload >/dev/null
warmpath replica add slow --service chat --address 10.0.2.10 --address fd00:2::10 --port 9 >/dev/null
check "each step of a slow start is told" wait_until 10 \
	seen '.event == "change" and .replica == "slow" and .change == "slow-start" and .slow_start > 0.3 and .slow_start < 1 and .moved > 0'
check "until it has its whole share" wait_until 10 seen '.replica == "slow" and .change == "slow-start" and .slow_start == 1'
same_shares "the ring is shown as it is then" chat
tools/lab config --policy llm-aware >"$(tools/lab path run)/agent.yaml"
warmpath reload >/dev/null

# --- an open request -----------------------------------------------------------------------------------------

# a service on this side that does not answer: the request stays open
warmpath replica add silent --service chat --address 10.0.2.10 --address fd00:2::10 --port 9 >/dev/null
quiet=$(ids 200 | homes "silent,$(warmpath replica list --service chat --json | jq -r '[.replicas[] | select(.state == "active" and .name != "silent").name] | join(",")')" | awk '$2 == "silent" {print $1; exit}')
echo "$quiet" | datagrams client --timeout 200 --prompt-tokens 300 --max-tokens 20 8000 10.9.9.9 >/dev/null 2>&1
is "an open request" "$(conversation "$quiet" '.open[0] | "\(.replica) \(.prompt_tokens) \(.charge)"')" "silent 300 320"
matches "in words" "$(warmpath conversation "$quiet" --service chat)" 'request [0-9]+ on silent for .* 300 prompt tokens, 320 tokens charged, from 10.0.1.10:'

# --- the agent comes and goes --------------------------------------------------------------------------------

tools/lab agent stop >/dev/null 2>&1
tools/lab agent start >/dev/null 2>&1
check "watch goes on after a restart of the agent" wait_until 10 eval 'turn after-restart 10 >/dev/null; seen ".id == \"after-restart\""'
kill -INT "$watcher" "$moves"
check "interrupted, watch ends" wait_until 5 eval '! kill -0 "$watcher" && ! kill -0 "$moves"'
wait "$watcher"
is "and ends well" $? 0

# filtered by reason: full conversations on one replica overflow
"$build/warmpath" watch --service chat --reason overflow --count 1 --json >"$scratch/overflow" &
watcher=$!
overflows() {
	ids 60 storm | datagrams client --prompt-tokens 500 8000 10.9.9.9 >/dev/null
	[ -s "$scratch/overflow" ]
}
check "filtered by reason: one was seen, and then it ends" wait_until 20 overflows
is "and it has that reason" "$(jq -r .reason "$scratch/overflow")" overflow
kill "$watcher" 2>/dev/null

is "there is no such reason" "$(warmpath watch --reason hunger 2>&1 | head -n 1)" \
	'warmpath watch: there is no reason "hunger"; there are: no-replica, round-robin, home, overflow, fallback-least-loaded, home-long, sticky, sticky-long, least-loaded, pinned'
tools/lab agent stop >/dev/null 2>&1
timeout 10 "$build/warmpath" watch >/dev/null 2>"$scratch/error"
is "no agent: exit code 3" $? 3
