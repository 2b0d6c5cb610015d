/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The values that live in BPF maps: the contract between agent, CLI and data path, and what an operator reads in
 * `bpftool map dump`. Key and field names are therefore whole words.
 *
 * Owns: structs, enums, limits of the pinned maps. May not know: libbpf, packets, sockets.
 *
 * Any change of size, offset or meaning raises WARMPATH_LAYOUT_VERSION, which is part of the pin path: two layouts never
 * meet in one map.
 *
 * Who writes what (all others only read):
 *   service_addresses, services, replicas, replica_addresses      agent
 *   rings, ring_points, ring_index, ring_members                  agent, as whole generations (see struct ring_header)
 *   flows, return_flows, fragments, counters                      data path
 *   replica_loads, service_loads, requests                        data path; agent only through the control program
 *   placements                                                    data path; the agent puts in and replaces the inner maps
 *   events                                                        data path (ring buffer, include/warmpath/decision.h)
 */
#ifndef WARMPATH_LAYOUT_H
#define WARMPATH_LAYOUT_H

#include "portable.h"

#define WARMPATH_LAYOUT_VERSION	  1
#define WARMPATH_LAYOUT_DIRECTORY "v1"

#define REPLICAS_MAX	    1024       /* in all services together */
#define SERVICES_MAX	    64	       /* power of two: indexes are masked */
#define RING_POINTS_MAX	    (1u << 20) /* of one ring */
#define RING_INDEX_BITS_MAX 20
#define REPLICA_NAME_SIZE   64 /* with the closing NUL: names have 1 to 63 characters */
#define SERVICE_NAME_SIZE   32
#define ADDRESS_TEXT_SIZE   60
#define ID_LENGTH_MAX	    128 /* semantics.md section 2; also one BLAKE2b block */

/*
 * An IPv6 address, or an IPv4 address mapped as ::ffff:a.b.c.d (RFC 4291, 2.5.5.2), in network byte order: one kind of key
 * serves both families.
 */
struct address {
	__be32 word[4];
};

/* --- services ------------------------------------------------------------------------------------------- */

enum id_source {
	ID_FROM_OFFSET =
		1, /* `id_length` bytes at `id_offset` of the UDP payload, or of a TCP connection's first bytes */
	ID_FROM_ADDRESS = 2, /* the low 64 bits of the IPv6 destination are the ring key */
	ID_FROM_HEADER =
		3, /* a header of each HTTP/1.1 request (struct http_service in connection.h) */
};

enum service_state {
	SERVICE_UNUSED = 0,
	SERVICE_ACTIVE = 1,
};

enum routing_policy {
	POLICY_ROUND_ROBIN = 1,
	POLICY_MOD_N = 2,
	POLICY_CONSISTENT = 3,
	POLICY_BOUNDED = 4,
	POLICY_LLM_AWARE = 5,
};

enum load_metric {
	LOAD_REQUESTS = 1,
	LOAD_TOKENS = 2,
};

/*
 * Settings of the policy (semantics.md section 5). Fractions are whole millionths, so that caps are exact integer
 * comparisons in the kernel: epsilon 0.25 is 250000.
 */
struct policy_settings {
	enum routing_policy policy;
	enum load_metric load_metric;
	__u32 epsilon_millionths;      /* 1 .. 100,000,000 */
	__u32 long_epsilon_millionths; /* >= epsilon_millionths */
	__u32 long_threshold_tokens;
	__u32 default_max_tokens;
	__u32 memory_max_entries;
	__u8 token_load;
	__u8 long_stickiness;
	__u8 placement_memory;
	__u8 reserved;
};
_Static_assert(sizeof(struct policy_settings) == 32, "layout");

#define OFFSET_NONE 0xffff /* no such field in the payload */

