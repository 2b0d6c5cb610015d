/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/health.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/health_check.h"
#include "agent/transfers.h"
#include "lib/address.h"
#include "lib/log.h"

#define AT_ONCE_MAX	   64	/* checks */
#define LATE_MAX	   3	/* checks in a row that this process itself was too late for */
#define APPLY_MILLISECONDS 20	/* verdicts that come together change the rings once */
#define RETRY_MILLISECONDS 1000 /* if they could not be changed */
#define EMPTY_MILLISECONDS \
	1000 /* between checks, at most, while no replica of the service is active */
#define PASSIVE_MILLISECONDS \
	10000 /* without checks, a replica that refused is tried again after so long */

/* What is to become of a replica. */
struct verdict {
	bool down;
	bool up;
	__u32 process; /* 0: nothing new */
};

struct watched {
	bool watched;
	char name[REPLICA_NAME_SIZE];
	__u32 service;
	struct address address;
	__be16 port;
	struct health_record record;
	struct health_check *under_way;
	uint64_t due;	    /* in the loop's time */
	uint64_t try_again; /* without checks: when it is put back; 0: never */
	unsigned int late;
	struct verdict pending; /* to be applied */
	struct verdict taken;	/* being applied */
};

struct slot_check {
	struct health *health;
	struct health_check *check;
	__u32 slot;
};

struct health {
	struct agent *agent;
	struct transfers *transfers;
	uv_timer_t checks;
	uv_timer_t apply;
	unsigned int open_handles;
	struct slot_check pool[AT_ONCE_MAX];
	unsigned int seed;
	bool short_of_memory; /* said once */
	struct watched replicas[REPLICAS_MAX];
};

static const struct config_health *settings_of(const struct health *health, __u32 slot)
{
	const struct routing *routing = &health->agent->routing;
	const struct config_service *settings = routing->settings[routing->replicas[slot].service];

	return settings ? &settings->health : NULL;
}

static bool is_checked(const struct config_health *settings)
{
	return settings && settings->check != HEALTH_CHECK_NONE;
}

/* --- what becomes of verdicts -------------------------------------------------------------------------------------- */

static void apply_soon(struct health *health)
{
	if (!uv_is_active((uv_handle_t *)&health->apply))
		uv_timer_again(&health->apply);
}

static const char *service_name(const struct health *health, const struct watched *watched)
{
	return health->agent->routing.services[watched->service].name;
}

static void apply_process(const struct health *health, struct replica *replica,
			  const struct watched *watched)
{
	if (replica->process && replica->process != watched->taken.process &&
	    !(replica->held & HELD_BY_HEALTH)) {
		log_info(
			"replica %s of service %s has been started anew: what it had cached is gone",
			replica->name, service_name(health, watched));
		replica->incarnation++;
	}
	replica->process = watched->taken.process;
}

static int take_verdicts(struct agent *agent, struct routing *next, void *context,
			 struct error *error)
{
	const struct health *health = context;
	__u32 slot;

	(void)agent;
	(void)error;
	for (slot = 0; slot < REPLICAS_MAX; slot++) {
		const struct watched *watched = &health->replicas[slot];
		struct replica *replica = &next->replicas[slot];

		if (!watched->watched || !replica_in_set(replica))
			continue;
		if (watched->taken.process)
			apply_process(health, replica, watched);
		if (watched->taken.down) {
			routing_hold(replica, HELD_BY_HEALTH, true);
		} else if (watched->taken.up && (replica->held & HELD_BY_HEALTH)) {
			routing_hold(replica, HELD_BY_HEALTH, false);
			replica->incarnation++;
		}
	}
	return 0;
}

/* What could not be applied is still to be, unless something newer is known. */
static void put_back(struct watched *watched)
{
	if (!watched->pending.down && !watched->pending.up) {
		watched->pending.down = watched->taken.down;
		watched->pending.up = watched->taken.up;
	}
	if (!watched->pending.process)
		watched->pending.process = watched->taken.process;
}

