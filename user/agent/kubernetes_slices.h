/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The EndpointSlices of one Kubernetes service: what lists and watches say of them, and the replicas that they are. discovery.k8s.io/v1 and
 * v1beta1 are read alike, as what is needed is the same in both.
 *
 * Owns: reading the JSON, which may be wrong in any way; what is kept of it, and its bounds. May not know: how it was asked for.
 */
#ifndef WARMPATH_AGENT_KUBERNETES_SLICES_H
#define WARMPATH_AGENT_KUBERNETES_SLICES_H

#include <stdbool.h>
#include <stddef.h>

#include "agent/routing.h"

#define KUBERNETES_SLICES_MAX	 256
#define KUBERNETES_ENDPOINTS_MAX DISCOVERED_MAX /* of all slices together, ready or terminating */
#define KUBERNETES_VERSION_SIZE	 128		/* of a resourceVersion, with its NUL */
#define KUBERNETES_CONTINUE_SIZE 4096

struct kubernetes_endpoint {
	char name[REPLICA_NAME_SIZE]; /* of the pod, else its host name, else its address */
	__u32 life;		      /* a hash of the pod's UID; 0: it has none */
	struct address address;
	bool terminating;
};

struct kubernetes_slice {
	char name[DNS_NAME_SIZE];
	__u16 port; /* the one that is wanted; 0: the slice does not have it */
	struct kubernetes_endpoint *endpoints;
	unsigned int endpoint_count;
	struct error note; /* what of it cannot be used; empty: nothing */
};

struct kubernetes_slices {
	struct kubernetes_slice *slice;
	unsigned int count;
	unsigned int room;
	unsigned int endpoint_count;
	char version[KUBERNETES_VERSION_SIZE]; /* where a watch goes on; empty: not known */
};

/* Empties it, and frees what it held; all zero is empty, too. */
void kubernetes_slices_clear(struct kubernetes_slices *slices);

/*
 * Adds a page of a list. `port_name` is the port wanted, NULL or empty: the only one. `next` becomes the token of the next page, or empty after the
 * last. 0, or a negative errno with a sentence's end (-EINVAL: not such a list; -E2BIG: more than is possible).
 */
int kubernetes_slices_list(struct kubernetes_slices *slices, const char *port_name,
			   const char *text, size_t length, char next[KUBERNETES_CONTINUE_SIZE],
			   struct error *error);

enum kubernetes_event {
	KUBERNETES_CHANGED,  /* a slice has come, changed or gone */
	KUBERNETES_BOOKMARK, /* nothing but a newer version to go on from */
	KUBERNETES_EXPIRED, /* what came after the version is not known any more: list again (410) */
	KUBERNETES_REFUSED, /* another error of the server's; the sentence's end is set */
};

/*
 * Takes one line of a watch. 0 and what it was, or a negative errno with a sentence's end as above; the slices are then as they were.
 */
int kubernetes_slices_event(struct kubernetes_slices *slices, const char *port_name,
			    const char *line, size_t length, enum kubernetes_event *event,
			    struct error *error);

/*
 * The members that the slices are, sorted by name, of which `most` are written; returns how many there are. Each is of one family; routing_discover()
 * puts those of a name together. `note` says what cannot be used (else empty).
 */
unsigned int kubernetes_slices_members(const struct kubernetes_slices *slices,
				       const struct config_discovery *settings,
				       struct discovered_member *members, unsigned int most,
				       struct error *note);

/* The message of a Status object, for a sentence; false if it is none. At most 200 characters, printable ones. */
bool kubernetes_status_message(const char *text, size_t length, char message[256]);

#endif /* WARMPATH_AGENT_KUBERNETES_SLICES_H */
