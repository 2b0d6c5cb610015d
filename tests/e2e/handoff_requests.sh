#!/bin/bash
# Ten thousand requests over connections that are kept alive, and over connections of one request each until every local port has been used
# twice: each reaches the home of its conversation, each answer is the one that a direct request gives, nothing fails and nothing is reset.
# Servers: nginx, Node, Python's http.server. IPv4 and IPv6, XDP and tc.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/http.sh
. tests/http.sh

# requests NAME DESCRIPTION COUNT OPTIONS... ADDRESS
requests() {
	local name=$1 description=$2 count=$3
	shift 3
	in_client "$build/tests/e2e/http_requests" --requests "$count" "$@" 8000 "$scratch/plan" "$scratch/expected" \
		>"$scratch/$name.report" 2>&1
	requests_are_right "$description" "$scratch/$name.report" "$count"
}

begin() { # MODE LAB-OPTIONS...
	lab_up --replicas 3 --mode "$@"
	http_files 0 1 1447 1448 2896 20000 100000
	agent_up --mode "$1" --services api
	check "$1: the replicas take connections over" tools/lab handoff start
}

begin native
http_plan 500
http_expect || bail "every replica answers directly"
# others than are used in turn below, as those that connections leave in TIME-WAIT are not free
in_client sysctl -qw net.ipv4.ip_local_port_range="61000 64999"
requests nginx4 "nginx, 10000 requests over 32 connections, IPv4" 10000 --connections 32 $api4
requests nginx6 "nginx, 3000 requests over 32 connections, IPv6" 3000 --connections 32 $api6
ports=40000-40999 count=3000
[ -z "${WARMPATH_TEST_LONG-}" ] || ports=32768-60999 count=84696
for address in $api4 $api6; do
	requests ports "nginx, a connection each, local ports $ports in turn, to $address" $count --fresh --connections 16 --ports $ports "$address"
	check "every port was used twice at least, and three times as a rule" [ "$(counted port_uses <"$scratch/ports.report")" -ge 2 ]
done
is "nothing is left charged" "$(warmpath replica list --json | jq '[.. | .requests? // empty] | add // 0')" 0

for kind in node python; do
	begin tc --servers none
	http_servers_start $kind
	count=3000
	[ $kind = node ] || count=600
	requests $kind-4 "$kind, $count requests over 32 connections, IPv4" $count --connections 32 $api4
	requests $kind-6 "$kind, 500 requests, a connection each, IPv6" 500 --fresh --connections 8 $api6
	http_servers_stop
done
