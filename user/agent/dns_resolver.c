/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/dns_resolver.h"

#include <ares.h>
#include <arpa/nameser.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define PATIENCE_MILLISECONDS 1500 /* with a server that does not answer, the first time */
#define TRIES		      2

struct resolver_socket {
	uv_poll_t poll;
	struct dns_resolver *resolver;
	struct resolver_socket *next;
	ares_socket_t descriptor;
};

struct dns_resolver {
	uv_loop_t *loop;
	uv_timer_t *patience;
	ares_channel channel;
	struct resolver_socket *sockets;
	bool closing;
};

struct question {
	dns_taker take;
	void *context;
	enum dns_records kind;
	struct dns_resolver *resolver;
};

/* --- c-ares on the loop ------------------------------------------------------------------------------------------- */

static void wait_for_answers(struct dns_resolver *resolver);

static void on_ready(uv_poll_t *poll, int status, int events)
{
	struct resolver_socket *socket = poll->data;
	struct dns_resolver *resolver = socket->resolver;
	ares_socket_t descriptor = socket->descriptor;
	bool readable = status < 0 || (events & UV_READABLE);
	bool writable = status < 0 || (events & UV_WRITABLE);

	ares_process_fd(resolver->channel, readable ? descriptor : ARES_SOCKET_BAD,
			writable ? descriptor : ARES_SOCKET_BAD);
	wait_for_answers(resolver);
}

