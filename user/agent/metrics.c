/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/metrics.h"

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "agent/agent.h"
#include "agent/datapath_time.h"
#include "agent/metrics_text.h"
#include "lib/address.h"
#include "lib/log.h"

#define PLACES_MAX	  (2 * CONFIG_METRICS_ADDRESSES_MAX) /* while one configuration follows another */
#define CLIENT_MEMORY	  16384				     /* for a request's head */
#define FRESH_NANOSECONDS 1000000000ULL
#define TYPE_TEXT	  "text/plain; version=0.0.4; charset=utf-8"

/* One place at which is listened. */
struct place {
	struct metrics *metrics;
	struct address address;
	__u16 port;
	struct MHD_Daemon *daemon;
	uv_poll_t ready;
	uv_timer_t timer;
	unsigned int open_handles;
};

struct metrics {
	struct agent *agent;
	struct place *places[PLACES_MAX];
	struct metrics_counts counts;
	char *text;
	size_t length;
	uint64_t made; /* uv_hrtime() */
};

/* --- answers ----------------------------------------------------------------------------------------------------- */

static bool refresh(struct metrics *metrics)
{
	size_t length;
	char *text;

	metrics->counts.scrapes++;
	if (metrics->text && uv_hrtime() - metrics->made < FRESH_NANOSECONDS)
		return true;
	text = metrics_text(metrics->agent, &metrics->counts, &length);
	if (!text)
		return false;
	free(metrics->text);
	metrics->text = text;
	metrics->length = length;
	metrics->made = uv_hrtime();
	return true;
}

static enum MHD_Result send_text(struct MHD_Connection *connection, unsigned int status,
				 const char *type, const char *text, size_t length)
{
	struct MHD_Response *response =
		MHD_create_response_from_buffer(length, (void *)text, MHD_RESPMEM_MUST_COPY);
	enum MHD_Result result;

	if (!response)
		return MHD_NO;
	MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
	if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
		MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
	result = MHD_queue_response(connection, status, response);
	MHD_destroy_response(response);
	return result;
}

static enum MHD_Result send_sentence(struct MHD_Connection *connection, unsigned int status,
				     const char *sentence)
{
	return send_text(connection, status, TYPE_TEXT, sentence, strlen(sentence));
}

static enum MHD_Result on_request(void *context, struct MHD_Connection *connection, const char *url,
				  const char *method, const char *version, const char *body,
				  size_t *body_length, void **state)
{
	static int seen;
	struct place *place = context;
	struct metrics *metrics = place->metrics;

	(void)version;
	(void)body;
	/* The first call is of the head alone; a body is read and forgotten. */
	if (!*state) {
		*state = &seen;
		return MHD_YES;
	}
	if (*body_length > 0) {
		*body_length = 0;
		return MHD_YES;
	}
	if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
		return send_sentence(connection, MHD_HTTP_METHOD_NOT_ALLOWED,
				     "metrics can only be read: GET /metrics\n");
	if (strcmp(url, "/metrics") != 0)
		return send_sentence(connection, MHD_HTTP_NOT_FOUND,
				     "there is nothing but /metrics here\n");
	if (!refresh(metrics))
		return send_sentence(connection, MHD_HTTP_INTERNAL_SERVER_ERROR,
				     "not enough memory\n");
	return send_text(connection, MHD_HTTP_OK, TYPE_TEXT, metrics->text, metrics->length);
}

/* --- the event loop ------------------------------------------------------------------------------------------------ */

static void run(struct place *place);

static void on_timer(uv_timer_t *timer)
{
	run(timer->data);
}

static void run(struct place *place)
{
	MHD_UNSIGNED_LONG_LONG milliseconds;

	MHD_run(place->daemon);
	if (MHD_get_timeout(place->daemon, &milliseconds) == MHD_YES)
		uv_timer_start(&place->timer, on_timer, milliseconds, 0);
	else
		uv_timer_stop(&place->timer);
}

static void on_ready(uv_poll_t *poll, int status, int ready)
{
	(void)status;
	(void)ready;
	run(poll->data);
}

static void on_closed(uv_handle_t *handle)
{
	struct place *place = handle->data;

	if (--place->open_handles == 0)
		free(place);
}

/* --- places -------------------------------------------------------------------------------------------------------- */

static void fill_socket_address(const struct place *place, struct sockaddr_storage *storage)
{
	struct sockaddr_in *ipv4 = (struct sockaddr_in *)storage;
	struct sockaddr_in6 *ipv6 = (struct sockaddr_in6 *)storage;

	memset(storage, 0, sizeof(*storage));
	if (address_is_ipv4(&place->address)) {
		ipv4->sin_family = AF_INET;
		ipv4->sin_port = htons(place->port);
		memcpy(&ipv4->sin_addr, &place->address.word[3], sizeof(ipv4->sin_addr));
	} else {
		ipv6->sin6_family = AF_INET6;
		ipv6->sin6_port = htons(place->port);
		memcpy(&ipv6->sin6_addr, &place->address, sizeof(ipv6->sin6_addr));
	}
}

/* libmicrohttpd's own words are for its developers. */
static void forget_log(void *context, const char *format, va_list arguments)
{
	(void)context;
	(void)format;
	(void)arguments;
}

static struct MHD_Daemon *start_daemon(struct place *place)
{
	unsigned int flags = MHD_USE_EPOLL | MHD_USE_ERROR_LOG;
	struct sockaddr_storage address;

