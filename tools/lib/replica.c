/* SPDX-License-Identifier: BSD-2-Clause */
#include "replica.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "prompt_cache.h"

#define KEPT_SHARE_LOOKUP \
	0.5 /* a similar slot that would keep less than this asks the RAM cache, too */

struct slot {
	struct replica_request *request; /* NULL: idle */
	struct span content;		 /* KV held while idle; owns a reference */
	uint64_t last_used;		 /* 0: never */
	uint32_t chunk;			 /* prompt tokens in the current step */
};

struct replica {
	struct replica_settings settings;
	struct cost_model model;
	struct replica_observer observer;
	struct replica_counters counters;
	struct prompt_cache *cache;
	struct replica_request *queue_first, *queue_last;
	uint32_t queued, processing;
	/* the step under way */
	bool running;
	uint64_t step_start, step_end;
	uint32_t
		decode_steps; /* 0: a step with prompts in it; else a run of so many decode steps */
	double decode_step_first,
		decode_step_growth; /* ns of the first one of the run, and how much each is longer than the last */
	uint64_t use_count; /* orders slots by last use */
	struct slot slots[REPLICA_SLOTS_MAX];
};

struct replica_settings replica_defaults(void)
{
	return (struct replica_settings){
		.slots = 4,
		.context_tokens = 4096,
		.batch_tokens = 2048,
		.slot_similarity = 0.1,
		.cache_ram_bytes = 8192ull << 20,
		.cache_idle_slots = true,
		.unified = true,
	};
}

struct replica *replica_new(const struct replica_settings *settings, const struct cost_model *model,
			    const struct replica_observer *observer)
{
	struct replica *replica = calloc(1, sizeof(*replica));

	if (!replica)
		return NULL;
	replica->settings = *settings;
	replica->model = *model;
	replica->observer = *observer;
	replica->cache = prompt_cache_new(settings->cache_ram_bytes, model->kv_bytes_per_token);
	if (!replica->cache) {
		free(replica);
		return NULL;
	}
	return replica;
}

static void forget(struct replica_request *request)
{
	text_release(request->whole.text);
	request->whole.text = NULL;
	request->state = REQUEST_DONE;
}

void replica_free(struct replica *replica)
{
	if (!replica)
		return;
	for (struct replica_request *request = replica->queue_first, *next; request;
	     request = next) {
		next = request->next;
		forget(request);
	}
	for (uint32_t i = 0; i < replica->settings.slots; i++) {
		if (replica->slots[i].request)
			forget(replica->slots[i].request);
		text_release(replica->slots[i].content.text);
	}
	prompt_cache_free(replica->cache);
	free(replica);
}

static uint64_t nanoseconds(double milliseconds)
{
	return (uint64_t)llround(milliseconds * 1e6);
}

static struct span prompt_of(const struct replica_request *request)
{
	return (struct span){request->whole.text, request->prompt_tokens};
}

static void slot_hold(struct slot *slot, struct span content)
{
	if (content.text && content.length)
		text_hold(content.text);
	else
		content = (struct span){0};
	text_release(slot->content.text);
	slot->content = content;
}

/* --- choosing a slot ------------------------------------------------------------------------------------ */

static struct slot *most_similar_slot(struct replica *replica, struct span prompt, bool *ask_cache)
{
	struct slot *best = NULL;
	uint32_t common_best = 0;

	for (uint32_t i = 0; i < replica->settings.slots; i++) {
		struct slot *slot = &replica->slots[i];
		uint32_t common;

		if (slot->request || !slot->content.length)
			continue;
		common = span_common(slot->content, prompt);
		if (common > common_best &&
		    common > replica->settings.slot_similarity * prompt.length) {
			common_best = common;
			best = slot;
		}
	}
	if (best)
		*ask_cache = common_best < KEPT_SHARE_LOOKUP * best->content.length;
	return best;
}

static struct slot *least_recently_used_slot(struct replica *replica)
{
	struct slot *oldest = NULL;

	for (uint32_t i = 0; i < replica->settings.slots; i++) {
		struct slot *slot = &replica->slots[i];

		if (!slot->request && (!oldest || slot->last_used <= oldest->last_used))
			oldest = slot;
	}
	return oldest;
}

