/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/metrics_text.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <warmpath/contact.h>

#include "agent/agent.h"
#include "agent/discovery.h"
#include "agent/health.h"
#include "agent/history.h"
#include "agent/metrics_families.h"
#include "agent/metrics_programs.h"
#include "agent/reported_load.h"
#include "lib/config_schema.h"
#include "lib/counters.h"
#include "lib/explanation.h"

/* What the families of replicas have in common, gathered once. */
struct replica_numbers {
	bool told; /* in the set of a configured service */
	struct replica_load load;
	struct replica_contact contact;
	double share;
};

struct text {
	FILE *to;
	const struct agent *agent;
	struct replica_numbers *numbers;
};

static const struct family {
	const char *name;
	const char *type;
	const char *help;
} families[METRIC_COUNT] = {
#define X(id, name, type, help) [METRIC_##id] = {name, type, help},
	WARMPATH_METRICS(X)
#undef X
};

static void begin(struct text *text, enum metric metric)
{
	const struct family *family = &families[metric];

	fprintf(text->to, "# HELP %s %s\n# TYPE %s %s\n", family->name, family->help, family->name,
		family->type);
}

/* One sample; labels as they stand between the braces, NULL: none. Names of services, replicas and interfaces need no escaping. */
__attribute__((format(printf, 4, 5))) static void sample(struct text *text, enum metric metric,
							 double value, const char *labels, ...)
{
	va_list arguments;

	fputs(families[metric].name, text->to);
	if (labels) {
		fputc('{', text->to);
		va_start(arguments, labels);
		vfprintf(text->to, labels, arguments);
		va_end(arguments);
		fputc('}', text->to);
	}
	fprintf(text->to, " %.17g\n", value);
}

/* --- agent ----------------------------------------------------------------------------------------------------------- */

static double seconds_of(const struct timespec *time)
{
	return (double)time->tv_sec + (double)time->tv_nsec / 1e9;
}

static void add_agent(struct text *text, const struct metrics_counts *counts)
{
	const struct agent *agent = text->agent;
	struct timespec now, monotonic;

	clock_gettime(CLOCK_REALTIME, &now);
	clock_gettime(CLOCK_MONOTONIC, &monotonic);
	begin(text, METRIC_INFO);
	sample(text, METRIC_INFO, 1, "version=\"%s\",role=\"%s\",shape=\"%s\"", WARMPATH_VERSION,
	       schema_word(choices_role, agent->config->role),
	       schema_word(choices_shape, agent->config->shape));
	begin(text, METRIC_START_TIME);
	sample(text, METRIC_START_TIME,
	       (double)(now.tv_sec - (monotonic.tv_sec - agent->started.tv_sec)), NULL);
	begin(text, METRIC_CONFIG_TIME);
	sample(text, METRIC_CONFIG_TIME, seconds_of(&agent->loaded), NULL);
	begin(text, METRIC_WARNINGS);
	sample(text, METRIC_WARNINGS, agent->warning_count, NULL);
	begin(text, METRIC_RECONCILES);
	sample(text, METRIC_RECONCILES, (double)agent->reconciled.passes, NULL);
	begin(text, METRIC_RECONCILE_TIMEOUTS);
	sample(text, METRIC_RECONCILE_TIMEOUTS, (double)agent->reconciled.timed_out,
	       "why=\"timed-out\"");
	sample(text, METRIC_RECONCILE_TIMEOUTS, (double)agent->reconciled.abandoned,
	       "why=\"abandoned\"");
	begin(text, METRIC_RECONCILE_REPAIRS);
	sample(text, METRIC_RECONCILE_REPAIRS, (double)agent->reconciled.repaired, NULL);
	begin(text, METRIC_SCRAPES);
	sample(text, METRIC_SCRAPES, (double)counts->scrapes, NULL);
}

/* --- packets --------------------------------------------------------------------------------------------------------- */

static void add_counters(struct text *text)
{
	struct counters counters;
	unsigned int i;

	if (counters_read(text->agent->datapath.counters, &counters))
		return;
	begin(text, METRIC_PACKETS);
	for (i = 0; i < OUTCOME_COUNT; i++)
		sample(text, METRIC_PACKETS, (double)counters_value(&counters, i),
		       "outcome=\"%s\",verdict=\"%s\"", counter_descriptions[i].name,
		       counter_descriptions[i].verdict);
	begin(text, METRIC_NOTES);
	for (i = OUTCOME_COUNT; i < COUNTER_COUNT; i++)
		sample(text, METRIC_NOTES, (double)counters_value(&counters, i), "note=\"%s\"",
		       counter_descriptions[i].name + strlen("note_"));
	begin(text, METRIC_EVENTS_DROPPED);
	sample(text, METRIC_EVENTS_DROPPED, (double)counters.note_event_dropped, NULL);
}

