/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bringing a service's replicas to what its sources have found.
 *
 * In two steps, so that what comes out does not depend on the order in which changes arrive: first which members are to be replicas
 * (one for each name, none at the place of another), from the members and the other replicas alone; then the slots.
 */
#include "agent/routing.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/routing_slot.h"
#include "lib/address.h"
#include "lib/log.h"

struct candidate {
	const struct discovered_member *member;
	unsigned int order; /* of the sources */
};

struct discovery {
	struct routing *routing;
	__u32 service;
	struct candidate *candidates; /* sorted */
	unsigned int candidate_count;
	struct discovered_member *accepted;
	unsigned int accepted_count;
	bool incomplete[REPLICAS_MAX]; /* by slot: found, but not so that it could be used now */
	void (*problem)(void *context, const char *sentence);
	void *context;
};

static void tell(struct discovery *discovery, const char *sentence)
{
	discovery->problem(discovery->context, sentence);
}

/* The service's replica of that name in the set, or NULL. */
static const struct replica *replica_named(const struct discovery *discovery, const char *name)
{
	int slot = routing_find_slot(discovery->routing, discovery->service, name);

	if (slot < 0 || !replica_in_set(&discovery->routing->replicas[slot]))
		return NULL;
	return &discovery->routing->replicas[slot];
}

static bool removed_by_command(const struct discovery *discovery, const char *name)
{
	int slot = routing_find_slot(discovery->routing, discovery->service, name);

	return slot >= 0 && discovery->routing->replicas[slot].state == REPLICA_REMOVED &&
	       (discovery->routing->replicas[slot].overridden & OVERRIDE_REMOVED);
}

/* --- one member for each name ------------------------------------------------------------------------------- */

static bool is_in_use(const struct replica *replica, const struct discovered_member *member)
{
	const struct config_addresses *addresses = &member->replica.addresses;
	struct replica wanted = {0};
	unsigned int i;

	if (!replica)
		return false;
	routing_fill_addresses(&wanted, &member->replica);
	for (i = 0; i < addresses->count; i++) {
		const struct address *address = &addresses->item[i].address;

		if (wanted.port == replica->port &&
		    address_equal(address,
				  address_is_ipv4(address) ? &replica->ipv4 : &replica->ipv6))
			return true;
	}
	return false;
}

/* By name, and of one name the one that counts first. */
static int compare_candidates(const void *left, const void *right, void *context)
{
	const struct candidate *a = left, *b = right;
	const struct replica *replica;
	int order = strcmp(a->member->replica.name, b->member->replica.name);
	bool a_in_use, b_in_use;

	if (order)
		return order;
	if (a->member->terminating != b->member->terminating)
		return a->member->terminating ? 1 : -1;
	replica = replica_named(context, a->member->replica.name);
	a_in_use = is_in_use(replica, a->member);
	b_in_use = is_in_use(replica, b->member);
	if (a_in_use != b_in_use)
		return a_in_use ? -1 : 1;
	return a->order < b->order ? -1 : 1;
}

static bool has_family(const struct config_addresses *addresses, bool ipv4)
{
	unsigned int i;

	for (i = 0; i < addresses->count; i++) {
		if (address_is_ipv4(&addresses->item[i].address) == ipv4)
			return true;
	}
	return false;
}

/*
 * The other family of a replica often comes from elsewhere: another EndpointSlice, another source. Of one server the families are told one after the
 * other: it ends as soon as one of them says so.
 */
static void take_other_family(struct discovered_member *member,
			      const struct discovered_member *other)
{
	struct config_addresses *addresses = &member->replica.addresses;
	bool same_life = member->life && member->life == other->life;
	unsigned int i;

	if ((member->life && other->life && !same_life) ||
	    other->replica.port != member->replica.port ||
	    (other->terminating != member->terminating && !same_life))
		return;
	member->terminating |= other->terminating;
	for (i = 0; i < other->replica.addresses.count; i++) {
		const struct config_address *address = &other->replica.addresses.item[i];

		if (addresses->count < CONFIG_REPLICA_ADDRESSES_MAX &&
		    !has_family(addresses, address_is_ipv4(&address->address)))
			addresses->item[addresses->count++] = *address;
	}
}

/* --- none at the place of another ----------------------------------------------------------------------------- */

