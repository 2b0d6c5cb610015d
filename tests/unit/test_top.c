/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `warmpath top`: what its model makes of two snapshots, and how pages look in frames of several sizes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/top_model.h"
#include "cli/top_screen.h"

static json_t *replica(const char *name, const char *state, int requests, int tokens, int decisions,
		       int prompts, int cached, int in, int out)
{
	return json_pack("{s:s, s:s, s:s, s:s, s:f, s:f, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i}",
			 "service", "chat", "name", name, "state", state, "address",
			 "10.0.2.10:8001", "weight", 1.0, "share", 0.25, "requests", requests,
			 "tokens", tokens, "decisions", decisions, "prompt_tokens", prompts,
			 "cached_tokens", cached, "moves_in", in, "moves_out", out, "refusals", 0);
}

/* A service of two active replicas and one that drains; loads in tokens: sum 1000 + 3000, N = 2. */
static json_t *snapshot(double seconds, int decisions, int home, int overflow, int gone,
			int answered, int drops)
{
	json_t *counters =
		json_pack("{s:i, s:i, s:i, s:i}", "forwarded", 10 * decisions, "not_ours", 5,
			  "drop_no_flow", drops, "note_flow_created", decisions);
	json_t *services = json_pack(
		"[{s:s, s:s, s:s, s:b, s:f, s:i, s:i, s:i, s:i, s:i, s:{s:i, s:i}, s:{s:i, s:i}, "
		"s:{s:i, s:i}, s:i}, {s:s, s:s, s:s, s:i}]",
		"name", "chat", "policy", "llm-aware", "load_metric", "tokens", "capped", 1,
		"epsilon", 0.25, "requests", 4, "tokens", 4000, "replica_count", 2, "decisions",
		decisions, "traced", decisions, "reasons", "home", home, "overflow", overflow,
		"moves", "left", gone, "overloaded", overflow, "completions", "success", answered,
		"failed", 2, "refusals", 0, "name", "web", "policy", "round-robin", "load_metric",
		"requests", "requests", 0);
	json_t *replicas =
		json_pack("[o, o, o]", replica("llm-1", "active", 3, 3000, 60, 1000, 900, 2, 1),
			  replica("llm-0", "active", 1, 1000, decisions - 60, 500, 0, 0, 5),
			  replica("llm-2", "draining", 0, 0, 0, 0, 0, 0, 0));

	return json_pack("{s:b, s:f, s:o, s:o, s:o}", "ok", 1, "seconds", seconds, "services",
			 services, "replicas", replicas, "counters", counters);
}

static void assert_close(double got, double expected)
{
	if (got < expected - 1e-6 || got > expected + 1e-6)
		fail_msg("%g is not %g", got, expected);
}

static int set_up(void **state)
{
	*state = calloc(1, sizeof(struct top_model));
	return *state ? 0 : -1;
}

static int tear_down(void **state)
{
	top_model_free(*state);
	free(*state);
	return 0;
}

/* --- the model ---------------------------------------------------------------------------------------------------------- */

static void test_one_snapshot_has_no_rates(void **state)
{
	struct top_model *model = *state;

	top_model_take(model, snapshot(10, 100, 80, 20, 4, 90, 1));
	assert_false(model->rates_known);
	assert_close(model->decisions, TOP_UNKNOWN);
	assert_int_equal(model->reason_count, 0);
	assert_int_equal(model->count, 3);
	assert_close(model->replicas[0].rate, TOP_UNKNOWN);
}

