/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which replicas make the ring that a subcommand of `warmpath ring` is about: given on the command line, or those of a running warmpathd.
 *
 * Owns: --replicas, --weights, --vnodes, --dialect, --hash-key-file and, for the running set, --service and --socket. May not know:
 * what is done with the ring.
 */
#ifndef WARMPATH_CLI_RING_SET_H
#define WARMPATH_CLI_RING_SET_H

#include <argp.h>

#include "cli/client.h"
#include "lib/ring.h"

struct ring_set_options {
	struct client_options client;
	char *replicas; /* "a,b,c"; NULL: those of warmpathd */
	char *weights;	/* "a=2,c=0.5" */
	const char *hash_key_file;
	enum ring_dialect dialect;
	__u32 vnodes; /* 0: the dialect's own */
};

/*
 * To be children of a subcommand's parser, with a struct ring_set_options as their input: for a set that is given; for one that is given
 * or else warmpathd's.
 */
extern const struct argp ring_set_argp;
extern const struct argp ring_set_live_argp;

struct ring_set_replica {
	char *name;
	char state[16]; /* "active", "draining", "down" */
	__u32 weight_thousandths;
};

struct ring_set {
	char service[SERVICE_NAME_SIZE]; /* "": given on the command line */
	struct ring_set_replica *replicas;
	size_t count;
	enum ring_dialect dialect;
	__u32 vnodes;
	__u8 hash_key[RING_HASH_KEY_LENGTH_MAX];
	size_t hash_key_length;
};

/* Finds the set. An exit code; anything but EXIT_DONE after the sentence has been said. */
int ring_set_read(struct ring_set *set, const struct ring_set_options *options);

void ring_set_free(struct ring_set *set);

/* The replica of this name, or NULL. */
struct ring_set_replica *ring_set_find(const struct ring_set *set, const char *name);

/* Adds one of state "active". NULL without memory. */
struct ring_set_replica *ring_set_add(struct ring_set *set, const char *name);

/*
 * The ring of those active, or of all. The slot of each is its index in the set. An exit code, the sentence said.
 */
int ring_set_build(const struct ring_set *set, bool all, struct ring *ring);

/* An option's number of virtual nodes. */
__u32 ring_set_parse_vnodes(struct argp_state *state, const char *text);

#endif /* WARMPATH_CLI_RING_SET_H */