/* Saves what the slot holds and loads what suits the prompt better. Returns the tokens that were moved. */
static uint64_t swap_with_cache(struct replica *replica, struct slot *slot, struct span prompt)
{
	int64_t moved = prompt_cache_save(replica->cache, slot->content);
	struct span loaded = prompt_cache_load(replica->cache, slot->content, prompt);

	if (moved < 0)
		moved = 0; /* no memory: as if there were no cache */
	if (loaded.text) {
		text_release(slot->content.text);
		slot->content = loaded;
		moved += loaded.length;
	}
	return (uint64_t)moved;
}

static uint64_t save_idle_slots(struct replica *replica, const struct slot *chosen)
{
	uint64_t moved = 0;

	for (uint32_t i = 0; i < replica->settings.slots; i++) {
		struct slot *slot = &replica->slots[i];
		int64_t saved;

		if (slot == chosen || slot->request || !slot->content.length)
			continue;
		saved = prompt_cache_save(replica->cache, slot->content);
		moved += saved > 0 ? (uint64_t)saved : 0;
		if (replica->settings.unified)
			slot_hold(slot, (struct span){0});
	}
	return moved;
}

/*
 * Gives the request a slot if one is free for it. Returns whether it got one; `moved` grows by the tokens copied between slots
 * and RAM on the way.
 */
static bool place(struct replica *replica, struct replica_request *request, uint64_t *moved)
{
	struct span prompt = prompt_of(request);
	bool ask_cache = false;
	struct slot *slot = NULL;

	if (request->slot_wanted >= 0) {
		slot = &replica->slots[(uint32_t)request->slot_wanted % replica->settings.slots];
		if (slot->request)
			return false;
	} else {
		if (replica->settings.slot_similarity > 0)
			slot = most_similar_slot(replica, prompt, &ask_cache);
		if (!slot) {
			slot = least_recently_used_slot(replica);
			ask_cache = true;
		}
		if (!slot)
			return false;
		if (ask_cache && replica->settings.cache_ram_bytes)
			*moved += swap_with_cache(replica, slot, prompt);
	}
	if (replica->settings.cache_idle_slots && replica->settings.cache_ram_bytes)
		*moved += save_idle_slots(replica, slot);

	request->slot = (uint32_t)(slot - replica->slots);
	request->state = REQUEST_PROMPT;
	request->cached = 0;
	if (request->cache_prompt && slot->content.length) {
		request->cached = span_common(slot->content, prompt);
		if (request->cached == request->prompt_tokens)
			request->cached--; /* the last token is always computed: its output is needed */
	}
	slot->request = request;
	slot_hold(slot, (struct span){0});
	replica->processing++;
	return true;
}

/* --- the queue ------------------------------------------------------------------------------------------ */

static void enqueue(struct replica *replica, struct replica_request *request)
{
	request->next = NULL;
	if (replica->queue_last)
		replica->queue_last->next = request;
	else
		replica->queue_first = request;
	replica->queue_last = request;
	replica->queued++;
}

static void dequeue(struct replica *replica, struct replica_request *request)
{
	struct replica_request **link = &replica->queue_first, *before = NULL;

	while (*link != request) {
		before = *link;
		link = &before->next;
	}
	*link = request->next;
	if (replica->queue_last == request)
		replica->queue_last = before;
	request->next = NULL;
	replica->queued--;
}

/* First come, first served; one that waits for a certain slot does not hold up those behind it. */
static uint64_t admit(struct replica *replica)
{
	uint64_t moved = 0;

	for (struct replica_request *request = replica->queue_first, *next;
	     request && replica->processing < replica->settings.slots; request = next) {
		next = request->next;
		if (place(replica, request, &moved))
			dequeue(replica, request);
	}
	return moved;
}

/* --- the work loop --------------------------------------------------------------------------------------- */

static void begin_decode_run(struct replica *replica, uint64_t now)
{
	uint32_t streams = 0, steps = UINT32_MAX;
	double depth = 0, first, second;

	for (uint32_t i = 0; i < replica->settings.slots; i++) {
		const struct replica_request *request = replica->slots[i].request;

		if (!request)
			continue;
		streams++;
		if (request->each_token)
			steps = 1;
		depth += request->prompt_tokens + request->predicted;
		if (request->answer_tokens - request->predicted < steps)
			steps = request->answer_tokens - request->predicted;
	}
	depth /= streams;
	first = cost_decode(&replica->model, streams, depth) * 1e6;
	second = cost_decode(&replica->model, streams, depth + 1) * 1e6;
	replica->decode_steps = steps;
	replica->decode_step_first = first;
	replica->decode_step_growth = second - first;
	replica->step_start = now;
}