static void test_rates(void **state)
{
	struct top_model *model = *state;

	top_model_take(model, snapshot(10, 100, 80, 20, 4, 90, 1));
	top_model_take(model, snapshot(12, 160, 110, 50, 4, 140, 7));
	assert_true(model->rates_known);
	assert_close(model->decisions, 30);
	assert_close(model->answered, 25);
	assert_close(model->failed, 0);
	assert_close(model->moved, 15);
	assert_close(model->drops, 3);
	assert_close(model->packets, 300 + 3); /* notes are no packets */
	assert_int_equal(model->reason_count, 2);
	assert_string_equal(model->reasons[0].name, "home"); /* as often as the other: by name */
	assert_close(model->reasons[0].rate, 15);
	assert_int_equal(model->cause_count, 1); /* nobody has left in these two seconds */
	assert_string_equal(model->causes[0].name, "overloaded");
	assert_string_equal(model->drop_rates[0].name, "drop_no_flow");
	assert_string_equal(model->replicas[0].name, "llm-0");
	assert_close(model->replicas[0].rate, 30);
	assert_close(model->replicas[1].rate, 0);
}

/* What counts from the agent's start begins anew with another agent; a rate below zero would be nonsense. */
static void test_restarted_agent(void **state)
{
	struct top_model *model = *state;

	top_model_take(model, snapshot(10, 100, 80, 20, 4, 90, 9));
	top_model_take(model, snapshot(11, 110, 3, 1, 0, 2, 9));
	assert_close(model->decisions, 10); /* the kernel's own go on */
	assert_int_equal(model->reason_count, 0);
	assert_close(model->answered, 0);
	assert_close(model->moved, 0);
	top_model_take(model, snapshot(12, 120, 5, 1, 0, 3, 9));
	assert_close(model->reasons[0].rate, 2);
	assert_close(model->answered, 1);
}

static void test_cap_and_hits(void **state)
{
	struct top_model *model = *state;

	top_model_take(model, snapshot(10, 100, 80, 20, 4, 90, 0));
	/* mean size 1000: 1.25 x (4000 + 1000) / 2 */
	assert_close(model->cap, 3125);
	assert_close(model->replicas[1].fill, 3000.0 / 3125);
	assert_close(model->replicas[1].hits, 0.9);
	assert_close(model->replicas[0].hits, 0);
	assert_close(model->replicas[2].hits, TOP_UNKNOWN);
}

static void test_sort_and_filter(void **state)
{
	struct top_model *model = *state;

	top_model_take(model, snapshot(10, 100, 80, 20, 4, 90, 0));
	model->sort = TOP_LOAD;
	top_model_refresh(model);
	assert_string_equal(model->replicas[0].name, "llm-1");
	assert_string_equal(model->replicas[2].name, "llm-2");
	model->reverse = true;
	top_model_refresh(model);
	assert_string_equal(model->replicas[0].name, "llm-2");
	model->sort = TOP_MOVES;
	model->reverse = false;
	top_model_refresh(model);
	assert_string_equal(model->replicas[0].name, "llm-0");
	strcpy(model->filter, "M-1");
	top_model_refresh(model);
	assert_int_equal(model->count, 1);
	assert_int_equal(model->all, 3);
	assert_string_equal(model->replicas[0].name, "llm-1");
}

static void test_paused(void **state)
{
	struct top_model *model = *state;

	top_model_take(model, snapshot(10, 100, 80, 20, 4, 90, 0));
	model->paused = true;
	top_model_take(model, snapshot(11, 200, 80, 20, 4, 90, 0));
	assert_close(model->decisions, TOP_UNKNOWN); /* still the first one */
	model->paused = false;
	top_model_take(model, snapshot(12, 300, 80, 20, 4, 90, 0));
	assert_close(model->decisions, 100);
}

static void test_services(void **state)
{
	struct top_model *model = *state;

	top_model_take(model, snapshot(10, 100, 80, 20, 4, 90, 0));
	assert_int_equal(model->service_count, 2);
	top_model_next_service(model, 1);
	assert_string_equal(model->service, "web");
	assert_int_equal(model->count, 0);
	assert_false(model->capped);
	/* the name outlives the snapshot it was borrowed from */
	for (int i = 11; i < 14; i++)
		top_model_take(model, snapshot(i, 100, 80, 20, 4, 90, 0));
	assert_string_equal(model->service, "web");
	assert_int_equal(model->service_number, 2);
	top_model_next_service(model, 1);
	assert_string_equal(model->service, "chat");
	top_model_next_service(model, -1);
	assert_string_equal(model->service, "web");
	/* gone: the first one instead of none */
	top_model_take(model, json_pack("{s:b, s:f, s:[{s:s}], s:[], s:{}}", "ok", 1, "seconds",
					20.0, "services", "name", "chat", "replicas", "counters"));
	assert_non_null(model->described);
	assert_null(model->service);
}

