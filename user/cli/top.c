/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * warmpath top: asks the agent again and again, and shows the answers; keys.
 */
#include <errno.h>
#include <math.h>
#include <ncurses.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "cli/bar.h"
#include "cli/cli.h"
#include "cli/client.h"
#include "cli/terminal.h"
#include "cli/top_screen.h"
#include "lib/control.h"

#define KEY_WAIT_MILLISECONDS 100
#define ONCE_COLUMNS	      100

struct top {
	struct plain_arguments plain;
	double interval; /* seconds */
	bool once;
	bool ascii;
	struct top_model model;
	struct top_screen screen;
	char id[ID_LENGTH_MAX + 1]; /* the conversation shown */
	json_t *answer;		    /* for the page */
	struct timespec asked;	    /* when the agent was asked last */
	bool ended;
};

/* --- asking ------------------------------------------------------------------------------------------------------------- */

/* The answer, or NULL: with a sentence, and *refused if the agent has answered that it will not. */
static json_t *ask(const struct top *top, json_t *message, bool *refused, struct error *error)
{
	int descriptor = control_connect(client_socket(&top->plain.client), error);
	json_t *answer = NULL;

	*refused = false;
	if (descriptor >= 0 && control_ask(descriptor, message, &answer, error))
		answer = NULL;
	if (descriptor >= 0)
		close(descriptor);
	json_decref(message);
	if (!answer || json_is_true(json_object_get(answer, "ok")))
		return answer;
	*refused = true;
	error_set(error, -1, "%s", client_text(answer, "error"));
	json_decref(answer);
	return NULL;
}

static void set_notice(struct top *top, const char *sentence)
{
	snprintf(top->screen.notice, sizeof(top->screen.notice), "%.200s", sentence);
}

/* What the page needs besides the snapshot. */
static void ask_for_page(struct top *top)
{
	const char *service = client_text(top->model.described, "name");
	json_t *message = NULL, *answer;
	struct error error;
	bool refused;

	if (top->screen.page == TOP_REPLICA)
		message = json_pack("{s:s, s:s, s:s, s:i}", "command", "decisions", "service",
				    service, "replica", top->screen.name, "count", 100);
	else if (top->screen.page == TOP_CONVERSATION)
		message = json_pack("{s:s, s:s, s:s, s:i}", "command", "conversation", "service",
				    service, "id", top->id, "count", 50);
	if (!message)
		return;
	answer = ask(top, message, &refused, &error);
	if (refused) {
		set_notice(top, error.text);
		top->screen.page = TOP_LIST;
	}
	if (!answer)
		return;
	json_decref(top->answer);
	top->answer = answer;
	top->screen.answer = answer;
}

/* 0, or an exit code with the sentence in `error`. */
static int ask_for_snapshot(struct top *top, struct error *error)
{
	bool refused;
	json_t *snapshot = ask(top, json_pack("{s:s}", "command", "snapshot"), &refused, error);

	clock_gettime(CLOCK_MONOTONIC, &top->asked);
	top->screen.lost = !snapshot && !refused;
	if (!snapshot)
		return refused ? EXIT_FAILED : EXIT_UNREACHABLE;
	if (!top->model.now && top->model.service && !top_model_has(snapshot, top->model.service)) {
		json_decref(snapshot);
		error_set(error, -ENOENT,
			  "there is no service %s; warmpath service list prints them",
			  top->model.service);
		return EXIT_FAILED;
	}
	top_model_take(&top->model, snapshot);
	return EXIT_DONE;
}

static void refresh_all(struct top *top)
{
	struct error error;

	if (ask_for_snapshot(top, &error) == EXIT_FAILED)
		set_notice(top, error.text); /* an agent of an older version, say */
	if (!top->model.paused)
		ask_for_page(top);
}

/* --- keys --------------------------------------------------------------------------------------------------------------- */

static void begin_typing(struct top *top, const char *prompt, const char *typed)
{
	snprintf(top->screen.prompt, sizeof(top->screen.prompt), "%s", prompt);
	snprintf(top->screen.typed, sizeof(top->screen.typed), "%s", typed);
}

