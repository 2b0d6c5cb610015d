/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * warmpath ring walk: where ids fall on a ring given on the command line. Needs neither root nor a running router.
 */
#include <argp.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/ring_set.h"

struct walk_options {
	struct ring_set_options set;
	char **ids;
	size_t id_count;
};

static error_t parse_walk(int key, char *argument, struct argp_state *state)
{
	struct walk_options *options = state->input;

	(void)argument;
	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &options->set;
		return 0;
	case ARGP_KEY_ARGS:
		options->ids = state->argv + state->next;
		options->id_count = state->argc - state->next;
		return 0;
	case ARGP_KEY_END:
		if (!options->set.replicas)
			argp_error(state, "say which replicas: --replicas NAME,...");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
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

int ring_walk_main(int argc, char **argv)
{
	static const struct argp_child children[] = {{&ring_set_argp, 0, NULL, 0}, {0}};
	static const struct argp argp = {
		.parser = parse_walk,
		.args_doc = "[ID...]",
		.children = children,
		.doc = "Print, for each id, its hash and the distinct replicas clockwise from it: the "
		       "first is its home. Without ids, or for the id -, they are read from standard "
		       "input, one a line. Any text is hashed, also what a router takes for no id; a replica named "
		       "twice is one.\v"
		       "Example:\n"
		       "  warmpath ring walk --replicas llm-0,llm-1,llm-2 conv1",
	};
	struct walk_options options = {.set.dialect = RING_LLM};
	struct ring_set set;
	struct ring ring;
	int code;

	argp_parse(&argp, argc, argv, 0, NULL, &options);
	code = ring_set_read(&set, &options.set);
	if (code != EXIT_DONE)
		return code;
	code = ring_set_build(&set, true, &ring);
	ring_set_free(&set);
	if (code != EXIT_DONE)
		return code;
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
