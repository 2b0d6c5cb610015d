/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/slow_start.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent.h"
#include "lib/log.h"

#define PAUSE_MILLISECONDS 100	/* between two changes of the ring, at least */
#define RETRY_MILLISECONDS 5000 /* if it could not be changed */
#define PAUSE_SHARE	   20	/* and so many times what the last one took */

struct slow_start {
	struct agent *agent;
	uv_timer_t timer;
	uint64_t not_before;		 /* the next change, in the loop's time */
	uint64_t began[REPLICAS_MAX];	 /* in the loop's time; 0: does not rise */
	__u32 incarnation[REPLICAS_MAX]; /* of the life that rises */
};

/* --- who begins slowly ------------------------------------------------------------------------------------------ */

static bool is_active(const struct replica *replica)
{
	return replica->state == REPLICA_ACTIVE;
}

static bool stays(const struct replica *before, const struct replica *after)
{
	return is_active(before) && is_active(after) && before->service == after->service &&
	       strcmp(before->name, after->name) == 0;
}

static uint64_t whole_time(const struct routing *routing, const struct replica *replica)
{
	const struct config_service *settings = routing->settings[replica->service];

	return settings ? settings->health.slow_start_milliseconds : 0;
}

/* Whether it becomes active in a life that `current` does not know as active or draining. */
static bool begins(const struct replica *before, const struct replica *after)
{
	if (!is_active(after) || stays(before, after))
		return false;
	return !replica_in_set(before) || before->service != after->service ||
	       strcmp(before->name, after->name) != 0 || before->incarnation != after->incarnation;
}

void slow_start_begin(const struct routing *current, struct routing *next)
{
	bool has_whole[SERVICES_MAX] = {false};
	unsigned int slot;

	for (slot = 0; slot < REPLICAS_MAX; slot++) {
		struct replica *replica = &next->replicas[slot];

		if (stays(&current->replicas[slot], replica) && !replica->share_thousandths)
			has_whole[replica->service] = true;
	}
	for (slot = 0; slot < REPLICAS_MAX; slot++) {
		struct replica *replica = &next->replicas[slot];

		if (!is_active(replica))
			continue;
		if (!has_whole[replica->service] || !whole_time(next, replica))
			replica->share_thousandths = 0;
		else if (begins(&current->replicas[slot], replica))
			replica->share_thousandths = slow_start_share(0, 1);
	}
}

/* --- the steps ---------------------------------------------------------------------------------------------------- */

__u16 slow_start_share(uint64_t elapsed, uint64_t whole)
{
	uint64_t step = whole ? 1 + elapsed * (SLOW_START_STEPS - 1) / whole : SLOW_START_STEPS;

	return step >= SLOW_START_STEPS ? 0 : step * 1000 / SLOW_START_STEPS;
}

uint64_t slow_start_elapsed(__u16 share_thousandths, uint64_t whole)
{
	uint64_t step = share_thousandths * SLOW_START_STEPS / 1000;

	if (!share_thousandths || step < 1)
		return share_thousandths ? 0 : whole;
	/* rounded up, so that slow_start_share() of it is this step */
	return ((step - 1) * whole + SLOW_START_STEPS - 2) / (SLOW_START_STEPS - 1);
}

static int raise_shares(struct agent *agent, struct routing *next, void *context,
			struct error *error)
{
	struct slow_start *slow_start = context;
	uint64_t now = uv_now(&agent->loop);
	unsigned int slot;

	(void)error;
	for (slot = 0; slot < REPLICAS_MAX; slot++) {
		struct replica *replica = &next->replicas[slot];
		__u16 share;

		if (!slow_start->began[slot] || !is_active(replica) || !replica->share_thousandths)
			continue;
		share = slow_start_share(now - slow_start->began[slot], whole_time(next, replica));
		if (share == 0 || share > replica->share_thousandths)
			replica->share_thousandths = share;
	}
	return 0;
}

static void on_timer(uv_timer_t *timer)
{
	struct slow_start *slow_start = timer->data;
	uint64_t begun = uv_hrtime();
	struct error error;

	uint64_t pause = PAUSE_MILLISECONDS;

	if (agent_change_routing(slow_start->agent, raise_shares, slow_start, &error)) {
		log_warning("slow start: %s", error.text);
		pause = RETRY_MILLISECONDS;
	}
	uv_update_time(&slow_start->agent->loop);
	slow_start->not_before = uv_now(&slow_start->agent->loop) + pause +
				 (uv_hrtime() - begun) / 1000000 * PAUSE_SHARE;
	slow_start_follow(slow_start);
}

/* When the replica's next step is due. */
static uint64_t next_step(const struct slow_start *slow_start, unsigned int slot)
{
	const struct routing *routing = &slow_start->agent->routing;
	const struct replica *replica = &routing->replicas[slot];
	__u16 next = replica->share_thousandths + 1000 / SLOW_START_STEPS;

	return slow_start->began[slot] +
	       slow_start_elapsed(next < 1000 ? next : 0, whole_time(routing, replica));
}

void slow_start_follow(struct slow_start *slow_start)
{
	const struct routing *routing;
	uint64_t now, due = UINT64_MAX;
	unsigned int slot;

	if (!slow_start)
		return;
	routing = &slow_start->agent->routing;
	now = uv_now(&slow_start->agent->loop);
	for (slot = 0; slot < REPLICAS_MAX; slot++) {
		const struct replica *replica = &routing->replicas[slot];
		uint64_t elapsed;

		if (!is_active(replica) || !replica->share_thousandths) {
			slow_start->began[slot] = 0;
			continue;
		}
		if (!slow_start->began[slot] ||
		    slow_start->incarnation[slot] != replica->incarnation) {
			/* Also after a restart of the agent: it goes on from the share it has. */
			elapsed = slow_start_elapsed(replica->share_thousandths,
						     whole_time(routing, replica));
			slow_start->began[slot] = now > elapsed ? now - elapsed : 1;
			slow_start->incarnation[slot] = replica->incarnation;
		}
		if (next_step(slow_start, slot) < due)
			due = next_step(slow_start, slot);
	}
	if (due == UINT64_MAX) {
		uv_timer_stop(&slow_start->timer);
		return;
	}
	if (due < slow_start->not_before)
		due = slow_start->not_before;
	uv_timer_start(&slow_start->timer, on_timer, due > now ? due - now : 0, 0);
}

int slow_start_open(struct agent *agent, struct slow_start **result, struct error *error)
{
	struct slow_start *slow_start = calloc(1, sizeof(*slow_start));

	*result = slow_start;
	if (!slow_start)
		return error_set(error, -ENOMEM, "not enough memory");
	slow_start->agent = agent;
	uv_timer_init(&agent->loop, &slow_start->timer);
	slow_start->timer.data = slow_start;
	slow_start_follow(slow_start);
	return 0;
}

static void on_closed(uv_handle_t *handle)
{
	free(handle->data);
}

void slow_start_close(struct slow_start *slow_start)
{
	if (slow_start)
		uv_close((uv_handle_t *)&slow_start->timer, on_closed);
}
