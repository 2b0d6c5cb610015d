/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/ring_view.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "lib/ring_compare.h"

static error_t parse(int key, char *argument, struct argp_state *state)
{
	struct ring_view_options *options = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &options->set;
		return 0;
	case 'D':
		if ((argument[0] != '+' && argument[0] != '-') || argument[1] == '\0')
			argp_error(state,
				   "\"%s\" is not a change: write +NAME, +NAME=WEIGHT or -NAME",
				   argument);
		options->diff = argument;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_option option_list[] = {
	{"diff", 'D', "CHANGE", 0,
	 "Show what a change of the set would move: +NAME or +NAME=WEIGHT adds a replica, -NAME "
	 "removes one",
	 0},
	{0},
};
static const struct argp_child children[] = {{&ring_set_live_argp, 0, NULL, 0}, {0}};

const struct argp ring_view_argp = {.options = option_list, .parser = parse, .children = children};

/* --- the change -------------------------------------------------------------------------------------------------------- */

static bool active(const struct ring_set_replica *replica)
{
	return strcmp(replica->state, "active") == 0;
}

static int add(struct ring_view *view, char *name)
{
	char *weight = strchr(name, '=');
	__u32 thousandths = RING_WEIGHT_ONE;
	struct ring_set_replica *replica;
	struct error error;

	if (weight) {
		*weight++ = '\0';
		if (ring_parse_weight(weight, &thousandths, &error)) {
			complain("%s", error.text);
			return EXIT_USAGE;
		}
	}
	replica = ring_set_find(&view->set, name);
	if (replica && active(replica)) {
		complain("replica %s is on the ring already", name);
		return EXIT_FAILED;
	}
	if (!replica) {
		replica = ring_set_add(&view->set, name);
		if (!replica) {
			complain("not enough memory");
			return EXIT_FAILED;
		}
		strcpy(replica->state, "added");
	}
	if (weight)
		replica->weight_thousandths = thousandths;
	view->changed = replica->name;
	view->added = true;
	return EXIT_DONE;
}

static int take_away(struct ring_view *view, const char *name)
{
	struct ring_set_replica *replica = ring_set_find(&view->set, name);

	if (!replica || !active(replica)) {
		complain("replica %s is not on the ring, so removing it moves nothing", name);
		return EXIT_FAILED;
	}
	view->changed = replica->name;
	return EXIT_DONE;
}

/* The same set, where only the states differ; the changed one's is what it will be. */
static int build_after(struct ring_view *view)
{
	struct ring_set_replica *replica = ring_set_find(&view->set, view->changed);
	char state[sizeof(replica->state)];
	int code;

	memcpy(state, replica->state, sizeof(state));
	strcpy(replica->state, view->added ? "active" : "removed");
	code = ring_set_build(&view->set, false, &view->after);
	memcpy(replica->state, state, sizeof(state));
	return code;
}

/* --- the numbers --------------------------------------------------------------------------------------------------------- */

/* Adds each member's share at `offset` of its line, and what is its due at `due_offset`. */
static void take_shares(struct ring_view *view, const struct ring *ring, bool after)
{
	double shares[REPLICAS_MAX], total = 0;

	ring_shares(ring, shares);
	for (__u32 i = 0; i < ring->header.member_count; i++)
		total += view->replicas[ring->members[i].replica].weight;
	for (__u32 i = 0; i < ring->header.member_count; i++) {
		struct ring_view_replica *replica = &view->replicas[ring->members[i].replica];

		*(after ? &replica->share_after : &replica->share) = shares[i];
		*(after ? &replica->due_after : &replica->due) = replica->weight / total;
	}
}

static void take_span(void *context, __u64 first, __u64 last, __u32 before, __u32 after)
{
	struct ring_view *view = context;
	__u32 from = view->before.members[before].replica;
	__u32 to = view->after.members[after].replica;
	double share = ((double)(last - first) + 1) / 0x1p64;

	if (from == to)
		return;
	view->replicas[from].lost += share;
	view->replicas[to].gained += share;
	view->moved += share;
}

static void compare(struct ring_view *view)
{
	struct ring_view_replica *changed =
		&view->replicas[ring_set_find(&view->set, view->changed) - view->set.replicas];

	take_shares(view, &view->after, true);
	view->ideal = view->added ? changed->due_after : changed->due;
	if (view->before.header.point_count > 0 && view->after.header.point_count > 0)
		ring_compare(&view->before, &view->after, take_span, view);
	else
		view->moved = 1;
}

static int number(struct ring_view *view)
{
	const struct ring *ring = &view->before;

	view->count = view->set.count;
	view->replicas = calloc(view->count + 1, sizeof(*view->replicas));
	if (!view->replicas) {
		complain("not enough memory");
		return EXIT_FAILED;
	}
	for (size_t i = 0; i < view->count; i++) {
		const struct ring_set_replica *replica = &view->set.replicas[i];

		view->replicas[i] = (struct ring_view_replica){
			.name = replica->name,
			.state = replica->state,
			.weight = replica->weight_thousandths / (double)RING_WEIGHT_ONE,
		};
		view->resting += !active(replica) && strcmp(replica->state, "added") != 0;
	}
	for (__u32 i = 0; i < ring->header.point_count; i++)
		view->replicas[ring->points[i].replica].points++;
	take_shares(view, ring, false);
	if (view->changed)
		compare(view);
	return EXIT_DONE;
}

int ring_view_make(struct ring_view *view, const struct ring_view_options *options)
{
	int code;

	memset(view, 0, sizeof(*view));
	code = ring_set_read(&view->set, &options->set);
	if (code != EXIT_DONE)
		return code;
	if (options->diff)
		code = options->diff[0] == '+' ? add(view, options->diff + 1)
					       : take_away(view, options->diff + 1);
	if (code == EXIT_DONE)
		code = ring_set_build(&view->set, false, &view->before);
	if (code == EXIT_DONE && view->changed)
		code = build_after(view);
	if (code == EXIT_DONE)
		code = ring_set_build(&view->set, true, &view->whole);
	if (code == EXIT_DONE && view->before.header.point_count == 0) {
		complain("no replica is on the ring, so there is nothing to show");
		code = EXIT_FAILED;
	}
	if (code == EXIT_DONE)
		code = number(view);
	if (code != EXIT_DONE)
		ring_view_free(view);
	return code;
}

void ring_view_free(struct ring_view *view)
{
	ring_free(&view->before);
	ring_free(&view->after);
	ring_free(&view->whole);
	free(view->replicas);
	ring_set_free(&view->set);
}

/* --- in words ------------------------------------------------------------------------------------------------------------ */

void ring_view_describe(const struct ring_view *view, char *text, size_t size)
{
	const struct ring_header *header = &view->before.header;

	snprintf(text, size, "%s%s%u replica%s, %u virtual nodes each, %u points, %s",
		 view->set.service, view->set.service[0] ? ": " : "", header->member_count,
		 header->member_count == 1 ? "" : "s", view->set.vnodes, header->point_count,
		 ring_dialect_name(view->set.dialect));
}

void ring_view_describe_change(const struct ring_view *view, char *text, size_t size)
{
	if (!view->changed)
		text[0] = '\0';
	else if (view->after.header.point_count == 0)
		snprintf(text, size, "Removing %s leaves no replica", view->changed);
	else
		snprintf(text, size,
			 "%s %s moves %.1f %% of all conversations, all %s it; its due is %.1f %%",
			 view->added ? "Adding" : "Removing", view->changed, 100 * view->moved,
			 view->added ? "to" : "from", 100 * view->ideal);
}