static void open_page(struct top *top, enum top_page page)
{
	json_decref(top->answer);
	top->answer = NULL;
	top->screen.answer = NULL;
	top->screen.page = page;
	ask_for_page(top);
}

static void end_typing(struct top *top, bool taken)
{
	bool filter = strcmp(top->screen.prompt, "filter") == 0;

	top->screen.prompt[0] = '\0';
	if (taken && filter) {
		snprintf(top->model.filter, sizeof(top->model.filter), "%.*s",
			 (int)sizeof(top->model.filter) - 1, top->screen.typed);
		top_model_refresh(&top->model);
	} else if (taken && top->screen.typed[0]) {
		memcpy(top->id, top->screen.typed, sizeof(top->id));
		open_page(top, TOP_CONVERSATION);
	}
}

static void type(struct top *top, int key)
{
	size_t length = strlen(top->screen.typed);

	if (key == '\n' || key == '\r' || key == KEY_ENTER)
		end_typing(top, true);
	else if (key == 27)
		end_typing(top, false);
	else if (key == KEY_BACKSPACE || key == 127 || key == 8)
		top->screen.typed[length > 0 ? length - 1 : 0] = '\0';
	else if (key > ' ' && key < 127 && length + 1 < sizeof(top->screen.typed)) {
		top->screen.typed[length] = (char)key;
		top->screen.typed[length + 1] = '\0';
	}
}

static void select_by(struct top *top, int step)
{
	long next = (long)top->screen.selected + step;

	if (next >= (long)top->model.count)
		next = (long)top->model.count - 1;
	top->screen.selected = next > 0 ? next : 0;
}

static void go_back(struct top *top)
{
	if (top->screen.page == TOP_LIST)
		top->model.filter[0] = '\0';
	top->screen.page = TOP_LIST;
	top_model_refresh(&top->model);
}

static void open_replica(struct top *top)
{
	if (top->screen.page != TOP_LIST || top->model.count == 0)
		return;
	snprintf(top->screen.name, sizeof(top->screen.name), "%s",
		 top->model.replicas[top->screen.selected].name);
	open_page(top, TOP_REPLICA);
}

static void choose_order(struct top *top, int key)
{
	if (key == 's')
		top->model.sort = (top->model.sort + 1) % TOP_COLUMNS;
	else
		top->model.reverse = !top->model.reverse;
	top_model_refresh(&top->model);
}

static void press(struct top *top, int key)
{
	top->screen.notice[0] = '\0';
	if (top->screen.prompt[0]) {
		type(top, key);
		return;
	}
	switch (key) {
	case 'q':
		top->ended = true;
		break;
	case 's':
	case 'r':
		choose_order(top, key);
		break;
	case 'f':
	case '/':
		begin_typing(top, "filter", top->model.filter);
		break;
	case 'c':
		begin_typing(top, "conversation", top->id);
		break;
	case 'p':
	case ' ':
		top->model.paused = !top->model.paused;
		break;
	case '?':
	case 'h':
		top->screen.page = top->screen.page == TOP_HELP ? TOP_LIST : TOP_HELP;
		break;
	case 27:
		go_back(top);
		break;
	case '\n':
	case '\r':
	case KEY_ENTER:
		open_replica(top);
		break;
	case '\t':
	case KEY_BTAB:
		top_model_next_service(&top->model, key == '\t' ? 1 : -1);
		break;
	case KEY_UP:
	case 'k':
		select_by(top, -1);
		break;
	case KEY_DOWN:
	case 'j':
		select_by(top, 1);
		break;
	case KEY_PPAGE:
		select_by(top, -10);
		break;
	case KEY_NPAGE:
		select_by(top, 10);
		break;
	default:
		break;
	}
}

/* --- showing ------------------------------------------------------------------------------------------------------------ */

static void tell_time(struct top_screen *screen)
{
	time_t now = time(NULL);
	struct tm parts;

	localtime_r(&now, &parts);
	strftime(screen->clock, sizeof(screen->clock), "%H:%M:%S", &parts);
}

static bool is_due(const struct top *top)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec - top->asked.tv_sec + (now.tv_nsec - top->asked.tv_nsec) / 1e9 >=
	       top->interval;
}