/* When `steps` steps of the run are over, from its start. */
static double decode_run_nanoseconds(const struct replica *replica, double steps)
{
	return steps * replica->decode_step_first +
	       replica->decode_step_growth * steps * (steps - 1) / 2;
}

/* Something has changed at `now`: the run ends with the step that is under way. */
static void cut_decode_run(struct replica *replica, uint64_t now)
{
	double elapsed = (double)(now - replica->step_start);
	double a = replica->decode_step_growth / 2,
	       b = replica->decode_step_first - replica->decode_step_growth / 2;
	double steps = a > 0 ? (-b + sqrt(b * b + 4 * a * elapsed)) / (2 * a) : elapsed / b;
	uint32_t whole;

	if (!replica->running || replica->decode_steps <= 1)
		return;
	whole = steps >= replica->decode_steps ? replica->decode_steps
					       : (uint32_t)ceil(steps - 1e-9);
	if (whole == 0)
		whole = 1;
	replica->decode_steps = whole;
	replica->step_end =
		replica->step_start + (uint64_t)llround(decode_run_nanoseconds(replica, whole));
}

/* Composes the next step from what the slots need. `moves`: nanoseconds of copying that come first. */
static void begin_step(struct replica *replica, uint64_t now)
{
	uint64_t moves = nanoseconds(cost_move(&replica->model, (uint32_t)admit(replica)));
	uint32_t room = replica->settings.batch_tokens, decoding = 0;
	double work = 0, depth = 0;
	bool prompts = false;

	replica->running = replica->processing > 0;
	if (!replica->running)
		return;
	now += moves;
	replica->counters.busy_nanoseconds += moves;
	for (uint32_t i = 0; i < replica->settings.slots; i++) {
		struct slot *slot = &replica->slots[i];
		struct replica_request *request = slot->request;

		if (!request)
			continue;
		slot->chunk = 0;
		if (request->state == REQUEST_DECODING) {
			decoding++;
			depth += request->prompt_tokens + request->predicted;
			continue;
		}
		if (!request->started) {
			request->started = now;
			if (replica->observer.started)
				replica->observer.started(request, now);
		}
		prompts = true;
		slot->chunk = request->prompt_tokens - request->cached - request->processed;
		if (slot->chunk > room)
			slot->chunk = room;
		room -= slot->chunk;
		work += cost_prompt(&replica->model, request->cached + request->processed,
				    slot->chunk);
	}
	if (!prompts) {
		begin_decode_run(replica, now);
		work = decode_run_nanoseconds(replica, replica->decode_steps) / 1e6;
	} else {
		replica->decode_steps = 0;
		replica->step_start = now;
		if (decoding)
			work += cost_decode(&replica->model, decoding, depth / decoding);
	}
	replica->step_end = now + nanoseconds(work);
}

static void finish(struct replica *replica, struct slot *slot, uint64_t now)
{
	struct replica_request *request = slot->request;
	struct replica_counters *counters = &replica->counters;
	uint32_t held = request->cached + request->processed;

	/* the last token of the answer has been chosen but not computed */
	if (request->predicted)
		held = request->prompt_tokens + request->predicted - 1;
	if (held > request->whole.length)
		held = request->whole.length;
	slot_hold(slot, (struct span){request->whole.text, held});
	slot->last_used = ++replica->use_count;
	slot->request = NULL;
	slot->chunk = 0;
	replica->processing--;
	request->finished = now;
	counters->requests++;
	counters->prompt_tokens += request->processed;
	counters->cached_tokens += request->cached;
	counters->predicted_tokens += request->predicted;
	if (request->first_token) {
		counters->prompt_nanoseconds += request->first_token - request->started;
		counters->predicted_nanoseconds += now - request->first_token;
	}
	if (held > counters->tokens_most)
		counters->tokens_most = held;
	forget(request);
	if (replica->observer.finished)
		replica->observer.finished(request, now);
}

