/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * warmpath ring study
 */
#include <argp.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/canvas.h"
#include "cli/cli.h"
#include "cli/client.h"
#include "cli/ring_set.h"
#include "cli/ring_study.h"
#include "cli/table.h"
#include "lib/ring_measure.h"

#define RINGS_DEFAULT 200

struct study_options {
	struct ring_set_options set;
	long replicas; /* 0: the set of warmpathd */
	__u32 vnodes[RING_STUDY_ROWS_MAX];
	size_t vnodes_count;
	__u32 rings;
	__u32 seed;
	double spread;	    /* 0: not asked for */
	const char *output; /* of the chart; NULL: none */
};

/* --- options -------------------------------------------------------------------------------------------------------- */

static void parse_list(struct study_options *options, char *text, struct argp_state *state)
{
	options->vnodes_count = 0;
	for (char *item; (item = strsep(&text, ","));) {
		if (options->vnodes_count == RING_STUDY_ROWS_MAX)
			argp_error(state, "at most %d numbers of virtual nodes are studied at once",
				   RING_STUDY_ROWS_MAX);
		options->vnodes[options->vnodes_count++] = ring_set_parse_vnodes(state, item);
	}
}

static error_t parse(int key, char *argument, struct argp_state *state)
{
	struct study_options *options = state->input;
	char *end;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &options->set.client;
		return 0;
	case 'r':
		options->replicas =
			argument_number(state, argument, "replicas", 1, REPLICAS_MAX - 1);
		return 0;
	case 'n':
		parse_list(options, argument, state);
		return 0;
	case 'R':
		options->rings = argument_number(state, argument, "rings", 1, RING_STUDY_RINGS_MAX);
		return 0;
	case 'e':
		options->seed = argument_number(state, argument, "seeds", 0, 999999999);
		return 0;
	case 'd':
		if (ring_parse_dialect(argument, &options->set.dialect))
			argp_error(
				state,
				"there is no ring dialect \"%s\": use llm-ring or replica-router",
				argument);
		return 0;
	case 'x':
		options->spread = strtod(argument, &end);
		if (end == argument || *end != '\0' || !(options->spread > 1) ||
		    options->spread > 1000)
			argp_error(
				state,
				"\"%s\" is not a spread: give the fullest replica's share compared "
				"with its due, above 1, such as 1.2",
				argument);
		return 0;
	case 'o':
		options->output = canvas_argument(state, argument);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* --- tables ----------------------------------------------------------------------------------------------------------- */

static void number_cell(struct table *table, double number)
{
	if (number >= 1e6)
		table_cell(table, "-");
	else
		table_cell(table, number >= 100 ? "%.0f" : number >= 10 ? "%.1f" : "%.2f", number);
}

static void bytes_cell(struct table *table, size_t bytes)
{
	if (bytes >= 10u << 20)
		table_cell(table, "%.0f MiB", bytes / 1048576.0);
	else
		table_cell(table, "%.1f MiB", bytes / 1048576.0);
}

static void time_cell(struct table *table, double seconds)
{
	table_cell(table, seconds < 0.01 ? "%.2f ms" : "%.0f ms", seconds * 1e3);
}

static void print_table(const struct ring_study_results *results)
{
	static const char *const headings[] = {"VNODES",  "POINTS",   "MAX/MIN", "P90",
					       "MAX/DUE", "P90",      "ADD ONE", "REMOVE ONE",
					       "MEMORY",  "BUILDING", "LOOK-UP"};
	struct table table;

	table_begin(&table, results->measured ? 11 : 10, headings);
	for (size_t i = 0; i < results->count; i++) {
		const struct ring_study_row *row = &results->rows[i];

		table_cell(&table, "%u", row->vnodes);
		table_cell(&table, "%u", row->points);
		number_cell(&table, row->max_min.median);
		number_cell(&table, row->max_min.p90);
		number_cell(&table, row->max_mean.median);
		number_cell(&table, row->max_mean.p90);
		table_cell(&table, "%.1f-%.1f %%", 100 * row->added.p10, 100 * row->added.p90);
		table_cell(&table, "%.1f-%.1f %%", 100 * row->removed.p10, 100 * row->removed.p90);
		bytes_cell(&table, row->bytes);
		time_cell(&table, row->build.median);
		if (results->measured)
			table_cell(&table, "%.1f ns", results->look_up_nanoseconds[i]);
	}
	table_print(&table);
}

static void print_notes(const struct study_options *options,
			const struct ring_study_results *results, const char *not_measured)
{
	const struct ring_study_row *row = &results->rows[0];

	printf("\nMAX/MIN   the fullest replica's share compared with the emptiest one's; MAX/DUE with its\n"
	       "          due; each the median ring, and the one that nine in ten are better than (P90)\n"
	       "ADD ONE   conversations moved by one more replica, P10 to P90; an even share is %.1f %%\n"
	       "REMOVE    by one replica less; an even share is %.1f %%\n"
	       "MEMORY    of the kernel's tables, both generations; BUILDING in warmpathd%s\n",
	       100 * row->added_ideal, 100 * row->removed_ideal,
	       results->measured ? "; LOOK-UP in the kernel" : "");
	if (not_measured)
		printf("Look-ups were not measured: %s.\n", not_measured);
	if (results->live_spread > 0)
		printf("\nThe ring of service %s at present (%u virtual nodes): max/min %.2f, max/due %.2f.\n",
		       results->service, results->live_vnodes, results->live_max_min,
		       results->live_spread);
	if (results->recommended >= 0) {
		row = &results->rows[results->recommended];
		printf("\nFor a spread of %g: %u virtual nodes for each replica (%u points). Nine rings in ten give the\n"
		       "fullest replica at most %.3f times its due; the tables take %.1f MiB.\n",
		       options->spread, row->vnodes, row->points, row->max_mean.p90,
		       row->bytes / 1048576.0);
	}
}

static json_t *quantiles_json(const struct ring_quantiles *quantiles)
{
	return json_pack("{s:f, s:f, s:f}", "p10", quantiles->p10, "median", quantiles->median,
			 "p90", quantiles->p90);
}

static void print_json(const struct study_options *options,
		       const struct ring_study_results *results)
{
	json_t *list = json_array();
	json_t *answer =
		json_pack("{s:i, s:i, s:i, s:s, s:o}", "replicas", (int)results->study.replicas,
			  "rings", (int)results->study.rings, "seed", (int)results->study.seed,
			  "dialect", ring_dialect_name(results->study.dialect), "rows", list);

	for (size_t i = 0; i < results->count; i++) {
		const struct ring_study_row *row = &results->rows[i];
		json_t *item = json_pack(
			"{s:i, s:i, s:o, s:o, s:o, s:o, s:f, s:f, s:I, s:o}", "vnodes",
			(int)row->vnodes, "points", (int)row->points, "max_min",
			quantiles_json(&row->max_min), "max_mean", quantiles_json(&row->max_mean),
			"moved_by_adding", quantiles_json(&row->added), "moved_by_removing",
			quantiles_json(&row->removed), "moved_by_adding_ideal", row->added_ideal,
			"moved_by_removing_ideal", row->removed_ideal, "bytes",
			(json_int_t)row->bytes, "build_seconds", quantiles_json(&row->build));

		if (results->measured)
			json_object_set_new(item, "look_up_nanoseconds",
					    json_real(results->look_up_nanoseconds[i]));
		json_array_append_new(list, item);
	}
	if (results->live_spread > 0)
		json_object_set_new(answer, "live",
				    json_pack("{s:s, s:i, s:f, s:f}", "service", results->service,
					      "vnodes", (int)results->live_vnodes, "max_min",
					      results->live_max_min, "max_mean",
					      results->live_spread));
	if (results->recommended >= 0)
		json_object_set_new(answer, "recommended",
				    json_pack("{s:f, s:i}", "spread", options->spread, "vnodes",
					      (int)results->rows[results->recommended].vnodes));
	json_dumpf(answer, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
	putchar('\n');
	json_decref(answer);
}

/* --- the study ------------------------------------------------------------------------------------------------------ */

static int failed(const struct error *error)
{
	complain("%s", error->text);
	return EXIT_FAILED;
}

/* The row of the recommendation goes among the others, by virtual nodes. */
static void insert(struct ring_study_results *results, const struct ring_study_row *row)
{
	size_t at = 0;

	while (at < results->count && results->rows[at].vnodes < row->vnodes)
		at++;
	if (at == results->count || results->rows[at].vnodes != row->vnodes) {
		memmove(&results->rows[at + 1], &results->rows[at],
			(results->count - at) * sizeof(*row));
		results->count++;
	}
	results->rows[at] = *row;
	results->recommended = (int)at;
}

static int by_number(const void *a, const void *b)
{
	__u32 left = *(const __u32 *)a, right = *(const __u32 *)b;

	return (left > right) - (left < right);
}

static int run(struct study_options *options, struct ring_study_results *results)
{
	struct ring_study_row row;
	struct error error;

	qsort(options->vnodes, options->vnodes_count, sizeof(options->vnodes[0]), by_number);
	for (size_t i = 0; i < options->vnodes_count; i++) {
		if (i > 0 && options->vnodes[i] == options->vnodes[i - 1])
			continue;
		if (ring_study_run(&results->study, options->vnodes[i],
				   &results->rows[results->count++], &error))
			return failed(&error);
	}
	if (options->spread > 0) {
		if (ring_study_recommend(&results->study, options->spread, &row, &error))
			return failed(&error);
		insert(results, &row);
	}
	return EXIT_DONE;
}

/* Fills the column of look-ups; 0, or a negative errno with a sentence: then the column is left out. */
static int measure(struct ring_study_results *results, struct error *error)
{
	struct ring_measure *measure;
	int result = ring_measure_open(&measure, error);

	for (size_t i = 0; i < results->count && !result; i++) {
		struct ring ring;

		result =
			ring_study_build(&results->study, results->rows[i].vnodes, 0, &ring, error);
		if (result)
			break;
		result = ring_measure_look_up(measure, &ring, &results->look_up_nanoseconds[i],
					      error);
		ring_free(&ring);
	}
	ring_measure_close(measure);
	results->measured = result == 0;
	return result;
}

/* The weights of those active, and how even their own ring is. */
static int take_live_set(struct study_options *options, struct ring_study_results *results,
			 __u32 *weights)
{
	struct ring_set set;
	struct ring ring;
	int code = ring_set_read(&set, &options->set);

	if (code != EXIT_DONE)
		return code;
	for (size_t i = 0; i < set.count; i++)
		if (strcmp(set.replicas[i].state, "active") == 0)
			weights[results->study.replicas++] = set.replicas[i].weight_thousandths;
	code = ring_set_build(&set, false, &ring);
	if (code == EXIT_DONE && results->study.replicas == 0) {
		complain("no replica is active in service %s; --replicas NUMBER studies without",
			 set.service);
		code = EXIT_FAILED;
	}
	if (code == EXIT_DONE) {
		results->study.dialect = set.dialect;
		results->live_vnodes = set.vnodes;
		snprintf(results->service, sizeof(results->service), "%s", set.service);
		/* set and ring are both in the order of names */
		ring_spread(&ring, weights, &results->live_spread, &results->live_max_min);
		ring_free(&ring);
	}
	ring_set_free(&set);
	return code;
}

int ring_study_main(int argc, char **argv)
{
	static const struct argp_option option_list[] = {
		{"replicas", 'r', "NUMBER", 0,
		 "How many replicas of weight 1 (without this: those of the running warmpathd, with "
		 "their weights)",
		 0},
		{"vnodes", 'n', "NUMBER,...", 0,
		 "Numbers of virtual nodes to compare (1,10,40,100,256,1000)", 0},
		{"rings", 'R', "NUMBER", 0, "Random rings for each (200)", 0},
		{"seed", 'e', "NUMBER", 0, "Of the random rings (1)", 0},
		{"dialect", 'd', "DIALECT", 0, "llm-ring (the default) or replica-router", 0},
		{"spread", 'x', "RATIO", 0,
		 "Find the least number of virtual nodes with which the fullest replica has at most "
		 "RATIO times its due, nine rings in ten",
		 0},
		{"output", 'o', "FILE", 0, "Draw a chart: FILE.svg or FILE.png", 0},
		{0},
	};
	static const struct argp argp = {
		.options = option_list,
		.parser = parse,
		.children = client_service_children,
		.doc = "Build many rings with random names and measure how evenly they spread "
		       "conversations, what adding and removing a replica moves, and what they cost.\v"
		       "Examples:\n"
		       "  warmpath ring study --replicas 8\n"
		       "  warmpath ring study --replicas 8 --spread 1.1 --output study.svg",
	};
	struct study_options options = {
		.set.dialect = RING_LLM,
		.vnodes = {1, 10, 40, 100, 256, 1000},
		.vnodes_count = 6,
		.rings = RINGS_DEFAULT,
		.seed = 1,
	};
	struct ring_study_results results = {.recommended = -1};
	__u32 weights[REPLICAS_MAX];
	struct error error = {0};
	int code = EXIT_DONE, not_measured;

	argp_parse(&argp, argc, argv, 0, NULL, &options);
	results.study = (struct ring_study){
		.dialect = options.set.dialect,
		.weights_thousandths = weights,
		.replicas = options.replicas,
		.rings = options.rings,
		.seed = options.seed,
	};
	for (long i = 0; i < options.replicas; i++)
		weights[i] = RING_WEIGHT_ONE;
	if (options.replicas == 0)
		code = take_live_set(&options, &results, weights);
	if (code == EXIT_DONE)
		code = run(&options, &results);
	if (code != EXIT_DONE)
		return code;
	not_measured = measure(&results, &error);
	if (options.set.client.json) {
		print_json(&options, &results);
	} else {
		printf("%u replica%s, %u random rings each, dialect %s, seed %u\n\n",
		       results.study.replicas, results.study.replicas == 1 ? "" : "s",
		       results.study.rings, ring_dialect_name(results.study.dialect),
		       results.study.seed);
		print_table(&results);
		print_notes(&options, &results, not_measured ? error.text : NULL);
	}
	if (options.output && ring_study_draw(&results, options.output, &error))
		return failed(&error);
	return EXIT_DONE;
}
