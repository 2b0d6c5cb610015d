/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The control socket: what counts as a message, what is refused and how, and that no peer can hang, fill or crash the agent. The
 * server is the agent's own, in a thread, with an agent that has no data path.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <poll.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>
#include <uv.h>

#include "agent/agent.h"
#include "agent/commands.h"
#include "agent/control.h"
#include "lib/control.h"

/* --- messages --------------------------------------------------------------------------------------------- */

static void expect_no_message(const char *line, size_t length, const char *why)
{
	struct error error = {0};

	assert_null(control_parse(line, length, &error));
	if (!strstr(error.text, why))
		fail_msg("\"%s\": expected \"%s\" in \"%s\"", line, why, error.text);
}

static void what_is_not_a_message_is_refused(void **state)
{
	static const char *const not_json[] = {
		"{",
		"}",
		"nonsense",
		"{\"command\": \"status\"",
		"{command: status}",
		"{\"command\": \"status\"} x",
		"{\"command\": 'status'}",
		"{\"command\": \"a\", \"command\": \"b\"}",
		"{\"command\": \"status\",}",
		"NaN",
		"{\"a\": 1e999}",
	};
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(not_json) / sizeof(not_json[0]); i++)
		expect_no_message(not_json[i], strlen(not_json[i]), "the message is not JSON");
	expect_no_message("", 0, "the message is empty");
	expect_no_message(" \t\r", 3, "the message is empty");
	expect_no_message("\xff\xfe", 2, "the message is not UTF-8 text");
	expect_no_message("{\"a\": \"\xc3\"}", 10, "the message is not UTF-8 text");
	expect_no_message("[]", 2, "the message is not a JSON object");
	expect_no_message("{}", 2, "the message has no text \"command\"");
	expect_no_message("{\"command\": 3}", 14, "the message has no text \"command\"");
	expect_no_message("{\"command\": null}", 17, "the message has no text \"command\"");
	expect_no_message("{\"command\": \"a\0b\"}", 18, "the message is not JSON");
}

static void deep_nesting_is_refused(void **state)
{
	char *line = malloc(60000);

	(void)state;
	memset(line, '[', 60000);
	expect_no_message(line, 60000, "the message is not JSON");
	free(line);
}

static json_t *message_of(const char *text)
{
	struct error error;
	json_t *message = control_parse(text, strlen(text), &error);

	assert_non_null(message);
	return message;
}

static void arguments_are_checked_and_named(void **state)
{
	json_t *message = message_of(
		"{\"command\": \"x\", \"text\": \"llm-0\", \"number\": 8001, \"weight\": 2.5,"
		" \"flag\": true, \"bell\": \"\\u0007\", \"list\": [], \"big\": 1e300,"
		" \"fine\": 0.0005, \"whole\": 3, \"negative\": -1}");
	static const char *const all[] = {"text", "number", "weight", "flag",	  "bell", "list",
					  "big",  "fine",   "whole",  "negative", NULL};
	static const char *const few[] = {"text", NULL};
	json_int_t number = 77;
	struct error error;
	const char *text;
	bool flag = false;

	(void)state;
	assert_int_equal(control_text(message, "text", true, &text, &error), 0);
	assert_string_equal(text, "llm-0");
	assert_int_equal(control_text(message, "none", false, &text, &error), 0);
	assert_null(text);
	assert_int_equal(control_text(message, "none", true, &text, &error), -EINVAL);
	assert_string_equal(error.text, "the argument \"none\" is missing");
	assert_int_equal(control_text(message, "number", true, &text, &error), -EINVAL);
	assert_string_equal(error.text, "the argument \"number\" is not text");
	assert_int_equal(control_text(message, "bell", true, &text, &error), -EINVAL);
	assert_string_equal(error.text, "the argument \"bell\" has control characters");

	assert_int_equal(control_number(message, "none", false, 1, 65535, &number, &error), 0);
	assert_int_equal(number, 77);
	assert_int_equal(control_number(message, "number", true, 1, 65535, &number, &error), 0);
	assert_int_equal(number, 8001);
	assert_int_equal(control_number(message, "number", true, 1, 8000, &number, &error),
			 -EINVAL);
	assert_string_equal(error.text,
			    "the argument \"number\" is not a whole number from 1 to 8000");
	assert_int_equal(control_number(message, "weight", true, 1, 9, &number, &error), -EINVAL);
	assert_int_equal(control_number(message, "negative", true, 0, 9, &number, &error), -EINVAL);

	assert_int_equal(control_thousandths(message, "weight", true, 1, 1000000, &number, &error),
			 0);
	assert_int_equal(number, 2500);
	assert_int_equal(control_thousandths(message, "whole", true, 1, 1000000, &number, &error),
			 0);
	assert_int_equal(number, 3000);
	assert_int_equal(control_thousandths(message, "fine", true, 1, 1000000, &number, &error),
			 -EINVAL);
	assert_string_equal(
		error.text,
		"the argument \"fine\" is not a number from 0.001 to 1000 with at most 3 digits "
		"after the point");
	assert_int_equal(control_thousandths(message, "big", true, 1, 1000000, &number, &error),
			 -EINVAL);
	assert_int_equal(control_thousandths(message, "text", true, 1, 9, &number, &error),
			 -EINVAL);
	assert_int_equal(control_thousandths(message, "negative", true, 1, 9, &number, &error),
			 -EINVAL);

	assert_int_equal(control_flag(message, "flag", &flag, &error), 0);
	assert_true(flag);
	assert_int_equal(control_flag(message, "none", &flag, &error), 0);
	assert_true(flag);
	assert_int_equal(control_flag(message, "number", &flag, &error), -EINVAL);
	assert_string_equal(error.text, "the argument \"number\" is not true or false");

	assert_int_equal(control_only(message, all, &error), 0);
	assert_int_equal(control_only(message, few, &error), -EINVAL);
	assert_non_null(strstr(error.text, "command x has no argument \""));
	json_decref(message);
}

