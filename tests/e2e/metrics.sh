#!/bin/bash
# What Prometheus gets: the format, the numbers, what clients may and may not do; the list in docs/ and the dashboard in deploy/ are of
# what there is.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

lab_up --replicas 3
run=$(tools/lab path run)
configure() { tools/lab config --services chat,api --health http --metrics '"127.0.0.1", "::1"' --datapath-time "$@"; }
configure >"$run/agent.yaml"
tools/lab handoff start >"$scratch/output" 2>&1 || bail "warmpathd starts on the replicas"
tools/lab agent start >"$scratch/output" 2>&1 || bail "warmpathd starts"

get() { in_host router curl -s -m 5 "$@"; }
status() { in_host router curl -s -m 5 -o /dev/null -w '%{http_code}' "$@"; }
scrape() {
	sleep 1.05 # the text is made once a second
	get http://127.0.0.1:9798/metrics >"$scratch/metrics"
}
value() { # name labels as they stand
	grep -F "$1${2:+{$2\}} " "$scratch/metrics" | sed 's/.* //'
}

# --- the format ------------------------------------------------------------------------------------------------

for id in $(seq 1 12); do
	in_host client curl -s -o /dev/null -H "x-conversation-id: conv-$id" http://10.9.9.8:8000/
done
ids 60 | datagrams client 8000 10.9.9.9 >"$scratch/ledger"
checked() { scrape && [ "$(grep -c '^warmpath_replica_health{.*} 1$' "$scratch/metrics")" = 6 ]; }
check "all replicas are found well" wait_until 10 checked
if command -v promtool >/dev/null; then
	check "promtool has no complaint" promtool check metrics <"$scratch/metrics"
else
	skip promtool "promtool has no complaint"
fi
is "every sample has been announced" "$(awk '/^# TYPE/ {type[$3] = 1; next} /^#/ {next} {sub(/[{ ].*/, ""); if (!($0 in type)) print}' \
	"$scratch/metrics" | sort -u)" ""
is "none is there twice" "$(grep -v '^#' "$scratch/metrics" | sed 's/ [^ ]*$//' | sort | uniq -d)" ""
grep '^# TYPE' "$scratch/metrics" | awk '{print $3, $4}' | sort >"$scratch/families"
# shellcheck disable=SC2016  # marks of the document
sed -n 's/^| `\(warmpath_[a-z_]*\)` | \([a-z]*\) |.*/\1 \2/p' docs/metrics.md | sort >"$scratch/documented"
same "docs/metrics.md lists what there is" "$scratch/documented" "$scratch/families"
same "and nothing else" "$scratch/families" "$scratch/documented"
check "the dashboard is JSON" jq -e '.panels | length > 10' deploy/grafana-dashboard.json
is "the dashboard uses only metrics that exist" "$(jq -r '.panels[].targets[].expr, .templating.list[].query.query? // empty' deploy/grafana-dashboard.json |
	grep -o 'warmpath_[a-z_]*' | sort -u | while read -r name; do grep -q "^$name " "$scratch/families" || echo "$name"; done)" ""

# --- the numbers -------------------------------------------------------------------------------------------------

is "decisions" "$(value warmpath_decisions_total 'service="chat"')" 60
is "and of the other service" "$(value warmpath_decisions_total 'service="api"')" 12
is "all had one reason" "$(value warmpath_traced_decisions_total 'service="chat",reason="home"')" 60
is "all have ended" "$(value warmpath_traced_completions_total 'service="chat",status="success"')" 60
is "decisions of the replicas add up" "$(awk '/^warmpath_replica_decisions_total{service="chat"/ {sum += $2} END {print sum}' "$scratch/metrics")" 60
is "nothing is open" "$(awk '/^warmpath_open_/ {sum += $2} END {print sum + 0}' "$scratch/metrics")" 0
is "shares add up to one" "$(awk '/^warmpath_replica_share_ratio{service="api"/ {sum += $2} END {printf "%.6f", sum}' "$scratch/metrics")" 1.000000
is "packets are those of warmpath counters" "$(value warmpath_packets_total 'outcome="answered_handshake",verdict="answer"')" \
	"$(counter answered_handshake)"