/* --- frames ------------------------------------------------------------------------------------------------------------- */

struct picture {
	char *text;
	size_t size;
};

static void draw(struct picture *picture, const struct top_model *model, struct top_screen *screen,
		 int rows, int columns, bool unicode)
{
	struct frame frame;
	FILE *to = open_memstream(&picture->text, &picture->size);

	assert_true(frame_make(&frame, rows, columns, unicode));
	top_screen_draw(&frame, model, screen);
	frame_print(&frame, to);
	frame_free(&frame);
	fclose(to);
}

/* No line is wider than the frame; in ASCII nothing is anything else. */
static void check_shape(const struct picture *picture, int rows, int columns, bool unicode)
{
	int width = 0, lines = 0;

	for (size_t i = 0; i < picture->size; i++) {
		unsigned char byte = picture->text[i];

		if (byte == '\n') {
			assert_true(width <= columns);
			width = 0;
			lines++;
			continue;
		}
		if (!unicode)
			assert_true(byte >= ' ' && byte < 0x7f);
		width += (byte & 0xc0) != 0x80;
	}
	assert_int_equal(lines, rows);
}

static void assert_shows(const struct picture *picture, const char *text)
{
	if (!strstr(picture->text, text))
		fail_msg("\"%s\" is not in:\n%s", text, picture->text);
}

static void test_frames_of_all_sizes(void **state)
{
	static const enum top_page pages[] = {TOP_LIST, TOP_REPLICA, TOP_CONVERSATION, TOP_HELP};
	struct top_model *model = *state;

	top_model_take(model, snapshot(10, 100, 80, 20, 4, 90, 1));
	top_model_take(model, snapshot(12, 160, 110, 50, 4, 140, 7));
	for (int rows = 1; rows <= 60; rows += rows < 12 ? 1 : 12) {
		for (int columns = 1; columns <= 200; columns += columns < 90 ? 1 : 37) {
			for (int i = 0; i < 8; i++) {
				struct top_screen screen = {.page = pages[i % 4], .name = "llm-1"};
				struct picture picture;

				draw(&picture, model, &screen, rows, columns, i < 4);
				check_shape(&picture, rows, columns, i < 4);
				free(picture.text);
			}
		}
	}
}

static void test_list_at_80_columns(void **state)
{
	struct top_model *model = *state;
	struct top_screen screen = {.clock = "12:34:56"};
	struct picture picture;

	top_model_take(model, snapshot(10, 100, 80, 20, 4, 90, 1));
	top_model_take(model, snapshot(12, 160, 110, 50, 4, 140, 7));
	draw(&picture, model, &screen, 24, 80, false);
	assert_shows(&picture, "warmpath chat  llm-aware, by tokens  service 1 of 2");
	assert_shows(&picture, "12:34:56\n");
	assert_shows(&picture, "in flight 4 requests, 4000 tokens  cap 3125  replicas 2 of 3");
	assert_shows(&picture,
		     "decided 30/s  answered 25/s  failed 0/s  moved 15/s  packets 303/s");
	assert_shows(&picture, "reasons home 15/s (50%)  overflow 15/s (50%)");
	assert_shows(&picture, "moves   overloaded 15/s");
	assert_shows(&picture, "drops   drop_no_flow 3/s");
	assert_shows(
		&picture,
		"llm-1      active   #############      3    3000      0    90   25.0         2/1");
	assert_shows(&picture, "llm-2      draining");
	assert_shows(&picture, "? help");
	free(picture.text);
	screen.lost = true;
	draw(&picture, model, &screen, 24, 80, true);
	assert_shows(&picture, "NO AGENT  12:34:56");
	assert_shows(&picture, "\u2588\u2588\u2588");
	free(picture.text);
}