static void add_handoff(struct text *text)
{
	static const char *const names[] = {
#define X(name, sentence) #name,
		WARMPATH_HANDOFF_COUNTERS(X)
#undef X
	};
	struct handoff_counters counters;

	begin(text, METRIC_HANDOFF);
	if (metrics_handoff_counters(&text->agent->datapath, &counters))
		return;
	for (unsigned int i = 0; i < HANDOFF_COUNTER_COUNT; i++)
		sample(text, METRIC_HANDOFF, (double)((const __u64 *)&counters)[i],
		       "outcome=\"%s\"", names[i]);
}

static void add_program_runs(void *context, const struct program_time *time)
{
	struct text *text = context;

	sample(text, METRIC_DATAPATH_RUNS, (double)time->runs, "program=\"%s\"", time->name);
}

static void add_program_seconds(void *context, const struct program_time *time)
{
	struct text *text = context;

	sample(text, METRIC_DATAPATH_SECONDS, (double)time->nanoseconds / 1e9, "program=\"%s\"",
	       time->name);
}

static void add_programs(struct text *text)
{
	begin(text, METRIC_DATAPATH_RUNS);
	metrics_programs_each(&text->agent->datapath, add_program_runs, text);
	begin(text, METRIC_DATAPATH_SECONDS);
	metrics_programs_each(&text->agent->datapath, add_program_seconds, text);
}

/* --- services -------------------------------------------------------------------------------------------------------- */

static const char *const reason_names[] = {
#define X(name, text) text,
	WARMPATH_ROUTE_REASONS(X)
#undef X
};

typedef void (*add_service)(struct text *text, enum metric metric, __u32 service, const char *name);

static void each_service(struct text *text, enum metric metric, add_service add)
{
	__u32 i;

	begin(text, metric);
	for (i = 0; i < SERVICES_MAX; i++) {
		if (text->agent->routing.settings[i])
			add(text, metric, i, text->agent->routing.services[i].name);
	}
}

static void add_service_load(struct text *text, enum metric metric, __u32 service, const char *name)
{
	struct service_load load = {0};

	bpf_map_lookup_elem(text->agent->datapath.service_loads, &service, &load);
	sample(text, metric, (double)(metric == METRIC_DECISIONS ? load.decisions : load.releases),
	       "service=\"%s\"", name);
}

static void add_traced(struct text *text, enum metric metric, __u32 service, const char *name)
{
	const struct history_totals *totals = history_totals(text->agent->history, service);
	int i;

	for (i = 0; metric == METRIC_REASONS && i < REASON_COUNT; i++)
		sample(text, metric, (double)totals->reasons[i], "service=\"%s\",reason=\"%s\"",
		       name, reason_names[i]);
	for (i = MOVE_none + 1; metric == METRIC_MOVES && i < MOVE_CAUSE_COUNT; i++)
		sample(text, metric, (double)totals->moves[i], "service=\"%s\",cause=\"%s\"", name,
		       move_cause_text(i));
	for (i = COMPLETION_SUCCESS; metric == METRIC_COMPLETIONS && i <= COMPLETION_ABANDONED; i++)
		sample(text, metric, (double)totals->completions[i], "service=\"%s\",status=\"%s\"",
		       name, completion_status_text(i));
}

static void add_ring(struct text *text, enum metric metric, __u32 service, const char *name)
{
	const struct ring_header *header = &text->agent->rings.ring[service].header;
	double value = metric == METRIC_RING_POINTS    ? header->point_count
		       : metric == METRIC_RING_MEMBERS ? header->member_count
						       : (double)header->generation;

	sample(text, metric, value, "service=\"%s\"", name);
}

static void add_services(struct text *text)
{
	each_service(text, METRIC_DECISIONS, add_service_load);
	each_service(text, METRIC_RELEASES, add_service_load);
	each_service(text, METRIC_REASONS, add_traced);
	each_service(text, METRIC_MOVES, add_traced);
	each_service(text, METRIC_COMPLETIONS, add_traced);
	each_service(text, METRIC_RING_POINTS, add_ring);
	each_service(text, METRIC_RING_MEMBERS, add_ring);
	each_service(text, METRIC_RING_GENERATION, add_ring);
}

/* --- discovery ------------------------------------------------------------------------------------------------------- */

struct discovery_text {
	struct text *text;
	enum metric metric;
};

