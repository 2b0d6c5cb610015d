// SPDX-License-Identifier: GPL-2.0-only
/*
 * The request parser and the answer follower on bytes of a packet, for test_http_parse.c: what follows the first 14 bytes (the least a test
 * run takes) is the request, or the segment. As XDP programs here; as tc programs in http_parse_tc.bpf.c.
 */
#include <warmpath/portable.h>

#ifdef HTTP_PARSE_TC
#define SECTION		       "tc"
#define packet_context	       __sk_buff
#define packet_length(context) ((context)->len)
#define http_load_bytes(...)   bpf_skb_load_bytes(__VA_ARGS__)
#else
#define SECTION		       "xdp.frags"
#define packet_context	       xdp_md
#define packet_length(context) bpf_xdp_get_buff_len(context)
#define http_load_bytes(...)   bpf_xdp_load_bytes(__VA_ARGS__)
#endif

#include <warmpath/http_answer.h>
#include <warmpath/http_request.h>

#define RAN 2 /* what a program returns whose memory was there */

#define PREFIX 14

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct http_head);
} heads SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct http_window);
} windows SEC(".maps");

/* in */
struct http_settings settings;
__u32 last;
__u32 sequence;
/* in and out */
struct http_follower follower;
/* out */
struct http_request request;
__u32 verdict;
__u32 event;

/* The same bytes into the buffer, for any length: 0 is allowed. */
static __always_inline struct http_head *load_head(struct packet_context *context, __u32 *length)
{
	__u32 zero = 0, size = packet_length(context) - PREFIX;
	struct http_head *head = bpf_map_lookup_elem(&heads, &zero);

	if (!head)
		return NULL;
	if (size > HTTP_HEAD_SIZE)
		size = HTTP_HEAD_SIZE;
	*length = size;
	if (size && http_load_bytes(context, PREFIX, head->bytes, http_count(size, HTTP_HEAD_SIZE)))
		return NULL;
	return head;
}

SEC(SECTION)
int read_request(struct packet_context *context)
{
	__u32 length;
	struct http_head *head = load_head(context, &length);

	if (!head)
		return 0;
	verdict = http_request_read(head, length, last, &settings);
	request = head->request;
	return RAN;
}

/* The floor of read_request: everything but the reading. */
SEC(SECTION)
int load_request(struct packet_context *context)
{
	__u32 length;
	struct http_head *head = load_head(context, &length);

	if (!head)
		return 0;
	request = head->request;
	return RAN;
}

SEC(SECTION)
int follow_segment(struct packet_context *context)
{
	__u32 zero = 0;
	struct http_window *window = bpf_map_lookup_elem(&windows, &zero);

	if (!window)
		return 0;
	event = http_follow(&follower, window, context, PREFIX, packet_length(context) - PREFIX,
			    sequence);
	return RAN;
}

/* The same segment again and again, from the state it was first seen in: for measuring. */
struct http_follower start;

SEC(SECTION)
int follow_again(struct packet_context *context)
{
	__u32 zero = 0;
	struct http_window *window = bpf_map_lookup_elem(&windows, &zero);

	if (!window)
		return 0;
	follower = start;
	event = http_follow(&follower, window, context, PREFIX, packet_length(context) - PREFIX,
			    sequence);
	return RAN;
}

SEC(SECTION)
int pass(struct packet_context *context)
{
	return RAN;
}

char LICENSE[] SEC("license") = "GPL";