/* Where a part only is traced, rates of reasons are of that part: it is said. */
static void test_sampled(void **state)
{
	struct top_model *model = *state;
	struct top_screen screen = {0};
	struct picture picture;
	json_t *second = snapshot(12, 300, 110, 50, 4, 140, 1), *service;

	service = json_array_get(json_object_get(second, "services"), 0);
	json_object_set_new(service, "traced", json_integer(150));
	top_model_take(model, snapshot(10, 100, 80, 20, 4, 90, 1));
	top_model_take(model, second);
	draw(&picture, model, &screen, 24, 80, false);
	assert_shows(&picture, " 25% traced\n");
	free(picture.text);
}

/* The selected one is always in sight. */
static void test_scrolling(void **state)
{
	struct top_model *model = *state;
	struct top_screen screen = {0};
	struct picture picture;
	json_t *many = snapshot(10, 100, 80, 20, 4, 90, 0);

	for (int i = 3; i < 60; i++) {
		char name[16];

		snprintf(name, sizeof(name), "llm-%02d", i);
		json_array_append_new(json_object_get(many, "replicas"),
				      replica(name, "active", 0, 0, 0, 0, 0, 0, 0));
	}
	top_model_take(model, many);
	screen.selected = 50;
	draw(&picture, model, &screen, 24, 80, false);
	assert_shows(&picture, model->replicas[50].name);
	assert_null(strstr(picture.text, "llm-03 "));
	free(picture.text);
	screen.selected = 1000;
	draw(&picture, model, &screen, 24, 80, false);
	assert_int_equal(screen.selected, model->count - 1);
	free(picture.text);
	screen.selected = 0;
	draw(&picture, model, &screen, 24, 80, false);
	assert_shows(&picture, model->replicas[0].name);
	free(picture.text);
}

static void test_conversation_page(void **state)
{
	struct top_model *model = *state;
	json_t *answer = json_pack(
		"{s:s, s:s, s:s, s:{s:s, s:i, s:f, s:b}, s:[], s:[{s:s, s:s, s:s, s:s, s:s, s:i, s:i, "
		"s:s, s:s, s:f}]}",
		"id", "talk", "home", "llm-1", "hash", "0x1", "placement", "replica", "llm-0",
		"prompt_tokens", 900, "age_seconds", 3.0, "counts", 1, "open", "decisions", "event",
		"decision", "service", "chat", "id", "talk", "replica", "llm-0", "reason", "home",
		"prompt_tokens", 900, "max_tokens", 48, "moved_from", "llm-1", "move_reason",
		"llm-1 is draining", "time", 0.0);
	struct top_screen screen = {.page = TOP_CONVERSATION, .answer = answer};
	struct picture picture;

	top_model_take(model, snapshot(10, 100, 80, 20, 4, 90, 0));
	draw(&picture, model, &screen, 24, 80, false);
	assert_shows(&picture, "conversation talk");
	assert_shows(&picture, "cached on llm-0: 900 prompt tokens, served 3 s ago\n");
	assert_shows(&picture,
		     "chat talk -> llm-0  home, 900+48 tokens  MOVED from llm-1: llm-1 is");
	free(picture.text);
	json_decref(answer);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(test_one_snapshot_has_no_rates),
		TEST(test_rates),
		TEST(test_restarted_agent),
		TEST(test_cap_and_hits),
		TEST(test_sort_and_filter),
		TEST(test_paused),
		TEST(test_services),
		TEST(test_frames_of_all_sizes),
		TEST(test_list_at_80_columns),
		TEST(test_sampled),
		TEST(test_scrolling),
		TEST(test_conversation_page),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