static void a_refusal_is_said_whatever_is_in_it(void **state)
{
	json_t *refusal = control_refusal("cut in a character \xc3");

	(void)state;
	assert_non_null(refusal);
	assert_true(json_is_false(json_object_get(refusal, "ok")));
	assert_true(json_is_string(json_object_get(refusal, "error")));
	json_decref(refusal);
}

/* --- the server ------------------------------------------------------------------------------------------- */

struct server {
	struct agent agent;
	struct config config;
	uv_async_t end;
	uv_async_t answer_nobody;
	sem_t answered;
	bool somebody_was;
	pthread_t thread;
	char directory[64];
};

static void on_end(uv_async_t *handle)
{
	struct server *server = handle->data;

	control_close(server->agent.control);
	uv_close((uv_handle_t *)&server->answer_nobody, NULL);
	uv_close((uv_handle_t *)handle, NULL);
}

static void on_answer_nobody(uv_async_t *handle)
{
	struct server *server = handle->data;

	server->somebody_was =
		control_answer_deferred(server->agent.control, 0, json_pack("{s:b}", "ok", true));
	sem_post(&server->answered);
}

static void *serve(void *context)
{
	struct server *server = context;

	uv_run(&server->agent.loop, UV_RUN_DEFAULT);
	return NULL;
}

static int start_server(void **state)
{
	struct server *server = calloc(1, sizeof(*server));
	struct error error;

	assert_non_null(server);
	strcpy(server->directory, "/tmp/warmpath-control-XXXXXX");
	assert_non_null(mkdtemp(server->directory));
	snprintf(server->config.control_socket, sizeof(server->config.control_socket),
		 "%s/control.sock", server->directory);
	server->agent.config = &server->config;
	server->agent.config_path = "/nonexistent/warmpath.yaml";
	assert_int_equal(uv_loop_init(&server->agent.loop), 0);
	assert_int_equal(control_listen(&server->agent, &server->agent.control, &error), 0);
	uv_async_init(&server->agent.loop, &server->end, on_end);
	server->end.data = server;
	uv_async_init(&server->agent.loop, &server->answer_nobody, on_answer_nobody);
	server->answer_nobody.data = server;
	sem_init(&server->answered, 0, 0);
	assert_int_equal(pthread_create(&server->thread, NULL, serve, server), 0);
	*state = server;
	return 0;
}

static int stop_server(void **state)
{
	struct server *server = *state;

	uv_async_send(&server->end);
	pthread_join(server->thread, NULL);
	assert_int_equal(uv_loop_close(&server->agent.loop), 0);
	/* the socket file is gone, so the directory is empty */
	assert_int_equal(rmdir(server->directory), 0);
	sem_destroy(&server->answered);
	free(server);
	return 0;
}

