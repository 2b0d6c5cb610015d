/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Replicas from Kubernetes: the ready endpoints of a service, by a list and then a watch that goes on where the list ended.
 *
 *	list (pages) -> watch -> its clean end -> watch, from the version seen last
 *	410, as a status or as an event -> list
 *	anything that fails -> the same again after a while, longer each time (backoff.h); the set stays meanwhile
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "agent/backoff.h"
#include "agent/discovery_source.h"
#include "agent/kubernetes_access.h"
#include "agent/kubernetes_slices.h"
#include "agent/line_reader.h"
#include "agent/web_client.h"
#include "lib/log.h"

#define CONNECT_MILLISECONDS 5000
#define LIST_MILLISECONDS    20000
#define LIST_PAGE	     10		/* slices */
#define LIST_BYTES_MAX	     (8u << 20) /* of a page */
#define LINE_BYTES_MAX	     (4u << 20) /* of an event */
#define ERROR_BYTES_MAX	     4096

/* A watch is asked to end after a time between these, and is given up if it has not ended GRACE later: then the server is gone. */
#define WATCH_SECONDS_LEAST	 60
#define WATCH_SECONDS_MOST	 120
#define WATCH_GRACE_SECONDS	 10
#define WATCH_SOUND_MILLISECONDS 100 /* one that did not last so long was no success */

#define FAILURES_OF_ANSWERING 2 /* at most, for the next wait, of a server that has begun a watch */

static const char *const versions[] = {"v1", "v1beta1"};

struct kubernetes_work {
	struct discovery_source *source;
	uv_timer_t *again;
	struct backoff backoff;
	struct backoff expirations;
	struct web_transfer *transfer;
	struct kubernetes_access access;

	unsigned int version; /* index into `versions` */
	bool listing;
	char next[KUBERNETES_CONTINUE_SIZE];
	unsigned int pages;	       /* of the list, so far */
	struct kubernetes_slices list; /* not complete yet */
	struct kubernetes_slices slices;

	/* Of the transfer. */
	char *body;
	size_t body_length;
	size_t body_most;
	bool too_long;
	struct line_reader lines;
	uint64_t begun; /* uv_hrtime() */
	bool heard;	/* the watch has said something */
	bool changed;
	bool expired;
	bool denied_before; /* 401: the token may just have been renewed */
	struct error problem;
};

static void ask(struct kubernetes_work *work);

/* --- when to ask again ------------------------------------------------------------------------------------------------ */

static void on_again(uv_timer_t *timer)
{
	ask(timer->data);
}

static void ask_after(struct kubernetes_work *work, uint64_t milliseconds)
{
	uv_timer_start(work->again, on_again, milliseconds, 0);
}

static void ask_later(struct kubernetes_work *work, uint64_t at_least)
{
	ask_after(work, backoff_next(&work->backoff, at_least));
}

static void begin_list(struct kubernetes_work *work)
{
	work->listing = true;
	work->next[0] = '\0';
	work->pages = 0;
	kubernetes_slices_clear(&work->list);
}

/* The version is too old. How often that happens in a row is counted apart: after a long absence of the server it is no failure. */
static void list_again(struct kubernetes_work *work)
{
	if (!work->listing) /* else pages of a list have become too old: it begins anew */
		log_info(
			"service %s: %s: what came after version %s is not known any more (410): listed anew",
			work->source->service, work->source->title, work->slices.version);
	begin_list(work);
	ask_after(work, backoff_next(&work->expirations, 0));
}

/* --- what has been found ---------------------------------------------------------------------------------------------- */

static void publish(struct kubernetes_work *work)
{
	unsigned int most = work->slices.endpoint_count, count;
	struct discovered_member *members = calloc(most ? most : 1, sizeof(*members));
	struct error note;

	if (!members) {
		discovery_failed(work->source, "not enough memory");
		return;
	}
	count = kubernetes_slices_members(&work->slices, &work->source->settings, members, most,
					  &note);
	discovery_found(work->source, members, count, &note);
	free(members);
}

static bool take_line(void *context, const char *line, size_t length)
{
	struct kubernetes_work *work = context;
	enum kubernetes_event event;

	if (kubernetes_slices_event(&work->slices, work->source->settings.port_name, line, length,
				    &event, &work->problem))
		return false;
	work->expired = event == KUBERNETES_EXPIRED;
	if (event == KUBERNETES_EXPIRED || event == KUBERNETES_REFUSED)
		return false;
	work->heard = true;
	work->changed |= event == KUBERNETES_CHANGED;
	return true;
}

static bool collect(struct kubernetes_work *work, const char *bytes, size_t length, size_t most)
{
	char *body;

	if (length > most - work->body_length) {
		work->too_long = true;
		return false;
	}
	if (work->body_length + length > work->body_most) {
		size_t room = work->body_length + length + work->body_most + 4096;

		body = realloc(work->body, room);
		if (!body)
			return false;
		work->body = body;
		work->body_most = room;
	}
	memcpy(work->body + work->body_length, bytes, length);
	work->body_length += length;
	return true;
}

