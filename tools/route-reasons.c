/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * route-reasons RUN.csv TRACE.jsonl: writes into a run's CSV why the router chose each replica, from `warmpath trace --json`, and compares the
 * replica that answered with the one that the router says it chose. Prints the counts as JSON; exit status 0 whatever they are.
 *
 * The n-th decision about a conversation's hash is its n-th request, where there are as many of the one as of the other. A client whose kept-alive
 * connection the replica closes just then sends the request once more (RFC 9112, section 9.3.1), and the CSV has it once: where there are more decisions than
 * requests, those whose completion was a failure are left out.
 */
#include <errno.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <warmpath/blake2b.h>

#include "lib/records.h"

struct decision_seen {
	uint64_t hash;
	size_t order;
	json_int_t number; /* the router's */
	bool failed;
	char replica[RECORD_NAME_SIZE];
	char reason[RECORD_NAME_SIZE];
};

struct row {
	struct record record;
	uint64_t hash;
	size_t order;
};

struct rows {
	struct row *rows;
	size_t count, capacity;
};

struct decisions {
	struct decision_seen *decisions;
	size_t count, capacity;
};

static void *grow(void *array, size_t count, size_t *capacity, size_t size)
{
	if (count < *capacity)
		return array;
	*capacity = *capacity ? *capacity * 2 : 1024;
	array = realloc(array, *capacity * size);
	if (!array) {
		fputs("route-reasons: out of memory\n", stderr);
		exit(1);
	}
	return array;
}

static void add_row(const struct record *record, void *context)
{
	struct rows *rows = context;
	const char *id = record->conversation_id;

	rows->rows = grow(rows->rows, rows->count, &rows->capacity, sizeof(*rows->rows));
	rows->rows[rows->count] = (struct row){.record = *record,
					       .hash = blake2b_64(id, strlen(id), NULL, 0),
					       .order = rows->count};
	rows->count++;
}

static const char *text_of(const json_t *event, const char *name)
{
	const char *text = json_string_value(json_object_get(event, name));

	return text ? text : "";
}

static void add_decision(struct decisions *decisions, const json_t *event)
{
	struct decision_seen *seen;

	decisions->decisions = grow(decisions->decisions, decisions->count, &decisions->capacity,
				    sizeof(*decisions->decisions));
	seen = &decisions->decisions[decisions->count];
	seen->hash = strtoull(text_of(event, "hash"), NULL, 16);
	seen->order = decisions->count++;
	seen->number = json_integer_value(json_object_get(event, "number"));
	seen->failed = false;
	snprintf(seen->replica, sizeof(seen->replica), "%s", text_of(event, "replica"));
	snprintf(seen->reason, sizeof(seen->reason), "%s", text_of(event, "reason"));
}

/* A request ends soon after it was decided on: the search is from the newest decision back. */
static void add_failure(struct decisions *decisions, const json_t *event)
{
	uint64_t hash = strtoull(text_of(event, "hash"), NULL, 16);
	json_int_t number = json_integer_value(json_object_get(event, "number"));

	for (size_t i = decisions->count; i-- > 0;) {
		if (decisions->decisions[i].number != number ||
		    decisions->decisions[i].hash != hash)
			continue;
		decisions->decisions[i].failed = true;
		return;
	}
}

static void add_event(struct decisions *decisions, const json_t *event)
{
	const char *kind = text_of(event, "event");

	if (!json_object_get(event, "hash"))
		return;
	if (strcmp(kind, "decision") == 0)
		add_decision(decisions, event);
	else if (strcmp(kind, "completion") == 0 && strcmp(text_of(event, "status"), "failed") == 0)
		add_failure(decisions, event);
}

static int read_decisions(const char *path, struct decisions *decisions)
{
	FILE *file = fopen(path, "re");
	char *line = NULL;
	size_t size = 0;
	int number = 0, result = 0;

	if (!file) {
		fprintf(stderr, "route-reasons: %s: %s\n", path, strerror(errno));
		return -ENOENT;
	}
	while (!result && getline(&line, &size, file) > 0) {
		json_t *event = json_loads(line, 0, NULL);

		number++;
		/* the last line may have been cut off when the trace was ended */
		if (!event && strchr(line, '\n')) {
			fprintf(stderr, "route-reasons: %s, line %d: malformed JSON\n", path,
				number);
			result = -EINVAL;
		}
		add_event(decisions, event);
		json_decref(event);
	}
	free(line);
	fclose(file);
	return result;
}

static int by_hash(const void *a, const void *b)
{
	const struct decision_seen *one = a, *other = b;

	if (one->hash != other->hash)
		return one->hash < other->hash ? -1 : 1;
	return one->order < other->order ? -1 : 1;
}

