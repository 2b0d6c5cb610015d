/* SPDX-License-Identifier: BSD-2-Clause */
/* An explanation in words. */
#include <arpa/inet.h>
#include <string.h>

#include "lib/address.h"
#include "lib/decide_core.h"
#include "lib/explanation.h"
#include "lib/policy.h"

struct printer {
	FILE *to;
	const struct explanation *explanation;
	const struct event_decision *event;
	const struct decision *decision;
	const struct explanation_names *names;
};

static const char *name_of(const struct printer *printer, __u32 slot)
{
	const char *name = slot == REPLICA_NONE
				   ? "none"
				   : printer->names->replica(printer->names->context, slot);

	return name ? name : "(gone)";
}

static void print_cap(const struct printer *printer, double cap)
{
	fprintf(printer->to, printer->decision->metric == LOAD_REQUESTS ? "%.0f" : "%.1f", cap);
}

static void print_heading(const struct printer *printer)
{
	const struct event_decision *event = printer->event;

	fputs(policy_name(event->settings.policy), printer->to);
	if (event->settings.policy == POLICY_BOUNDED)
		fprintf(printer->to, " (%s mode)",
			printer->decision->metric == LOAD_TOKENS ? "token" : "request");
	fprintf(printer->to, " \u2192 %s (%s)\n", name_of(printer, printer->decision->replica),
		route_reason_text(printer->decision->reason));
}

static void print_request(const struct printer *printer)
{
	const struct event_decision *event = printer->event;
	char client[ENDPOINT_TEXT_SIZE];

	fprintf(printer->to,
		"  request %llu of %s: ", (unsigned long long)printer->decision->number,
		printer->names->service);
	if (event->id_length > 0)
		fprintf(printer->to, "id %.*s", (int)event->id_length, event->id);
	else if (event->anonymous)
		fputs("no id", printer->to);
	else
		fprintf(printer->to, "key 0x%016llx", (unsigned long long)event->header.id_hash);
	if (event->header.flow.protocol)
		fprintf(printer->to, ", client %s",
			endpoint_format(&event->header.flow.client, event->header.flow.client_port,
					client));
	fprintf(printer->to, ", prompt_tokens=%u, max_tokens=%u\n",
		printer->decision->prompt_tokens, printer->decision->max_tokens);
}

static void print_placement(const struct printer *printer)
{
	const struct decision *decision = printer->decision;

	if (printer->event->settings.policy != POLICY_LLM_AWARE)
		fprintf(printer->to, "  ring home: %s\n", name_of(printer, decision->home));
	else if (decision->placement_replica != REPLICA_NONE)
		fprintf(printer->to,
			"  placement memory: last served on %s with %u prompt tokens \u2192 "
			"preferred=%s\n",
			name_of(printer, decision->placement_replica),
			decision->placement_prompt_tokens, name_of(printer, decision->preferred));
	else
		fprintf(printer->to, "  placement memory: %s \u2192 preferred=%s (ring home)\n",
			printer->event->settings.placement_memory ? "nothing" : "off",
			name_of(printer, decision->preferred));
}

static void print_cost(const struct printer *printer)
{
	const struct decision *decision = printer->decision;
	const char *preferred = name_of(printer, decision->preferred);
	__u32 cached = decision->placement_prompt_tokens;

	if (decision->metric == LOAD_REQUESTS)
		fprintf(printer->to, "  cost on %s: 1 request\n", preferred);
	else if (decision->placement_replica == decision->preferred)
		fprintf(printer->to,
			"  cost on %s: max(1, %u-%u)=%u + %u = %u (new tokens only, cache hit)\n",
			preferred, decision->prompt_tokens, cached,
			decision->preferred_cost - decision->max_tokens, decision->max_tokens,
			decision->preferred_cost);
	else
		fprintf(printer->to, "  cost on %s: %u + %u = %u (whole prompt)\n", preferred,
			decision->prompt_tokens, decision->max_tokens, decision->preferred_cost);
}

/* The replicas that the event carries, by name as far as the caller's slots are. */
static void print_loads(const struct printer *printer)
{
	const struct event_decision *event = printer->event;
	const struct event_replica_load *sorted[EVENT_REPLICAS_MAX];
	__u32 count = event->load_count;

	for (__u32 i = 0; i < count; i++) {
		__u32 at = i;

		for (; at > 0 && strcmp(name_of(printer, sorted[at - 1]->replica),
					name_of(printer, event->loads[i].replica)) > 0;
		     at--)
			sorted[at] = sorted[at - 1];
		sorted[at] = &event->loads[i];
	}
	fprintf(printer->to,
		"  load (%s):", printer->decision->metric == LOAD_TOKENS ? "tokens" : "requests");
	for (__u32 i = 0; i < count; i++)
		fprintf(printer->to, " %s=%u", name_of(printer, sorted[i]->replica),
			sorted[i]->load);
	if (count < printer->decision->replica_count)
		fprintf(printer->to, " (%u of %u replicas)", count,
			printer->decision->replica_count);
}

static void print_totals(const struct printer *printer)
{
	const struct explanation *explanation = printer->explanation;

	fprintf(printer->to,
		"; +%u \u2192 total=%llu, avg=%.1f, cap=", printer->decision->preferred_cost,
		(unsigned long long)explanation->total, explanation->average);
	print_cap(printer, explanation->cap);
	fputc('\n', printer->to);
}