static void on_apply(uv_timer_t *timer)
{
	struct health *health = timer->data;
	struct error error;
	int result;
	__u32 slot;

	uv_timer_stop(timer);
	for (slot = 0; slot < REPLICAS_MAX; slot++) {
		health->replicas[slot].taken = health->replicas[slot].pending;
		memset(&health->replicas[slot].pending, 0, sizeof(struct verdict));
	}
	result = agent_change_routing(health->agent, take_verdicts, health, &error);
	if (!result)
		return;
	log_warning("what is known about the health of replicas cannot be applied: %s", error.text);
	for (slot = 0; slot < REPLICAS_MAX; slot++)
		put_back(&health->replicas[slot]);
	uv_timer_start(timer, on_apply, RETRY_MILLISECONDS, APPLY_MILLISECONDS);
}

static void take_verdict(struct health *health, __u32 slot, enum health_verdict verdict)
{
	struct watched *watched = &health->replicas[slot];
	bool held = health->agent->routing.replicas[slot].held & HELD_BY_HEALTH;

	if (verdict == HEALTH_FELL)
		log_warning("replica %s of service %s is down: %s", watched->name,
			    service_name(health, watched), watched->record.failure);
	else if (verdict == HEALTH_ROSE && (held || watched->pending.down))
		log_info("replica %s of service %s is up", watched->name,
			 service_name(health, watched));
	else
		return;
	watched->pending.down = verdict == HEALTH_FELL;
	watched->pending.up = verdict == HEALTH_ROSE;
	apply_soon(health);
}

void health_heard(struct health *health, __u32 slot, __u32 process)
{
	const struct replica *replica;

	if (!health || !process || !health->replicas[slot].watched)
		return;
	replica = &health->agent->routing.replicas[slot];
	if (replica->process == process)
		return;
	health->replicas[slot].pending.process = process;
	apply_soon(health);
}

/* --- checks ------------------------------------------------------------------------------------------------------- */

static void schedule(struct health *health);

static bool nobody_is_active(const struct health *health, __u32 service)
{
	const struct routing *routing = &health->agent->routing;
	__u32 slot;

	for (slot = 0; slot < REPLICAS_MAX; slot++) {
		if (routing->replicas[slot].service == service &&
		    routing->replicas[slot].state == REPLICA_ACTIVE)
			return false;
	}
	return true;
}

static void on_answered(void *context, const struct health_answer *answer)
{
	static const struct health_answer too_late = {.failure = "no answer in time"};
	struct slot_check *slot_check = context;
	struct health *health = slot_check->health;
	struct watched *watched = &health->replicas[slot_check->slot];
	const struct config_health *settings = settings_of(health, slot_check->slot);

	watched->under_way = NULL;
	if (!answer && ++watched->late < LATE_MAX) {
		watched->due = uv_now(&health->agent->loop);
	} else if (is_checked(settings)) {
		answer = answer ? answer : &too_late;
		watched->late = 0;
		watched->record.milliseconds = answer->milliseconds;
		if (answer->process)
			health_heard(health, slot_check->slot, answer->process);
		take_verdict(health, slot_check->slot,
			     health_take_check(&watched->record, settings, answer->failure,
					       nobody_is_active(health, watched->service),
					       time(NULL)));
	}
	schedule(health);
}

static struct slot_check *find_free(struct health *health)
{
	unsigned int i;

	for (i = 0; i < AT_ONCE_MAX; i++) {
		struct slot_check *slot_check = &health->pool[i];
		__u32 slot = slot_check->slot;

		if (slot_check->check && health->replicas[slot].under_way == slot_check->check)
			continue;
		if (!slot_check->check)
			slot_check->check =
				health_check_new(health->transfers, on_answered, slot_check);
		return slot_check->check ? slot_check : NULL;
	}
	return NULL;
}

static uint64_t interval_of(const struct health *health, __u32 slot)
{
	const struct watched *watched = &health->replicas[slot];
	uint64_t interval = settings_of(health, slot)->interval_milliseconds;

	if (interval > EMPTY_MILLISECONDS && nobody_is_active(health, watched->service))
		return EMPTY_MILLISECONDS;
	return interval;
}

/* False: no more can be begun now. */
static bool begin_check(struct health *health, __u32 slot)
{
	struct watched *watched = &health->replicas[slot];
	struct slot_check *slot_check = find_free(health);
	int result;

	if (!slot_check)
		return false;
	slot_check->slot = slot;
	result = health_check_begin(slot_check->check, settings_of(health, slot), &watched->address,
				    watched->port);
	watched->due = uv_now(&health->agent->loop) + interval_of(health, slot);
	if (result == 0) {
		watched->under_way = slot_check->check;
		return true;
	}
	if (!health->short_of_memory)
		log_warning("replicas cannot be checked at present: %s", strerror(-result));
	health->short_of_memory = true;
	return false;
}

