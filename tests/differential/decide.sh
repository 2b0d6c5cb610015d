#!/bin/bash
# The decisions of both engines against the answers of an independent implementation (tests/data/README.md): recorded runs whole, to the
# letter, and 50 random streams of requests, answers and changes of the set for each policy and switch.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
warmpath=$build/warmpath
data=tests/data/decisions

settings_of() { # variant: the arguments of `warmpath decide`
	case $1 in
	bounded-tokens) echo --policy bounded --set load_metric=tokens ;;
	llm-aware-no-token-load) echo --policy llm-aware --set token_load=false ;;
	llm-aware-no-long) echo --policy llm-aware --set long_stickiness=false ;;
	llm-aware-no-memory) echo --policy llm-aware --set placement_memory=false ;;
	mod-n-replica-router) echo --policy mod-n --set dialect=replica-router --set vnodes=3 ;;
	llm-aware-replica-router)
		echo --policy llm-aware --set dialect=replica-router --set vnodes=5 --set epsilon=0.1 \
			--set long_epsilon=2.5 --set long_threshold=300
		;;
	*) echo --policy "$1" ;;
	esac
}

decide() { # variant engine <events >decisions
	# shellcheck disable=SC2046  # a list of arguments
	"$warmpath" decide $(settings_of "$1") --engine "$2"
}

recorded_runs() { # engine
	local file name seed variant
	for file in "$data"/decisions-*.jsonl.gz; do
		name=$(basename "$file" .jsonl.gz)
		name=${name#decisions-}
		seed=${name%%-*}
		variant=${name#*-}
		zcat "$file" >"$scratch/expected"
		zcat "$data/events-$seed.jsonl.gz" | decide "$variant" "$1" >"$scratch/got"
		if cmp -s "$scratch/expected" "$scratch/got"; then
			ok "recorded run $name, engine $1"
		else
			diff "$scratch/expected" "$scratch/got" | head -n 4
			not_ok "recorded run $name, engine $1"
		fi
	done
}

split_streams() { # file prefix: one file for each "# NUMBER ..." section
	zcat "$1" | awk -v prefix="$2" '/^# /{file = prefix $2; print $3 > (file ".sum"); next} {print > file}'
}

first_difference() { # decisions answers: the answers are "replica reason", the decisions whole; shows the first that differs
	sed -E 's/.*"replica": (null|"[^"]*"), "reason": "([^"]*)".*/\1 \2/; s/"//g; s/^null/None/' "$1" |
		diff - "$2" | head -n 4
}

random_streams() { # engine
	local file variant stream sum wrong
	for file in "$data"/streams-*.gz; do
		variant=$(basename "$file" .gz)
		variant=${variant#streams-}
		split_streams "$file" "$scratch/answers-"
		# most of the time goes by waiting for the kernel to let go of old rings: several at once
		for stream in $(seq 1 50); do
			decide "$variant" "$1" <"$scratch/stream-$stream" >"$scratch/got-$stream" &
			[ $((stream % 10)) != 0 ] || wait
		done
		wrong=0
		for stream in $(seq 1 50); do
			sum=$(sha256sum <"$scratch/got-$stream")
			[ "${sum%% *}" = "$(cat "$scratch/answers-$stream.sum")" ] && continue
			wrong=$((wrong + 1))
			echo "# $variant, stream $stream differs"
			first_difference "$scratch/got-$stream" "$scratch/answers-$stream"
		done
		if [ "$wrong" = 0 ]; then
			ok "50 random streams, $variant, engine $1"
		else
			not_ok "50 random streams, $variant, engine $1: $wrong differ"
		fi
		rm -f "$scratch"/answers-* "$scratch"/got-*
	done
}

complaint() { # description wanted-sentence-part event...
	local description=$1 wanted=$2
	shift 2
	printf '%s\n' "$@" | "$warmpath" decide --policy bounded >/dev/null 2>"$scratch/complaint"
	if [ $? = 1 ] && grep -qF "$wanted" "$scratch/complaint"; then
		ok "$description"
	else
		cat "$scratch/complaint"
		not_ok "$description"
	fi
}

bad_events() {
	local replicas='{"op":"replicas","names":["a","b"]}'
	complaint "what is not JSON is named by its line" "line 2: not JSON" "$replicas" "{"
	complaint "an unknown operation is named" 'line 1: "op" is "frobnicate"; allowed: replicas, request, finish' \
		'{"op":"frobnicate"}'
	complaint "an id with a forbidden character is refused" 'line 2: "id" is not 1 to 128 characters' "$replicas" \
		'{"op":"request","req":1,"id":"a b","prompt_tokens":1,"max_tokens":1}'
	complaint "a negative number of tokens is refused" 'line 3: "prompt_tokens" is not a whole number from 0 to 16777215' \
		"$replicas" "" '{"op":"request","req":1,"id":"a","prompt_tokens":-1,"max_tokens":1}'
	complaint "a request that is open already is refused" "line 3: request 1 is open already" "$replicas" \
		'{"op":"request","req":1,"id":"a","prompt_tokens":1,"max_tokens":1}' \
		'{"op":"request","req":1,"id":"b","prompt_tokens":1,"max_tokens":1}'
	complaint "a name that no replica can have is refused" "line 1:" '{"op":"replicas","names":["a b"]}'
}

engines=user
if echo '{"op":"replicas","names":["a"]}' | decide bounded kernel 2>"$scratch/why"; then
	engines="user kernel"
else
	skip "engine kernel: $(cat "$scratch/why")" "decisions by the engine kernel"
fi
split_streams "$data/streams.gz" "$scratch/stream-"
for engine in $engines; do
	recorded_runs "$engine"
	random_streams "$engine"
done
bad_events