static void add_source(void *context, const struct discovery_figures *figures)
{
	const struct discovery_text *discovery = context;
	enum metric metric = discovery->metric;
	double value = metric == METRIC_DISCOVERY_UP	    ? !figures->failing
		       : metric == METRIC_DISCOVERY_AGE	    ? figures->age_seconds
		       : metric == METRIC_DISCOVERY_MEMBERS ? figures->members
							    : (double)figures->failures;

	if (metric != METRIC_DISCOVERY_AGE || figures->known)
		sample(discovery->text, metric, value, "service=\"%s\",source=\"%s\",number=\"%u\"",
		       figures->service, figures->source, figures->number);
}

static void add_discovery(struct text *text)
{
	static const enum metric metrics[] = {METRIC_DISCOVERY_UP, METRIC_DISCOVERY_AGE,
					      METRIC_DISCOVERY_MEMBERS, METRIC_DISCOVERY_FAILURES};

	for (unsigned int i = 0; i < sizeof(metrics) / sizeof(metrics[0]); i++) {
		struct discovery_text discovery = {.text = text, .metric = metrics[i]};

		begin(text, metrics[i]);
		discovery_each(text->agent->discovery, add_source, &discovery);
	}
}

/* --- replicas -------------------------------------------------------------------------------------------------------- */

#define REPLICA_LABELS "service=\"%s\",replica=\"%s\""

typedef void (*add_replica)(struct text *text, enum metric metric, __u32 slot, const char *service,
			    const char *name);

static void each_replica(struct text *text, enum metric metric, add_replica add)
{
	const struct routing *routing = &text->agent->routing;
	__u32 slot;

	begin(text, metric);
	for (slot = 0; slot < REPLICAS_MAX; slot++) {
		const struct replica *replica = &routing->replicas[slot];

		if (text->numbers[slot].told)
			add(text, metric, slot, routing->services[replica->service].name,
			    replica->name);
	}
}

/* Those of one number. */
static void add_number(struct text *text, enum metric metric, __u32 slot, const char *service,
		       const char *name)
{
	const struct replica *replica = &text->agent->routing.replicas[slot];
	const struct history_replica *traced = history_replica(text->agent->history, slot);
	const struct replica_numbers *numbers = &text->numbers[slot];
	double value = 0;

	switch (metric) {
	case METRIC_OPEN_REQUESTS:
		value = numbers->load.requests;
		break;
	case METRIC_OPEN_TOKENS:
		value = (double)numbers->load.tokens;
		break;
	case METRIC_REPLICA_DECISIONS:
		value = (double)numbers->load.decisions;
		break;
	case METRIC_PROMPT_TOKENS:
		value = (double)traced->prompt_tokens;
		break;
	case METRIC_CACHED_TOKENS:
		value = (double)traced->cached_tokens;
		break;
	case METRIC_INCARNATION:
		value = replica->incarnation;
		break;
	case METRIC_WEIGHT:
		value = replica->weight_thousandths / 1000.0;
		break;
	case METRIC_SLOW_START:
		value = replica->share_thousandths ? replica->share_thousandths / 1000.0 : 1;
		break;
	default:
		value = numbers->share;
	}
	sample(text, metric, value, REPLICA_LABELS, service, name);
}

static void add_state(struct text *text, enum metric metric, __u32 slot, const char *service,
		      const char *name)
{
	static const enum replica_state states[] = {REPLICA_ACTIVE, REPLICA_DRAINING, REPLICA_DOWN};

	for (unsigned int i = 0; i < sizeof(states) / sizeof(states[0]); i++)
		sample(text, metric, text->agent->routing.replicas[slot].state == states[i],
		       REPLICA_LABELS ",state=\"%s\"", service, name,
		       replica_state_name(states[i]));
}

static void add_contacts(struct text *text, enum metric metric, __u32 slot, const char *service,
			 const char *name)
{
	const struct replica_contact *contact = &text->numbers[slot].contact;
	const struct {
		const char *name;
		__u64 value;
	} outcomes[] = {
		{"answered", contact->answered},
		{"refused", contact->refused},
		{"aborted", contact->aborted},
		{"error", contact->errors},
	};

	for (unsigned int i = 0; i < sizeof(outcomes) / sizeof(outcomes[0]); i++)
		sample(text, metric, (double)outcomes[i].value, REPLICA_LABELS ",outcome=\"%s\"",
		       service, name, outcomes[i].name);
}

