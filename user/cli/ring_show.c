/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * warmpath ring show
 */
#include <argp.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/bar.h"
#include "cli/cli.h"
#include "cli/ring_view.h"
#include "cli/table.h"

#define BAR_WIDTH 30

static void print_replica(struct table *table, const struct ring_view *view,
			  const struct ring_view_replica *replica, double widest)
{
	char bar[BAR_SIZE(BAR_WIDTH)];
	double share = view->changed ? replica->share_after : replica->share;
	double due = view->changed ? replica->due_after : replica->due;

	table_cell(table, "%s", replica->name);
	table_cell(table, "%s",
		   view->changed && replica->name == view->changed && !view->added
			   ? "removed"
			   : replica->state);
	table_cell(table, "%g", replica->weight);
	table_cell(table, "%u", replica->points);
	table_cell(table, "%.2f %%", 100 * replica->share);
	if (view->changed) {
		table_cell(table, "%.2f %%", 100 * replica->share_after);
		table_cell(table, "%+.2f %%", 100 * (replica->share_after - replica->share));
	}
	table_cell(table, "%.2f %%", 100 * due);
	if (due > 0)
		table_cell(table, "%.2f", share / due);
	else
		table_cell(table, "-");
	table_cell(table, "%s", bar_text(bar, BAR_WIDTH, share / widest, bar_is_unicode()));
}

static void print_view(const struct ring_view *view)
{
	static const char *const plain[] = {"REPLICA", "STATE", "WEIGHT",    "POINTS",
					    "SHARE",   "DUE",	"SHARE/DUE", ""};
	static const char *const changed[] = {"REPLICA", "STATE",  "WEIGHT", "POINTS",	  "BEFORE",
					      "AFTER",	 "CHANGE", "DUE",    "AFTER/DUE", ""};
	char text[512];
	struct table table;
	double widest = 0;

	ring_view_describe(view, text, sizeof(text));
	printf("%s\n", text);
	ring_view_describe_change(view, text, sizeof(text));
	if (text[0])
		printf("%s\n", text);
	putchar('\n');
	for (size_t i = 0; i < view->count; i++)
		widest = fmax(widest, view->changed ? view->replicas[i].share_after
						    : view->replicas[i].share);
	table_begin(&table, view->changed ? 10 : 8, view->changed ? changed : plain);
	for (size_t i = 0; i < view->count; i++)
		print_replica(&table, view, &view->replicas[i], widest);
	table_print(&table);
}

static void print_json(const struct ring_view *view)
{
	json_t *list = json_array(), *answer;

	for (size_t i = 0; i < view->count; i++) {
		const struct ring_view_replica *replica = &view->replicas[i];
		json_t *item = json_pack("{s:s, s:s, s:f, s:i, s:f, s:f}", "name", replica->name,
					 "state", replica->state, "weight", replica->weight,
					 "points", (int)replica->points, "share", replica->share,
					 "due", replica->due);

		if (view->changed) {
			json_object_set_new(item, "share_after", json_real(replica->share_after));
			json_object_set_new(item, "due_after", json_real(replica->due_after));
			json_object_set_new(item, "gained", json_real(replica->gained));
			json_object_set_new(item, "lost", json_real(replica->lost));
		}
		json_array_append_new(list, item);
	}
	answer = json_pack("{s:s, s:i, s:i, s:o}", "dialect", ring_dialect_name(view->set.dialect),
			   "vnodes", (int)view->set.vnodes, "points",
			   (int)view->before.header.point_count, "replicas", list);
	if (view->set.service[0])
		json_object_set_new(answer, "service", json_string(view->set.service));
	if (view->changed) {
		json_object_set_new(answer, view->added ? "added" : "removed",
				    json_string(view->changed));
		json_object_set_new(answer, "moved", json_real(view->moved));
		json_object_set_new(answer, "moved_ideal", json_real(view->ideal));
	}
	json_dumpf(answer, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(15));
	putchar('\n');
	json_decref(answer);
}

static error_t parse(int key, char *argument, struct argp_state *state)
{
	(void)argument;
	if (key != ARGP_KEY_INIT)
		return ARGP_ERR_UNKNOWN;
	state->child_inputs[0] = state->input;
	return 0;
}

int ring_show_main(int argc, char **argv)
{
	static const struct argp_child children[] = {{&ring_view_argp, 0, NULL, 0}, {0}};
	static const struct argp argp = {
		.parser = parse,
		.children = children,
		.doc = "Print what each replica has of the ring: of the ring of the running warmpathd, or of "
		       "replicas that are given.\v"
		       "Examples:\n"
		       "  warmpath ring show\n"
		       "  warmpath ring show --diff +llm-3\n"
		       "  warmpath ring show --replicas llm-0,llm-1,llm-2 --diff -llm-1",
	};
	struct ring_view_options options = {.set.dialect = RING_LLM};
	struct ring_view view;
	int code;

	argp_parse(&argp, argc, argv, 0, NULL, &options);
	code = ring_view_make(&view, &options);
	if (code != EXIT_DONE)
		return code;
	if (options.set.client.json)
		print_json(&view);
	else
		print_view(&view);
	ring_view_free(&view);
	return EXIT_DONE;
}
