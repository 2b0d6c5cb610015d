/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Questions and requests to the kernel's routing tables (rtnetlink): links, routes, neighbours.
 *
 * Owns: messages and their attributes. May not know: why someone wants a route or a neighbour.
 */
#ifndef WARMPATH_USER_NETLINK_H
#define WARMPATH_USER_NETLINK_H

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>
#include <warmpath/layout.h>

struct mnl_socket;

struct netlink {
	struct mnl_socket *requests;
	struct mnl_socket *
		events; /* links, addresses, routes, queueing disciplines and filters that change */
	unsigned int sequence;
};

/* 0 or a negative errno; netlink_close() is safe either way. */
int netlink_open(struct netlink *netlink);
void netlink_close(struct netlink *netlink);

struct link_info {
	int index;
	char name[IF_NAMESIZE];
	uint16_t hardware_type; /* ARPHRD_* */
	bool up;
	bool veth_across; /* one end of a veth whose other end is in another network namespace */
	bool queueless;	  /* has no queueing discipline: packets go to the driver at once */
};

/*
 * Calls `each` for every link; for those that are changing now, perhaps several times, and the last one counts. 0 or a negative errno; -EINTR: the links
 * kept changing, and one may be missing.
 */
int netlink_each_link(struct netlink *netlink,
		      void (*each)(void *context, const struct link_info *link), void *context);

enum next_hop_kind {
	NEXT_HOP_NONE,	   /* no route, or a blackhole */
	NEXT_HOP_LOCAL,	   /* an address of this machine */
	NEXT_HOP_NEIGHBOUR /* `address` on interface `index` */
};

struct next_hop {
	enum next_hop_kind kind;
	int index; /* of the interface */
	struct address address;
};

/* Where the kernel would send a packet for `destination`. 0 or a negative errno. */
int netlink_next_hop(struct netlink *netlink, const struct address *destination,
		     struct next_hop *next_hop);

/* The neighbour's NUD_* state, 0 if there is none; `*managed` says whether the kernel keeps it resolved. 0 or negative errno. */
int netlink_neighbour_state(struct netlink *netlink, const struct next_hop *next_hop,
			    uint16_t *state, bool *managed);

/*
 * Has the kernel keep the neighbour resolved for good (NTF_EXT_MANAGED, Linux 5.16), or, with `managed` false, resolve it now
 * (NTF_USE) and no longer keep it so. 0 or a negative errno.
 */
int netlink_resolve_neighbour(struct netlink *netlink, const struct next_hop *next_hop,
			      bool managed);

/* How many tc filters hang on a clsact hook (`parent`: ingress or egress, BPF_TC_PARENT form). Negative errno on error. */
int netlink_count_filters(struct netlink *netlink, int index, uint32_t parent);

/* What an event was about: bits. */
enum netlink_event {
	NETLINK_EVENT_LINK = 1,
	NETLINK_EVENT_ROUTE = 2, /* also addresses, which bring routes along */
	NETLINK_EVENT_QUEUE = 4, /* queueing disciplines and tc filters */
};

/* The descriptor to wait on for events. */
int netlink_event_descriptor(const struct netlink *netlink);

/* Takes all events that wait; returns what they were about. Lost events count as all kinds. */
unsigned int netlink_take_events(struct netlink *netlink);

#endif /* WARMPATH_USER_NETLINK_H */
