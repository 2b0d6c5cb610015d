#!/bin/bash
# warmpathd is killed, replaced by another build and reloaded, again and again, under HTTP and datagrams: no request fails, counters go on, and
# the loads are exact in the end. A build that does not fit is refused, and the old one serves on. What a service manager is told.
#
# WARMPATH_LONG=1: killed every few seconds for a minute, upgraded ten times, reloaded fifty times.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

rounds=2 reloads=5 pause=0.2
[ -n "${WARMPATH_LONG-}" ] && rounds=10 reloads=5 pause=4

# Another build: this one with another version; and one that pins elsewhere.
patched() { # file expression
	LC_ALL=C sed -z "$2" "$build/warmpathd" >"$1"
	chmod 0755 "$1"
}
# (a build with sanitizers has the number by itself, too)
patched "$scratch/newer" 's/^\(warmpathd \)\{0,1\}0\.1\.0$/\10.1.9/'
patched "$scratch/elsewhere" 's|/v1$|/v9|'

# --- what a service manager is told ---------------------------------------------------------------------------

lab_up --replicas 3 --mode native
run=$(tools/lab path run)
pins=$(tools/lab path pin)
python3 -c '
import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(sys.argv[1])
while True:
    print(s.recv(4096).decode().replace("\n", " "), flush=True)
' "$scratch/notify" >"$scratch/told" &
listener=$!
wait_until 5 test -S "$scratch/notify"
tools/lab config >"$run/agent.yaml"
export NOTIFY_SOCKET=$scratch/notify WATCHDOG_USEC=300000
tools/lab agent start >"$scratch/output" 2>&1 || bail "warmpathd starts"
unset NOTIFY_SOCKET WATCHDOG_USEC
told() { grep -q "$1" "$scratch/told"; }
alive_again() { [ "$(grep -c '^WATCHDOG=1' "$scratch/told")" -gt "$1" ]; }
check "it says that it is ready" wait_until 5 told '^READY=1'
check "and that it is alive, again and again" wait_until 5 alive_again 3
warmpath reload >/dev/null
check "that it reloads" wait_until 5 told '^RELOADING=1 MONOTONIC_USEC=[0-9]'
: >"$scratch/told"
is "an upgrade is reported" "$(warmpath upgrade --program "$scratch/newer" --json | jq -c '[.from, .to, .adopted]')" \
	'["0.1.0","0.1.9",true]'
check "after an upgrade the new build says that it is ready" wait_until 5 told '^READY=1'
check "and that it is alive" wait_until 5 alive_again 1
tools/lab agent stop
check "and that it ends" wait_until 5 told '^STOPPING=1'
kill $listener
wait $listener 2>/dev/null

# --- refused, and the old one serves on ------------------------------------------------------------------------

tools/lab agent start >"$scratch/output" 2>&1 || bail "warmpathd starts"
process=$(warmpath status --json | jq .process)
refused() { # description sentence arguments of upgrade...
	local description=$1 expected=$2 said status
	shift 2
	said=$(warmpath upgrade "$@" 2>&1 >/dev/null)
	status=$?
	is "$description: exit status" "$status" 1
	matches "$description: sentence" "$said" "$expected"
}
refused "another place" "cannot take over, nothing was changed: there is no data path in $pins/v9 that it could take over" \
	--program "$scratch/elsewhere"
mkdir "$pins/v9"
refused "another layout" "nothing was changed: below pin_path $pins is a data path with map layout v9, and this build of warmpath has layout v1"
rmdir "$pins/v9"
refused "a program that is none of ours" "false cannot take over, nothing was changed: it ended with status 1 and without a word" \
	--program /bin/false
refused "a file that is no program" "cannot be run" --program "$run/agent.yaml"
cp "$run/agent.yaml" "$scratch/good.yaml"
sed -i 's/^  flows: .*/  flows: 4096/' "$run/agent.yaml"
refused "a table of another size" "nothing was changed: limits.flows is 4096, but the pinned map .* has room for 65536"
sed 's/^shape: .*/shape: round/' "$scratch/good.yaml" >"$run/agent.yaml"
refused "a wrong configuration" "nothing was changed: .*agent.yaml:[0-9]+: shape is \"round\"" --check
cp "$scratch/good.yaml" "$run/agent.yaml"
is "the old one serves on" "$(warmpath status --json | jq -c '[.process, .version]')" "[$process,\"0.1.0\"]"
check "one that can is only asked" warmpath upgrade --check --program "$scratch/newer"
is "and nothing is changed" "$(warmpath version >/dev/null && warmpath status --json | jq -r .version)" 0.1.0
warmpath upgrade --program "$scratch/nonsense" >/dev/null 2>&1
is "a file that is not there: exit status" $? 2

