/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * warmpath ring walk: where ids fall on a ring given on the command line. Needs neither root nor a running router.
 */
#include "cli/cli.h"

#include <argp.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/hash_key.h"
#include "lib/ring.h"

struct walk_options {
	char *replicas; /* "a,b,c" */
	char *weights;	/* "a=2,c=0.5" */
	const char *hash_key_file;
	enum ring_dialect dialect;
	__u32 vnodes; /* 0: the dialect's own */
	char **ids;
	size_t id_count;
};

enum {
	OPTION_REPLICAS = 'r',
	OPTION_VNODES = 'n',
	OPTION_DIALECT = 'd',
	OPTION_WEIGHTS = 'w',
	OPTION_HASH_KEY_FILE = 'k',
};

static const struct argp_option walk_option_list[] = {
	{"replicas", OPTION_REPLICAS, "NAME,...", 0, "The replicas on the ring", 0},
	{"vnodes", OPTION_VNODES, "NUMBER", 0,
	 "Virtual nodes of a replica of weight 1 (llm-ring: 100, replica-router: 3)", 0},
	{"dialect", OPTION_DIALECT, "DIALECT", 0, "llm-ring (the default) or replica-router", 0},
	{"weights", OPTION_WEIGHTS, "NAME=WEIGHT,...", 0,
	 "Weights that are not 1: 0.001 to 1000, at most three decimals", 0},
	{"hash-key-file", OPTION_HASH_KEY_FILE, "FILE", 0,
	 "The secret key of the hash: a file of 1 to 64 bytes (llm-ring only)", 0},
	{0},
};

