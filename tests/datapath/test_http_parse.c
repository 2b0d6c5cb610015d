// SPDX-License-Identifier: BSD-2-Clause
/*
 * The request parser and the answer follower in the kernel: on every case of the unit tests, cut at every byte, the kernel's result is that
 * of user space to the last bit. Prints what typical heads and segments cost; that is for the reader, nothing depends on it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <warmpath/http_answer.h>
#include <warmpath/http_request.h>

#include "../common/http_answer_cases.h"
#include "../common/http_request_cases.h"
#include "http_parse.skel.h"
#include "http_parse_tc.skel.h"

#define PREFIX	 14
#define SEQUENCE 0xfffffff5u

_Static_assert(sizeof(struct http_parse_bpf__bss) == sizeof(struct http_parse_tc_bpf__bss),
	       "the same programs");

/* The programs as XDP or as tc programs: what the tests need of either skeleton. */
struct side {
	size_t length_max; /* of what a test run takes */
	struct http_parse_bpf__bss *bss;
	const struct bpf_program *read_request;
	const struct bpf_program *load_request;
	const struct bpf_program *follow_segment;
	const struct bpf_program *follow_again;
	const struct bpf_program *pass;
};

static struct http_parse_bpf *xdp;
static struct http_parse_tc_bpf *tc;
static struct side sides[2];
static const struct side *side;
static unsigned char packet[PREFIX + 65536];

/* Runs a program on the first `length` bytes after the prefix. Returns nanoseconds a run. */
static __u32 run(const struct bpf_program *program, size_t length, int repeat)
{
	DECLARE_LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = packet,
			    .data_size_in = PREFIX + length, .repeat = repeat);
	int error = bpf_prog_test_run_opts(bpf_program__fd(program), &options);

	if (error)
		fail_msg("a test run of %zu bytes failed: %s", length, strerror(-error));
	assert_int_equal(options.retval, 2 /* RAN */);
	return options.duration;
}

static void compare_request(const char *name, const void *bytes, size_t length, bool last)
{
	static struct http_head head;
	enum http_verdict verdict;

	if (length > side->length_max)
		return;
	memcpy(packet + PREFIX, bytes, length);
	memset(&head, 0, sizeof(head));
	memcpy(head.bytes, bytes, length < HTTP_HEAD_SIZE ? length : HTTP_HEAD_SIZE);
	verdict = http_request_read(&head, length, last, &side->bss->settings);
	side->bss->last = last;
	run(side->read_request, length, 1);
	if (side->bss->verdict != verdict)
		fail_msg("%s, %zu bytes: verdict %u in the kernel, %d here", name, length,
			 side->bss->verdict, verdict);
	if (memcmp(&side->bss->request, &head.request, sizeof(head.request)))
		fail_msg("%s, %zu bytes: the kernel read something else", name, length);
}

static void requests(void **state)
{
	(void)state;
	for (size_t i = 0; i < REQUEST_CASE_COUNT; i++) {
		const struct request_case *one = &request_cases[i];

		compare_request(one->name, one->bytes, one->length, false);
		for (size_t length = 0; length<one->length; length += one->length> 1000 ? 97 : 1)
			compare_request(one->name, one->bytes, length, length % 5 == 0);
	}
}

/* Changed at random, with whatever former runs left in the kernel's buffer behind the bytes. */
static void changed_requests(void **state)
{
	static const char pieces[] = "\r\n\r\n: \t,;aA-_09\x7f\x80\xff\x01 ";
	unsigned char text[1500];

	(void)state;
	srand(17);
	for (int round = 0; round < 3000; round++) {
		const struct request_case *one = &request_cases[rand() % REQUEST_CASE_COUNT];
		size_t length = one->length < sizeof(text) ? one->length : sizeof(text);

		memcpy(text, one->bytes, length);
		for (int change = 0; change < 3 && length; change++)
			text[rand() % length] = pieces[rand() % (sizeof(pieces) - 1)];
		compare_request(one->name, text, length, false);
	}
}