static int connect_to(const struct server *server)
{
	const struct timeval patience = {.tv_sec = 10};
	struct error error;
	int descriptor = control_connect(server->config.control_socket, &error);

	assert_true(descriptor >= 0);
	setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	return descriptor;
}

static void send_text(int descriptor, const char *text, size_t length)
{
	while (length > 0) {
		ssize_t sent = send(descriptor, text, length, MSG_NOSIGNAL);

		if (sent < 0)
			return; /* hung up on: what the test then reads tells */
		text += sent;
		length -= sent;
	}
}

/* Reads one line of an answer; NULL at the end of the connection. The caller drops the reference. */
static json_t *read_answer(int descriptor)
{
	char line[8192];
	size_t length = 0;

	while (length < sizeof(line)) {
		ssize_t got = recv(descriptor, line + length, 1, 0);

		if (got <= 0)
			return NULL;
		if (line[length++] == '\n')
			return json_loadb(line, length - 1, 0, NULL);
	}
	return NULL;
}

static void expect_refusal(int descriptor, const char *why)
{
	json_t *answer = read_answer(descriptor);
	const char *said = json_string_value(json_object_get(answer, "error"));

	assert_true(json_is_false(json_object_get(answer, "ok")));
	if (!said || !strstr(said, why))
		fail_msg("expected \"%s\" in \"%s\"", why, said ? said : "(nothing)");
	json_decref(answer);
}

static void expect_version(int descriptor)
{
	json_t *answer = read_answer(descriptor);

	assert_true(json_is_true(json_object_get(answer, "ok")));
	assert_string_equal(json_string_value(json_object_get(answer, "version")),
			    WARMPATH_VERSION);
	json_decref(answer);
}

#define VERSION_LINE "{\"command\": \"version\"}\n"

static void the_socket_is_private(void **state)
{
	struct server *server = *state;
	struct stat status;

	assert_int_equal(stat(server->config.control_socket, &status), 0);
	assert_true(S_ISSOCK(status.st_mode));
	assert_int_equal(status.st_mode & 0777, 0600);
}

static void questions_are_answered_in_order_however_they_arrive(void **state)
{
	static const char three[] = VERSION_LINE "{\"command\": \"nonsense\"}\n" VERSION_LINE;
	int descriptor = connect_to(*state);
	size_t i;

	send_text(descriptor, three, strlen(three));
	expect_version(descriptor);
	expect_refusal(descriptor, "there is no command \"nonsense\"");
	expect_version(descriptor);
	for (i = 0; i < strlen(VERSION_LINE); i++)
		send_text(descriptor, &VERSION_LINE[i], 1);
	expect_version(descriptor);
	close(descriptor);
}

static void an_answer_for_nobody_goes_to_nobody(void **state)
{
	struct server *server = *state;
	int descriptor = connect_to(server);

	send_text(descriptor, VERSION_LINE, strlen(VERSION_LINE));
	expect_version(descriptor);
	uv_async_send(&server->answer_nobody);
	sem_wait(&server->answered);
	assert_false(server->somebody_was);
	send_text(descriptor, VERSION_LINE, strlen(VERSION_LINE));
	expect_version(descriptor);
	close(descriptor);
}

static void a_bad_line_does_not_end_the_connection(void **state)
{
	int descriptor = connect_to(*state);

	send_text(descriptor, "nonsense\n\n{}\n[1]\n", 17);
	expect_refusal(descriptor, "the message is not JSON");
	expect_refusal(descriptor, "the message is empty");
	expect_refusal(descriptor, "the message has no text \"command\"");
	expect_refusal(descriptor, "the message is not a JSON object");
	send_text(descriptor, VERSION_LINE, strlen(VERSION_LINE));
	expect_version(descriptor);
	close(descriptor);
}

