#!/bin/bash
# Replicas from Kubernetes: a stand-in for the API server (tests/e2e/api_server.c) adds, changes, terminates and removes endpoints, and
# misbehaves in every way known of the real one. The ring follows; nothing moves without cause; what cannot be asked keeps what it said.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/discovery.sh
. tests/discovery.sh

lab_up --replicas 4 --mode native --servers datagrams
run=$(tools/lab path run)

# --- what warmpathd makes of it ------------------------------------------------------------------------------

# fails DESCRIPTION REGULAR-EXPRESSION [COMMAND...]: the command has warmpathd complain so, and the replicas stay
fails() {
	local before from
	before=$(members) from=$(($(log_lines) + 1))
	[ $# -lt 3 ] || "${@:3}"
	check "$1: said in a sentence" wait_until 15 complained "$from" "$2"
	is "$1: the replicas stay" "$(members)" "$before"
}

# watching: it is well, and what was asked last is a watch that goes on
watching() { state_is good && [ "$(grep '^request' "$scratch/api.log" | tail -n 1 | grep -c ' 200$')" = 1 ] &&
	grep '^request' "$scratch/api.log" | tail -n 1 | grep -q watch; }
recovers() { # description
	check "$1: then it is well again" wait_until 25 watching
	sleep 0.3 # a watch that ends at once counts as one more failure
}

# stays DESCRIPTION COMMAND...: the command causes no new ring
stays() {
	local generation
	generation=$(ring_generation chat)
	"${@:2}"
	is "$1: no new ring" "$(ring_generation chat)" "$generation"
}

a0=10.0.2.10 a1=10.0.2.11 a2=10.0.2.12 a3=10.0.2.13
b0=fd00:2::10 b1=fd00:2::11 b2=fd00:2::12 b3=fd00:2::13
m0="llm-0 active $a0,$b0" m1="llm-1 active $a1,$b1" m2="llm-2 active $a2,$b2" m3="llm-3 active $a3,$b3"

# --- the beginning: nobody is there -------------------------------------------------------------------------

echo first-token >"$scratch/token"
echo default >"$scratch/namespace"
: >"$scratch/ca.pem"
kubernetes_configuration http://127.0.0.1:6443 >"$run/agent.yaml"
check "the configuration is good" "$build/warmpathd" --check -c "$run/agent.yaml"
check "warmpathd starts without the API server" tools/lab agent start
check "no API server: said in a sentence" wait_until 15 complained 1 '127.0.0.1:6443 cannot be asked: .*(refused|connect)'
is "no API server: it has never answered" "$(source_value age_seconds)" null
matches "and status warns of it" "$(warmpath status)" 'warning: service chat: kubernetes in-cluster/llm: .*6443'

api_start default
api token first-token
# five IPv4 and five IPv6 slices, more than one page of a list
api slice v4-a IPv4 http:8001 "llm-0=$a0" "llm-1=$a1" "llm-9=10.0.2.99,unready"
api slice v6-a IPv6 http:8001 "llm-0=$b0" "llm-1=$b1"
for part in b c d e f g; do
	api slice "v4-$part" IPv4 http:8001
	api slice "v6-$part" IPv6 http:8001
done
become "a list in two pages" "$m0" "$m1"
recovers "a list in two pages"
matches "service show has the source" "$(warmpath service show)" 'chat +kubernetes in-cluster/llm +good +4 +[0-9]+ s ago'

# --- add, change, terminate, remove, under traffic ---------------------------------------------------------------

ids 60 >"$scratch/ids"
homes llm-0,llm-1 <"$scratch/ids" >"$scratch/homes-2"
homes llm-0,llm-1,llm-2 <"$scratch/ids" >"$scratch/homes-3"
traffic_start datagrams "$scratch/ids" client --rate 400 8000 10.9.9.9
api slice v4-b IPv4 http:8001 "llm-2=$a2"
api slice v6-b IPv6 http:8001 "llm-2=$b2"
become "a pod is added, in slices of its own" "$m0" "$m1" "$m2"
routes chat <"$scratch/ids" >"$scratch/routes"
same "and has its place on the ring by its name" "$scratch/routes" "$scratch/homes-3"
stays "the last event once more, a bookmark" eval 'api again; api bookmark; wait_until 5 state_is good'
api slice v4-b IPv4 http:8001 "llm-2=$a2,terminating"
api slice v6-b IPv6 http:8001 "llm-2=$b2,terminating"
become "a pod that terminates is drained" "$m0" "$m1" "llm-2 draining $a2,$b2"
routes chat <"$scratch/ids" >"$scratch/routes"
same "its conversations are spread over the others" "$scratch/routes" "$scratch/homes-2"
api delete v4-b
api delete v6-b
become "a slice is deleted" "$m0" "$m1"
sleep 0.5
traffic_stop datagrams
traffic_is_whole datagrams
is "no id was answered by any but its two homes" \
	"$(unexpected "$scratch/datagrams.ledger" "$scratch/homes-2" "$scratch/homes-3")" ""

api slice v4-a IPv4 http:8001 "llm-0=$a0" "llm-1=$a3"
api slice v6-a IPv6 http:8001 "llm-0=$b0" "llm-1=$b3"
become "an address changes" "$m0" "llm-1 active $a3,$b3"
routes chat <"$scratch/ids" >"$scratch/routes"
same "which moves nobody" "$scratch/routes" "$scratch/homes-2"
api slice v4-a IPv4 http:8001 "llm-0=$a0" "llm-1=$a1"
api slice v6-a IPv6 http:8001 "llm-0=$b0" "llm-1=$b1"
become "and changes back" "$m0" "$m1"
incarnation() { warmpath replica list --json | jq --arg name "$1" '.replicas[] | select(.name == $name) | .incarnation'; }
before=$(incarnation llm-0)
api slice v4-a IPv4 http:8001 "llm-0=$a0,another-pod" "llm-1=$a1"
api slice v6-a IPv6 http:8001 "llm-0=$b0,another-pod" "llm-1=$b1"
check "another pod of the same name and address is another life" wait_until 5 eval "[ \$(incarnation llm-0) -gt $before ]"
api slice v4-a IPv4 http:8001 "llm-0=$a0,another-pod" "llm-1=$a1" "-=10.0.2.77"
check "who has no IPv6 address is left out, and said" \
	wait_until 5 eval 'warmpath service show | grep -q "10.0.2.77 has no IPv6 address"'
api slice v4-a IPv4 other:8001 "llm-0=$a0,another-pod" "llm-1=$a1"
api slice v4-a IPv4 http:8001 "llm-0=$a0,another-pod" "llm-1=$a1"
become "a port that is away for a moment" "$m0" "$m1"

# --- streams in pieces, cut, ended, with errors ------------------------------------------------------------------

api pieces 1
api slice v4-b IPv4 http:8001 "llm-2=$a2"
api slice v6-b IPv6 http:8001 "llm-2=$b2"
become "events that come byte by byte" "$m0" "$m1" "$m2"
before=$(requests 'watch v1 200')
api cut
check "a stream cut in the middle of a line is watched again" wait_until 15 requested 'watch v1 200' "$before"
recovers "a stream cut in the middle of a line"
api slice v4-b IPv4 http:8001
api slice v6-b IPv6 http:8001
become "and goes on where it was, byte by byte" "$m0" "$m1"
api pieces 0

before=$(requests 'watch v1 200') lists=$(requests list)
stays "a clean end" eval 'api end; wait_until 15 requested "watch v1 200" '"$before"
is "a clean end: no list" "$(requests list)" "$lists"
before=$(requests 'list v1 200')
stays "ERROR 410 in the stream" eval 'api error 410; wait_until 15 requested "list v1 200" '"$before"
check "the list comes in pages" wait_until 15 requested 'list v1 continue 200' 0
# away while the past is forgotten: 410 as a status
api expire
api slice v4-b IPv4 http:8001 "llm-2=$a2"
api slice v6-b IPv6 http:8001 "llm-2=$b2"
become "changes before the past is forgotten" "$m0" "$m1" "$m2"
api refuse 500 1
api cut
api delete v4-b
api delete v6-b
api expire
become "410 as a status: listed anew, and who has gone meanwhile is gone" "$m0" "$m1"
check "it was a status" test "$(requests 'watch v1 410')" -ge 1
recovers "410 as a status"
fails "ERROR 500 in the stream" 'the watch has ended with an error: too old resource version' api error 500
recovers "ERROR 500 in the stream"
api endless on
fails "a list without an end" 'the list has no end: more than 256 pages' eval 'api expire; api error 410'
api endless off
recovers "a list without an end"
fails "a line that is no event" 'is not a JSON object' api garbage
recovers "a line that is no event"

# --- refusals ---------------------------------------------------------------------------------------------------

api refuse 429 2 1
fails "429" 'status 429: refused on command' api end
recovers "429"
api refuse 403 2
fails "403" 'does not allow it to list and watch endpointslices in namespace default \(403\)' api end
recovers "403"
api token second-token
fails "401" "refuses the token in $scratch/token \\(401\\): give it a valid one" api end
echo second-token >"$scratch/token"
recovers "401, with the token renewed"
# a token that is renewed between two requests is not even noticed
api token third-token
echo third-token >"$scratch/token"
before=$(requests 'watch v1 200') failures=$(source_value failures)
api end
check "a renewed token is read" wait_until 15 requested 'watch v1 200' "$before"
is "without a failure" "$(source_value failures)" "$failures"
api version v1 off
api error 410
before=$(requests 'watch v1beta1 200')
check "an older server: v1beta1" wait_until 15 requested 'watch v1beta1 200' 0
is "an older server: it is well" "$(source_value state) $(members | wc -l)" "good 2"
api version v1 on

# --- TLS ---------------------------------------------------------------------------------------------------------

# before the API server a proxy with a certificate of an authority of the test's own
for name in ours other; do
	api_certificate "$scratch/$name.key" "$scratch/$name.pem" $name 127.0.0.1
done
check "a proxy with TLS" api_behind_tls 127.0.0.1:6444 "$scratch/ours.key" "$scratch/ours.pem"
kubernetes_configuration https://127.0.0.1:6444 >"$run/agent.yaml"
cp "$scratch/other.pem" "$scratch/ca.pem"
fails "a certificate of another authority" 'https://127.0.0.1:6444 cannot be asked: .*certificate' warmpath reload
cp "$scratch/ours.pem" "$scratch/ca.pem"
recovers "the right authority"
api slice v4-c IPv4 http:8001 "llm-2=$a2"
api slice v6-c IPv6 http:8001 "llm-2=$b2"
become "a pod is added, by TLS" "$m0" "$m1" "$m2"
api slice v4-c IPv4 http:8001
api slice v6-c IPv6 http:8001
become "and removed" "$m0" "$m1"
kubernetes_configuration http://127.0.0.1:6443 >"$run/agent.yaml"
check "back to the server itself" warmpath reload
kill "$(cat "$scratch/nginx.pid")"
recovers "back to the server itself"

# --- slowness and silence ----------------------------------------------------------------------------------------------------

api delay 700
lists=$(requests 'list v1 200')
api error 410
check "a slow list is waited for" wait_until 15 requested 'list v1 200' "$lists"
check "while warmpathd answers at once" warmpath status
api delay 0
recovers "a slow list"
is "and changes nothing" "$(members)" "$(printf '%s\n' "$m0" "$m1")"
api silent on
api cut
check "a server that takes requests without a word is waited for" wait_until 15 requested 'watch v1' "$(requests 'watch v1 200')"
is "while the replicas stay" "$(members)" "$(printf '%s\n' "$m0" "$m1")"
check "and warmpathd answers" warmpath status
check "reload" warmpath reload
api silent off

api_stop
check "dead: the watch is cut" wait_until 10 state_is failing
age=$(source_value age_seconds)
check "dead: the age of the set grows" wait_until 5 eval "[ \$(source_value age_seconds | cut -d . -f 1) -gt ${age%.*} ]"
tools/lab agent kill
from=$(($(log_lines) + 1))
check "a new warmpathd" tools/lab agent start
is "dead: a new warmpathd keeps the replicas, too" "$(members)" "$(printf '%s\n' "$m0" "$m1")"
routes chat <"$scratch/ids" >"$scratch/routes"
same "dead: and routes as before" "$scratch/routes" "$scratch/homes-2"
check "dead: and says so" wait_until 15 complained "$from" '6443 cannot be asked'
api_start default
api token third-token
api slice v4-a IPv4 http:8001 "llm-0=$a0,another-pod" "llm-3=$a3"
api slice v6-a IPv6 http:8001 "llm-0=$b0,another-pod" "llm-3=$b3"
check "back: it is asked again" wait_until 40 state_is good
become "back: its set counts again" "$m0" "$m3"

# --- another configuration ---------------------------------------------------------------------------------------

sed -i "s|^    replicas: \\[\\]|    replicas:\\n      - { name: llm-1, addresses: [\"$a1\", \"$b1\"], port: 8001, weight: 1.0 }|" "$run/agent.yaml"
generation=$(ring_generation chat)
check "a replica of the file beside those found" warmpath reload
become "a replica of the file beside those found" "$m0" "$m1" "$m3"
is "one new ring for it" "$(ring_generation chat)" $((generation + 1))
stays "a reload without a change" warmpath reload
sed -i '/^    discovery:/,/^        weight/d; s/^    replicas:/    discovery: []\n&/' "$run/agent.yaml"
check "without discovery" warmpath reload
become "without discovery only the file's replica is left" "$m1"
api_stop
