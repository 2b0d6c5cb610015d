/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/transfers.h"

#include <errno.h>
#include <stdlib.h>

struct transfers {
	uv_loop_t *loop;
	CURLM *multi;
	uv_timer_t timer;
};

/* What a transfer carries in CURLOPT_PRIVATE. */
struct transfer {
	transfer_ended ended;
	void *context;
};

/* One for each socket of libcurl. */
struct watch {
	uv_poll_t poll;
	struct transfers *transfers;
	curl_socket_t socket;
};

static void tell_ended(struct transfers *transfers)
{
	CURLMsg *message;
	int left;

	while ((message = curl_multi_info_read(transfers->multi, &left))) {
		CURL *easy = message->easy_handle;
		CURLcode result = message->data.result;
		struct transfer *transfer = NULL;
		struct transfer copy;

		if (message->msg != CURLMSG_DONE)
			continue;
		curl_easy_getinfo(easy, CURLINFO_PRIVATE, &transfer);
		copy = *transfer;
		transfers_cancel(transfers, easy);
		copy.ended(copy.context, easy, result);
	}
}

static void act(struct transfers *transfers, curl_socket_t socket, int events)
{
	int running;

	curl_multi_socket_action(transfers->multi, socket, events, &running);
	tell_ended(transfers);
}

static void on_timer(uv_timer_t *timer)
{
	act(timer->data, CURL_SOCKET_TIMEOUT, 0);
}

static int set_timer(CURLM *multi, long milliseconds, void *context)
{
	struct transfers *transfers = context;

	(void)multi;
	if (milliseconds < 0)
		uv_timer_stop(&transfers->timer);
	else
		uv_timer_start(&transfers->timer, on_timer, milliseconds, 0);
	return 0;
}

static void on_ready(uv_poll_t *poll, int status, int ready)
{
	struct watch *watch = poll->data;
	int events = 0;

	if (status < 0)
		events = CURL_CSELECT_ERR;
	if (ready & UV_READABLE)
		events |= CURL_CSELECT_IN;
	if (ready & UV_WRITABLE)
		events |= CURL_CSELECT_OUT;
	act(watch->transfers, watch->socket, events);
}

static void on_watch_closed(uv_handle_t *handle)
{
	free(handle->data);
}

static struct watch *watch_new(struct transfers *transfers, curl_socket_t socket)
{
	struct watch *watch = calloc(1, sizeof(*watch));

	if (!watch)
		return NULL;
	watch->transfers = transfers;
	watch->socket = socket;
	watch->poll.data = watch;
	if (uv_poll_init_socket(transfers->loop, &watch->poll, socket)) {
		free(watch);
		return NULL;
	}
	curl_multi_assign(transfers->multi, socket, watch);
	return watch;
}

static int set_socket(CURL *easy, curl_socket_t socket, int what, void *context, void *known)
{
	struct transfers *transfers = context;
	struct watch *watch = known;
	int events = 0;

	(void)easy;
	if (what == CURL_POLL_REMOVE) {
		if (watch)
			uv_close((uv_handle_t *)&watch->poll, on_watch_closed);
		curl_multi_assign(transfers->multi, socket, NULL);
		return 0;
	}
	if (!watch)
		watch = watch_new(transfers, socket);
	if (!watch)
		return -1;
	if (what != CURL_POLL_OUT)
		events |= UV_READABLE;
	if (what != CURL_POLL_IN)
		events |= UV_WRITABLE;
	return uv_poll_start(&watch->poll, events, on_ready) ? -1 : 0;
}

int transfers_open(uv_loop_t *loop, struct transfers **result, struct error *error)
{
	struct transfers *transfers = calloc(1, sizeof(*transfers));

	*result = NULL;
	/* It may be called again and counts. */
	if (curl_global_init(CURL_GLOBAL_DEFAULT) || !transfers) {
		free(transfers);
		return error_set(error, -ENOMEM, "libcurl cannot be used: not enough memory");
	}
	transfers->multi = curl_multi_init();
	if (!transfers->multi) {
		free(transfers);
		return error_set(error, -ENOMEM, "libcurl cannot be used: not enough memory");
	}
	transfers->loop = loop;
	curl_multi_setopt(transfers->multi, CURLMOPT_SOCKETFUNCTION, set_socket);
	curl_multi_setopt(transfers->multi, CURLMOPT_SOCKETDATA, transfers);
	curl_multi_setopt(transfers->multi, CURLMOPT_TIMERFUNCTION, set_timer);
	curl_multi_setopt(transfers->multi, CURLMOPT_TIMERDATA, transfers);
	uv_timer_init(loop, &transfers->timer);
	transfers->timer.data = transfers;
	*result = transfers;
	return 0;
}

static void on_timer_closed(uv_handle_t *handle)
{
	free(handle->data);
}

void transfers_close(struct transfers *transfers)
{
	if (!transfers)
		return;
	curl_multi_cleanup(transfers->multi);
	curl_global_cleanup();
	uv_close((uv_handle_t *)&transfers->timer, on_timer_closed);
}

CURL *transfers_handle(void)
{
	CURL *easy = curl_easy_init();

	if (!easy)
		return NULL;
	curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	curl_easy_setopt(easy, CURLOPT_USERAGENT, "warmpathd/" WARMPATH_VERSION);
	curl_easy_setopt(easy, CURLOPT_PROXY, ""); /* not what the environment says */
	curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	/* the thread that resolves a name is left behind at the end: waiting for it would hold up the event loop */
	curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
	return easy;
}

int transfers_begin(struct transfers *transfers, CURL *easy, transfer_ended ended, void *context)
{
	struct transfer *transfer = malloc(sizeof(*transfer));

	if (!transfer)
		return -ENOMEM;
	transfer->ended = ended;
	transfer->context = context;
	curl_easy_setopt(easy, CURLOPT_PRIVATE, transfer);
	if (curl_multi_add_handle(transfers->multi, easy)) {
		curl_easy_setopt(easy, CURLOPT_PRIVATE, NULL);
		free(transfer);
		return -EINVAL;
	}
	return 0;
}

void transfers_cancel(struct transfers *transfers, CURL *easy)
{
	struct transfer *transfer = NULL;

	curl_easy_getinfo(easy, CURLINFO_PRIVATE, &transfer);
	curl_multi_remove_handle(transfers->multi, easy);
	curl_easy_setopt(easy, CURLOPT_PRIVATE, NULL);
	free(transfer);
}
