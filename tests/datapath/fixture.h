/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The services and the kinds of packets that the data-path tests use, and what is expected of each.
 *
 * Owns: the tables. May not know: BPF, how a packet is sent through a program (expect.h).
 */
#ifndef WARMPATH_TESTS_FIXTURE_H
#define WARMPATH_TESTS_FIXTURE_H

#include <netinet/in.h>

#include "packets.h"
#include "world.h"

/* By service index; the comment says what is special. */
enum fixture_service {
	SERVICE_CHAT, /* id at offset 8, 16 bytes; one address a family: replies need no return entry */
	SERVICE_TWO,	  /* id at offset 0, 32 bytes; two addresses a family: replies need one */
	SERVICE_SHARED_A, /* shares its only replica, address and port, with the next */
	SERVICE_SHARED_B,
	SERVICE_PREFIX,	    /* TCP and UDP to a /64: the address is the key */
	SERVICE_UNRESOLVED, /* its replica's link address is not known */
	SERVICE_NARROW,	    /* its replica is behind a link with a small MTU */
	SERVICE_BLACKHOLE,  /* the route to its replica is a black hole */
	SERVICE_EMPTY,	    /* no replica is active */
	SERVICE_LOCAL,	    /* its replica is this machine */
	SERVICE_GATEWAY,    /* its replica is behind a gateway */
	SERVICE_JUMBO, /* its replica is behind a link with a large MTU; the id is far behind in the payload */
	SERVICE_COUNT,
};

extern const struct world_service fixture_services[SERVICE_COUNT];

#define CLIENT4 "10.0.1.10"
#define CLIENT6 "fd00:1::10"
#define KEY_CONV1 \
	"fd00:5:5:5:7b0e:9858:7fc9:5488" /* H("conv1"), semantics.md section 1; its home is prefix-2 */
#define KEY_CONV3 "fd00:5:5:5:1602:3ff6:d2e6:bc29" /* H("conv3"); prefix-0 */

/* Payload of service "chat": 8 bytes of the application's, the id field (16), a question. The home of conv1 is llm-1. */
#define CHAT_HEAD     "REQ\x01\x02\x03\x04\x05"
#define CHAT_ID	      "conv1\0\0\0\0\0\0\0\0\0\0\0"
#define CHAT_QUESTION CHAT_HEAD CHAT_ID "why is the sky blue?"
#define CHAT_ANSWER   "ANS\x01\x02\x03\x04\x05" CHAT_ID "because of scattering"

#define PAYLOAD(text)	   .payload = (text), .payload_length = sizeof(text) - 1
#define LONG_PAYLOAD(size) .payload = fixture_long_payload, .payload_length = (size)

/* A chat question that goes on for a while. */
#define LONG_PAYLOAD_SIZE 60000
extern uint8_t fixture_long_payload[LONG_PAYLOAD_SIZE];

/* A table may state again what these set. */
#pragma GCC diagnostic ignored "-Woverride-init"

#define UDP4(from, from_port, to, to_port)                                                    \
	.family = AF_INET, .source = (from), .source_port = (from_port), .destination = (to), \
	.destination_port = (to_port), .protocol = IPPROTO_UDP, .hop_limit = 61,              \
	.identification = 0x1234, .traffic_class = 0x28

#define UDP6(from, from_port, to, to_port)                                                     \
	.family = AF_INET6, .source = (from), .source_port = (from_port), .destination = (to), \
	.destination_port = (to_port), .protocol = IPPROTO_UDP, .hop_limit = 62,               \
	.flow_label = 0xabcde, .traffic_class = 0x28

#define TCP6(from, from_port, to, to_port, flags)                                              \
	.family = AF_INET6, .source = (from), .source_port = (from_port), .destination = (to), \
	.destination_port = (to_port), .protocol = IPPROTO_TCP, .hop_limit = 63,               \
	.flow_label = 0x54321, .sequence = 0x01020304, .acknowledgement = 0x0a0b0c0d,          \
	.tcp_flags = (flags)

#define FIN 0x01
#define SYN 0x02
#define RST 0x04
#define PSH 0x08
#define ACK 0x10

#define FRAGMENT(start, size, more_follow)                                      \
	.fragment = true, .fragment_start = (start), .fragment_length = (size), \
	.fragment_more = (more_follow), .fragment_identification = 0xdeadbeef

enum fixture_change {
	CHANGE_NONE,   /* dropped, or passed as it was */
	CHANGE_TO,     /* the destination: `address` and `port` */
	CHANGE_FROM,   /* the source */
	CHANGE_OUT,    /* into the packet `out` */
	CHANGE_ANSWER, /* into an ICMP error about itself: `answer` */
};

/* A packet and what becomes of it. */
struct fixture_kind {
	const char *name;
	struct packet_spec packet;
	enum link link;	  /* it comes in over */
	bool multicast;	  /* to a group's link address */
	int segment_size; /* tc: the device is to cut it so */
	bool only_tc;
	bool only_xdp; /* larger than an skb of a test run may be */
	const struct packet_spec *before
		[2]; /* sent first, by the client or, if from 10.0.2.0/24 and the like, by a replica */

	enum packet_outcome outcome;
	bool resolve; /* the link address is not known: tc has the kernel find it out (forwarded), XDP leaves it to the stack */
	uint32_t notes; /* NOTE_BIT() */
	enum fixture_change change;
	const char *address;
	uint16_t port;
	const struct packet_spec *out;
	struct {
		uint8_t type, code;
		uint16_t mtu;
	} answer;
};

#define NOTE_BIT(name)	      (1u << (NOTE_##name - OUTCOME_COUNT))
#define CREATES		      .notes = NOTE_BIT(note_flow_created)
#define TO(to, to_port)	      .change = CHANGE_TO, .address = (to), .port = (to_port)
#define FROM(from, from_port) .change = CHANGE_FROM, .address = (from), .port = (from_port)

/* One table for each concern. */
struct fixture_table {
	const struct fixture_kind *kinds;
	size_t count;
};

extern const struct fixture_table fixture_requests;
extern const struct fixture_table fixture_ids;
extern const struct fixture_table fixture_replies;
extern const struct fixture_table fixture_fragments;
extern const struct fixture_table fixture_icmp;
extern const struct fixture_table fixture_others;

/* All tables, and a NULL behind them. */
extern const struct fixture_table *const fixture_tables[];

/* To be called before any packet is built. */
void fixture_prepare(void);

#endif /* WARMPATH_TESTS_FIXTURE_H */