static bool take(void *context, unsigned int status, const char *bytes, size_t length)
{
	struct kubernetes_work *work = context;
	int result;

	if (status != 200) {
		/* The reason is at the beginning; what is too much of it is not missed. */
		if (work->body_length + length <= ERROR_BYTES_MAX)
			collect(work, bytes, length, ERROR_BYTES_MAX);
		return true;
	}
	if (work->listing)
		return collect(work, bytes, length, LIST_BYTES_MAX);
	result = line_reader_take(&work->lines, bytes, length, take_line, work);
	/* Once for all that came together. */
	if (work->changed)
		publish(work);
	else if (work->heard)
		discovery_confirmed(work->source);
	work->changed = false;
	if (result == -EMSGSIZE)
		error_set(&work->problem, 0, "an event of the watch is longer than %u bytes",
			  LINE_BYTES_MAX);
	return result == 0;
}

/* --- the end of a transfer ------------------------------------------------------------------------------------------- */

static void fail(struct kubernetes_work *work, uint64_t at_least, const char *sentence)
{
	if (work->listing)
		begin_list(work);
	ask_later(work, at_least);
	discovery_failed(work->source, "%s", sentence);
}

/* Any answer that is not 200; 410 has been dealt with. */
static void take_refusal(struct kubernetes_work *work, const struct web_result *result)
{
	const struct config_discovery *settings = &work->source->settings;
	struct error sentence;
	char message[256];

	if (result->status == 401 && !work->denied_before && settings->token_file[0]) {
		work->denied_before = true;
		ask_after(work, 0);
		return;
	}
	if (result->status == 404) {
		bool first = work->version == 0;

		begin_list(work);
		work->version = first ? 1 : 0;
		if (first) {
			ask_after(work, 0);
			return;
		}
	}
	kubernetes_status_message(work->body ? work->body : "", work->body_length, message);
	switch (result->status) {
	case 401:
		error_set(&sentence, 0, "%s refuses the token%s%s (401): give it a valid one",
			  work->access.server, settings->token_file[0] ? " in " : "",
			  settings->token_file);
		break;
	case 403:
		error_set(
			&sentence, 0,
			"%s does not allow it to list and watch endpointslices in namespace %s (403): %s",
			work->access.server, work->access.namespace,
			message[0] ? message : "it needs a Role and a RoleBinding");
		break;
	case 404:
		error_set(
			&sentence, 0,
			"%s has neither discovery.k8s.io/v1 nor v1beta1 (404): is it a Kubernetes API server?",
			work->access.server);
		break;
	default:
		error_set(&sentence, 0, "%s answers with status %u%s%s", work->access.server,
			  result->status, message[0] ? ": " : "", message);
	}
	fail(work, result->retry_milliseconds, sentence.text);
}

static void end_list_page(struct kubernetes_work *work)
{
	struct error error, sentence;

	if (kubernetes_slices_list(&work->list, work->source->settings.port_name, work->body,
				   work->body_length, work->next, &error)) {
		error_set(&sentence, 0, "%s: %s", work->access.server, error.text);
		fail(work, 0, sentence.text);
		return;
	}
	if (work->next[0] && ++work->pages > KUBERNETES_SLICES_MAX) {
		error_set(&sentence, 0, "%s: the list has no end: more than %d pages",
			  work->access.server, KUBERNETES_SLICES_MAX);
		fail(work, 0, sentence.text);
		return;
	}
	if (work->next[0]) {
		ask_after(work, 0);
		return;
	}
	kubernetes_slices_clear(&work->slices);
	work->slices = work->list;
	memset(&work->list, 0, sizeof(work->list));
	work->listing = false;
	ask_after(work, 0);
	publish(work);
}

static void end_watch(struct kubernetes_work *work, const struct web_result *result)
{
	struct error sentence;
	uint64_t lasted = (uv_hrtime() - work->begun) / 1000000;
	bool sound = lasted > WATCH_SOUND_MILLISECONDS && lasted > work->backoff.waited;

	if (sound)
		work->expirations.failures = 0;
	if (sound || work->heard)
		work->backoff.failures = 0;
	if (work->expired) {
		list_again(work);
	} else if (work->problem.text[0]) {
		/* What came before is not lost; what cannot be read would come again, so all is read again. */
		begin_list(work);
		error_set(&sentence, 0, "%s: %s", work->access.server, work->problem.text);
		fail(work, 0, sentence.text);
	} else if (result->complete && sound) {
		ask_after(work, 0);
	} else if (result->complete) {
		/* A server that ends every watch at once is not asked without end. */
		ask_later(work, 0);
	} else {
		error_set(&sentence, 0, "%s: the watch was cut off: %s", work->access.server,
			  result->timed_out ? "the server is silent" : result->error.text);
		fail(work, 0, sentence.text);
	}
}