is "connections handed over" "$(value warmpath_notes_total 'note="request_handed"')" 12
is "and answered" "$(awk '/^warmpath_replica_contacts_total{service="api",.*outcome="answered"/ {sum += $2} END {print sum}' "$scratch/metrics")" 12
is "the ring" "$(value warmpath_ring_points 'service="chat"') $(value warmpath_ring_generation 'service="chat"')" "300 1"
# shellcheck disable=SC2016  # awk's own
check "the data path's time has been taken" awk '/^warmpath_datapath_runs_total{program="warmpath_router_xdp"/ {runs = $2}
	/^warmpath_datapath_seconds_total{program="warmpath_router_xdp"/ {seconds = $2}
	END { printf "%.0f ns a packet\n", seconds / runs * 1e9; exit !(runs > 100 && seconds > 0) }' "$scratch/metrics"
note "of a packet, as the kernel times the XDP program here: $(cat "$scratch/output")"
tools/lab servers stop llm-1
down() { scrape && [ "$(value warmpath_replica_state 'service="chat",replica="llm-1",state="down"')" = 1 ]; }
check "a replica that goes down is seen" wait_until 10 down
is "its health" "$(value warmpath_replica_health 'service="chat",replica="llm-1"')" 0
tools/lab servers start llm-1
warmpath replica drain llm-2 --service chat >/dev/null
scrape
is "a drained one as well" "$(value warmpath_replica_state 'service="chat",replica="llm-2",state="draining"')" 1

# --- clients -----------------------------------------------------------------------------------------------------

is "IPv6" "$(status 'http://[::1]:9798/metrics')" 200
is "HEAD" "$(status -I http://127.0.0.1:9798/metrics)" 200
is "another path" "$(status http://127.0.0.1:9798/)" 404
is "another method" "$(status -X DELETE http://127.0.0.1:9798/metrics)" 405
is "a body" "$(status -d change=everything http://127.0.0.1:9798/metrics)" 405
is "a head that is too long" "$(status -H "x-long: $(head -c 20000 /dev/zero | tr '\0' a)" http://127.0.0.1:9798/metrics)" 431
raw() { in_host router timeout 5 bash -c "exec 3<>/dev/tcp/127.0.0.1/9798; printf '$1' >&3; head -n 1 <&3"; }
matches "what is not HTTP" "$(raw 'nonsense\r\n\r\n')" '^HTTP/1.[01] 400|^$'
is "where nobody is to listen, nobody does" "$(status http://10.0.1.1:9798/metrics)" 000
for number in $(seq 1 24); do
	in_host router bash -c 'exec 3<>/dev/tcp/127.0.0.1/9798; sleep 4' &
	idle[number]=$!
done
sleep 0.5
is "silent clients do not keep commands from being answered" "$(warmpath status --json | jq .ok)" true
kill "${idle[@]}" 2>/dev/null
wait "${idle[@]}" 2>/dev/null
again() { [ "$(status http://127.0.0.1:9798/metrics)" = 200 ]; }
check "and when they are gone others are served" wait_until 10 again

# --- another configuration ---------------------------------------------------------------------------------------

configure | sed 's/port: 9798/port: 9799/' >"$run/agent.yaml"
warmpath reload >/dev/null
is "reloaded, the new port answers" "$(status http://127.0.0.1:9799/metrics)" 200
is "and the old one does not" "$(status http://127.0.0.1:9798/metrics)" 000
configure --metrics '"192.0.2.7"' | sed 's/vnodes: 100/vnodes: 50/' >"$run/agent.yaml"
matches "an address that is not this machine's is named" "$(warmpath reload 2>&1)" 'metrics cannot be given at 192.0.2.7:9798: '
is "and nothing is changed" "$(warmpath status --json | jq '.services[] | select(.name == "chat") | .points > 150')" true
is "the port before answers on" "$(status http://127.0.0.1:9799/metrics)" 200
configure --metrics '"0.0.0.0", "::"' >"$run/agent.yaml"
warmpath reload >/dev/null
is "all addresses of the machine" "$(status http://10.0.1.1:9798/metrics) $(status 'http://[fd00:1::1]:9798/metrics')" "200 200"
tools/lab config --services chat,api >"$run/agent.yaml"
warmpath reload >/dev/null
is "switched off, nobody listens" "$(status http://127.0.0.1:9799/metrics) $(status http://127.0.0.1:9798/metrics)" "000 000"