/* Array `services`, key: service index, 0 .. SERVICES_MAX - 1. */
struct service {
	char name[SERVICE_NAME_SIZE];
	enum service_state state;
	enum id_source id_from;
	__u16 id_offset;	    /* bytes from the start of the L4 payload */
	__u16 id_length;	    /* 1 .. ID_LENGTH_MAX */
	__u16 prompt_tokens_offset; /* u32, big-endian; OFFSET_NONE: bytes after the id / 4 */
	__u16 max_tokens_offset;    /* u32, big-endian; OFFSET_NONE: policy.default_max_tokens */
	__u32 request_timeout_milliseconds;
	/* What a reply gets as its source where no return flow says otherwise: only set if the service has one
	 * public address in that family (and none that is a prefix), else all zero. */
	struct address public_ipv4;
	struct address public_ipv6;
	__be16 public_port;
	__u16 policy_overridden; /* 1: set at run time; survives an agent restart, not a reload */
	struct policy_settings policy;
};
_Static_assert(sizeof(struct service) == 32 + 8 + 8 + 4 + 32 + 4 + 32, "layout");

/*
 * Hash `service_addresses`: public address -> service. For a prefix service (id_from = address) the low 64 bits of the
 * address are zero and prefix_length is 64, else prefix_length is 128.
 *
 * An entry with port 0 and protocol 0 says that the whole address (or prefix) is the service's alone, and no other traffic to
 * it is anybody's: packets whose port cannot be read (a later fragment without its first, a header not handled)
 * are then dropped under a counter, where otherwise they are left to the kernel. Every prefix service has one.
 */
struct service_address_key {
	struct address address;
	__be16 port;
	__u8 protocol;	    /* IPPROTO_TCP, IPPROTO_UDP; a service for both has two entries */
	__u8 prefix_length; /* 128 or 64 */
};
_Static_assert(sizeof(struct service_address_key) == 20, "layout");

struct service_address {
	__u32 service; /* index into `services` */
};

/* --- replicas ------------------------------------------------------------------------------------------- */

enum replica_state {
	REPLICA_UNUSED = 0,   /* the slot is free */
	REPLICA_ACTIVE = 1,   /* on the ring */
	REPLICA_DRAINING = 2, /* off the ring, keeps its flows */
	REPLICA_DOWN = 3,     /* off the ring, unhealthy */
	REPLICA_REMOVED =
		4, /* not in the set any more; the slot waits until its flows and load are gone */
};

enum replica_source {
	REPLICA_FROM_CONFIGURATION = 1,
	REPLICA_FROM_COMMAND = 2, /* added at run time; survives an agent restart, not a reload */
	REPLICA_FROM_DISCOVERY = 3,
};

/* What was set by command at run time and outlives a restart of the agent, until the configuration is reloaded. */
enum replica_override {
	OVERRIDE_WEIGHT = 1,  /* the weight is not the configuration's */
	OVERRIDE_REMOVED = 2, /* removed, though the configuration or discovery has it */
};

/* Why a replica of the set is not active; several reasons at once are possible, and each is taken back by who gave it. */
enum replica_hold {
	HELD_BY_COMMAND = 1,   /* drained */
	HELD_BY_DISCOVERY = 2, /* it is ending (Kubernetes: terminating): draining */
	HELD_BY_HEALTH = 4,    /* it does not answer: down, unless it is draining */
};

/*
 * Array `replicas`, key: replica slot, 0 .. REPLICAS_MAX - 1. A (service, name) keeps its slot for as long as anything
 * refers to it, so that a replica that is removed and added again while busy finds its flows and its load.
 */
struct replica {
	char name[REPLICA_NAME_SIZE];
	char address_text
		[ADDRESS_TEXT_SIZE]; /* for the reader of a dump; "10.0.2.10:8001, [fd00:2::10]:8001" may be cut */
	__u32 process; /* health: a hash of what it says about its start; another one: it was restarted; 0: not known */
	enum replica_state state;
	enum replica_source source;
	__u32 service;	   /* index into `services` */
	__u32 incarnation; /* one life of the replica; another number voids its placements */
	__u32 weight_thousandths;
	__u16 overridden; /* OVERRIDE_* */
	__u16 share_thousandths; /* slow start: of its weight it has so much on the ring now; 0: all of it */
	struct address ipv4; /* mapped; all zero: none */
	struct address ipv6; /* all zero: none */
	__be16 port;
	__u16 held; /* HELD_*: `state` follows from it */
	__u32 life; /* discovery: which server of that name it is (a hash of the pod's UID); 0: not known */
};
_Static_assert(sizeof(struct replica) == 64 + 60 + 28 + 32 + 8, "layout");