static bool draw(struct top *top)
{
	struct frame frame;
	int rows, columns;

	terminal_size(&rows, &columns);
	tell_time(&top->screen);
	if (!frame_make(&frame, rows, columns, !top->ascii))
		return false;
	top_screen_draw(&frame, &top->model, &top->screen);
	terminal_show(&frame);
	frame_free(&frame);
	return true;
}

static int run(struct top *top)
{
	struct error error;
	int code = ask_for_snapshot(top, &error), key;
	bool drawn = true;

	if (code != EXIT_DONE) {
		complain("%s", error.text);
		return code;
	}
	if (!terminal_begin(&error)) {
		complain("%s", error.text);
		return EXIT_FAILED;
	}
	client_catch_signals();
	while (!top->ended && drawn && !client_interrupted()) {
		drawn = draw(top);
		key = terminal_key(KEY_WAIT_MILLISECONDS);
		if (key >= 0)
			press(top, key);
		else if (is_due(top))
			refresh_all(top);
	}
	terminal_end();
	return EXIT_DONE;
}

/* Two snapshots, as one has no rates. */
static int show_once(struct top *top)
{
	const struct timespec pause = {.tv_sec = (time_t)top->interval,
				       .tv_nsec = (long)(fmod(top->interval, 1) * 1e9)};
	const char *wanted = getenv("COLUMNS");
	struct winsize size;
	struct error error;
	struct frame frame;
	int columns = ONCE_COLUMNS, code = ask_for_snapshot(top, &error);

	if (code == EXIT_DONE) {
		nanosleep(&pause, NULL);
		code = ask_for_snapshot(top, &error);
	}
	if (code != EXIT_DONE) {
		complain("%s", error.text);
		return code;
	}
	if (isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 &&
	    size.ws_col >= TOP_COLUMNS_LEAST)
		columns = size.ws_col;
	else if (wanted && atoi(wanted) >= TOP_COLUMNS_LEAST)
		columns = atoi(wanted) < 1000 ? atoi(wanted) : 1000;
	tell_time(&top->screen);
	if (!frame_make(&frame, top_screen_rows(&top->model) + TOP_ROWS_LEAST, columns,
			!top->ascii))
		return EXIT_FAILED;
	top_screen_draw(&frame, &top->model, &top->screen);
	frame.rows = top_screen_rows(&top->model) - 1; /* without the keys */
	frame_print(&frame, stdout);
	frame_free(&frame);
	return EXIT_DONE;
}

static error_t parse(int key, char *argument, struct argp_state *state)
{
	struct top *top = state->input;
	char *end;

	switch (key) {
	case '1':
		top->once = true;
		return 0;
	case 'a':
		top->ascii = true;
		return 0;
	case 'i':
		top->interval = strtod(argument, &end);
		if (end == argument || *end != '\0' || !(top->interval >= 0.1) ||
		    top->interval > 3600)
			argp_error(state, "\"%s\" is not a number of seconds: give 0.1 to 3600",
				   argument);
		return 0;
	default:
		return client_parse_plain(key, argument, state);
	}
}

int top_main(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"once", '1', NULL, 0, "Print one frame and end", 0},
		{"interval", 'i', "SECONDS", 0, "Ask again after so long, 0.1 to 3600 (1)", 0},
		{"ascii", 'a', NULL, 0, "Use no characters beyond ASCII", 0},
		{0},
	};
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.children = client_service_children,
		.doc = "Show what the replicas do at present: load against the cap, requests and tokens in flight, hits "
		       "of the cache, reasons of decisions, moves and drops. The key ? lists the keys.\v"
		       "Examples:\n  warmpath top --service chat\n  warmpath top --once --ascii",
	};
	struct top top = {.interval = 1, .model.sort = TOP_NAME};
	int code;

	argp_parse(&argp, argc, argv, 0, NULL, &top);
	if (top.plain.client.json)
		return client_do(&top.plain.client,
				 json_pack("{s:s, s:s*}", "command", "snapshot", "service",
					   top.plain.client.service),
				 NULL);
	top.model.service = top.plain.client.service;
	if (!bar_is_unicode())
		top.ascii = true;
	code = top.once ? show_once(&top) : run(&top);
	top_model_free(&top.model);
	json_decref(top.answer);
	return code;
}