static void add_health(struct text *text, enum metric metric, __u32 slot, const char *service,
		       const char *name)
{
	const struct health_record *record = health_of(text->agent->health, slot);

	if (!record)
		return;
	if (metric == METRIC_HEALTH && record->state != HEALTH_UNKNOWN)
		sample(text, metric, record->state == HEALTH_UP, REPLICA_LABELS, service, name);
	if (metric == METRIC_CHECK_TIME && record->checks_good + record->checks_failed > 0)
		sample(text, metric, record->milliseconds / 1000.0, REPLICA_LABELS, service, name);
	if (metric == METRIC_CHECKS) {
		sample(text, metric, (double)record->checks_good, REPLICA_LABELS ",result=\"good\"",
		       service, name);
		sample(text, metric, (double)record->checks_failed,
		       REPLICA_LABELS ",result=\"failed\"", service, name);
	}
}

static void add_reported(struct text *text, enum metric metric, __u32 slot, const char *service,
			 const char *name)
{
	const struct foreign_load *foreign = reported_load_foreign(text->agent->reported_load);
	const struct reported_metrics *last;
	double age, value;

	last = reported_load_of(text->agent->reported_load, slot, &age);
	if (!last || (metric == METRIC_REPORTED_CACHE && last->cache_usage < 0))
		return;
	value = metric == METRIC_REPORTED_RUNNING   ? last->running
		: metric == METRIC_REPORTED_WAITING ? last->waiting
		: metric == METRIC_REPORTED_CACHE   ? last->cache_usage
		: metric == METRIC_REPORTED_AGE	    ? age
						    : foreign[slot].requests;
	sample(text, metric, value, REPLICA_LABELS, service, name);
}

static void add_replicas(struct text *text)
{
	each_replica(text, METRIC_OPEN_REQUESTS, add_number);
	each_replica(text, METRIC_OPEN_TOKENS, add_number);
	each_replica(text, METRIC_REPLICA_DECISIONS, add_number);
	each_replica(text, METRIC_PROMPT_TOKENS, add_number);
	each_replica(text, METRIC_CACHED_TOKENS, add_number);
	each_replica(text, METRIC_CONTACTS, add_contacts);
	each_replica(text, METRIC_STATE, add_state);
	each_replica(text, METRIC_INCARNATION, add_number);
	each_replica(text, METRIC_WEIGHT, add_number);
	each_replica(text, METRIC_SLOW_START, add_number);
	each_replica(text, METRIC_SHARE, add_number);
	each_replica(text, METRIC_HEALTH, add_health);
	each_replica(text, METRIC_CHECKS, add_health);
	each_replica(text, METRIC_CHECK_TIME, add_health);
	each_replica(text, METRIC_REPORTED_RUNNING, add_reported);
	each_replica(text, METRIC_REPORTED_WAITING, add_reported);
	each_replica(text, METRIC_REPORTED_CACHE, add_reported);
	each_replica(text, METRIC_REPORTED_AGE, add_reported);
	each_replica(text, METRIC_FOREIGN, add_reported);
}

static void gather(struct text *text)
{
	const struct agent *agent = text->agent;
	double shares[REPLICAS_MAX];
	__u32 service, slot;

	for (service = 0; service < SERVICES_MAX; service++) {
		if (!agent->routing.settings[service])
			continue;
		if (agent->rings.built[service])
			ring_shares(&agent->rings.ring[service], shares);
		for (slot = 0; slot < REPLICAS_MAX; slot++) {
			const struct replica *replica = &agent->routing.replicas[slot];
			struct replica_numbers *numbers = &text->numbers[slot];
			int member = -1;

			if (replica->service != service || !replica_in_set(replica))
				continue;
			numbers->told = true;
			bpf_map_lookup_elem(agent->datapath.replica_loads, &slot, &numbers->load);
			reported_load_own(agent->reported_load, slot, &numbers->load);
			bpf_map_lookup_elem(agent->datapath.replica_contacts, &slot,
					    &numbers->contact);
			if (replica->state == REPLICA_ACTIVE && agent->rings.built[service])
				member = ring_find_member(&agent->rings.ring[service],
							  replica->name);
			numbers->share = member >= 0 ? shares[member] : 0;
		}
	}
}

char *metrics_text(const struct agent *agent, const struct metrics_counts *counts, size_t *length)
{
	struct text text = {.agent = agent};
	char *made = NULL;

	text.numbers = calloc(REPLICAS_MAX, sizeof(*text.numbers));
	text.to = text.numbers ? open_memstream(&made, length) : NULL;
	if (!text.to) {
		free(text.numbers);
		return NULL;
	}
	gather(&text);
	add_agent(&text, counts);
	add_counters(&text);
	add_handoff(&text);
	add_services(&text);
	add_discovery(&text);
	add_replicas(&text);
	add_programs(&text);
	free(text.numbers);
	if (fclose(text.to)) {
		free(made);
		return NULL;
	}
	return made;
}
