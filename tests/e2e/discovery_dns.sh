#!/bin/bash
# Replicas from DNS: a server (dnsmasq) whose records change; the ring follows when their time to live is over, whatever the order of the
# answers; what cannot be asked, or says nothing, keeps what it said.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/discovery.sh
. tests/discovery.sh

lab_up --replicas 3 --mode native --servers datagrams
run=$(tools/lab path run)

dns_start() { # lines of dnsmasq's configuration on standard input
	{
		printf '%s\n' port=5353 listen-address=127.0.0.1 bind-interfaces no-resolv no-hosts keep-in-foreground local-ttl=1 \
			local=/example.org/ user=root pid-file=
		cat
	} >"$scratch/dnsmasq.conf"
	tools/lab exec router dnsmasq -C "$scratch/dnsmasq.conf" >>"$scratch/dnsmasq.log" 2>&1 &
	dns_process=$!
}

dns_stop() {
	kill "$dns_process"
	wait "$dns_process" 2>/dev/null
}

hosts() { # NUMBER...: records of these replicas
	local number
	for number in "$@"; do
		echo "srv-host=_http._tcp.llm.example.org,llm-$number.llm.example.org,8001"
		echo "host-record=llm-$number.llm.example.org,10.0.2.$((10 + number)),fd00:2::$((10 + number))"
	done
}

configuration() { # lines of the source's keys on standard input
	tools/lab config --mode native --services chat | sed '/^    replicas:/,$d; /discovery: \[\]/d'
	printf '    discovery:\n      - from: dns\n        server: 127.0.0.1:5353\n        weight: 1.0\n'
	sed 's/^/        /'
	echo '    replicas: []'
}

m0="llm-0 active 10.0.2.10,fd00:2::10" m1="llm-1 active 10.0.2.11,fd00:2::11" m2="llm-2 active 10.0.2.12,fd00:2::12"

# --- SRV -------------------------------------------------------------------------------------------------------

dns_start < <(hosts 0 1)
printf '%s\n' 'name: _http._tcp.llm.example.org' 'records: srv' 'port: none' | configuration >"$run/agent.yaml"
check "the configuration is good" "$build/warmpathd" --check -c "$run/agent.yaml"
check "warmpathd starts" tools/lab agent start
become "the targets of SRV records, each with both its addresses" "$m0" "$m1"
ids 200 >"$scratch/ids"
homes llm-0,llm-1 <"$scratch/ids" >"$scratch/homes-2"
homes llm-0,llm-1,llm-2 <"$scratch/ids" >"$scratch/homes-3"
routes chat <"$scratch/ids" >"$scratch/routes"
same "have their places on the ring by their names" "$scratch/routes" "$scratch/homes-2"
traffic_start datagrams "$scratch/ids" client --rate 400 8000 10.9.9.9

# dnsmasq answers in turns: the order says nothing
generation=$(ring_generation chat)
sleep 3
is "asked again and again, answered in another order each time: no new ring" "$(ring_generation chat)" "$generation"

dns_stop
check "without a DNS server it is failing" wait_until 15 state_is failing
matches "and says why" "$(source_value problem)" \
	'(no DNS server can be reached|the DNS server does not answer) \(.*llm.example.org\)'
is "the replicas stay" "$(members)" "$(printf '%s\n' "$m0" "$m1")"
dns_start < <(hosts 2 1 0)
become "when it is back, who is new is found" "$m0" "$m1" "$m2"
check "and it is well" state_is good
dns_stop
dns_start </dev/null
check "a name that is gone" wait_until 15 eval 'source_value problem | grep -q "there is no such name"'
is "is no reason to end the service: the replicas stay" "$(members)" "$(printf '%s\n' "$m0" "$m1" "$m2")"
dns_stop
dns_start < <(hosts 0 1 && echo srv-host=_http._tcp.llm.example.org,llm-2.llm.example.org,8001)
become "a target that has no address any more" "$m0" "$m1"
matches "is left out, and said" "$(warmpath service show)" \
	'target llm-2.llm.example.org is left out: it has no address'
traffic_stop datagrams
traffic_is_whole datagrams
is "no id was answered by any but its two homes" \
	"$(unexpected "$scratch/datagrams.ledger" "$scratch/homes-2" "$scratch/homes-3")" ""

# --- addresses, several sources --------------------------------------------------------------------------------------

sed -i 's/, "fd00:9::9"//; s/"fd00:9::9"//' "$run/agent.yaml"
sed -i 's/^    replicas: \[\]/      - from: dns\n        server: 127.0.0.1:5353\n        weight: 0.5\n        name: more.example.org\n        records: a\n        port: 8001\n&/' "$run/agent.yaml"
dns_stop
dns_start < <(hosts 0 1 && echo host-record=more.example.org,10.0.2.12 && echo host-record=more.example.org,10.0.2.11)
check "a second source, A records" warmpath reload
become "replicas of both, each address once" "10.0.2.12 active 10.0.2.12" "$m0" "$m1"
is "with the source's weight" "$(warmpath replica list --json | jq '.replicas[] | select(.name == "10.0.2.12") | .weight')" 0.5
matches "who is there already is left out, and said" "$(warmpath service show)" \
	'10.0.2.11 is left out, as llm-1 has the same address and port'
generation=$(ring_generation chat)
check "a reload" warmpath reload
is "without a change makes no new ring" "$(ring_generation chat)" "$generation"
dns_stop