/* Follows a segment here and in the kernel. */
static void compare_segment(const char *name, struct http_follower *follower, const char *bytes,
			    size_t from, size_t to)
{
	static struct http_window window;
	enum http_follow_event event;

	memcpy(packet + PREFIX, bytes + from, to - from);
	event = http_follow(follower, &window, packet, PREFIX, to - from, SEQUENCE + (__u32)from);
	side->bss->sequence = SEQUENCE + (__u32)from;
	run(side->follow_segment, to - from, 1);
	if (side->bss->event != event)
		fail_msg("%s, bytes %zu to %zu: event %u in the kernel, %d here", name, from, to,
			 side->bss->event, event);
	if (memcmp(&side->bss->follower, follower, sizeof(*follower)))
		fail_msg("%s, bytes %zu to %zu: the kernel is in another state", name, from, to);
}

static void start(struct http_follower *follower, const struct answer_case *one)
{
	http_follow_answer(follower, one->request, SEQUENCE);
	side->bss->follower = *follower;
}

static void answers(void **state)
{
	struct http_follower follower;

	(void)state;
	for (size_t i = 0; i < ANSWER_CASE_COUNT; i++) {
		const struct answer_case *one = &answer_cases[i];

		for (size_t cut = 0; cut < one->length; cut++) {
			start(&follower, one);
			if (cut)
				compare_segment(one->name, &follower, one->bytes, 0, cut);
			compare_segment(one->name, &follower, one->bytes, cut % 4 ? cut : 0,
					one->length);
		}
		start(&follower, one);
		for (size_t at = 0; at < one->length; at++)
			compare_segment(one->name, &follower, one->bytes, at, at + 1);
		/* some are missing */
		start(&follower, one);
		for (size_t at = 0; at < one->length; at += 1 + at % 2)
			compare_segment(one->name, &follower, one->bytes, at, at + 1);
	}
}

/* A segment as GRO makes it, full of chunks: of one byte, of one event. */
static size_t fill_chunks(char *to, size_t size, size_t chunk)
{
	size_t length = 0;

	while (length + chunk + 10 <= size) {
		length += sprintf(to + length, "%zx\r\n", chunk);
		memset(to + length, 'd', chunk);
		length += chunk;
		length += sprintf(to + length, "\r\n");
	}
	return length;
}

static void many_chunks(void **state)
{
	static const char head[] = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
	static const struct answer_case none = {.name = "many chunks"};
	static const size_t sizes[] = {1, 3, 40, 245};
	static char stream[65536];

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct http_follower follower;
		size_t length = sizeof(head) - 1;

		memcpy(stream, head, length);
		length += fill_chunks(stream + length, 60000, sizes[i]);
		start(&follower, &none);
		compare_segment(none.name, &follower, stream, 0, length);
		assert_int_equal(follower.state, HTTP_FOLLOW_CHUNK_SIZE);
	}
}

/* --- costs -------------------------------------------------------------------------------------------------- */

/* The least of several averages. What takes many microseconds needs fewer repetitions. */
static __u32 least(const struct bpf_program *program, size_t length)
{
	__u32 best = run(program, length, 10);
	int repeat = best > 4000 ? 100 : 10000;

	for (int round = 0; round < 9; round++) {
		__u32 cost = run(program, length, repeat);

		if (cost < best)
			best = cost;
	}
	return best;
}

static void request_cost(const char *name, const char *text, size_t length)
{
	__u32 whole, load;

	memcpy(packet + PREFIX, text, length);
	side->bss->last = true;
	whole = least(side->read_request, length);
	load = least(side->load_request, length);
	printf("# %-44s %5zu bytes: read %6u ns, loading them %3u ns\n", name, length, whole - load,
	       load);
}