static void done(void *context, const struct web_result *result)
{
	struct kubernetes_work *work = context;
	struct error sentence;

	work->transfer = NULL;
	if (result->status == 410) {
		list_again(work);
	} else if (result->status && result->status != 200) {
		take_refusal(work, result);
	} else if (result->status == 200 && !work->listing) {
		work->denied_before = false;
		end_watch(work, result);
	} else if (result->complete) {
		work->denied_before = false;
		end_list_page(work);
	} else if (work->too_long) {
		error_set(&sentence, 0, "%s: a page of the list is longer than %u bytes",
			  work->access.server, LIST_BYTES_MAX);
		fail(work, 0, sentence.text);
	} else {
		error_set(&sentence, 0, "%s cannot be asked: %s", work->access.server,
			  result->timed_out ? "it does not answer" : result->error.text);
		fail(work, 0, sentence.text);
	}
}

/* --- asking -------------------------------------------------------------------------------------------------------------- */

static void watch_begun(void *context, unsigned int status)
{
	struct kubernetes_work *work = context;

	if (status != 200)
		return;
	/* Whether it is sound shows when it ends; but a server that answers is not kept waiting for long any more. */
	if (work->backoff.failures > FAILURES_OF_ANSWERING)
		work->backoff.failures = FAILURES_OF_ANSWERING;
	discovery_confirmed(work->source);
}

static unsigned int watch_seconds(void)
{
	__u32 random = 0;

	if (getrandom(&random, sizeof(random), GRND_NONBLOCK) != sizeof(random))
		random = 0;
	return WATCH_SECONDS_LEAST + random % (WATCH_SECONDS_MOST - WATCH_SECONDS_LEAST + 1);
}

/* The query's rest, freed by the caller; NULL: not enough memory. */
static char *make_query(struct kubernetes_work *work, struct web_request *request)
{
	char *word = kubernetes_escape(work->listing ? work->next : work->slices.version);
	unsigned int seconds = watch_seconds();
	char *query = NULL;
	int length = -1;

	if (word && work->listing)
		length = asprintf(&query, "&limit=%d%s%s", LIST_PAGE, *word ? "&continue=" : "",
				  word);
	else if (word)
		length = asprintf(&query,
				  "&watch=true&allowWatchBookmarks=true&timeoutSeconds=%u"
				  "&resourceVersion=%s",
				  seconds, word);
	request->total_milliseconds =
		work->listing ? LIST_MILLISECONDS : (seconds + WATCH_GRACE_SECONDS) * 1000;
	free(word);
	return length < 0 ? NULL : query;
}

static void ask(struct kubernetes_work *work)
{
	const struct config_discovery *settings = &work->source->settings;
	struct web_request request = {
		.ca_file = settings->ca_file[0] ? settings->ca_file : NULL,
		.connect_milliseconds = CONNECT_MILLISECONDS,
		.begun = work->listing ? NULL : watch_begun,
		.take = take,
		.done = done,
		.context = work,
	};
	char *query, *url = NULL;
	struct error error;
	int result = kubernetes_access_read(settings, &work->access, &error);

	if (!result) {
		query = make_query(work, &request);
		if (query)
			url = kubernetes_url(&work->access, versions[work->version],
					     settings->service, query);
		free(query);
		if (!url)
			result = error_set(&error, -ENOMEM, "not enough memory");
	}
	work->body_length = 0;
	work->too_long = work->heard = work->changed = work->expired = false;
	work->problem.text[0] = '\0';
	line_reader_reset(&work->lines);
	work->begun = uv_hrtime();
	if (!result) {
		request.url = url;
		request.bearer_token = work->access.token[0] ? work->access.token : NULL;
		result = web_client_get(work->source->transfers, &request, &work->transfer, &error);
	}
	explicit_bzero(work->access.token, sizeof(work->access.token));
	free(url);
	if (result)
		fail(work, 0, error.text);
}

/* --- beginning and end ------------------------------------------------------------------------------------------------ */

static int start(struct discovery_source *source, struct error *error)
{
	struct kubernetes_work *work = calloc(1, sizeof(*work));

	if (work)
		work->again = calloc(1, sizeof(*work->again));
	if (!work || !work->again) {
		free(work);
		return error_set(error, -ENOMEM, "not enough memory");
	}
	work->source = source;
	work->lines.most = LINE_BYTES_MAX;
	source->work = work;
	uv_timer_init(source->loop, work->again);
	work->again->data = work;
	begin_list(work);
	ask_after(work, 0);
	return 0;
}

static void free_timer(uv_handle_t *handle)
{
	free(handle);
}

static void stop(struct discovery_source *source)
{
	struct kubernetes_work *work = source->work;

	if (!work)
		return;
	web_transfer_cancel(work->transfer);
	uv_timer_stop(work->again);
	uv_close((uv_handle_t *)work->again, free_timer);
	kubernetes_slices_clear(&work->list);
	kubernetes_slices_clear(&work->slices);
	line_reader_free(&work->lines);
	free(work->body);
	free(work);
}

const struct discovery_kind discovery_kubernetes = {.start = start, .stop = stop};