static void arguments_of_commands_are_refused_by_name(void **state)
{
	static const struct {
		const char *question, *refusal;
	} cases[] = {
		{"{\"command\": \"version\", \"verbose\": 1}",
		 "command version has no argument \"verbose\""},
		{"{\"command\": \"route\"}", "the argument \"id\" is missing"},
		{"{\"command\": \"route\", \"id\": \"\"}",
		 "\"\" is not an id: 1 to 128 letters, digits and"},
		{"{\"command\": \"route\", \"id\": \"a b\"}", "\"a b\" is not an id"},
		{"{\"command\": \"route\", \"id\": 7}", "the argument \"id\" is not text"},
		{"{\"command\": \"route\", \"id\": \"a\"}", "no service is configured"},
		{"{\"command\": \"route\", \"id\": \"a\", \"service\": \"x\"}",
		 "there is no service x"},
		{"{\"command\": \"address\", \"id\": \"a\"}",
		 "no service takes the id from the address"},
		{"{\"command\": \"replica-add\", \"name\": \"a#b\"}",
		 "\"a#b\" is not a replica's name"},
		{"{\"command\": \"replica-drain\", \"name\": \"a\"}", "no service is configured"},
		{"{\"command\": \"replica-weight\"}", "the argument \"name\" is missing"},
		{"{\"command\": \"attach\", \"interface\": \"eth0/1\"}",
		 "\"eth0/1\" is not the name of an interface"},
		{"{\"command\": \"attach\", \"interface\": \"eth0\", \"mode\": \"fast\"}",
		 "mode \"fast\" is not one of native, generic, tc, auto"},
		{"{\"command\": \"detach\", \"interface\": \"eth0\"}",
		 "interface eth0 is not attached"},
		{"{\"command\": \"reload\"}", "/nonexistent/warmpath.yaml: cannot be read"},
	};
	int descriptor = connect_to(*state);
	unsigned int i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		send_text(descriptor, cases[i].question, strlen(cases[i].question));
		send_text(descriptor, "\n", 1);
		expect_refusal(descriptor, cases[i].refusal);
	}
	close(descriptor);
}

static void the_longest_line_is_read_and_a_longer_one_ends_the_connection(void **state)
{
	char *line = malloc(2 * CONTROL_LINE_MAX);
	int descriptor = connect_to(*state);

	/* blanks behind the object make it as long as one likes */
	memset(line, ' ', 2 * CONTROL_LINE_MAX);
	memcpy(line, VERSION_LINE, strlen(VERSION_LINE) - 1);
	line[CONTROL_LINE_MAX - 1] = '\n';
	send_text(descriptor, line, CONTROL_LINE_MAX);
	expect_version(descriptor);
	line[CONTROL_LINE_MAX - 1] = ' ';
	send_text(descriptor, line, 2 * CONTROL_LINE_MAX);
	expect_refusal(descriptor, "the line is too long");
	assert_null(read_answer(descriptor));
	close(descriptor);
	free(line);
}

/* Until the other end is closed, leaving unread what it has sent. */
static void wait_for_end(int descriptor)
{
	struct pollfd end = {.fd = descriptor, .events = POLLRDHUP};

	assert_int_equal(poll(&end, 1, 10000), 1);
	assert_true(end.revents & (POLLRDHUP | POLLHUP));
}

static void too_many_connections_are_told_and_the_others_go_on(void **state)
{
	int descriptors[CONTROL_CLIENTS_MAX], last, i;
	json_t *question, *answer;
	struct error error;

	for (i = 0; i < CONTROL_CLIENTS_MAX; i++) {
		descriptors[i] = connect_to(*state);
		send_text(descriptors[i], VERSION_LINE, strlen(VERSION_LINE));
		expect_version(descriptors[i]);
	}
	last = connect_to(*state);
	expect_refusal(last, "too many connections");
	assert_null(read_answer(last));
	close(last);
	/* who asks only after it was hung up on reads why all the same */
	last = connect_to(*state);
	wait_for_end(last);
	question = json_pack("{s:s}", "command", "version");
	assert_int_equal(control_ask(last, question, &answer, &error), 0);
	json_decref(question);
	assert_string_equal(json_string_value(json_object_get(answer, "error")),
			    "too many connections to the control socket; try again");
	json_decref(answer);
	close(last);
	send_text(descriptors[0], VERSION_LINE, strlen(VERSION_LINE));
	expect_version(descriptors[0]);
	for (i = 0; i < CONTROL_CLIENTS_MAX; i++)
		close(descriptors[i]);
	/* their places are free again (when the server has seen the ends) */
	for (i = 0; i < 100; i++) {
		json_t *answer;
		bool served;

		last = connect_to(*state);
		send_text(last, VERSION_LINE, strlen(VERSION_LINE));
		answer = read_answer(last);
		served = json_is_true(json_object_get(answer, "ok"));
		json_decref(answer);
		close(last);
		if (served)
			return;
		usleep(20000);
	}
	fail_msg("the places of closed connections are not given back");
}

