/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/dns_answer.h"

#include <arpa/nameser.h>
#include <errno.h>
#include <resolv.h>
#include <string.h>

#define ANSWER_LENGTH_MAX 65535
#define TTL_MOST	  0x7fffffffu /* RFC 2181, section 8: greater ones are 0 */

static __u16 number_at(const unsigned char *bytes)
{
	return bytes[0] << 8 | bytes[1];
}

static int read_address(const ns_rr *record, struct dns_record *into, struct error *error)
{
	unsigned char *bytes = (unsigned char *)&into->address;
	size_t length = ns_rr_type(*record) == ns_t_a ? 4 : 16;

	_Static_assert(sizeof(into->address) == 16, "an IPv6 address, or a mapped IPv4 one");
	if (ns_rr_rdlen(*record) != length)
		return error_set(error, -EINVAL, "the answer has an address of %u bytes",
				 ns_rr_rdlen(*record));
	if (length == 4)
		bytes[10] = bytes[11] = 0xff;
	memcpy(bytes + 16 - length, ns_rr_rdata(*record), length);
	return 0;
}

static int read_service(const ns_msg *message, const ns_rr *record, struct dns_record *into,
			struct error *error)
{
	const unsigned char *bytes = ns_rr_rdata(*record);
	char target[NS_MAXDNAME];

	if (ns_rr_rdlen(*record) < 7 || dn_expand(ns_msg_base(*message), ns_msg_end(*message),
						  bytes + 6, target, sizeof(target)) < 0)
		return error_set(error, -EINVAL, "the answer has an SRV record that is cut short");
	if (strlen(target) >= sizeof(into->target))
		return error_set(error, -EINVAL, "the answer has a name that is too long");
	into->priority = number_at(bytes);
	into->port = number_at(bytes + 4);
	memcpy(into->target, target, strlen(target) + 1);
	return 0;
}

static ns_type type_of(enum dns_records kind)
{
	return kind == DNS_RECORDS_SRV ? ns_t_srv : kind == DNS_RECORDS_AAAA ? ns_t_aaaa : ns_t_a;
}

static int read_record(const ns_msg *message, const ns_rr *record, enum dns_records kind,
		       struct dns_answer *answer, struct error *error)
{
	struct dns_record *into;
	__u32 ttl = ns_rr_ttl(*record) <= TTL_MOST ? ns_rr_ttl(*record) : 0;

	if (ns_rr_class(*record) != ns_c_in ||
	    (ns_rr_type(*record) != type_of(kind) && ns_rr_type(*record) != ns_t_cname))
		return 0;
	if (ttl < answer->ttl_seconds)
		answer->ttl_seconds = ttl;
	if (ns_rr_type(*record) == ns_t_cname)
		return 0;
	if (answer->count == DNS_RECORDS_MOST)
		return error_set(error, -EINVAL, "the answer has more than %d records",
				 DNS_RECORDS_MOST);
	into = &answer->records[answer->count++];
	return kind == DNS_RECORDS_SRV ? read_service(message, record, into, error)
				       : read_address(record, into, error);
}

int dns_answer_read(const unsigned char *bytes, size_t length, enum dns_records kind,
		    struct dns_answer *answer, struct error *error)
{
	ns_msg message;
	ns_rr record;
	int count, i, result = 0;

	memset(answer, 0, sizeof(*answer));
	answer->ttl_seconds = TTL_MOST;
	if (length > ANSWER_LENGTH_MAX || ns_initparse(bytes, (int)length, &message))
		return error_set(error, -EINVAL, "the answer is not a DNS message");
	count = ns_msg_count(message, ns_s_an);
	for (i = 0; i < count && !result; i++) {
		if (ns_parserr(&message, ns_s_an, i, &record))
			return error_set(error, -EINVAL, "the answer is cut short");
		result = read_record(&message, &record, kind, answer, error);
	}
	return result;
}
