/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is routed where: the services and the replica slots, as the maps `services` and `replicas` hold them. Every change
 * (start, reload, command) is made on a copy, checked there, and only then written by apply.h: so a bad one leaves
 * everything as it was.
 *
 * Owns: which index a service has, which slot a replica has, states, incarnations. May not know: libbpf, the order of
 * writes, sockets.
 *
 * Slots: a (service, name) finds the slot it had, for as long as that still has its name; it is then the same replica in a new
 * life (incarnation). A slot of a removed replica is given to another name only when nothing refers to it any more.
 */
#ifndef WARMPATH_AGENT_ROUTING_H
#define WARMPATH_AGENT_ROUTING_H

#include "lib/config.h"
#include "lib/error.h"

struct routing {
	struct service services[SERVICES_MAX];
	struct replica replicas[REPLICAS_MAX];
	/* By service index: its section of the configuration (borrowed); NULL: not configured. */
	const struct config_service *settings[SERVICES_MAX];
};

/*
 * Tells which slots flows or charges still refer to, by setting `in_use[slot]`. Asked only when no free slot is left. 0 or a
 * negative errno.
 */
struct slot_usage {
	int (*ask)(void *context, bool in_use[REPLICAS_MAX]);
	void *context;
};

enum routing_merge {
	MERGE_START,  /* runtime changes found in the maps stay */
	MERGE_RELOAD, /* the set becomes exactly the file's; only drains stay */
};

/*
 * Brings the routing to what the configuration says. Services and replicas that it does not have any more become unused
 * and removed. `routing->settings` then borrows from `config`. 0, or a negative errno with a sentence; the routing is then to be
 * thrown away.
 */
int routing_merge(struct routing *routing, const struct config *config, enum routing_merge merge,
		  const struct slot_usage *usage, struct error *error);

/* The index of a configured service; a NULL or empty name means the only one. Negative errno with a sentence. */
int routing_find_service(const struct routing *routing, const char *name, struct error *error);

/* The slot of a replica in the set (not removed), or a negative errno with a sentence. */
int routing_find_replica(const struct routing *routing, __u32 service, const char *name,
			 struct error *error);

/* Whether the replica belongs to the set: active, draining or down. */
bool replica_in_set(const struct replica *replica);

/* "active", "draining", ... */
const char *replica_state_name(enum replica_state state);

/* Whether replies of the replica are still expected: in the set, or removed and not forgotten yet. */
bool replica_has_traffic(const struct replica *replica);

/*
 * Gives (or takes back) a reason why the replica, which is in the set, is not active, and sets its state: draining if it is drained by
 * command or ending as discovery says, else down if it does not answer, else active.
 */
void routing_hold(struct replica *replica, enum replica_hold reason, bool held);

/* The weight with which the replica is on the ring, in thousandths: its own, or so much of it as slow start gives it. */
__u32 replica_ring_weight(const struct replica *replica);

/* --- changes at run time: each 0 (or the slot), or a negative errno with a sentence ------------------------ */

int routing_add_replica(struct routing *routing, __u32 service, const struct config_replica *wanted,
			const struct slot_usage *usage, struct error *error);
int routing_drain_replica(struct routing *routing, __u32 service, const char *name,
			  struct error *error);
int routing_undrain_replica(struct routing *routing, __u32 service, const char *name,
			    struct error *error);
int routing_remove_replica(struct routing *routing, __u32 service, const char *name,
			   struct error *error);
int routing_weigh_replica(struct routing *routing, __u32 service, const char *name,
			  __u32 weight_thousandths, struct error *error);

/* --- discovery ------------------------------------------------------------------------------------------------ */

#define DISCOVERED_MAX (2 * REPLICAS_MAX) /* members of a source: of a replica, a member a family */

struct discovered_member {
	struct config_replica replica; /* the addresses: at most one of each family */
	__u32 life;	  /* another number: another server of that name; 0: not known */
	bool terminating; /* takes no new requests: draining */
};

/*
 * Brings the replicas of the service that are from discovery to the union of what its sources have found, in the order of the sources.
 * The same name several times is one replica: a member that is not terminating counts before one that is, the address in use before another
 * one, an earlier source before a later one. A replica of the configuration or added by command counts before a found one of its name or address.
 * What cannot be a replica is left out, and `problem` (with a sentence without names of sources) is called for it.
 *
 * `complete`: all sources have answered at least once, so that what none has any more is removed; else only additions and changes.
 * 0, or a negative errno with a sentence; the routing is then to be thrown away.
 */
int routing_discover(struct routing *routing, __u32 service,
		     const struct discovered_member *members, unsigned int count, bool complete,
		     const struct slot_usage *usage,
		     void (*problem)(void *context, const char *sentence), void *context,
		     struct error *error);

/*
 * Forgets the addresses of removed replicas that nothing refers to, and frees their slots, except where the slot remembers
 * that a configured replica was removed by command. Returns how many were forgotten.
 */
unsigned int routing_forget_removed(struct routing *routing, const bool in_use[REPLICAS_MAX]);

#endif /* WARMPATH_AGENT_ROUTING_H */
