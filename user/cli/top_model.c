/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/top_model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "lib/counters.h"

/* --- reading snapshots -------------------------------------------------------------------------------------------------- */

static const char *text(const json_t *object, const char *name)
{
	const char *value = json_string_value(json_object_get(object, name));

	return value ? value : "";
}

static double number(const json_t *object, const char *name)
{
	return json_number_value(json_object_get(object, name));
}

/* The entry of a list that has this name, and, if it is given, belongs to that service. */
static const json_t *find(const json_t *list, const char *service, const char *name)
{
	json_t *item;
	size_t i;

	json_array_foreach(list, i, item)
	{
		if (strcmp(text(item, "name"), name) == 0 &&
		    (!service || strcmp(text(item, "service"), service) == 0))
			return item;
	}
	return NULL;
}

/*
 * Each second; TOP_UNKNOWN if there is no snapshot to compare with, or the number has begun anew since (an agent that was restarted
 * counts from 0).
 */
static double rate(const struct top_model *model, const json_t *before, const json_t *now,
		   const char *name)
{
	double seconds = model->before
				 ? number(model->now, "seconds") - number(model->before, "seconds")
				 : 0;
	double more = number(now, name) - number(before, name);

	if (!before || seconds <= 0 || more < 0)
		return TOP_UNKNOWN;
	return more / seconds;
}

/* --- the service -------------------------------------------------------------------------------------------------------- */

static void find_service(struct top_model *model)
{
	const json_t *services = json_object_get(model->now, "services");
	json_t *service;
	size_t i;

	model->service_count = json_array_size(services);
	model->described = NULL;
	json_array_foreach(services, i, service)
	{
		if (model->service && strcmp(text(service, "name"), model->service) != 0)
			continue;
		model->described = service;
		model->service_number = i + 1;
		return;
	}
}

void top_model_next_service(struct top_model *model, int step)
{
	const json_t *services = json_object_get(model->now, "services");
	unsigned int count = json_array_size(services);
	unsigned int next;

	if (count == 0)
		return;
	next = model->described ? (model->service_number - 1 + count + step) % count : 0;
	model->service = text(json_array_get(services, next), "name");
	top_model_refresh(model);
}

static int by_rate(const void *a, const void *b)
{
	const struct top_rate *left = a, *right = b;

	if (left->rate != right->rate)
		return left->rate < right->rate ? 1 : -1;
	return strcmp(left->name, right->name);
}

/* Fills a list with the rates of an object's numbers that are not 0; returns how many. */
static unsigned int list_rates(const struct top_model *model, const json_t *before,
			       const json_t *now, struct top_rate *list, double *sum)
{
	unsigned int count = 0;
	const char *name;
	json_t *value;

	*sum = 0;
	json_object_foreach((json_t *)now, name, value)
	{
		double a_second = rate(model, before, now, name);

		if (a_second <= 0 || count == TOP_RATES_MAX)
			continue;
		*sum += a_second;
		list[count++] = (struct top_rate){name, a_second};
	}
	qsort(list, count, sizeof(*list), by_rate);
	return count;
}

static void take_rates(struct top_model *model)
{
	const json_t *now = model->described;
	const json_t *before = model->before ? find(json_object_get(model->before, "services"),
						    NULL, text(now, "name"))
					     : NULL;
	const json_t *ended = json_object_get(now, "completions");
	struct top_rate statuses[TOP_RATES_MAX];
	double sum;
	unsigned int count;

	model->decisions = rate(model, before, now, "decisions");
	model->traced = rate(model, before, now, "traced");
	model->refused = rate(model, before, now, "refusals");
	model->rates_known = model->decisions != TOP_UNKNOWN && model->traced != TOP_UNKNOWN;
	model->reason_count = list_rates(model, json_object_get(before, "reasons"),
					 json_object_get(now, "reasons"), model->reasons, &sum);
	model->cause_count =
		list_rates(model, json_object_get(before, "moves"), json_object_get(now, "moves"),
			   model->causes, &model->moved);
	count = list_rates(model, json_object_get(before, "completions"), ended, statuses, &sum);
	model->answered = 0;
	for (unsigned int i = 0; i < count; i++)
		if (strcmp(statuses[i].name, "success") == 0)
			model->answered = statuses[i].rate;
	model->failed = sum - model->answered;
}

static void take_drops(struct top_model *model)
{
	const json_t *now = json_object_get(model->now, "counters");
	const json_t *before = json_object_get(model->before, "counters");

	model->drops = model->packets = 0;
	model->drop_count = 0;
	for (unsigned int i = 0; i < COUNTER_COUNT; i++) {
		const struct counter_description *counter = &counter_descriptions[i];
		double a_second = rate(model, before, now, counter->name);

		if (a_second <= 0 || strcmp(counter->verdict, "note") == 0)
			continue;
		model->packets += a_second;
		if (strcmp(counter->verdict, "drop") != 0 || model->drop_count == TOP_RATES_MAX)
			continue;
		model->drops += a_second;
		model->drop_rates[model->drop_count++] = (struct top_rate){counter->name, a_second};
	}
	qsort(model->drop_rates, model->drop_count, sizeof(model->drop_rates[0]), by_rate);
}