/* One who asks without end and never reads must be hung up on, not remembered without end. */
static void a_peer_that_does_not_listen_is_hung_up_on(void **state)
{
	int descriptor = connect_to(*state), other;
	const struct timeval patience = {.tv_sec = 5};
	size_t sent = 0;
	ssize_t now = 0;

	setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	while (sent < (256u << 20)) {
		now = send(descriptor, VERSION_LINE, strlen(VERSION_LINE), MSG_NOSIGNAL);
		if (now < 0)
			break;
		sent += now;
	}
	assert_true(now < 0);
	assert_true(errno == EPIPE || errno == ECONNRESET);
	close(descriptor);
	other = connect_to(*state);
	send_text(other, VERSION_LINE, strlen(VERSION_LINE));
	expect_version(other);
	close(other);
}

static void a_second_agent_does_not_take_the_socket_of_the_first(void **state)
{
	struct server *server = *state;
	struct agent second = {.config = &server->config};
	struct error error;

	assert_int_equal(uv_loop_init(&second.loop), 0);
	assert_int_equal(control_listen(&second, &second.control, &error), -EADDRINUSE);
	assert_non_null(strstr(error.text, "another warmpathd listens on control_socket"));
	uv_run(&second.loop, UV_RUN_DEFAULT);
	uv_loop_close(&second.loop);
}

static void a_socket_left_by_a_crash_is_replaced_but_no_other_file(void **state)
{
	struct config config = {0};
	struct agent agent = {.config = &config};
	char directory[] = "/tmp/warmpath-control-XXXXXX";
	struct error error;
	FILE *file;

	(void)state;
	assert_non_null(mkdtemp(directory));
	snprintf(config.control_socket, sizeof(config.control_socket), "%s/socket", directory);
	file = fopen(config.control_socket, "w");
	assert_non_null(file);
	fclose(file);
	uv_loop_init(&agent.loop);
	assert_int_equal(control_listen(&agent, &agent.control, &error), -EEXIST);
	assert_non_null(strstr(error.text, "exists and is not a socket"));
	unlink(config.control_socket);

	assert_int_equal(control_listen(&agent, &agent.control, &error), 0);
	/* as a crash leaves it: the file is there, nobody listens */
	assert_int_equal(
		link(config.control_socket, strcat(strcpy(error.text, directory), "/left")), 0);
	control_close(agent.control);
	uv_run(&agent.loop, UV_RUN_DEFAULT);
	assert_int_equal(rename(error.text, config.control_socket), 0);
	assert_int_equal(control_listen(&agent, &agent.control, &error), 0);
	control_close(agent.control);
	uv_run(&agent.loop, UV_RUN_DEFAULT);
	uv_loop_close(&agent.loop);
	assert_int_equal(rmdir(directory), 0);
}

static void nobody_listening_is_said_plainly(void **state)
{
	struct error error;

	(void)state;
	assert_int_equal(control_connect("/nonexistent/control.sock", &error), -ENOENT);
	assert_string_equal(error.text, "warmpathd is not running, or its control socket is not "
					"/nonexistent/control.sock (--socket)");
}

int main(void)
{
#define WITH_SERVER(function) cmocka_unit_test_setup_teardown(function, start_server, stop_server)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_not_a_message_is_refused),
		cmocka_unit_test(deep_nesting_is_refused),
		cmocka_unit_test(arguments_are_checked_and_named),
		cmocka_unit_test(a_refusal_is_said_whatever_is_in_it),
		WITH_SERVER(the_socket_is_private),
		WITH_SERVER(questions_are_answered_in_order_however_they_arrive),
		WITH_SERVER(an_answer_for_nobody_goes_to_nobody),
		WITH_SERVER(a_bad_line_does_not_end_the_connection),
		WITH_SERVER(arguments_of_commands_are_refused_by_name),
		WITH_SERVER(the_longest_line_is_read_and_a_longer_one_ends_the_connection),
		WITH_SERVER(too_many_connections_are_told_and_the_others_go_on),
		WITH_SERVER(a_peer_that_does_not_listen_is_hung_up_on),
		WITH_SERVER(a_second_agent_does_not_take_the_socket_of_the_first),
		cmocka_unit_test(a_socket_left_by_a_crash_is_replaced_but_no_other_file),
		cmocka_unit_test(nobody_listening_is_said_plainly),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
