/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A client's TCP connection to a service whose connections are handed over, and its replicas, segment by segment through the router's
 * programs: a TCP of the tests' own, which says exactly what it is told to.
 *
 * Owns: building segments with the right numbers, reading those that come out. May not know: which segment ought to come out.
 */
#ifndef WARMPATH_TESTS_DIALOGUE_H
#define WARMPATH_TESTS_DIALOGUE_H

#include "expect.h"
#include "warmpath/connection.h"
#include "world.h"

#define URG 0x20
#define ECE 0x40
#define CWR 0x80

/* A segment as it came out of a program. */
struct segment {
	enum packet_outcome outcome;
	int64_t counters[COUNTER_COUNT]; /* how much each has grown */
	bool sent; /* forwarded, answered or passed; the rest is only of such */
	char source[46];
	char destination[46];
	uint16_t source_port;
	uint16_t destination_port;
	uint32_t sequence;
	uint32_t acknowledgement;
	uint8_t flags;
	uint16_t window;
	uint16_t urgent;
	uint32_t low; /* IPv4 identification or IPv6 flow label */
	uint8_t options[40];
	int options_length;
	char payload[4096]; /* NUL behind it */
	int payload_length;
};

struct dialogue {
	enum program program;
	bool ipv6;
	size_t service; /* DIALOGUE_API, unless changed */
	uint16_t client_port;
	uint32_t client_next;	/* sequence number of the client's next byte */
	uint32_t service_next;	/* of the service's next byte, as the client expects it */
	uint32_t cookie;	/* the service's initial number */
	bool timestamps;	/* each segment carries them */
	uint32_t client_clock;	/* the value that the client sends */
	uint32_t service_clock; /* and the one that it has seen last */
};

#define DIALOGUE_SERVICE4 "10.9.8.1"
#define DIALOGUE_SERVICE6 "fd00:98::1"
#define DIALOGUE_PORT	  8000

/*
 * The services: "api", ids in x-conversation-id, three replicas; "path", ids of up to 24 characters at offset 8 of a connection's first
 * bytes, three replicas.
 */
enum { DIALOGUE_API, DIALOGUE_PATH, DIALOGUE_SERVICES };
extern const struct world_service dialogue_services[];

/* Writes them into the maps, with the cluster's keys. 0 or a negative errno. */
int dialogue_configure(void);

/* Key number `first` signs, the other is accepted as well if `count` is 2. */
void dialogue_set_keys(int first, int count);
struct handoff_keys dialogue_keys(int first, int count);

/* A client's end with that port, not connected yet. */
struct dialogue dialogue_new(enum program program, bool ipv6, uint16_t client_port);

/* Sends a SYN with those options (padded to four bytes) and further flags; takes the cookie from the answer. */
struct segment dialogue_syn(struct dialogue *dialogue, const void *options, int length,
			    uint8_t flags);

/* Connects as Linux does: all options. Fails the test if it is not answered. */
void dialogue_connect(struct dialogue *dialogue);

/* A segment of the client with its next numbers. Advances them. */
struct segment dialogue_send(struct dialogue *dialogue, uint8_t flags, const char *payload);

/* The same with bytes, of which some may be zero. */
struct segment dialogue_send_bytes(struct dialogue *dialogue, uint8_t flags, const void *bytes,
				   int length);

/* The same again from that number on; nothing is advanced. */
struct segment dialogue_repeat(struct dialogue *dialogue, uint32_t sequence, uint8_t flags,
			       const char *payload);

/* The same with a urgent pointer. */
struct segment dialogue_send_urgent(struct dialogue *dialogue, uint8_t flags, const char *payload,
				    uint16_t urgent);

/* A segment of a replica with those numbers. The client's expectation is advanced if it reaches it. */
struct segment dialogue_reply(struct dialogue *dialogue, const struct world_replica *replica,
			      uint32_t sequence, uint32_t acknowledgement, uint8_t flags,
			      const char *payload);

/* The owner acknowledges all that the client has sent and sends that. */
struct segment dialogue_answer(struct dialogue *dialogue, const struct world_replica *replica,
			       const char *payload);

/*
 * An ICMP error "host unreachable" about a segment of the connection: what the replica sent to the client (from the client's side,
 * to_replica), or what the replica was sent. Says where the error goes: `source`, `destination`, and the quoted packet's ends.
 */
struct icmp_error {
	enum packet_outcome outcome;
	char destination[46];
	struct expect_ends quoted;
};
struct icmp_error dialogue_unreachable(const struct dialogue *dialogue,
				       const struct world_replica *replica, bool to_replica);

/* A segment that the client and a replica exchange directly, with numbers of their own. */
struct segment dialogue_direct(const struct dialogue *dialogue, const struct world_replica *replica,
			       uint32_t sequence, uint32_t acknowledgement, uint8_t flags,
			       const char *payload);

/* The replica that a segment is to; NULL: none of them. */
const struct world_replica *dialogue_replica_of(const struct segment *segment);

/* Its slot, and that of one by its position. */
uint32_t dialogue_slot_of(const struct world_replica *replica);

/* The router's entry for the connection. False: there is none. */
bool dialogue_entry(const struct dialogue *dialogue, struct connection *entry);

/* No replica has refused anything yet. */
void dialogue_forget_contacts(void);

/* Is the segment a START that a replica accepts, with that options byte? */
bool dialogue_is_start(const struct dialogue *dialogue, const struct segment *segment);

/* The frame that was run last, as it went in, and over which link. Valid until the next one. */
const uint8_t *dialogue_frame(int *length, enum link *link);

/* The same frame as it came out. */
const uint8_t *dialogue_output(int *length);

#define dialogue_expect(segment, wanted) \
	dialogue_expect_at(segment, OUTCOME_##wanted, __FILE__, __LINE__)
void dialogue_expect_at(const struct segment *segment, enum packet_outcome outcome,
			const char *file, int line);

#endif /* WARMPATH_TESTS_DIALOGUE_H */