static void try_again(struct health *health, __u32 slot)
{
	struct watched *watched = &health->replicas[slot];

	watched->try_again = 0;
	watched->record.state = HEALTH_UNKNOWN;
	watched->record.since = time(NULL);
	take_verdict(health, slot, HEALTH_ROSE);
}

static void on_checks(uv_timer_t *timer)
{
	struct health *health = timer->data;
	uint64_t now = uv_now(&health->agent->loop);
	bool more = true;
	__u32 slot;

	for (slot = 0; slot < REPLICAS_MAX; slot++) {
		struct watched *watched = &health->replicas[slot];

		if (!watched->watched)
			continue;
		if (watched->try_again && watched->try_again <= now)
			try_again(health, slot);
		if (more && is_checked(settings_of(health, slot)) && !watched->under_way &&
		    watched->due <= now)
			more = begin_check(health, slot);
	}
	schedule(health);
}

/* Sets the timer to what is due next. While as many checks run as may, the end of one calls this. */
static void schedule(struct health *health)
{
	uint64_t now = uv_now(&health->agent->loop), due = UINT64_MAX;
	unsigned int running = 0;
	__u32 slot;

	for (slot = 0; slot < REPLICAS_MAX; slot++) {
		const struct watched *watched = &health->replicas[slot];

		if (!watched->watched)
			continue;
		running += watched->under_way != NULL;
		if (watched->try_again && watched->try_again < due)
			due = watched->try_again;
		if (!watched->under_way && watched->due < due &&
		    is_checked(settings_of(health, slot)))
			due = watched->due;
	}
	if (due == UINT64_MAX || running == AT_ONCE_MAX)
		uv_timer_stop(&health->checks);
	else
		uv_timer_start(&health->checks, on_checks, due > now ? due - now : 0, 0);
}

/* --- users' connections -------------------------------------------------------------------------------------------- */

void health_refused(struct health *health, __u32 slot, uint32_t count)
{
	const struct config_health *settings;
	enum health_verdict verdict;
	struct watched *watched;

	if (!health || !health->replicas[slot].watched)
		return;
	watched = &health->replicas[slot];
	settings = settings_of(health, slot);
	if (!settings || !count)
		return;
	verdict = health_take_refusals(&watched->record, settings, count, time(NULL));
	if (verdict == HEALTH_FELL && !is_checked(settings))
		watched->try_again = uv_now(&health->agent->loop) + PASSIVE_MILLISECONDS;
	/* what users have met, the next check is to look at now */
	if (is_checked(settings) && !watched->under_way)
		watched->due = uv_now(&health->agent->loop);
	take_verdict(health, slot, verdict);
	schedule(health);
}

/* --- the set ------------------------------------------------------------------------------------------------------- */

static const struct address *checked_address(const struct replica *replica)
{
	return address_is_set(&replica->ipv4) ? &replica->ipv4 : &replica->ipv6;
}

static bool is_same(const struct watched *watched, const struct replica *replica)
{
	return watched->watched && watched->service == replica->service &&
	       watched->port == replica->port &&
	       address_equal(&watched->address, checked_address(replica)) &&
	       strcmp(watched->name, replica->name) == 0;
}

static void forget(struct health *health, __u32 slot)
{
	struct watched *watched = &health->replicas[slot];
	unsigned int i;

	for (i = 0; watched->under_way && i < AT_ONCE_MAX; i++) {
		if (health->pool[i].check != watched->under_way)
			continue;
		health_check_free(health->pool[i].check);
		health->pool[i].check = NULL;
	}
	memset(watched, 0, sizeof(*watched));
}

/* trusted: it was there before this agent, which so has no cause to doubt it. */
static void watch(struct health *health, __u32 slot, bool trusted)
{
	const struct replica *replica = &health->agent->routing.replicas[slot];
	const struct config_health *settings = settings_of(health, slot);
	struct watched *watched = &health->replicas[slot];

	forget(health, slot);
	watched->watched = true;
	memcpy(watched->name, replica->name, sizeof(watched->name));
	watched->service = replica->service;
	watched->address = *checked_address(replica);
	watched->port = replica->port;
	watched->record.trusted = trusted;
	if (replica->held & HELD_BY_HEALTH)
		watched->record.state = HEALTH_DOWN;
	/* spread over the interval, so that a thousand replicas are not asked in one moment */
	watched->due = uv_now(&health->agent->loop);
	if (is_checked(settings))
		watched->due += rand_r(&health->seed) % settings->interval_milliseconds;
}

