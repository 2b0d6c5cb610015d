/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Replicas from DNS: a name is asked for again when its records' time to live is over.
 *
 * In rounds: one question for the records of the name; with SRV then two for each target, its IPv4 and its IPv6 address. A round has a
 * resolver of its own, so that changes of /etc/resolv.conf count, and no socket stays open between rounds. What comes out counts as a
 * whole: a target whose address nobody can say now makes the round fail; one that has none for certain is left out.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "agent/backoff.h"
#include "agent/discovery_source.h"
#include "agent/dns_members.h"
#include "agent/dns_resolver.h"

#define TTL_LEAST_SECONDS 1
#define TTL_MOST_SECONDS  3600

/* Who is meant by an answer about a target. */
struct target_question {
	struct dns_work *work;
	struct dns_target *target;
};

struct dns_work {
	struct discovery_source *source;
	uv_timer_t *next; /* the end of this round, or the beginning of the next */
	struct backoff backoff;

	/* This round's. */
	struct dns_resolver *resolver;
	unsigned int awaited; /* answers */
	__u32 ttl_seconds;
	struct error problem; /* the first; empty: none */
	struct dns_targets targets;
	struct target_question questions[DNS_RECORDS_MOST];
	struct discovered_member members[DNS_RECORDS_MOST];
	unsigned int member_count;
	struct error note;
};

static void begin_round(uv_timer_t *timer);

/* --- the end of a round ------------------------------------------------------------------------------------------- */

static void end_round(uv_timer_t *timer)
{
	struct dns_work *work = timer->data;
	__u64 wait;

	dns_resolver_close(work->resolver);
	work->resolver = NULL;
	if (work->problem.text[0]) {
		wait = backoff_next(&work->backoff, TTL_LEAST_SECONDS * 1000);
		uv_timer_start(timer, begin_round, wait, 0);
		discovery_failed(work->source, "%s", work->problem.text);
		return;
	}
	work->backoff.failures = 0;
	wait = work->ttl_seconds;
	if (wait < TTL_LEAST_SECONDS)
		wait = TTL_LEAST_SECONDS;
	if (wait > TTL_MOST_SECONDS)
		wait = TTL_MOST_SECONDS;
	uv_timer_start(timer, begin_round, wait * 1000, 0);
	discovery_found(work->source, work->members, work->member_count, &work->note);
}

/* The resolver cannot be closed from within an answer: the round ends when the loop comes round. */
static void answer_has_come(struct dns_work *work)
{
	if (--work->awaited > 0)
		return;
	if (!work->problem.text[0] && work->source->settings.records == DNS_RECORDS_SRV)
		work->member_count = dns_members_of_targets(&work->source->settings, &work->targets,
							    work->members, &work->note);
	uv_timer_start(work->next, end_round, 0, 0);
}

static void take_ttl(struct dns_work *work, const struct dns_answer *answer)
{
	if (answer->ttl_seconds < work->ttl_seconds)
		work->ttl_seconds = answer->ttl_seconds;
}

static void take_problem(struct dns_work *work, const char *name, const struct error *error)
{
	if (!work->problem.text[0])
		error_set(&work->problem, 0, "%s (%s)", error->text, name);
}

/* --- answers ------------------------------------------------------------------------------------------------------- */

static void take_target_address(void *context, enum dns_outcome outcome,
				const struct dns_answer *answer, const struct error *error)
{
	struct target_question *question = context;
	struct dns_work *work = question->work;

	if (outcome == DNS_ANSWERED) {
		take_ttl(work, answer);
		dns_target_address(question->target, answer);
	} else if (outcome == DNS_FAILED) {
		take_problem(work, question->target->name, error);
	}
	answer_has_come(work);
}

static void ask_target(struct dns_work *work, unsigned int index)
{
	struct target_question *question = &work->questions[index];

	question->work = work;
	question->target = &work->targets.item[index];
	work->awaited += 2;
	dns_resolver_ask(work->resolver, question->target->name, DNS_RECORDS_A, take_target_address,
			 question);
	dns_resolver_ask(work->resolver, question->target->name, DNS_RECORDS_AAAA,
			 take_target_address, question);
}

static void take_records(void *context, enum dns_outcome outcome, const struct dns_answer *answer,
			 const struct error *error)
{
	struct dns_work *work = context;
	const struct config_discovery *settings = &work->source->settings;
	unsigned int i;

	if (outcome != DNS_ANSWERED) {
		/* Also if there is nothing for certain: a name that is mistyped, or a zone that is empty for a while, must not end a service. */
		take_problem(work, settings->name, error);
	} else if (settings->records != DNS_RECORDS_SRV) {
		take_ttl(work, answer);
		work->member_count =
			dns_members_of_addresses(settings, answer, work->members, &work->note);
	} else {
		take_ttl(work, answer);
		dns_targets_take(&work->targets, answer);
		for (i = 0; i < work->targets.count; i++)
			ask_target(work, i);
	}
	answer_has_come(work);
}

static void begin_round(uv_timer_t *timer)
{
	struct dns_work *work = timer->data;
	const struct config_discovery *settings = &work->source->settings;
	struct error error;

	work->awaited = 1;
	work->ttl_seconds = TTL_MOST_SECONDS;
	work->problem.text[0] = '\0';
	work->note.text[0] = '\0';
	work->member_count = 0;
	work->targets.count = 0;
	if (dns_resolver_open(timer->loop, settings->server, &work->resolver, &error)) {
		take_problem(work, settings->name, &error);
		answer_has_come(work);
		return;
	}
	dns_resolver_ask(work->resolver, settings->name, settings->records, take_records, work);
}

/* --- beginning and end of the source --------------------------------------------------------------------------------- */

static int start(struct discovery_source *source, struct error *error)
{
	struct dns_work *work = calloc(1, sizeof(*work));

	if (work)
		work->next = calloc(1, sizeof(*work->next));
	if (!work || !work->next) {
		free(work);
		return error_set(error, -ENOMEM, "not enough memory");
	}
	work->source = source;
	source->work = work;
	uv_timer_init(source->loop, work->next);
	work->next->data = work;
	uv_timer_start(work->next, begin_round, 0, 0);
	return 0;
}

static void free_timer(uv_handle_t *handle)
{
	free(handle);
}

static void stop(struct discovery_source *source)
{
	struct dns_work *work = source->work;

	if (!work)
		return;
	dns_resolver_close(work->resolver);
	uv_timer_stop(work->next);
	uv_close((uv_handle_t *)work->next, free_timer);
	free(work);
}

const struct discovery_kind discovery_dns = {.start = start, .stop = stop};