/* --- replicas ----------------------------------------------------------------------------------------------------------- */

/*
 * The cap that a request of the mean size of those in flight would have to keep at present: (1 + epsilon) x (sum + cost) / N, whole
 * requests where those are counted.
 */
static double find_cap(const json_t *service)
{
	bool tokens = strcmp(text(service, "load_metric"), "tokens") == 0;
	double sum = number(service, tokens ? "tokens" : "requests");
	double requests = number(service, "requests"), count = number(service, "replica_count");
	double cost = tokens && requests > 0 ? sum / requests : 1, cap;

	if (!json_is_true(json_object_get(service, "capped")) || count == 0)
		return 0;
	cap = (1 + number(service, "epsilon")) * (sum + cost) / count;
	return tokens ? cap : ceil(cap);
}

static double load_of(const struct top_model *model, const struct top_replica *replica)
{
	return strcmp(text(model->described, "load_metric"), "tokens") == 0 ? replica->tokens
									    : replica->requests;
}

static struct top_replica read_replica(const struct top_model *model, const json_t *item)
{
	const json_t *before = model->before ? find(json_object_get(model->before, "replicas"),
						    text(item, "service"), text(item, "name"))
					     : NULL;
	double prompts = number(item, "prompt_tokens");

	return (struct top_replica){
		.name = text(item, "name"),
		.state = text(item, "state"),
		.address = text(item, "address"),
		.weight = number(item, "weight"),
		.share = number(item, "share"),
		.requests = (long)number(item, "requests"),
		.tokens = (long)number(item, "tokens"),
		.rate = rate(model, before, item, "decisions"),
		.hits = prompts > 0 ? number(item, "cached_tokens") / prompts : TOP_UNKNOWN,
		.moves_in = number(item, "moves_in"),
		.moves_out = number(item, "moves_out"),
		.refusals = number(item, "refusals"),
	};
}

static int compare_numbers(double a, double b)
{
	return (a < b) - (a > b); /* the highest first */
}

static int compare(const void *a, const void *b, void *context)
{
	const struct top_model *model = context;
	const struct top_replica *left = a, *right = b;
	int order = 0;

	switch (model->sort) {
	case TOP_LOAD:
		order = compare_numbers(left->fill, right->fill);
		break;
	case TOP_REQUESTS:
		order = compare_numbers(left->requests, right->requests);
		break;
	case TOP_TOKENS:
		order = compare_numbers(left->tokens, right->tokens);
		break;
	case TOP_RATE:
		order = compare_numbers(left->rate, right->rate);
		break;
	case TOP_HITS:
		order = compare_numbers(left->hits, right->hits);
		break;
	case TOP_SHARE:
		order = compare_numbers(left->share, right->share);
		break;
	case TOP_MOVES:
		order = compare_numbers(left->moves_in + left->moves_out,
					right->moves_in + right->moves_out);
		break;
	default:
		break;
	}
	if (order == 0)
		order = strcmp(left->name, right->name);
	return model->reverse ? -order : order;
}

static void list_replicas(struct top_model *model)
{
	const char *service = text(model->described, "name");
	double most = 0;
	json_t *item;
	size_t i;

	json_array_foreach(json_object_get(model->now, "replicas"), i, item)
	{
		struct top_replica *replica = &model->replicas[model->count];

		if (strcmp(text(item, "service"), service) != 0 || model->count == REPLICAS_MAX)
			continue;
		model->all++;
		if (model->filter[0] && !strcasestr(text(item, "name"), model->filter))
			continue;
		*replica = read_replica(model, item);
		most = fmax(most, load_of(model, replica));
		model->count++;
	}
	for (unsigned int k = 0; k < model->count; k++) {
		double full = model->cap > 0 ? model->cap : most;

		if (full > 0)
			model->replicas[k].fill = load_of(model, &model->replicas[k]) / full;
	}
	qsort_r(model->replicas, model->count, sizeof(model->replicas[0]), compare, model);
}

/* --- the whole ---------------------------------------------------------------------------------------------------------- */

void top_model_refresh(struct top_model *model)
{
	model->count = model->all = 0;
	if (!model->now)
		return;
	find_service(model);
	take_drops(model);
	if (!model->described)
		return;
	model->cap = find_cap(model->described);
	model->capped = model->cap > 0;
	take_rates(model);
	list_replicas(model);
}

void top_model_take(struct top_model *model, json_t *snapshot)
{
	const char *service = model->service;

	if (model->paused && model->now) {
		json_decref(snapshot);
		return;
	}
	/* a name that was borrowed from a snapshot is borrowed from the new one: the old one may go */
	if (service) {
		const json_t *again = find(json_object_get(snapshot, "services"), NULL, service);

		model->service = again ? text(again, "name") : NULL;
	}
	json_decref(model->before);
	model->before = model->now;
	model->now = snapshot;
	top_model_refresh(model);
}

bool top_model_has(const json_t *snapshot, const char *service)
{
	return find(json_object_get(snapshot, "services"), NULL, service);
}

void top_model_free(struct top_model *model)
{
	json_decref(model->before);
	json_decref(model->now);
	model->before = model->now = NULL;
}
