/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What an answer of a DNS server says (RFC 1035; SRV: RFC 2782).
 *
 * Owns: reading the bytes, which anybody may have written. May not know: who was asked, what becomes of it.
 */
#ifndef WARMPATH_AGENT_DNS_ANSWER_H
#define WARMPATH_AGENT_DNS_ANSWER_H

#include <stddef.h>
#include <warmpath/layout.h>

#include "lib/config.h"
#include "lib/error.h"

#define DNS_RECORDS_MOST 256 /* that are taken out of one answer; more are refused */

struct dns_record {
	struct address address; /* A, AAAA */
	char target
		[DNS_NAME_SIZE]; /* SRV: without a dot at the end; empty: there is no such service */
	__u16 port;		 /* SRV, host byte order */
	__u16 priority;
};

struct dns_answer {
	__u32 ttl_seconds; /* the least of the records and of the aliases that led to them */
	unsigned int count;
	struct dns_record records[DNS_RECORDS_MOST];
};

/*
 * Reads the records of a kind from an answer; there may be none. 0, or -EINVAL with a sentence's end. Nothing in `answer` points into
 * `bytes`.
 */
int dns_answer_read(const unsigned char *bytes, size_t length, enum dns_records kind,
		    struct dns_answer *answer, struct error *error);

#endif /* WARMPATH_AGENT_DNS_ANSWER_H */