static void answer_cost(const char *name, const char *text, size_t length,
			enum http_follow_state in, __u64 remaining)
{
	__u32 whole, floor;

	memcpy(packet + PREFIX, text, length);
	http_follow_answer(&side->bss->start, 0, SEQUENCE);
	side->bss->start.state = in;
	side->bss->start.remaining = remaining;
	side->bss->sequence = SEQUENCE;
	whole = least(side->follow_again, length);
	floor = least(side->pass, length);
	printf("# %-44s %5zu bytes: follow %6u ns\n", name, length, whole - floor);
}

static const char client_curl[] =
	"POST /v1/chat/completions HTTP/1.1\r\nHost: 10.9.9.9:8000\r\nUser-Agent: curl/7.88.1\r\nAccept: */*\r\n"
	"x-conversation-id: s1-c007\r\nContent-Type: application/json\r\nContent-Length: 200\r\n\r\n";
static const char client_openai[] =
	"POST /v1/chat/completions HTTP/1.1\r\nHost: 10.9.9.9:8000\r\nAccept-Encoding: gzip, deflate, br\r\nConnection: keep-alive\r\n"
	"Accept: application/json\r\nContent-Type: application/json\r\nUser-Agent: AsyncOpenAI/Python 1.109.1\r\n"
	"X-Stainless-Lang: python\r\nX-Stainless-Package-Version: 1.109.1\r\nX-Stainless-OS: Linux\r\nX-Stainless-Arch: x64\r\n"
	"X-Stainless-Runtime: CPython\r\nX-Stainless-Runtime-Version: 3.11.2\r\nAuthorization: Bearer sk-proj-0123456789abcdef0123456789\r\n"
	"X-Stainless-Async: async:asyncio\r\nx-conversation-id: 3f0c7a1e-5d2b-4c8e-9a55-0e6f4b1d2c3a\r\nX-Stainless-Retry-Count: 0\r\n"
	"X-Stainless-Read-Timeout: 600\r\nContent-Length: 1821\r\n\r\n";
static const char server_nginx[] =
	"HTTP/1.1 200 OK\r\nServer: nginx/1.22.1\r\nDate: Mon, 30 Nov 2026 03:00:00 GMT\r\nContent-Type: text/plain\r\n"
	"Content-Length: 12\r\nLast-Modified: Mon, 30 Nov 2026 02:00:00 GMT\r\nConnection: keep-alive\r\n"
	"ETag: \"667-1b\"\r\nAccept-Ranges: bytes\r\n\r\nhello world\n";
static const char server_uvicorn[] =
	"HTTP/1.1 200 OK\r\ndate: Mon, 30 Nov 2026 03:00:00 GMT\r\nserver: uvicorn\r\n"
	"content-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n";