static void print_long(const struct printer *printer)
{
	const struct explanation *explanation = printer->explanation;
	__u32 prompt = printer->decision->prompt_tokens;
	__u32 threshold = printer->event->settings.long_threshold_tokens;

	switch (explanation->long_verdict) {
	case LONG_NOT_ASKED:
		return;
	case LONG_OFF:
		fputs("  long stickiness: off\n", printer->to);
		return;
	case LONG_TOO_SHORT:
		fprintf(printer->to,
			"  long stickiness: prompt_tokens=%u < %u \u2192 not applied\n", prompt,
			threshold);
		return;
	case LONG_NO_CACHE:
		fputs("  long stickiness: cache_likely=False \u2192 not applied\n", printer->to);
		return;
	case LONG_APPLIED:
		fprintf(printer->to,
			"  long stickiness: prompt_tokens=%u \u2265 %u and cache_likely=True \u2192 "
			"long_cap=",
			prompt, threshold);
		print_cap(printer, explanation->long_cap);
		fputc('\n', printer->to);
	}
}

/* verdict->accepted is that of the sums at the end; the last one tried was taken by these. */
static void print_verdict(const struct printer *printer, const struct explanation_verdict *verdict)
{
	bool taken = verdict->replica == printer->decision->replica && verdict->accepted;
	const char *end = taken ? route_reason_text(printer->decision->reason) : "skip";

	fprintf(printer->to, "  %s: ", name_of(printer, verdict->replica));
	if (verdict->idle) {
		fprintf(printer->to, "idle \u2192 %s\n", end);
		return;
	}
	fprintf(printer->to, "%u+%u=%llu ", verdict->load, verdict->cost,
		(unsigned long long)verdict->load + verdict->cost);
	if (!verdict->accepted) {
		fputs("> ", printer->to);
		print_cap(printer, verdict->long_cap > 0 ? verdict->long_cap : verdict->cap);
	} else if (verdict->fits_cap) {
		fputs("\u2264 ", printer->to);
		print_cap(printer, verdict->cap);
	} else {
		fputs("\u2264 long_cap=", printer->to);
		print_cap(printer, verdict->long_cap);
		fputs(" (> normal cap=", printer->to);
		print_cap(printer, verdict->cap);
		fputc(')', printer->to);
	}
	fprintf(printer->to, " \u2192 %s\n", end);
}

static void print_verdicts(const struct printer *printer)
{
	const struct explanation *explanation = printer->explanation;

	for (__u32 i = 0; i < explanation->tried_count; i++)
		print_verdict(printer, &explanation->tried[i]);
	if (printer->decision->reason == REASON_fallback_least_loaded)
		fprintf(printer->to,
			"  no replica fits: the least loaded, %s with %u \u2192 "
			"fallback-least-loaded\n",
			name_of(printer, printer->decision->replica), printer->decision->load);
	if (!explanation->agrees)
		fputs("  (other requests were decided at the same time: the loads shown are not all "
		      "of one moment)\n",
		      printer->to);
}

static void print_uncapped(const struct printer *printer)
{
	switch (printer->decision->reason) {
	case REASON_round_robin:
		fputs("  the next in turn, by name\n", printer->to);
		break;
	case REASON_least_loaded:
		fputs("  no id: the least loaded\n", printer->to);
		break;
	case REASON_pinned:
		fprintf(printer->to, "  its connection cannot move: it stays with %s\n",
			name_of(printer, printer->decision->replica));
		break;
	default:
		if (printer->event->settings.policy == POLICY_MOD_N)
			fputs("  hash of the id modulo the number of replicas\n", printer->to);
		else
			fprintf(printer->to, "  ring home: %s\n",
				name_of(printer, printer->decision->home));
	}
}

void explanation_print(FILE *to, const struct explanation *explanation,
		       const struct explanation_names *names)
{
	struct printer printer = {
		.to = to,
		.explanation = explanation,
		.event = explanation->event,
		.decision = &explanation->event->decision,
		.names = names,
	};

	print_heading(&printer);
	print_request(&printer);
	if (!(printer.decision->flags & DECISION_HAS_CAP)) {
		print_uncapped(&printer);
		print_loads(&printer);
		fputc('\n', to);
		return;
	}
	print_placement(&printer);
	print_cost(&printer);
	print_loads(&printer);
	print_totals(&printer);
	print_long(&printer);
	print_verdicts(&printer);
}

static const char *completion_text(enum completion_status status)
{
	switch (status) {
	case COMPLETION_SUCCESS:
		return "answered";
	case COMPLETION_FAILED:
		return "failed";
	case COMPLETION_TIMED_OUT:
		return "timed out";
	case COMPLETION_SUPERSEDED:
		return "sent again";
	case COMPLETION_ABANDONED:
		return "abandoned";
	}
	return "ended";
}

void completion_print(FILE *to, const struct event_completion *event, const char *service)
{
	fprintf(to, "request %llu of %s %s on %.*s after %.3f s, %u tokens given back\n",
		(unsigned long long)event->number, service, completion_text(event->status),
		REPLICA_NAME_SIZE, event->replica_name,
		(double)(event->header.nanoseconds - event->decided_nanoseconds) / 1e9,
		event->charge);
}

void refusal_print(FILE *to, const struct event_refusal *event, const char *service)
{
	if (event->cause == REFUSAL_ABORTED)
		fprintf(to, "%.*s of %s reset a connection before it had answered\n",
			REPLICA_NAME_SIZE, event->replica_name, service);
	else
		fprintf(to,
			"%.*s of %s refused a connection (%u in a row): does its server listen?\n",
			REPLICA_NAME_SIZE, event->replica_name, service, event->refused_in_a_row);
}