static void on_patience(uv_timer_t *timer)
{
	struct dns_resolver *resolver = timer->data;

	ares_process_fd(resolver->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
	wait_for_answers(resolver);
}

static void wait_for_answers(struct dns_resolver *resolver)
{
	struct timeval left, *wait = ares_timeout(resolver->channel, NULL, &left);

	if (wait)
		uv_timer_start(resolver->patience, on_patience,
			       wait->tv_sec * 1000 + wait->tv_usec / 1000 + 1, 0);
	else
		uv_timer_stop(resolver->patience);
}

static void free_socket(uv_handle_t *handle)
{
	free(handle->data);
}

static void end_socket(struct dns_resolver *resolver, ares_socket_t descriptor)
{
	struct resolver_socket **at;

	for (at = &resolver->sockets; *at; at = &(*at)->next) {
		struct resolver_socket *socket = *at;

		if (socket->descriptor != descriptor)
			continue;
		*at = socket->next;
		uv_poll_stop(&socket->poll);
		uv_close((uv_handle_t *)&socket->poll, free_socket);
		return;
	}
}

static struct resolver_socket *watch_socket(struct dns_resolver *resolver, ares_socket_t descriptor)
{
	struct resolver_socket *socket;

	for (socket = resolver->sockets; socket; socket = socket->next) {
		if (socket->descriptor == descriptor)
			return socket;
	}
	socket = calloc(1, sizeof(*socket));
	if (!socket)
		return NULL;
	socket->resolver = resolver;
	socket->descriptor = descriptor;
	socket->poll.data = socket;
	if (uv_poll_init_socket(resolver->loop, &socket->poll, descriptor)) {
		free(socket);
		return NULL;
	}
	socket->next = resolver->sockets;
	resolver->sockets = socket;
	return socket;
}

/* c-ares says what it wants of each of its sockets; neither: it is about to close it. */
static void on_socket(void *context, ares_socket_t descriptor, int readable, int writable)
{
	struct dns_resolver *resolver = context;
	struct resolver_socket *socket;

	if (!readable && !writable) {
		end_socket(resolver, descriptor);
		return;
	}
	socket = watch_socket(resolver, descriptor);
	if (socket) /* else the question is answered when patience ends */
		uv_poll_start(&socket->poll,
			      (readable ? UV_READABLE : 0) | (writable ? UV_WRITABLE : 0),
			      on_ready);
}

/* --- answers --------------------------------------------------------------------------------------------------------- */

static enum dns_outcome describe(int status, struct error *error)
{
	switch (status) {
	case ARES_SUCCESS:
		return DNS_ANSWERED;
	case ARES_ENODATA:
		error_set(error, 0, "the name has no such records");
		return DNS_NOTHING;
	case ARES_ENOTFOUND:
		error_set(error, 0, "there is no such name");
		return DNS_NOTHING;
	case ARES_ETIMEOUT:
		error_set(error, 0, "the DNS server does not answer");
		return DNS_FAILED;
	case ARES_ECONNREFUSED:
		error_set(error, 0, "no DNS server can be reached");
		return DNS_FAILED;
	case ARES_ESERVFAIL:
		error_set(error, 0, "the DNS server reports a failure (SERVFAIL)");
		return DNS_FAILED;
	case ARES_EREFUSED:
		error_set(error, 0, "the DNS server refuses to answer");
		return DNS_FAILED;
	default:
		error_set(error, 0, "the question to DNS has failed: %s", ares_strerror(status));
		return DNS_FAILED;
	}
}

static void on_answer(void *context, int status, int timeouts, unsigned char *bytes, int length)
{
	struct question *question = context;
	struct dns_answer *answer = NULL;
	enum dns_outcome outcome;
	struct error error = {0};

	(void)timeouts;
	if (question->resolver->closing) {
		free(question);
		return;
	}
	outcome = describe(status, &error);
	if (outcome == DNS_ANSWERED) {
		answer = malloc(sizeof(*answer));
		if (!answer) {
			error_set(&error, 0, "not enough memory");
			outcome = DNS_FAILED;
		} else if (dns_answer_read(bytes, length, question->kind, answer, &error)) {
			outcome = DNS_FAILED;
		} else if (answer->count == 0) {
			error_set(&error, 0, "the name has no such records");
			outcome = DNS_NOTHING;
		}
	}
	question->take(question->context, outcome, outcome == DNS_ANSWERED ? answer : NULL, &error);
	free(answer);
	free(question);
}

void dns_resolver_ask(struct dns_resolver *resolver, const char *name, enum dns_records kind,
		      dns_taker take, void *context)
{
	static const ns_type types[] = {
		[DNS_RECORDS_A] = ns_t_a,
		[DNS_RECORDS_AAAA] = ns_t_aaaa,
		[DNS_RECORDS_SRV] = ns_t_srv,
	};
	struct question *question = calloc(1, sizeof(*question));
	struct error error;

	if (!question) {
		error_set(&error, 0, "not enough memory");
		take(context, DNS_FAILED, NULL, &error);
		return;
	}
	question->take = take;
	question->context = context;
	question->kind = kind;
	question->resolver = resolver;
	ares_query(resolver->channel, name, ns_c_in, types[kind], on_answer, question);
	wait_for_answers(resolver);
}

/* --- beginning and end ------------------------------------------------------------------------------------------------ */

static void free_timer(uv_handle_t *handle)
{
	free(handle);
}

int dns_resolver_open(uv_loop_t *loop, const char *server, struct dns_resolver **result,
		      struct error *error)
{
	struct dns_resolver *resolver = calloc(1, sizeof(*resolver));
	struct ares_options options = {
		.timeout = PATIENCE_MILLISECONDS, .tries = TRIES, .sock_state_cb = on_socket};
	int status;

	*result = NULL;
	if (resolver)
		resolver->patience = calloc(1, sizeof(*resolver->patience));
	if (!resolver || !resolver->patience) {
		free(resolver);
		return error_set(error, -ENOMEM, "not enough memory");
	}
	resolver->loop = loop;
	options.sock_state_cb_data = resolver;
	status = ares_library_init(ARES_LIB_INIT_ALL);
	if (status == ARES_SUCCESS)
		status = ares_init_options(&resolver->channel, &options,
					   ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES |
						   ARES_OPT_SOCK_STATE_CB);
	if (status == ARES_SUCCESS && server[0]) {
		status = ares_set_servers_ports_csv(resolver->channel, server);
		if (status != ARES_SUCCESS)
			ares_destroy(resolver->channel);
	}
	if (status != ARES_SUCCESS) {
		free(resolver->patience);
		free(resolver);
		return error_set(error, -EIO, "DNS cannot be asked: %s", ares_strerror(status));
	}
	uv_timer_init(loop, resolver->patience);
	resolver->patience->data = resolver;
	*result = resolver;
	return 0;
}

void dns_resolver_close(struct dns_resolver *resolver)
{
	if (!resolver)
		return;
	resolver->closing = true;
	ares_destroy(resolver->channel);
	uv_timer_stop(resolver->patience);
	uv_close((uv_handle_t *)resolver->patience, free_timer);
	free(resolver);
}