static error_t parse_walk(int key, char *argument, struct argp_state *state)
{
	struct walk_options *options = state->input;
	unsigned long number;
	char *end;

	switch (key) {
	case OPTION_REPLICAS:
		options->replicas = argument;
		return 0;
	case OPTION_WEIGHTS:
		options->weights = argument;
		return 0;
	case OPTION_HASH_KEY_FILE:
		options->hash_key_file = argument;
		return 0;
	case OPTION_DIALECT:
		if (ring_parse_dialect(argument, &options->dialect))
			argp_error(
				state,
				"there is no ring dialect \"%s\": use llm-ring or replica-router",
				argument);
		return 0;
	case OPTION_VNODES:
		errno = 0;
		number = strtoul(argument, &end, 10);
		if (errno || end == argument || *end != '\0' || *argument == '-' || number < 1 ||
		    number > RING_POINTS_MAX)
			argp_error(state, "\"%s\" is not a number of virtual nodes: give 1 to %u",
				   argument, RING_POINTS_MAX);
		options->vnodes = number;
		return 0;
	case ARGP_KEY_ARGS:
		options->ids = state->argv + state->next;
		options->id_count = state->argc - state->next;
		return 0;
	case ARGP_KEY_END:
		if (!options->replicas)
			argp_error(state, "say which replicas: --replicas NAME,...");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static int set_weights(struct ring_replica *replicas, size_t count, char *weights)
{
	struct error error;

	for (char *item; (item = strsep(&weights, ","));) {
		char *weight = strchr(item, '=');
		__u32 thousandths;
		bool found = false;

		if (!weight) {
			complain("\"%s\" is not a weight: write NAME=WEIGHT", item);
			return -EINVAL;
		}
		*weight++ = '\0';
		if (ring_parse_weight(weight, &thousandths, &error)) {
			complain("%s", error.text);
			return -EINVAL;
		}
		for (size_t i = 0; i < count; i++) {
			if (strcmp(replicas[i].name, item) != 0)
				continue;
			replicas[i].weight_thousandths = thousandths;
			found = true;
		}
		if (!found) {
			complain(
				"there is a weight for replica %s, which is not among the replicas",
				item);
			return -EINVAL;
		}
	}
	return 0;
}

/* "a,b,a" -> three replicas, of which the last has the slot of the first. The names stay in the text. */
static struct ring_replica *split_replicas(char *text, size_t *count)
{
	struct ring_replica *replicas;
	size_t room = 1;

	for (const char *c = text; *c != '\0'; c++)
		room += *c == ',';
	replicas = calloc(room, sizeof(*replicas));
	*count = 0;
	for (char *name; replicas && (name = strsep(&text, ","));) {
		struct ring_replica *replica = &replicas[*count];

		*replica = (struct ring_replica){
			.name = name,
			.slot = *count,
			.weight_thousandths = RING_WEIGHT_ONE,
		};
		for (size_t i = 0; i < *count; i++)
			if (strcmp(replicas[i].name, name) == 0)
				replica->slot = replicas[i].slot;
		(*count)++;
	}
	return replicas;
}

static int build(struct ring *ring, struct walk_options *options)
{
	__u8 hash_key[RING_HASH_KEY_LENGTH_MAX];
	struct ring_settings settings = {
		.dialect = options->dialect,
		.vnodes = options->vnodes,
		.hash_key = hash_key,
	};
	struct ring_replica *replicas;
	struct error error;
	size_t count;
	int err = 0;

	if (settings.vnodes == 0)
		settings.vnodes = ring_default_vnodes(settings.dialect);
	if (options->hash_key_file)
		err = hash_key_read(options->hash_key_file, hash_key, &settings.hash_key_length,
				    &error);
	if (err) {
		complain("%s", error.text);
		return err;
	}
	replicas = split_replicas(options->replicas, &count);
	if (!replicas)
		return -ENOMEM;
	err = options->weights ? set_weights(replicas, count, options->weights) : 0;
	if (!err) {
		err = ring_build(ring, &settings, replicas, count, &error);
		if (err)
			complain("%s", error.text);
	}
	free(replicas);
	explicit_bzero(hash_key, sizeof(hash_key));
	return err;
}

/* A JSON string of printable ASCII, as Python's json.dumps writes it. 0, or -EINVAL if the text is not UTF-8. */
static int print_text(const char *text, size_t length)
{
	json_t *string = json_stringn(text, length);
	char *escaped = NULL;

	if (string)
		escaped = json_dumps(string, JSON_ENSURE_ASCII | JSON_ENCODE_ANY);
	json_decref(string);
	if (!escaped)
		return -EINVAL;
	for (const char *c = escaped; *c != '\0'; c++) {
		if (c[0] == '\\' && c[1] == 'u') {
			printf("\\u%04lx",
			       strtoul((const char[]){c[2], c[3], c[4], c[5], '\0'}, NULL, 16));
			c += 5;
		} else if (c[0] == '\\') {
			putchar(*c++);
			putchar(*c);
		} else if (*c == '\x7f') {
			fputs("\\u007f", stdout);
		} else {
			putchar(*c);
		}
	}
	free(escaped);
	return 0;
}

static int print_walk(const struct ring *ring, const char *id, size_t length)
{
	__u32 members[REPLICAS_MAX];
	__u64 hash = ring_hash(ring, id, length);
	size_t count = ring_walk(ring, hash, members, REPLICAS_MAX);

	fputs("{\"id\": ", stdout);
	if (print_text(id, length)) {
		fputc('\n', stdout);
		complain("an id is not valid UTF-8");
		return EXIT_FAILED;
	}
	if (ring->header.dialect == RING_REPLICA_ROUTER && hash > 0)
		printf(", \"hash\": \"0x%llx%016llx\", \"walk\": [", (unsigned long long)hash,
		       (unsigned long long)md5(id, length).low);
	else if (ring->header.dialect == RING_REPLICA_ROUTER)
		printf(", \"hash\": \"0x%llx\", \"walk\": [",
		       (unsigned long long)md5(id, length).low);
	else
		printf(", \"hash\": \"0x%llx\", \"walk\": [", (unsigned long long)hash);
	for (size_t i = 0; i < count; i++)
		printf("%s\"%s\"", i > 0 ? ", " : "", ring->names[members[i]]);
	fputs("]}\n", stdout);
	return EXIT_DONE;
}

static int print_walks_of_input(const struct ring *ring)
{
	size_t room = 0;
	char *line = NULL;
	ssize_t length;
	int code = EXIT_DONE;

	while (code == EXIT_DONE && (length = getline(&line, &room, stdin)) >= 0) {
		if (length > 0 && line[length - 1] == '\n')
			length--;
		code = print_walk(ring, line, length);
	}
	free(line);
	if (ferror(stdin)) {
		complain("the ids cannot be read from standard input: %s", strerror(errno));
		code = EXIT_FAILED;
	}
	return code;
}

static int walk_main(int argc, char **argv)
{
	static const struct argp argp = {
		.options = walk_option_list,
		.parser = parse_walk,
		.args_doc = "[ID...]",
		.doc = "Print, for each id, its hash and the distinct replicas clockwise from it: the "
		       "first is its home. Without ids, or for the id -, they are read from standard "
		       "input, one a line.\v"
		       "Example:\n"
		       "  warmpath ring walk --replicas llm-0,llm-1,llm-2 conv1",
	};
	struct walk_options options = {.dialect = RING_LLM};
	struct ring ring;
	int code = EXIT_DONE;

	argp_parse(&argp, argc, argv, 0, NULL, &options);
	if (build(&ring, &options))
		return EXIT_FAILED;
	if (options.id_count == 0)
		code = print_walks_of_input(&ring);
	for (size_t i = 0; i < options.id_count && code == EXIT_DONE; i++)
		code = strcmp(options.ids[i], "-") == 0
			       ? print_walks_of_input(&ring)
			       : print_walk(&ring, options.ids[i], strlen(options.ids[i]));
	ring_free(&ring);
	if (fflush(stdout) && code == EXIT_DONE) {
		complain("the answer cannot be written: %s", strerror(errno));
		code = EXIT_FAILED;
	}
	return code;
}

int ring_main(int argc, char **argv)
{
	static const struct subcommand subcommands[] = {
		{"walk", walk_main, "Print the replicas clockwise from each id"},
		{0},
	};

	return run_subcommand(subcommands, argc, argv);
}