	if (!address_is_ipv4(&place->address))
		flags |= MHD_USE_IPv6;
	fill_socket_address(place, &address);
	return MHD_start_daemon(flags, place->port, NULL, NULL, on_request, place,
				MHD_OPTION_EXTERNAL_LOGGER, forget_log, NULL, MHD_OPTION_SOCK_ADDR,
				&address, MHD_OPTION_LISTENING_ADDRESS_REUSE, 1U,
				MHD_OPTION_CONNECTION_LIMIT, (unsigned int)METRICS_CLIENTS_MAX,
				MHD_OPTION_CONNECTION_TIMEOUT, (unsigned int)METRICS_IDLE_SECONDS,
				MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CLIENT_MEMORY,
				MHD_OPTION_END);
}

static struct place *place_open(struct metrics *metrics, const struct address *address, __u16 port,
				struct error *error)
{
	uv_loop_t *loop = &metrics->agent->loop;
	struct place *place = calloc(1, sizeof(*place));
	const union MHD_DaemonInfo *info;
	char text[ENDPOINT_TEXT_SIZE];

	if (!place) {
		error_set(error, -ENOMEM, "not enough memory");
		return NULL;
	}
	place->metrics = metrics;
	place->address = *address;
	place->port = port;
	errno = 0;
	place->daemon = start_daemon(place);
	info = place->daemon ? MHD_get_daemon_info(place->daemon, MHD_DAEMON_INFO_EPOLL_FD) : NULL;
	if (!info) {
		error_set(error, errno ? -errno : -EADDRINUSE, "metrics cannot be given at %s: %s",
			  endpoint_format(address, htons(port), text),
			  errno ? strerror(errno) : "it cannot be listened there");
		if (place->daemon)
			MHD_stop_daemon(place->daemon);
		free(place);
		return NULL;
	}
	place->open_handles = 2;
	uv_poll_init(loop, &place->ready, info->epoll_fd);
	place->ready.data = place;
	uv_timer_init(loop, &place->timer);
	place->timer.data = place;
	uv_poll_start(&place->ready, UV_READABLE, on_ready);
	log_info("metrics are given at http://%s/metrics",
		 endpoint_format(address, htons(port), text));
	return place;
}

static void place_close(struct place *place)
{
	if (!place)
		return;
	uv_poll_stop(&place->ready);
	MHD_stop_daemon(place->daemon);
	uv_close((uv_handle_t *)&place->ready, on_closed);
	uv_close((uv_handle_t *)&place->timer, on_closed);
}

static bool is_wanted(const struct place *place, const struct config_metrics *wanted)
{
	unsigned int i;

	for (i = 0; i < wanted->addresses.count; i++) {
		if (place->port == wanted->port &&
		    address_equal(&place->address, &wanted->addresses.item[i].address))
			return true;
	}
	return false;
}

static bool is_open(const struct metrics *metrics, const struct address *address, __u16 port)
{
	unsigned int i;

	for (i = 0; i < PLACES_MAX; i++) {
		const struct place *place = metrics->places[i];

		if (place && place->port == port && address_equal(&place->address, address))
			return true;
	}
	return false;
}

static unsigned int free_place(const struct metrics *metrics)
{
	unsigned int i;

	for (i = 0; metrics->places[i]; i++)
		;
	return i;
}

/* Opens what is wanted and not open; which places are new is in `opened`. */
static int open_missing(struct metrics *metrics, const struct config_metrics *wanted,
			bool opened[PLACES_MAX], struct error *error)
{
	unsigned int i, index;

	for (i = 0; i < wanted->addresses.count; i++) {
		const struct address *address = &wanted->addresses.item[i].address;

		if (is_open(metrics, address, wanted->port))
			continue;
		index = free_place(metrics);
		metrics->places[index] = place_open(metrics, address, wanted->port, error);
		if (!metrics->places[index])
			return -EADDRNOTAVAIL;
		opened[index] = true;
	}
	return 0;
}

int metrics_configure(struct metrics *metrics, const struct config_metrics *wanted,
		      struct error *error)
{
	bool opened[PLACES_MAX] = {false};
	unsigned int i;
	int result;

	if (!metrics)
		return 0;
	result = open_missing(metrics, wanted, opened, error);
	for (i = 0; i < PLACES_MAX; i++) {
		if (!metrics->places[i] ||
		    (result ? !opened[i] : is_wanted(metrics->places[i], wanted)))
			continue;
		place_close(metrics->places[i]);
		metrics->places[i] = NULL;
	}
	if (!result)
		datapath_time_configure(wanted->datapath_time);
	return result;
}

int metrics_open(struct agent *agent, struct metrics **result, struct error *error)
{
	struct metrics *metrics = calloc(1, sizeof(*metrics));

	*result = metrics;
	if (!metrics)
		return error_set(error, -ENOMEM, "not enough memory");
	metrics->agent = agent;
	/* The replicas are to be looked after all the same. */
	if (metrics_configure(metrics, &agent->config->metrics, error))
		log_error("%s; a reload tries again", error->text);
	return 0;
}

void metrics_close(struct metrics *metrics)
{
	unsigned int i;

	if (!metrics)
		return;
	for (i = 0; i < PLACES_MAX; i++)
		place_close(metrics->places[i]);
	free(metrics->text);
	free(metrics);
}
