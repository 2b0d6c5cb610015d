/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * conversation, conversation-forget: all that is known of one conversation.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/commands.h"
#include "agent/events.h"
#include "agent/history.h"
#include "agent/request_table.h"
#include "lib/address.h"
#include "lib/control.h"
#include "lib/placement_tables.h"

#define DECISIONS_DEFAULT 5
#define DECISIONS_MAX	  100
#define OPEN_MAX	  100 /* told of one conversation */

/* The conversation that is meant. */
struct conversation {
	char id[ID_LENGTH_MAX + 1];
	int service;
	__u64 hash;
};

static int read_conversation(struct agent *agent, const json_t *message,
			     struct conversation *conversation, struct error *error)
{
	const char *name;
	int result = command_read_id(message, conversation->id, error);

	if (!result)
		result = control_text(message, "service", false, &name, error);
	if (result)
		return result;
	conversation->service = routing_find_service(&agent->routing, name, error);
	if (conversation->service < 0)
		return conversation->service;
	conversation->hash = ring_hash(&agent->rings.ring[conversation->service], conversation->id,
				       strlen(conversation->id));
	return 0;
}

static double seconds_since(__u64 nanoseconds)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec + now.tv_nsec / 1e9 - nanoseconds / 1e9;
}

static json_t *name_json(const struct agent *agent, __u32 slot)
{
	const char *name = slot < REPLICAS_MAX ? agent->routing.replicas[slot].name : "";

	return name[0] ? json_string(name) : json_null();
}

/* --- placement ----------------------------------------------------------------------------------------------------------- */

/* 0 and the entry; -ENOENT: there is none; or another negative errno. */
static int find_placement(const struct agent *agent, const struct conversation *conversation,
			  bool remove, struct placement *placement)
{
	int table = placement_table_open(agent->datapath.placements, conversation->service);
	int result = 0;

	if (table < 0)
		return table;
	if (bpf_map_lookup_elem(table, &conversation->hash, placement) ||
	    (remove && bpf_map_delete_elem(table, &conversation->hash)))
		result = -errno;
	close(table);
	return result;
}

static json_t *placement_json(const struct agent *agent, const struct placement *placement)
{
	const struct replica *replica = NULL;
	const char *void_because = NULL;
	json_t *object;

	if (placement->replica < REPLICAS_MAX)
		replica = &agent->routing.replicas[placement->replica];
	if (!replica || replica->state != REPLICA_ACTIVE)
		void_because = "the replica takes no new conversations";
	else if (replica->incarnation != placement->incarnation)
		void_because = "the replica was restarted since";
	object = json_pack("{s:o, s:i, s:f, s:b}", "replica", name_json(agent, placement->replica),
			   "prompt_tokens", (int)placement->prompt_tokens, "age_seconds",
			   seconds_since(placement->served_nanoseconds), "counts", !void_because);
	if (void_because)
		json_object_set_new(object, "void_because", json_string(void_because));
	return object;
}

/* --- open requests ------------------------------------------------------------------------------------------------------ */

struct open_list {
	const struct agent *agent;
	const struct conversation *conversation;
	json_t *list;
};

static int take_request(void *context, const struct open_request_key *key,
			const struct open_request *request)
{
	struct open_list *list = context;
	char client[ENDPOINT_TEXT_SIZE];

	if (!request_is_open(request) || (int)request->service != list->conversation->service ||
	    request->id_hash != list->conversation->hash)
		return 0;
	json_array_append_new(
		list->list,
		json_pack("{s:I, s:o, s:s, s:i, s:i, s:f}", "number", (json_int_t)request->number,
			  "replica", name_json(list->agent, request->replica), "client",
			  endpoint_format(&key->flow.client, key->flow.client_port, client),
			  "prompt_tokens", (int)request->prompt_tokens, "charge",
			  (int)request->charge, "age_seconds",
			  seconds_since(request->decided_nanoseconds)));
	return json_array_size(list->list) == OPEN_MAX;
}

/* --- decisions ----------------------------------------------------------------------------------------------------------- */

static json_t *decisions_json(const struct agent *agent, const struct conversation *conversation,
			      json_int_t most)
{
	const struct history_entry *entry = NULL;
	json_t *list = json_array();

	while ((json_int_t)json_array_size(list) < most &&
	       (entry = history_of(agent->history, conversation->service, conversation->hash,
				   entry)))
		json_array_append_new(list, events_entry(agent, entry));
	return list;
}

int command_conversation(struct agent *agent, const json_t *message, json_t *answer,
			 struct error *error)
{
	struct conversation conversation;
	struct open_list open = {agent, &conversation, json_array()};
	json_int_t count = DECISIONS_DEFAULT;
	struct placement placement;
	const struct ring *ring;
	int result = read_conversation(agent, message, &conversation, error);

	json_object_set_new(answer, "open", open.list);
	if (!result)
		result = control_number(message, "count", false, 0, DECISIONS_MAX, &count, error);
	if (result)
		return result;
	ring = &agent->rings.ring[conversation.service];
	json_object_set_new(answer, "service",
			    json_string(agent->routing.services[conversation.service].name));
	json_object_set_new(answer, "id", json_string(conversation.id));
	json_object_set_new(answer, "hash",
			    json_sprintf("0x%016llx", (unsigned long long)conversation.hash));
	json_object_set_new(answer, "home",
			    ring->header.point_count > 0
				    ? name_json(agent, ring_home_slot(ring, conversation.hash))
				    : json_null());
	result = find_placement(agent, &conversation, false, &placement);
	if (result && result != -ENOENT)
		return error_set(error, result, "the placements cannot be read: %s",
				 strerror(-result));
	json_object_set_new(answer, "placement",
			    result ? json_null() : placement_json(agent, &placement));
	result = request_table_each(agent->datapath.requests, take_request, &open, error);
	if (result < 0)
		return result;
	json_object_set_new(answer, "decisions", decisions_json(agent, &conversation, count));
	return 0;
}

int command_conversation_forget(struct agent *agent, const json_t *message, json_t *answer,
				struct error *error)
{
	struct conversation conversation;
	struct placement placement;
	unsigned int decisions;
	int result = read_conversation(agent, message, &conversation, error);

	if (result)
		return result;
	result = find_placement(agent, &conversation, true, &placement);
	if (result && result != -ENOENT)
		return error_set(error, result, "the placement cannot be removed: %s",
				 strerror(-result));
	decisions = history_forget(agent->history, conversation.service, conversation.hash);
	if (result && decisions == 0)
		return error_set(error, -ENOENT, "nothing is remembered of conversation %s",
				 conversation.id);
	json_object_set_new(answer, "placement",
			    result ? json_null() : placement_json(agent, &placement));
	json_object_set_new(answer, "decisions", json_integer(decisions));
	return 0;
}