static bool same_place(const struct replica *a, const struct replica *b)
{
	return a->port == b->port &&
	       ((address_is_set(&a->ipv4) && address_equal(&a->ipv4, &b->ipv4)) ||
		(address_is_set(&a->ipv6) && address_equal(&a->ipv6, &b->ipv6)));
}

static const char *configured_or_commanded_at(const struct discovery *discovery,
					      const struct discovered_member *member)
{
	struct replica wanted = {0};
	unsigned int slot;

	routing_fill_addresses(&wanted, &member->replica);
	for (slot = 0; slot < REPLICAS_MAX; slot++) {
		const struct replica *replica = &discovery->routing->replicas[slot];

		if (replica_in_set(replica) && replica->service == discovery->service &&
		    replica->source != REPLICA_FROM_DISCOVERY && same_place(&wanted, replica))
			return replica->name;
	}
	return NULL;
}

/* Of two members at one place: one that is not terminating, one that has been there, the first by name. */
static bool counts_before(const struct discovery *discovery, const struct discovered_member *a,
			  const struct discovered_member *b)
{
	bool a_in_use, b_in_use;

	if (a->terminating != b->terminating)
		return b->terminating;
	a_in_use = is_in_use(replica_named(discovery, a->replica.name), a);
	b_in_use = is_in_use(replica_named(discovery, b->replica.name), b);
	return a_in_use != b_in_use ? a_in_use : strcmp(a->replica.name, b->replica.name) < 0;
}

static struct discovered_member *accepted_at(struct discovery *discovery,
					     const struct discovered_member *member)
{
	struct replica wanted = {0}, other;
	unsigned int i;

	routing_fill_addresses(&wanted, &member->replica);
	for (i = 0; i < discovery->accepted_count; i++) {
		memset(&other, 0, sizeof(other));
		routing_fill_addresses(&other, &discovery->accepted[i].replica);
		if (same_place(&wanted, &other))
			return &discovery->accepted[i];
	}
	return NULL;
}

static void accept_member(struct discovery *discovery, const struct discovered_member *member)
{
	const char *name = member->replica.name, *taken;
	const struct replica *replica = replica_named(discovery, name);
	struct discovered_member *other;
	char sentence[256];
	struct error error;

	if (removed_by_command(discovery, name) || (member->terminating && !replica))
		return;
	if (replica && replica->source != REPLICA_FROM_DISCOVERY) {
		snprintf(sentence, sizeof(sentence),
			 "%s is left out, as the %s has a replica of that name already", name,
			 replica->source == REPLICA_FROM_COMMAND ? "operator" : "configuration");
		tell(discovery, sentence);
		return;
	}
	if (routing_check_wanted(discovery->routing, discovery->service, &member->replica,
				 &error)) {
		tell(discovery, error.text);
		if (replica)
			discovery->incomplete[replica - discovery->routing->replicas] = true;
		return;
	}
	taken = configured_or_commanded_at(discovery, member);
	other = accepted_at(discovery, member);
	if (taken || other) {
		bool before = !taken && counts_before(discovery, member, other);

		snprintf(sentence, sizeof(sentence),
			 "%s is left out, as %s has the same address and port",
			 before ? other->replica.name : name,
			 taken	  ? taken
			 : before ? name
				  : other->replica.name);
		tell(discovery, sentence);
		if (before)
			*other = *member;
		return;
	}
	discovery->accepted[discovery->accepted_count++] = *member;
}

static void accept_members(struct discovery *discovery)
{
	unsigned int i = 0;

	while (i < discovery->candidate_count) {
		const char *name = discovery->candidates[i].member->replica.name;
		struct discovered_member member = *discovery->candidates[i].member;

		while (++i < discovery->candidate_count &&
		       strcmp(discovery->candidates[i].member->replica.name, name) == 0)
			take_other_family(&member, discovery->candidates[i].member);
		accept_member(discovery, &member);
	}
}

/* --- slots ----------------------------------------------------------------------------------------------------- */

static bool is_found(const struct discovery *discovery, const char *name)
{
	unsigned int i;

	for (i = 0; i < discovery->candidate_count; i++) {
		if (strcmp(discovery->candidates[i].member->replica.name, name) == 0)
			return true;
	}
	return false;
}

static bool is_accepted(const struct discovery *discovery, const char *name)
{
	unsigned int i;

	for (i = 0; i < discovery->accepted_count; i++) {
		if (strcmp(discovery->accepted[i].replica.name, name) == 0)
			return true;
	}
	return false;
}

