#!/bin/bash
# `warmpath top` on real terminals: sizes, resizing, keys, colours and none, ASCII, and an agent that is restarted and upgraded meanwhile.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

tmux_server=$WARMPATH_LAB servers=0
screen() { tmux -L "$tmux_server" "$@"; }

# start_top COLUMNS ROWS TERM LOCALE [VARIABLE=VALUE] [options]: in a terminal of its own, with traffic in the service
start_top() {
	local columns=$1 rows=$2 term=$3 locale=$4
	shift 4
	screen kill-server 2>/dev/null
	servers=$((servers + 1)) tmux_server=$WARMPATH_LAB-$servers
	screen -f /dev/null new-session -d -s top -x "$columns" -y "$rows" \
		"env TERM=$term LC_ALL=$locale WARMPATH_SOCKET=$WARMPATH_SOCKET $* >/dev/tty; echo ENDED \$?; sleep 60"
}

shows() { screen capture-pane -p -t top | grep -qE -- "$1"; }
shown() { # description, extended regular expression that will be on the screen
	if wait_until 10 shows "$2"; then
		ok "$1"
	else
		screen capture-pane -p -t top | note
		not_ok "$1: /$2/"
	fi
}
press() { screen send-keys -t top "$@"; }
widest() { screen capture-pane -p -t top | LC_ALL=C.UTF-8 wc -L; }

trap 'status=$?; screen kill-server 2>/dev/null; [ -z "${traffic_process[busy]-}" ] || kill "${traffic_process[busy]}" 2>/dev/null; clean_up || status=1; exit $status' EXIT

lab_up --replicas 3 --clients 1
agent_up --policy llm-aware
ids 30 talk >"$scratch/ids"
traffic_start busy "$scratch/ids" client --rate 40 --prompt-tokens 700 --max-tokens 50 8000 10.9.9.9
top="$build/warmpath top --service chat --interval 0.3"

# --- one frame -----------------------------------------------------------------------------------------------

warmpath top --once --service chat --ascii --interval 0.5 >"$scratch/once"
matches "one frame: the service" "$(cat "$scratch/once")" '^warmpath chat  llm-aware, by tokens  service 1 of 4'
matches "rates of reasons" "$(cat "$scratch/once")" '^reasons .*home [0-9.]+/s \([0-9]+%\)'
matches "a replica, with its share of the ring" "$(cat "$scratch/once")" '^llm-1 +active .* 35\.8 +[0-9]+/[0-9]+$'
matches "as JSON" "$(warmpath top --json --service chat | jq -c '[.services[].name, .replicas[].name]')" '\["chat","llm-0","llm-1","llm-2"\]'
is "no such service" "$(warmpath top --once --service none --interval 0.1 2>&1)" \
	'warmpath: there is no service none; warmpath service list prints them'
matches "no terminal" "$(warmpath top --service chat </dev/null 2>&1)" 'is no terminal; --once prints a frame'

# --- on terminals ----------------------------------------------------------------------------------------------

start_top 80 24 screen-256color C.UTF-8 "$top"
shown "80x24, in Unicode: decisions" 'decided +[1-9][0-9.]*/s'
shown "traffic has its hits" 'llm-1 +active .* [1-9][0-9]? +35\.8'
is "no wider than the terminal" "$([ "$(widest)" -le 80 ] && echo yes)" yes
check "256 colours" wait_until 5 eval 'screen capture-pane -ep -t top | grep -q "38;5;245m"'
press s
shown "s: sorted by load" 'LOAD/CAPv'
press r
shown "r: in reverse" 'LOAD/CAP\^'
press f
press -l llm-2
press Enter
shown "f: filtered" 'filter: llm-2|^llm-2'
check "and the others are gone" wait_until 5 eval '! shows "^llm-0"'
press Escape
shown "Esc drops the filter" '^llm-0'
press p
shown "p: paused" 'PAUSED'
press p
press '?'
shown "?: help" 'sort by the next column'
press '?'
press Tab
shown "Tab: the next service" 'warmpath web .* service 2 of 4'
press BTab
shown "and back" 'warmpath chat'
press Enter
shown "Enter: a replica, and decisions for it" 'replica llm-[0-2]'
shown "the last of them" ' talk-[0-9]+ -> llm-'
press Escape
press c
press -l talk-7
press Enter
shown "c: a conversation" 'cached on llm-[0-2]: 700 prompt tokens'
press Escape
press c
press -l 'bad!id'
press Enter
shown "what is no id is said to be none" 'is not an id'
screen resize-window -t top -x 200 -y 50
shown "resized: 200x50" '^llm-0 .*/[0-9]+$'
is "it uses the width" "$([ "$(widest)" -gt 100 ] && [ "$(widest)" -le 200 ] && echo yes)" yes
screen resize-window -t top -x 30 -y 8
shown "too small: said so" 'at least 40 columns'
screen resize-window -t top -x 80 -y 24
shown "and back" '^llm-2'

# --- the agent comes and goes ------------------------------------------------------------------------------------

tools/lab agent stop >/dev/null 2>&1
shown "no agent: said so" 'NO AGENT'
tools/lab agent start >/dev/null 2>&1
check "it is found again" wait_until 10 eval '! shows "NO AGENT"'
shown "and its rates" 'reasons .*home [0-9.]+/s'
check "an upgrade" warmpath upgrade
shown "goes on after an upgrade" 'reasons .*home [0-9.]+/s'
check "with the new agent" wait_until 10 eval '! shows "NO AGENT"'
press q
shown "q: ends well" 'ENDED 0'

start_top 80 24 vt100 C "$top"
shown "ASCII, no colours: llm-0" '^llm-0'
is "no colours on a terminal without" "$(screen capture-pane -ep -t top | grep -cE $'\033\\[[0-9;]*3([0-7]|8;)')" 0
is "nothing but ASCII" "$(screen capture-pane -p -t top | LC_ALL=C grep -c '[^ -~]')" 0
start_top 80 24 screen-256color C.UTF-8 NO_COLOR=1 "$top"
shown "NO_COLOR: llm-0" '^llm-0'
is "no colours" "$(screen capture-pane -ep -t top | grep -cE $'\033\\[[0-9;]*3([0-7]|8;)')" 0
