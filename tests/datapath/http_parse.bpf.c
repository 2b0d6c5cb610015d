// SPDX-License-Identifier: GPL-2.0-only
/*
 * The request parser and the answer follower on bytes of a packet, for test_http_parse.c: what follows the first 14 bytes (the least a test
 * run takes) is the request, or the segment.
 */
#include <warmpath/portable.h>

#define http_load_bytes(context, offset, to, length) bpf_xdp_load_bytes(context, offset, to, length)

#include <warmpath/http_answer.h>
#include <warmpath/http_request.h>

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
static __always_inline struct http_head *load_head(struct xdp_md *context, __u32 *length)
{
	__u32 zero = 0, size = bpf_xdp_get_buff_len(context) - PREFIX;
	struct http_head *head = bpf_map_lookup_elem(&heads, &zero);

	if (!head)
		return NULL;
	if (size > HTTP_HEAD_SIZE)
		size = HTTP_HEAD_SIZE;
	*length = size;
	if (size &&
	    bpf_xdp_load_bytes(context, PREFIX, head->bytes, http_count(size, HTTP_HEAD_SIZE)))
		return NULL;
	return head;
}

SEC("xdp.frags")
int read_request(struct xdp_md *context)
{
	__u32 length;
	struct http_head *head = load_head(context, &length);

	if (!head)
		return XDP_ABORTED;
	verdict = http_request_read(head, length, last, &settings);
	request = head->request;
	return XDP_PASS;
}

/* The floor of read_request: everything but the reading. */
SEC("xdp.frags")
int load_request(struct xdp_md *context)
{
	__u32 length;
	struct http_head *head = load_head(context, &length);

	if (!head)
		return XDP_ABORTED;
	request = head->request;
	return XDP_PASS;
}

SEC("xdp.frags")
int follow_segment(struct xdp_md *context)
{
	__u32 zero = 0;
	struct http_window *window = bpf_map_lookup_elem(&windows, &zero);

	if (!window)
		return XDP_ABORTED;
	event = http_follow(&follower, window, context, PREFIX,
			    bpf_xdp_get_buff_len(context) - PREFIX, sequence);
	return XDP_PASS;
}

/* The same segment again and again, from the state it was first seen in: for measuring. */
struct http_follower start;

SEC("xdp.frags")
int follow_again(struct xdp_md *context)
{
	__u32 zero = 0;
	struct http_window *window = bpf_map_lookup_elem(&windows, &zero);

	if (!window)
		return XDP_ABORTED;
	follower = start;
	event = http_follow(&follower, window, context, PREFIX,
			    bpf_xdp_get_buff_len(context) - PREFIX, sequence);
	return XDP_PASS;
}

SEC("xdp.frags")
int pass(struct xdp_md *context)
{
	return XDP_PASS;
}

char LICENSE[] SEC("license") = "GPL";