# --- little is kept ---------------------------------------------------------------------------------------------

capabilities() { sed -n 's/^Cap\(Eff\|Prm\|Bnd\):\t//p' "/proc/$process/status" | sort -u; }
# DAC_READ_SEARCH 2, NET_ADMIN 12, NET_RAW 13, PERFMON 38, BPF 39; SYS_ADMIN 21 where libxdp's dispatcher is possible
matches "it keeps the capabilities it needs" "$(capabilities)" '^000000c000(0|2)03004$'

# --- all of it under load ---------------------------------------------------------------------------------------

http=
if tools/lab handoff start >"$scratch/output" 2>&1; then
	http=1
else
	skip "handing connections over" "HTTP by header goes on throughout"
fi
ids 60 >"$scratch/ids"
addressed "$scratch/ids" >"$scratch/addressed"
for id in $(ids 60); do
	printf 'url = "http://10.9.9.8:8000/"\nheader = "x-conversation-id: %s"\noutput = /dev/null\nwrite-out = "%%{http_code} %%{errormsg}\\\\n"\nmax-time = 10\nnext\n' "$id"
done | sed '$d' >"$scratch/requests"
http_load() { # until $scratch/stop is there; a connection for each sixty
	while [ ! -e "$scratch/stop" ]; do in_host client curl -s -K "$scratch/requests"; done >"$scratch/http"
}
counters() { "$build/warmpath" counters --all --pin-path "$pins" --json | jq -c '.counters'; }
went_on() { # counters before and after: those that went back
	jq -n --argjson before "$1" --argjson after "$2" '$before | to_entries | map(select($after[.key] < .value) | .key) | join(" ")' -r
}
traffic_start udp "$scratch/ids" client --rate 1000 8000 10.9.9.9
connections_start held "$scratch/addressed" client 8000
is "connections are open" "$(connections_round held)" "round answered=60 broken=0 moved=0"
if [ -n "$http" ]; then
	http_load &
	http=$!
fi
before=$(counters) back='' failed=0 upgrades=0
for ((round = 1; round <= rounds; round++)); do
	tools/lab agent kill
	connections_round held >>"$scratch/held"
	tools/lab agent start >>"$scratch/actions" 2>&1 || failed=$((failed + 1))
	sleep "$pause"
	for program in "$scratch/newer" "$build/warmpathd"; do
		warmpath upgrade --program "$(realpath "$program")" >>"$scratch/actions" 2>&1 || failed=$((failed + 1))
		upgrades=$((upgrades + 1))
		after=$(counters)
		back+=$(went_on "$before" "$after")
		before=$after
		[ -z "${WARMPATH_LONG-}" ] || [ $round -le 5 ] || break
	done
	for ((reload = 1; reload <= reloads; reload++)); do
		sed "s/epsilon: 0.25/epsilon: 0.$((20 + reload))/" "$scratch/good.yaml" >"$run/agent.yaml"
		warmpath reload >>"$scratch/actions" 2>&1 || failed=$((failed + 1))
	done
	connections_round held >>"$scratch/held"
done
note "$rounds kills, $upgrades upgrades, $((rounds * reloads)) reloads"
is "each start, upgrade and reload worked" "$failed" 0
[ "$failed" = 0 ] || note <"$scratch/actions"
is "no counter went back" "$back" ""
is "no connection broke or moved" "$(sort -u "$scratch/held")" "round answered=60 broken=0 moved=0"
connections_stop held
traffic_stop udp
traffic_is_whole udp
if [ -n "$http" ]; then
	touch "$scratch/stop"
	wait "$http"
	note "HTTP: $(wc -l <"$scratch/http") requests"
	is "no HTTP request failed" "$(sort "$scratch/http" | uniq -c | awk '{$1 = ""; print}' | sort -u)" " 200"
fi
at_rest() { [ "$(warmpath replica list --json | jq '[.replicas[] | .requests + .tokens] | add')" = 0 ]; }
check "nothing is left of the load" wait_until 10 at_rest
is "and no load had to be repaired" "$(grep -c 'have been repaired' "$run/agent.log")" 0