static void new_token(struct replica *replica, struct replica_request *request, uint32_t count,
		      uint64_t now)
{
	request->predicted += count;
	if (request->state == REQUEST_PROMPT) {
		request->state = REQUEST_DECODING;
		request->first_token = now;
	}
	if (request->each_token && replica->observer.token && !request->cancelled)
		replica->observer.token(request, now);
}

static void end_step(struct replica *replica, uint64_t now)
{
	uint32_t steps = replica->decode_steps ? replica->decode_steps : 1;
	uint32_t busy = replica->processing;

	replica->counters.busy_nanoseconds += now - replica->step_start;
	replica->counters.decode_calls += steps;
	replica->counters.busy_slots += (uint64_t)steps * busy;
	for (uint32_t i = 0; i < replica->settings.slots; i++) {
		struct slot *slot = &replica->slots[i];
		struct replica_request *request = slot->request;

		if (!request)
			continue;
		if (request->state == REQUEST_DECODING) {
			new_token(replica, request, steps, now);
		} else {
			request->processed += slot->chunk;
			if (replica->observer.progress && !request->cancelled)
				replica->observer.progress(request, now);
			if (request->cached + request->processed == request->prompt_tokens)
				new_token(replica, request, 1, now);
		}
		if (request->cancelled || (request->state == REQUEST_DECODING &&
					   request->predicted >= request->answer_tokens))
			finish(replica, slot, now);
	}
}

/* --- what callers do -------------------------------------------------------------------------------------- */

int replica_submit(struct replica *replica, struct replica_request *request, uint64_t now)
{
	uint32_t context = replica->settings.context_tokens;

	if (!request->prompt_tokens)
		return -EINVAL;
	if (request->prompt_tokens >= context)
		return -E2BIG;
	if (request->answer_tokens > context - request->prompt_tokens)
		request->answer_tokens = context - request->prompt_tokens;
	if (!request->answer_tokens)
		request->answer_tokens = 1;
	replica_advance(replica, now);
	text_hold(request->whole.text);
	request->state = REQUEST_QUEUED;
	request->cached = request->processed = request->predicted = 0;
	request->cancelled = false;
	request->submitted = now;
	request->started = request->first_token = request->finished = 0;
	enqueue(replica, request);
	if (!replica->running)
		begin_step(replica, now);
	else if (replica->processing < replica->settings.slots)
		cut_decode_run(replica, now);
	return 0;
}

void replica_cancel(struct replica *replica, struct replica_request *request, uint64_t now)
{
	replica_advance(replica, now);
	if (request->state == REQUEST_DONE || request->cancelled)
		return;
	request->cancelled = true;
	if (request->state != REQUEST_QUEUED) {
		cut_decode_run(replica, now);
		return;
	}
	dequeue(replica, request);
	request->finished = now;
	forget(request);
	if (replica->observer.finished)
		replica->observer.finished(request, now);
}

uint64_t replica_next(const struct replica *replica)
{
	return replica->running ? replica->step_end : REPLICA_NEVER;
}

void replica_advance(struct replica *replica, uint64_t now)
{
	while (replica->running && replica->step_end <= now) {
		uint64_t end = replica->step_end;

		end_step(replica, end);
		begin_step(replica, end);
	}
}

const struct replica_settings *replica_settings(const struct replica *replica)
{
	return &replica->settings;
}

const struct replica_counters *replica_counters(const struct replica *replica)
{
	return &replica->counters;
}

uint32_t replica_queued(const struct replica *replica)
{
	return replica->queued;
}

uint32_t replica_processing(const struct replica *replica)
{
	return replica->processing;
}

uint64_t replica_cache_bytes(const struct replica *replica)
{
	return prompt_cache_bytes(replica->cache);
}

uint32_t replica_cache_entries(const struct replica *replica)
{
	return prompt_cache_entries(replica->cache);
}

const struct replica_request *replica_slot_request(const struct replica *replica, uint32_t slot)
{
	return replica->slots[slot].request;
}

struct span replica_slot_content(const struct replica *replica, uint32_t slot)
{
	return replica->slots[slot].content;
}

int replica_slot_set(struct replica *replica, uint32_t slot, struct span content)
{
	if (replica->slots[slot].request)
		return -EBUSY;
	slot_hold(&replica->slots[slot], content);
	return 0;
}