/* Hash `replica_addresses`: where replies come from -> replica. The first question asked of a packet that is not to a service. */
struct replica_address_key {
	struct address address;
	__be16 port;
	__u16 reserved;
};
_Static_assert(sizeof(struct replica_address_key) == 20, "layout");

struct replica_address {
	__u32 replica; /* slot; with several users: the first */
	__u32 services; /* how many services use this address and port: only with 1 may a reply do without a return flow */
};

/* --- rings ---------------------------------------------------------------------------------------------- */

enum ring_dialect {
	RING_LLM = 1,		 /* BLAKE2b-64; first point strictly greater than the key */
	RING_REPLICA_ROUTER = 2, /* MD5, top 64 bits; first point greater or equal */
};

/*
 * A ring is four tables of one generation, replaced as a whole. The array of maps `rings` (key: service index) holds one-entry
 * inner maps of this header; the three others are reached through the slot it names:
 *
 *   ring_points[slot]   sorted by (hash, name), point_count entries of struct ring_point
 *   ring_index[slot]    2^index_bits entries of struct ring_bucket: bucket b covers the hashes whose top index_bits bits are b;
 *                       in ring_index_large[slot] if index_bits > RING_INDEX_BITS_SMALL
 *   ring_members[slot]  member_count entries of struct ring_member: replica slots sorted by name
 *
 * Swapping: fill the three tables under the slot not in use (service * 2, service * 2 + 1), then replace the header: one atomic
 * pointer, and the update returns only after every program that saw the old header has finished, so that the old
 * slot's tables may then be filled again. A packet reads the header once and sees one generation throughout.
 *
 * Inner maps have room for more than they hold: ring_index for 2^RING_INDEX_BITS_SMALL, the others for the next power of two
 * (BPF_F_INNER_MAP lets their sizes differ). Entries from the counts on mean nothing.
 */
#define RING_INDEX_BITS_SMALL 15

struct ring_header {
	__u64 generation; /* rises by one with each ring of this service */
	enum ring_dialect dialect;
	__u32 slot;	     /* into ring_points, ring_index, ring_members */
	__u32 point_count;   /* 0: no replica is active */
	__u32 index_bits;    /* 1 .. RING_INDEX_BITS_MAX */
	__u32 member_count;  /* distinct replicas on the ring */
	__u32 hash_keyed;    /* 1: hash_state has absorbed the secret key's block already */
	__u64 hash_state[8]; /* BLAKE2b chaining value to start an id's block from (blake2b.h) */
};
_Static_assert(sizeof(struct ring_header) == 32 + 64, "layout");

struct ring_point {
	__u64 hash;
	__u32 replica; /* slot */
	__u32 reserved;
};
_Static_assert(sizeof(struct ring_point) == 16, "layout");

#define RING_BUCKET_POINTS_MAX 0xffff

/*
 * What a key's place is decided by without a look at the points, unless the bucket has two or more or the key's fraction equals
 * the point's (include/warmpath/ring.h).
 */
struct ring_bucket {
	__u32 first_point; /* the first point whose hash is in this or a later bucket; point_count of the ring if none */
	__u32 first_fraction; /* where in this bucket it lies: the 32 bits of its hash that follow the bucket's number; all ones
			       * if it lies in a later one */
	__u16 point_count;  /* how many are in this bucket */
	__u16 replica;	    /* slot, of first_point (behind the last point comes the first) */
	__u16 next_replica; /* slot, of the point after it */
	__u16 reserved;
};
_Static_assert(sizeof(struct ring_bucket) == 16, "layout");

struct ring_member {
	__u32 replica; /* slot */
};

#define RING_SLOTS_MAX (SERVICES_MAX * 2)

