#!/bin/bash
# A client that also talks to the replicas directly, through the same router, from local ports that it has used with the service before: the
# two have nothing to do with each other.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/http.sh
. tests/http.sh

# asks ADDRESS PORT PLAN: 20 requests from 20 local ports, always the same (a replica that still has a port in TIME-WAIT makes it wait a second)
asks() {
	in_client "$build/tests/e2e/http_requests" --requests 20 --fresh --connections 20 --ports 45000-45019 "$1" "$2" "$3" \
		"$scratch/expected" | tail -n 1 | sed 's/ connections=.*//'
}

right="requests=20 answered=20 failed=0 reset=0 astray=0 different=0"
for setting in "native api" "tc api,web"; do
	read -r mode services <<<"$setting"
	lab_up --replicas 3 --mode "$mode"
	http_files 1000
	agent_up --mode "$mode" --services "$services"
	check "$mode: the replicas take connections over" tools/lab handoff start
	http_plan 20
	http_expect || bail "every replica answers directly"
	while read -r name ipv4 ipv6 port _; do
		sed "s/ .*/ $name/" "$scratch/plan" >"$scratch/plan-$name"
		for pair in "$api4 $ipv4" "$api6 $ipv6"; do
			is "$mode, $services: the service at ${pair% *}" "$(asks "${pair% *}" 8000 "$scratch/plan")" "$right"
			is "$mode, $services: then $name itself, from the same ports" \
				"$(asks "${pair#* }" "$port" "$scratch/plan-$name")" "$right"
		done
	done < <(tools/lab list | head -n 1)
done