static bool place_is_taken(const struct discovery *discovery, const struct replica *replica)
{
	struct replica other;
	unsigned int i;

	for (i = 0; i < discovery->accepted_count; i++) {
		memset(&other, 0, sizeof(other));
		routing_fill_addresses(&other, &discovery->accepted[i].replica);
		if (same_place(replica, &other))
			return true;
	}
	return false;
}

static void remove_others(struct discovery *discovery)
{
	unsigned int slot;

	for (slot = 0; slot < REPLICAS_MAX; slot++) {
		struct replica *replica = &discovery->routing->replicas[slot];

		if (replica->service != discovery->service ||
		    replica->source != REPLICA_FROM_DISCOVERY)
			continue;
		if (replica_in_set(replica) && discovery->incomplete[slot] &&
		    !place_is_taken(discovery, replica)) {
			/*
			 * Of who took its place only one family is known yet: it gets no more, as one that ends, but what an operator did
			 * to it is not forgotten.
			 */
			routing_hold(replica, HELD_BY_DISCOVERY, true);
		} else if (replica_in_set(replica) && !is_accepted(discovery, replica->name)) {
			log_info("replica %s of service %s: removed, as discovery does not find it",
				 replica->name,
				 discovery->routing->services[discovery->service].name);
			routing_remove_from_set(replica, 0);
		} else if (replica->state == REPLICA_REMOVED &&
			   !is_found(discovery, replica->name)) {
			replica->overridden = 0;
		}
	}
}

static int place_member(struct discovery *discovery, const struct discovered_member *member,
			const struct slot_usage *usage, struct error *error)
{
	const struct replica *before = replica_named(discovery, member->replica.name);
	struct config_replica wanted = member->replica;
	__u32 overridden = before ? before->overridden & OVERRIDE_WEIGHT : 0;
	__u32 incarnation = before ? before->incarnation : 0;
	bool ended = before && (before->held & HELD_BY_DISCOVERY) && !member->terminating;
	bool another = before && before->life && member->life && before->life != member->life;
	struct replica *replica;
	int slot;

	if (overridden)
		wanted.weight_thousandths = before->weight_thousandths;
	slot = routing_place_replica(discovery->routing, discovery->service, &wanted,
				     REPLICA_FROM_DISCOVERY, usage, error);
	if (slot < 0)
		return slot;
	replica = &discovery->routing->replicas[slot];
	replica->overridden = overridden;
	if (member->life)
		replica->life = member->life;
	/* Another server under the same name, also at the same address, has nothing in its cache. */
	if ((ended || another) && replica->incarnation == incarnation) {
		replica->process = 0;
		replica->incarnation++;
	}
	routing_hold(replica, HELD_BY_DISCOVERY, member->terminating);
	return 0;
}

static int place_members(struct discovery *discovery, const struct slot_usage *usage,
			 struct error *error)
{
	unsigned int i;

	for (i = 0; i < discovery->accepted_count; i++) {
		int result = place_member(discovery, &discovery->accepted[i], usage, error);

		if (result == -ENOSPC)
			tell(discovery, error->text);
		else if (result)
			return result;
	}
	return 0;
}

int routing_discover(struct routing *routing, __u32 service,
		     const struct discovered_member *members, unsigned int count, bool complete,
		     const struct slot_usage *usage,
		     void (*problem)(void *context, const char *sentence), void *context,
		     struct error *error)
{
	struct discovery discovery = {
		.routing = routing, .service = service, .problem = problem, .context = context};
	unsigned int i;
	int result = -ENOMEM;

	discovery.candidates = calloc(count ? count : 1, sizeof(*discovery.candidates));
	discovery.accepted = calloc(count ? count : 1, sizeof(*discovery.accepted));
	if (!discovery.candidates || !discovery.accepted) {
		error_set(error, result, "not enough memory");
		goto out;
	}
	discovery.candidate_count = count;
	for (i = 0; i < count; i++)
		discovery.candidates[i] = (struct candidate){.member = &members[i], .order = i};
	qsort_r(discovery.candidates, count, sizeof(*discovery.candidates), compare_candidates,
		&discovery);
	accept_members(&discovery);
	if (complete)
		remove_others(&discovery);
	result = place_members(&discovery, usage, error);
out:
	free(discovery.candidates);
	free(discovery.accepted);
	return result;
}