static void costs(void **state)
{
	static char text[65536];
	size_t length;

	(void)state;
	printf("# a program that does nothing: %u ns\n", least(side->pass, 1));
	request_cost("request of curl", client_curl, sizeof(client_curl) - 1);
	request_cost("request of the openai client", client_openai, sizeof(client_openai) - 1);
	length = sprintf(text, "GET / HTTP/1.1\r\nCookie: ");
	memset(text + length, 'c', 2000);
	length += 2000 + sprintf(text + length + 2000, "\r\nx-conversation-id: s1-c007\r\n\r\n");
	request_cost("request with a cookie of 2000 bytes", text, length);
	length = sprintf(text, "GET / HTTP/1.1\r\n");
	while (length + 3 < HTTP_HEAD_SIZE)
		length += sprintf(text + length, "a:\n");
	request_cost("worst: 4 KiB of lines of two characters", text, length);
	length = sprintf(text, "GET / HTTP/1.1\r\nConnection:");
	memset(text + length, ',', HTTP_HEAD_SIZE - length);
	text[HTTP_HEAD_SIZE - 1] = '\n';
	request_cost("worst: 4 KiB of Connection elements", text, HTTP_HEAD_SIZE);

	answer_cost("answer of nginx, whole", server_nginx, sizeof(server_nginx) - 1,
		    HTTP_FOLLOW_STATUS, 0);
	answer_cost("head of a stream of uvicorn", server_uvicorn, sizeof(server_uvicorn) - 1,
		    HTTP_FOLLOW_STATUS, 0);
	memset(text, 'b', 1448);
	answer_cost("segment of a counted body", text, 1448, HTTP_FOLLOW_COUNTED, 1000000);
	answer_cost("segment within a chunk", text, 1448, HTTP_FOLLOW_CHUNK_DATA, 1000000);
	length = fill_chunks(text, 262, 245);
	answer_cost("one event of 245 bytes", text, length, HTTP_FOLLOW_CHUNK_SIZE, 0);
	length = fill_chunks(text, 1448, 245);
	answer_cost("five events of 245 bytes", text, length, HTTP_FOLLOW_CHUNK_SIZE, 0);
	length = fill_chunks(text, 60000, 245);
	answer_cost("a segment of 60,000 bytes of such events", text, length,
		    HTTP_FOLLOW_CHUNK_SIZE, 0);
	length = fill_chunks(text, 60000, 1);
	answer_cost("worst: 60,000 bytes of chunks of one byte", text, length,
		    HTTP_FOLLOW_CHUNK_SIZE, 0);
}

/* Prints how much the verifier of this kernel walked through. */
static void print_verified(const struct bpf_program *program, const char *name)
{
	struct bpf_prog_info info = {0};
	__u32 size = sizeof(info);

	if (!bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &size))
		printf("# %s: %u instructions verified\n", name, info.verified_insns);
}

static int as_xdp(void **state)
{
	(void)state;
	side = &sides[0];
	return 0;
}

static int as_tc(void **state)
{
	(void)state;
	side = &sides[1];
	return 0;
}

static int set_up(void **state)
{
	(void)state;
	xdp = http_parse_bpf__open_and_load();
	tc = http_parse_tc_bpf__open_and_load();
	if (!xdp || !tc)
		return -1;
	sides[0] = (struct side){
		.length_max = 65536 - PREFIX,
		.bss = xdp->bss,
		.read_request = xdp->progs.read_request,
		.load_request = xdp->progs.load_request,
		.follow_segment = xdp->progs.follow_segment,
		.follow_again = xdp->progs.follow_again,
		.pass = xdp->progs.pass,
	};
	sides[1] = (struct side){
		.length_max = 3000,
		.bss = (struct http_parse_bpf__bss *)tc->bss,
		.read_request = tc->progs.read_request,
		.load_request = tc->progs.load_request,
		.follow_segment = tc->progs.follow_segment,
		.follow_again = tc->progs.follow_again,
		.pass = tc->progs.pass,
	};
	case_settings(&xdp->bss->settings);
	case_settings(&tc->bss->settings);
	print_verified(xdp->progs.read_request, "reading a request, XDP");
	print_verified(tc->progs.read_request, "reading a request, tc");
	print_verified(xdp->progs.follow_segment, "following an answer, XDP");
	print_verified(tc->progs.follow_segment, "following an answer, tc");
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	http_parse_bpf__destroy(xdp);
	http_parse_tc_bpf__destroy(tc);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(requests, as_xdp),
		cmocka_unit_test_setup(changed_requests, as_xdp),
		cmocka_unit_test_setup(answers, as_xdp),
		cmocka_unit_test_setup(many_chunks, as_xdp),
		cmocka_unit_test_setup(requests, as_tc),
		cmocka_unit_test_setup(changed_requests, as_tc),
		cmocka_unit_test_setup(answers, as_tc),
		cmocka_unit_test_setup(costs, as_xdp),
	};

	libbpf_set_strict_mode(LIBBPF_STRICT_ALL);
	return cmocka_run_group_tests_name("http_parse", tests, set_up, tear_down);
}
