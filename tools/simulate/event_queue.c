/* SPDX-License-Identifier: BSD-2-Clause */
#include "event_queue.h"

#include <stdio.h>
#include <stdlib.h>

static bool before(const struct event *a, const struct event *b)
{
	return a->time != b->time ? a->time < b->time : a->order < b->order;
}

void event_queue_add(struct event_queue *queue, uint64_t time, uint32_t kind, uint32_t number,
		     void *subject)
{
	struct event event = {time, queue->inserted++, kind, number, subject};
	size_t at = queue->count++;

	if (queue->count > queue->capacity) {
		queue->capacity = queue->capacity ? queue->capacity * 2 : 1024;
		queue->events = realloc(queue->events, queue->capacity * sizeof(event));
		if (!queue->events) {
			fputs("simulate: out of memory\n", stderr);
			abort();
		}
	}
	while (at && before(&event, &queue->events[(at - 1) / 2])) {
		queue->events[at] = queue->events[(at - 1) / 2];
		at = (at - 1) / 2;
	}
	queue->events[at] = event;
}

bool event_queue_take(struct event_queue *queue, struct event *event)
{
	struct event last;
	size_t at = 0, child;

	if (!queue->count)
		return false;
	*event = queue->events[0];
	last = queue->events[--queue->count];
	while ((child = 2 * at + 1) < queue->count) {
		if (child + 1 < queue->count &&
		    before(&queue->events[child + 1], &queue->events[child]))
			child++;
		if (!before(&queue->events[child], &last))
			break;
		queue->events[at] = queue->events[child];
		at = child;
	}
	queue->events[at] = last;
	return true;
}

void event_queue_free(struct event_queue *queue)
{
	free(queue->events);
	*queue = (struct event_queue){0};
}