/* --- flows ---------------------------------------------------------------------------------------------- */

/* LRU hash `flows`: a client's connection (or UDP pair) with a service, as the client sees it. */
struct flow_key {
	struct address client;
	struct address service;
	__be16 client_port;
	__be16 service_port;
	__u8 protocol;
	__u8 reserved[3];
};
_Static_assert(sizeof(struct flow_key) == 40, "layout");

enum flow_state {
	FLOW_OPENING = 1,     /* a SYN has been seen */
	FLOW_ESTABLISHED = 2, /* data or an ACK has been seen from the client */
	FLOW_CLOSED = 3,      /* RST, or FIN from both sides: the next SYN is decided anew */
	FLOW_DATAGRAMS = 4,   /* UDP */
};

#define FLOW_FIN_FROM_CLIENT  1
#define FLOW_FIN_FROM_REPLICA 2
#define FLOW_FIN_ANSWERED     4 /* the replica had sent data before its FIN */

struct flow {
	__u32 service;
	__u32 replica;	   /* slot; for UDP by offset: the last one this client was sent to */
	__u32 incarnation; /* of the replica when the flow was decided */
	enum flow_state state;
	__be16 translated_port; /* the client's source port as the replica sees it */
	__u16 reserved;
	__u32 fin_seen; /* FLOW_FIN_FROM_*, set atomically: both sides may close at once */
	__u64 return_checked_nanoseconds; /* when the return entry was last known to be there (coarse clock) */
};
_Static_assert(sizeof(struct flow) == 32, "layout");

/* LRU hash `return_flows`: the same flow as the replica sees it. */
struct return_flow_key {
	struct address replica;
	struct address client;
	__be16 replica_port;
	__be16 client_port; /* translated */
	__u8 protocol;
	__u8 reserved[3];
};
_Static_assert(sizeof(struct return_flow_key) == 40, "layout");

struct return_flow {
	struct address service;
	__be16 service_port;
	__be16 client_port; /* the client's own */
	__u32 service_index;
	__u32 replica;	/* slot */
	__u32 answered; /* 1: TCP, the replica has sent data */
};
_Static_assert(sizeof(struct return_flow) == 32, "layout");

/* LRU hash `fragments`: where the first fragment of a datagram went; the later ones carry no ports. */
struct fragment_key {
	struct address source;
	struct address destination;
	__be32 identification;
	__u8 protocol;
	__u8 reserved[3];
};
_Static_assert(sizeof(struct fragment_key) == 40, "layout");

struct fragment {
	struct address source;	    /* after rewriting */
	struct address destination; /* after rewriting */
	__u8 to_replica;	    /* 1: client to replica, 0: replica to client */
	__u8 reserved[7];
	__u64 seen_nanoseconds;
};
_Static_assert(sizeof(struct fragment) == 48, "layout");

/*
 * Hash `redirect_devices`, key: interface index. What is missing here gets its packets from XDP through the kernel's own forwarding, and from tc
 * through the interface's queue.
 */
struct redirect_device {
	__u16 usable; /* 1: XDP may redirect to it (native XDP, plain Ethernet) */
	__u16 peer; /* 1: a veth; tc may give packets to its other end, in another namespace, without its queue between them */
};
_Static_assert(sizeof(struct redirect_device) == 4, "layout");
#define REDIRECT_DEVICES_MAX 1024

/* --- load, requests, placements -------------------------------------------------------------------------- */

/*
 * Ranges of what is charged. They keep every product of the cap comparison (decide.h) below 2^64 at 1,024 replicas and
 * the largest epsilon, and are enforced where a value enters: token counts are clamped, a load stops rising at its maximum (the request
 * then records the smaller charge, so that what is given back is what was taken).
 */
#define REQUEST_TOKENS_MAX \
	((1u << 24) - 1) /* prompt tokens and, apart from them, answer tokens of one request */
#define REPLICA_LOAD_MAX (1u << 27) /* tokens, and requests, in flight at one replica */
#define EPSILON_MAX	 100000000u /* millionths */

