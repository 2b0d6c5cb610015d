#!/bin/bash
# The README's commands, as they stand there: each set-up is done in a lab, on machines with /etc, /usr/local and /run of their own, and then
# the commands that come after it. A block is marked <!-- try SHAPE MACHINE... --> ("all machines": on each). Kubernetes: readme_kubernetes.sh.
# shellcheck disable=SC2016  # words of other shells, jq and Markdown stand in single quotes
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

# shellcheck source=tests/machines.sh
. tests/machines.sh

# There is no systemd in a namespace: what its unit starts is started, as installed.
cat >"$scratch/systemctl" <<'SYSTEMCTL'
#!/bin/bash
[ "$*" = "enable --now warmpathd" ] || exit 1
unit=$(find /etc/systemd/system /lib/systemd/system /usr/local -name warmpathd.service 2>/dev/null | head -n 1)
mkdir -p /run/warmpath
$(sed -n 's/^ExecStart=//p' "$unit") >/run/warmpathd.log 2>&1 </dev/null &
echo $! >/run/warmpathd.pid
for _ in $(seq 100); do
	grep -q 'info: ready' /run/warmpathd.log && exit 0
	sleep 0.1
done
cat /run/warmpathd.log
exit 1
SYSTEMCTL
chmod +x "$scratch/systemctl"

# run_blocks SHAPE MACHINE FROM TO: those of these numbers, from 1
run_blocks() {
	local shape=$1 machine=$2 first=$3 last=$4 number=0 block
	while IFS= read -r -d '' block; do
		number=$((number + 1))
		if [ $number -lt "$first" ] || [ $number -gt "$last" ]; then continue; fi
		printf '%s\n' "$block" | sed 's/^/  $ /' | note
		if [ "$machine" = client ]; then
			check "$shape: the client's command" in_host client bash -e -c "$block"
		else
			check "$shape: block $number on $machine" on "$machine" env PATH="$scratch:/usr/local/sbin:/usr/local/bin:$PATH" bash -e -o pipefail -c "$block"
		fi
	done < <(blocks README.md "$shape" "$machine")
}

ask() { # address path: the answer's first word is the replica's name
	in_host client curl -sS -m 10 -H 'x-conversation-id: chat-4711' "http://$1:8000/" | cut -d ' ' -f 1
}

cli() { on router /usr/local/bin/warmpath "$@"; }

# Why did it move? With our own commands alone.
moved() { # shape address
	local home second
	home=$(cli conversation chat-4711 --json | jq -r .home)
	is "$1: the conversation is at its home" "$(ask "$2")" "$home"
	cli replica drain "$home" >/dev/null
	second=$(ask "$2")
	matches "$1: drained: another replica answers" "$second" '^llm-[0-2]$'
	is "$1: it is another one" "$([ "$second" != "$home" ] && echo yes)" yes
	matches "$1: and it is said why" "$(cli conversation chat-4711)" "MOVED from $home: $home is draining"
	cli replica undrain "$home" >/dev/null
}

# --- one machine ---------------------------------------------------------------------------------------------

lab_up --replicas 3 --shape node-local --mode tc
machine_up router
run_blocks node-local router 1 2
run_blocks node-local client 1 9
moved node-local 10.0.1.1
run_blocks node-local router 3 9
machines_down

# --- a router ------------------------------------------------------------------------------------------------

lab_up --replicas 3 --mode native
machine_up router
run_blocks inline router 1 2
for name in llm-0 llm-1 llm-2; do
	machine_up $name router
	run_blocks inline $name 1 9
done
run_blocks inline router 3 3
run_blocks inline client 1 9
moved inline 10.9.9.8
run_blocks inline router 4 9