static int by_conversation(const void *a, const void *b)
{
	const struct row *one = a, *other = b;
	double start = one->record.t_start_s - other->record.t_start_s;

	if (one->hash != other->hash)
		return one->hash < other->hash ? -1 : 1;
	if (start != 0)
		return start < 0 ? -1 : 1;
	return one->order < other->order ? -1 : 1;
}

static int by_order(const void *a, const void *b)
{
	const struct row *one = a, *other = b;

	return one->order < other->order ? -1 : 1;
}

struct tally {
	int agree, differ, unanswered, unpaired, repeated;
};

/* Leaves out the decisions whose requests failed, in place. Returns how many are left. */
static size_t leave_out_failed(struct decision_seen *decisions, size_t count)
{
	size_t kept = 0;

	for (size_t i = 0; i < count; i++)
		if (!decisions[i].failed)
			decisions[kept++] = decisions[i];
	return kept;
}

/* One conversation: `count` rows, and as many decisions or not. */
static void pair(struct row *rows, size_t count, struct decision_seen *decisions,
		 size_t decision_count, struct tally *tally)
{
	if (count < decision_count) {
		size_t kept = leave_out_failed(decisions, decision_count);

		if (kept == count)
			tally->repeated += (int)(decision_count - kept);
		decision_count = kept;
	}
	if (count != decision_count) {
		tally->unpaired += (int)count;
		return;
	}
	for (size_t i = 0; i < count; i++) {
		struct record *record = &rows[i].record;

		memcpy(record->route_reason, decisions[i].reason, sizeof(record->route_reason));
		if (!record->replica[0])
			tally->unanswered++;
		else if (strcmp(record->replica, decisions[i].replica) == 0)
			tally->agree++;
		else
			tally->differ++;
	}
}

static void pair_all(struct rows *rows, struct decisions *decisions, struct tally *tally)
{
	size_t decision = 0;

	if (!rows->count || !decisions->count)
		return;
	qsort(rows->rows, rows->count, sizeof(*rows->rows), by_conversation);
	qsort(decisions->decisions, decisions->count, sizeof(*decisions->decisions), by_hash);
	for (size_t row = 0, next; row < rows->count; row = next) {
		uint64_t hash = rows->rows[row].hash;
		size_t first;

		for (next = row; next < rows->count && rows->rows[next].hash == hash;)
			next++;
		while (decision < decisions->count && decisions->decisions[decision].hash < hash)
			decision++;
		first = decision;
		while (decision < decisions->count && decisions->decisions[decision].hash == hash)
			decision++;
		pair(rows->rows + row, next - row, decisions->decisions + first, decision - first,
		     tally);
	}
	qsort(rows->rows, rows->count, sizeof(*rows->rows), by_order);
}

/* Beside the old file, then in its place: it is there whole at any moment. */
static int write_rows(const char *path, const struct rows *rows)
{
	char other[4096];
	FILE *file;
	int result;

	snprintf(other, sizeof(other), "%s.new", path);
	file = fopen(other, "we");
	result = file ? records_write_header(file) : -errno;
	for (size_t i = 0; i < rows->count && !result; i++)
		result = records_write(file, &rows->rows[i].record);
	if (file && fclose(file) && !result)
		result = -errno;
	if (!result && rename(other, path))
		result = -errno;
	if (!result)
		return 0;
	fprintf(stderr, "route-reasons: cannot write %s: %s; it is as it was\n", path,
		strerror(-result));
	remove(other);
	return result;
}

int main(int count, char **arguments)
{
	struct rows rows = {0};
	struct decisions decisions = {0};
	struct tally tally = {0};
	char error[TOOLS_ERROR_SIZE];

	if (count != 3) {
		fputs("Usage: route-reasons RUN.csv TRACE.jsonl\n", stderr);
		return 2;
	}
	if (records_read(arguments[1], add_row, &rows, error)) {
		fprintf(stderr, "route-reasons: %s\n", error);
		return 1;
	}
	if (read_decisions(arguments[2], &decisions))
		return 1;
	pair_all(&rows, &decisions, &tally);
	if (write_rows(arguments[1], &rows))
		return 1;
	printf("{\"decisions\": %zu, \"agree\": %d, \"differ\": %d, \"unanswered\": %d, \"unpaired\": %d, \"repeated\": %d}\n",
	       decisions.count, tally.agree, tally.differ, tally.unanswered, tally.unpaired,
	       tally.repeated);
	free(rows.rows);
	free(decisions.decisions);
	return 0;
}
