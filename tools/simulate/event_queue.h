/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What happens when: a priority queue by time, then by order of insertion.
 *
 * Owns: the order. May not know: what the events are.
 */
#ifndef SIMULATE_EVENT_QUEUE_H
#define SIMULATE_EVENT_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct event {
	uint64_t time;	/* nanoseconds */
	uint64_t order; /* set by the queue */
	uint32_t kind;
	uint32_t number;
	void *subject;
};

struct event_queue {
	struct event *events;
	size_t count, capacity;
	uint64_t inserted;
};

/* Running out of memory ends the program. */
void event_queue_add(struct event_queue *queue, uint64_t time, uint32_t kind, uint32_t number,
		     void *subject);
/* Takes the next one out; false: none left. */
bool event_queue_take(struct event_queue *queue, struct event *event);
void event_queue_free(struct event_queue *queue);

#endif /* SIMULATE_EVENT_QUEUE_H */