/* Without checks and passive failures nothing would ever put it back. */
static void release_unchecked(struct health *health, __u32 slot)
{
	const struct config_health *settings = settings_of(health, slot);
	struct watched *watched = &health->replicas[slot];

	if (!(health->agent->routing.replicas[slot].held & HELD_BY_HEALTH) ||
	    is_checked(settings) || watched->try_again || watched->pending.up)
		return;
	try_again(health, slot);
}

static void follow(struct health *health, bool first)
{
	const struct routing *routing = &health->agent->routing;
	__u32 slot;

	for (slot = 0; slot < REPLICAS_MAX; slot++) {
		const struct replica *replica = &routing->replicas[slot];

		if (!replica_in_set(replica) || !routing->settings[replica->service]) {
			if (health->replicas[slot].watched)
				forget(health, slot);
			continue;
		}
		if (!is_same(&health->replicas[slot], replica))
			watch(health, slot, first && health->agent->datapath.adopted);
		release_unchecked(health, slot);
	}
	schedule(health);
}

void health_follow(struct health *health)
{
	if (health)
		follow(health, false);
}

/* --- questions ------------------------------------------------------------------------------------------------------ */

const struct health_record *health_of(const struct health *health, __u32 slot)
{
	if (!health || !health->replicas[slot].watched || !is_checked(settings_of(health, slot)))
		return NULL;
	return &health->replicas[slot].record;
}

static void add_time(json_t *object, const char *name, time_t when)
{
	char text[32];
	struct tm parts;

	if (!when)
		return;
	gmtime_r(&when, &parts);
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts);
	json_object_set_new(object, name, json_string(text));
}

json_t *health_json(const struct health *health, __u32 slot)
{
	const struct watched *watched = health ? &health->replicas[slot] : NULL;
	const struct health_record *record;
	json_t *object;

	if (!watched || !watched->watched ||
	    (!is_checked(settings_of(health, slot)) && watched->record.state != HEALTH_DOWN))
		return json_pack("{s:s}", "state", "unchecked");
	record = &watched->record;
	object = json_pack("{s:s, s:I, s:I, s:I}", "state", health_state_name(record->state),
			   "checks_good", (json_int_t)record->checks_good, "checks_failed",
			   (json_int_t)record->checks_failed, "check_milliseconds",
			   (json_int_t)record->milliseconds);
	add_time(object, "since", record->since);
	add_time(object, "failed_at", record->failed_at);
	if (record->failed_at)
		json_object_set_new(object, "failure", json_string(record->failure));
	return object;
}

/* --- beginning and end ------------------------------------------------------------------------------------------------ */

int health_open(struct agent *agent, struct health **result, struct error *error)
{
	struct health *health = calloc(1, sizeof(*health));
	unsigned int i;
	int failed;

	*result = NULL;
	if (!health)
		return error_set(error, -ENOMEM, "not enough memory");
	failed = transfers_open(&agent->loop, &health->transfers, error);
	if (failed) {
		free(health);
		return failed;
	}
	health->agent = agent;
	health->seed = (unsigned int)uv_hrtime();
	for (i = 0; i < AT_ONCE_MAX; i++)
		health->pool[i].health = health;
	health->open_handles = 2;
	uv_timer_init(&agent->loop, &health->checks);
	health->checks.data = health;
	uv_timer_init(&agent->loop, &health->apply);
	health->apply.data = health;
	/* so that uv_timer_again() starts it */
	uv_timer_start(&health->apply, on_apply, APPLY_MILLISECONDS, APPLY_MILLISECONDS);
	uv_timer_stop(&health->apply);
	*result = health;
	follow(health, true);
	return 0;
}

static void on_closed(uv_handle_t *handle)
{
	struct health *health = handle->data;

	if (--health->open_handles == 0)
		free(health);
}

void health_close(struct health *health)
{
	unsigned int i;

	if (!health)
		return;
	for (i = 0; i < AT_ONCE_MAX; i++)
		health_check_free(health->pool[i].check);
	transfers_close(health->transfers);
	uv_close((uv_handle_t *)&health->checks, on_closed);
	uv_close((uv_handle_t *)&health->apply, on_closed);
}