#define REPLICA_NONE 0xffffffffu /* no replica slot */

/*
 * Array `service_loads`, key: service index. The lock guards this value and the replica_loads of the service's replicas: every
 * charge, release and membership change happens under it, so sums and parts always agree.
 */
struct service_load {
	struct bpf_spin_lock lock;
	__u32 replica_count;	/* N of the cap: replicas counted */
	__u64 requests;		/* sum over counted replicas */
	__u64 tokens;		/* the same */
	__u64 changes;		/* rises with every charge, release, repair and membership change */
	__u64 decisions;	/* made so far; the number of a decision, from 1 */
	__u64 releases;		/* charges given back so far */
	__u64 round_robin_next; /* policy round-robin's counter; not under the lock (atomic) */
};
_Static_assert(sizeof(struct service_load) == 56, "layout");

/* Array `replica_loads`, key: replica slot. */
struct replica_load {
	__u32 counted;	 /* 1: in the current set, so part of the sums and a candidate */
	__u32 requests;	 /* in flight */
	__u64 tokens;	 /* charged for them */
	__u64 decisions; /* requests ever given to it */
	__u64 releases;	 /* charges ever given back */
	/* Reconciling (user/agent/reconcile.c): what has been given back of the decisions up to number `mark`, since that was set. */
	__u64 mark;
	__u64 marked_requests;
	__u64 marked_tokens;
};
_Static_assert(sizeof(struct replica_load) == 56, "layout");

/*
 * LRU hash `requests`: an open charge. (The kernel has a struct request of its own.) id_hash is the ring key of the id; 0
 * where the flow itself is the request (id from the address), and for a request without an id.
 *
 * Whoever sets `number` from the decision's number to 0 (compare and exchange, in BPF code only) owns the release of the charge, and
 * nobody else gives it back. Userspace closes requests through the control program.
 *
 * The entry of a connection's request stays when that has ended: the connection's next one is written into it. The agent takes away those
 * that are not used again soon.
 */
#define REQUEST_ENDED 0ULL
#define REQUEST_CLAIMED \
	(~0ULL) /* the next one is being written into it, or it is being taken away */

struct open_request_key {
	struct flow_key flow;
	__u64 id_hash;
};
_Static_assert(sizeof(struct open_request_key) == 48, "layout");

struct open_request {
	__u64 number; /* of the decision in its service; or REQUEST_ENDED, REQUEST_CLAIMED */
	__u32 service;
	__u32 replica;	   /* slot */
	__u32 incarnation; /* of the replica at the decision */
	__u32 prompt_tokens;
	__u32 charge;	     /* tokens */
	__u8 request_charge; /* 1, or 0 where the replica's count of requests had reached its maximum */
	__u8 remembered;     /* 1: its success writes a placement */
	__u8 traced;	     /* 1: its decision was put into `events`, so its completion is, too */
	__u8 reserved;
	__u64 id_hash;		   /* key of the placement */
	__u64 decided_nanoseconds; /* coarse monotonic clock */
};
_Static_assert(sizeof(struct open_request) == 48, "layout");

/*
 * LRU hash, the inner maps of `placements` (array of maps, key: service index), key: ring key of the id (__u64). A change of
 * policy puts an empty one in the old one's place.
 */
struct placement {
	__u32 replica;	   /* slot */
	__u32 incarnation; /* another one than the replica's now: void */
	__u32 prompt_tokens;
	__u32 reserved;
	__u64 served_nanoseconds;
};
_Static_assert(sizeof(struct placement) == 24, "layout");

/* Array `trace_settings`, one entry: what goes into `events`. */
struct trace_settings {
	__u32 events_per_second; /* decisions traced in a second, at most; each has its completion traced as well */
	__u32 reserved;
	__u64 second; /* data path: the second being counted (coarse monotonic clock) */
	__u64 traced; /* data path: how many in it so far */
};
_Static_assert(sizeof(struct trace_settings) == 24, "layout");

#endif /* WARMPATH_LAYOUT_H */
