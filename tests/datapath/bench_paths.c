/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a packet costs in the XDP router, by the path it takes (`tools/bench paths`): datagrams, connections by address, connections that are
 * handed over; by the size of the ring and the number of flows; and beside it a plain look-up and NAT.
 *
 * The programs run on packets of the tests' own network, and everything a packet leaves behind is put back (router_cost.bpf.c). "alone" is
 * without a test run, the putting back and the making of the packet.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../tools/lib/bench.h"
#include "dialogue.h"
#include "expect.h"
#include "fixture.h"
#include "lib/placement_tables.h"
#include "lib/policy.h"
#include "lib/ring_maps.h"
#include "router_cost.h"
#include "router_cost.skel.h"

#define FLOWS_MAX (1 << 20)

/* In a frame without tags. */
#define IPV6_SOURCE_LOW (14 + 8 + 12) /* the last four bytes of the source address */
#define CHAT_ID_AT	(14 + 20 + 8 + 8)

enum { API, CHAT, PREFIX, RINGS }; /* services; from RINGS on one for each size of ring */

static const struct {
	uint32_t vnodes; /* of three replicas */
	const char *name;
} ring_sizes[] = {
	{8, "24"}, {400, "1,200"}, {5000, "15,000"}, {50000, "150,000"}, {349525, "2^20"},
};

#define RING_SIZES (sizeof(ring_sizes) / sizeof(ring_sizes[0]))

static struct world_service services[RINGS + RING_SIZES];
static struct router_cost_bpf *cost;
static struct bench bench = {.rounds = 9, .runs = 100000};

/* Of the values of a line. */
enum { VARY, COUNT, FORGET, PLACE };
#define PLACE_OF(service, policy) ((service) << 8 | (policy))

/* A frame, kept for as long as the program runs. */
struct frame {
	uint8_t bytes[2048];
	size_t length;
	enum link link;
	struct connection connection; /* as it was before the frame */
	bool has_connection;
};

/* The lines' frames, by number of the line; NULL: the floor. */
static const struct frame *frames[BENCH_LINES_MAX];

static void give_up(const char *what, int err)
{
	fprintf(stderr, "bench-paths: %s: %s\n", what, strerror(err < 0 ? -err : err));
	exit(1);
}

/* --- the world --------------------------------------------------------------------------------------------------- */

static char names[RING_SIZES][16], addresses[RING_SIZES][16];

static void describe_services(void)
{
	services[API] = dialogue_services[DIALOGUE_API];
	services[CHAT] = fixture_services[SERVICE_CHAT];
	services[PREFIX] = fixture_services[SERVICE_PREFIX];
	for (size_t i = 0; i < RING_SIZES + 1; i++) {
		struct world_service *service = &services[i ? RINGS + i - 1 : CHAT];

		*service = fixture_services[SERVICE_CHAT];
		for (size_t j = 0; j < 3; j++)
			service->replicas[j].port += 100 + i * 10;
		if (!i)
			continue;
		snprintf(names[i - 1], sizeof(names[0]), "ring-%zu", i);
		snprintf(addresses[i - 1], sizeof(addresses[0]), "10.9.7.%zu", i);
		service->name = names[i - 1];
		service->addresses[0] = addresses[i - 1];
		service->addresses[1] = NULL;
	}
}

static void make_ring(uint32_t service, uint32_t vnodes)
{
	const struct ring_settings settings = {.dialect = RING_LLM, .vnodes = vnodes};
	const struct ring_maps maps = world_ring_maps();
	struct ring_replica members[3];
	struct error error;
	struct ring ring;
	int err;

	for (size_t i = 0; i < 3; i++)
		members[i] = (struct ring_replica){
			.name = services[service].replicas[i].name,
			.slot = world_slot(service, i),
			.weight_thousandths = RING_WEIGHT_ONE,
		};
	err = ring_build(&ring, &settings, members, 3, &error);
	if (!err)
		err = ring_maps_swap(&maps, service, &ring, &error);
	if (err)
		give_up(error.text, err);
	ring_free(&ring);
}

static void load_programs(void)
{
	struct bpf_map *map;

	cost = router_cost_bpf__open();
	if (!cost)
		give_up("the programs cannot be opened", errno);
	bpf_object__for_each_map(map, cost->obj)
	{
		if (!bpf_map__pin_path(map))
			continue;
		bpf_map__set_pin_path(map, NULL);
		if (bpf_map__reuse_fd(map, world_map(bpf_map__name(map))))
			give_up(bpf_map__name(map), errno);
	}
	bpf_map__set_max_entries(cost->maps.nat_flows, 2 * FLOWS_MAX);
	if (router_cost_bpf__load(cost))
		give_up("the programs cannot be loaded", errno);
}

static void set_policy(uint32_t service, enum routing_policy policy)
{
	struct service settings;
	struct error error = {"the service's settings cannot be written"};
	int map = world_map("services"), err;

	err = bpf_map_lookup_elem(map, &service, &settings);
	settings.policy = policy_published(policy);
	if (!err)
		err = bpf_map_update_elem(map, &service, &settings, 0);
	if (!err && policy == POLICY_LLM_AWARE)
		err = placement_table_replace(world_map("placements"), service, 50000, &error);
	if (err)
		give_up(error.text, err);
}

static void make_world(void)
{
	int err;

	fixture_prepare();
	world_set_table_size(2 * FLOWS_MAX);
	err = world_make();
	if (!err)
		err = world_load(false);
	if (!err)
		err = dialogue_configure();
	describe_services();
	if (!err)
		err = world_configure(services, RINGS + RING_SIZES);
	if (err)
		give_up("the programs' network or maps cannot be made", err);
	for (size_t i = 0; i < RING_SIZES; i++)
		make_ring(RINGS + i, ring_sizes[i].vnodes);
	load_programs();
}

/* --- lines --------------------------------------------------------------------------------------------------------- */

static struct frame *frame_new(void)
{
	struct frame *frame = calloc(1, sizeof(*frame));

	if (!frame)
		give_up("frames", ENOMEM);
	return frame;
}

static struct frame *frame_of(const struct packet_spec *spec, enum link link)
{
	static uint8_t bytes[PACKET_SIZE_MAX];
	struct frame *frame = frame_new();
	struct packet_spec packet = *spec;

	expect_link_addresses(&packet, link);
	frame->length = packet_build(&packet, bytes);
	memcpy(frame->bytes, bytes, frame->length);
	frame->link = link;
	return frame;
}

/* The frame that a dialogue has just sent. */
static struct frame *frame_sent(void)
{
	struct frame *frame = frame_new();
	int length;

	memcpy(frame->bytes, dialogue_frame(&length, &frame->link), sizeof(frame->bytes));
	frame->length = length;
	return frame;
}

/* The connection as it is now is what the next frame shall meet. */
static struct connection connection_now(const struct dialogue *dialogue)
{
	struct connection entry;

	if (!dialogue_entry(dialogue, &entry))
		give_up("a connection that ought to be there", ENOENT);
	return entry;
}

static struct frame *frame_meeting(const struct connection *before)
{
	struct frame *frame = frame_sent();

	frame->connection = *before;
	frame->has_connection = true;
	return frame;
}

static int line_add(const char *what, const struct bpf_program *program, const struct frame *frame,
		    int base, int verdict, uint32_t vary, uint32_t count, uint32_t forget)
{
	int line = bench_add(&bench, what,
			     (struct bench_line){
				     .program = bpf_program__fd(program),
				     .base = base,
				     .verdict = verdict,
				     .packet = frame ? frame->bytes : NULL,
				     .packet_length = frame ? frame->length : 0,
				     .interface = frame ? world_interface(frame->link) : 0,
				     .values = {[VARY] = vary, [COUNT] = count, [FORGET] = forget},
			     });

	frames[line] = frame;
	return line;
}

/* A frame through the router, and what putting it back costs before it. */
static int path_add(const char *what, const struct frame *frame, int verdict, uint32_t vary,
		    uint32_t count, uint32_t forget)
{
	char restoring[72];
	int base;

	snprintf(restoring, sizeof(restoring), "(%s: put back)", what);
	base = line_add(restoring, cost->progs.restore_only, frame, -1, XDP_PASS, vary, count,
			FORGET_NOTHING);
	return line_add(what, cost->progs.router_restored, frame, base, verdict, vary, count,
			forget);
}

static int simple_path(const char *what, const struct frame *frame, int verdict)
{
	return path_add(what, frame, verdict, VARY_NOTHING, 1, FORGET_NOTHING);
}

static void place(int line, uint32_t service, enum routing_policy policy)
{
	bench.lines[line].values[PLACE] = PLACE_OF(service, policy);
}

static int prepare(void *context, const struct bench_line *line)
{
	const struct frame *frame = frames[line - bench.lines];
	uint32_t zero = 0, place_of = line->values[PLACE];
	int cpus = libbpf_num_possible_cpus();

	(void)context;
	cost->data->vary_count = line->values[COUNT];
	cost->bss->vary = line->values[VARY];
	cost->bss->vary_at = line->values[VARY] == VARY_ID ? CHAT_ID_AT : IPV6_SOURCE_LOW;
	cost->bss->forget = line->values[FORGET];
	if (place_of)
		set_policy(place_of >> 8, place_of & 0xff);
	if (frame && frame->has_connection) {
		size_t size = bpf_map__value_size(cost->maps.kept_heads);
		char *kept = calloc(cpus, (size + 7) / 8 * 8);
		struct flow_key key = {
			.client = world_address(CLIENT4),
			.service = world_address(DIALOGUE_SERVICE4),
			.service_port = htons(DIALOGUE_PORT),
			.protocol = IPPROTO_TCP,
		};
		int err;

		if (!kept)
			return -ENOMEM;
		/* struct kept: 192 bytes, two lengths, the connection */
		for (int i = 0; i < cpus; i++)
			memcpy(kept + i * ((size + 7) / 8 * 8) + 200, &frame->connection,
			       sizeof(frame->connection));
		err = bpf_map_update_elem(bpf_map__fd(cost->maps.kept_heads), &zero, kept, 0);
		free(kept);
		/* the client's port is in the frame, at the place of the source or of the destination */
		memcpy(&key.client_port,
		       frame->bytes + 14 + 20 + (frame->link == LINK_SERVERS ? 2 : 0), 2);
		if (!err)
			err = bpf_map_update_elem(world_map("connections"), &key,
						  &frame->connection, 0);
		return err;
	}
	return 0;
}

/* --- datagrams and connections by address ------------------------------------------------------------------------- */

static void add_datagrams(void)
{
	const struct packet_spec ask4 = {UDP4(CLIENT4, 47004, "10.9.9.9", 8000),
					 PAYLOAD(CHAT_QUESTION)},
				 ask6 = {UDP6(CLIENT6, 47005, "fd00:9::9", 8000),
					 PAYLOAD(CHAT_QUESTION)};
	const struct packet_spec answer4 = {UDP4("10.0.2.11", 8102, CLIENT4, 47004),
					    PAYLOAD(CHAT_ANSWER)};
	const struct packet_spec others = {UDP4(CLIENT4, 47003, "10.0.2.99", 53),
					   PAYLOAD(CHAT_QUESTION)};
	char what[64];

	simple_path("not ours, UDP over IPv4", frame_of(&others, LINK_CLIENTS), XDP_PASS);
	simple_path("UDP by offset, IPv4", frame_of(&ask4, LINK_CLIENTS), XDP_REDIRECT);
	simple_path("UDP by offset, IPv6", frame_of(&ask6, LINK_CLIENTS), XDP_REDIRECT);
	simple_path("UDP by offset, IPv4, its reply", frame_of(&answer4, LINK_SERVERS),
		    XDP_REDIRECT);
	for (size_t i = 0; i < RING_SIZES; i++) {
		struct packet_spec ask = ask4;

		strcpy(ask.destination, addresses[i]);
		snprintf(what, sizeof(what), "UDP by offset, random ids, ring of %s",
			 ring_sizes[i].name);
		path_add(what, frame_of(&ask, LINK_CLIENTS), XDP_REDIRECT, VARY_ID, 60000,
			 FORGET_NOTHING);
	}
}

/* Opens so many flows, one for each source address, in the router and in what it is compared with. */
static void fill_flows(const struct frame *syn, uint32_t count)
{
	const struct bpf_program *programs[] = {cost->progs.router_restored, cost->progs.nat_open};

	for (int i = 0; i < 2; i++) {
		struct xdp_md context = {.data_end = syn->length,
					 .ingress_ifindex = world_interface(syn->link)};
		LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = syn->bytes,
			    .data_size_in = syn->length, .ctx_in = &context,
			    .ctx_size_in = sizeof(context), .repeat = count);
		int err;

		cost->bss->vary = VARY_IN_TURN;
		cost->bss->vary_at = IPV6_SOURCE_LOW;
		cost->bss->forget = FORGET_NOTHING;
		cost->bss->number = 0;
		cost->data->vary_count = count;
		err = bpf_prog_test_run_opts(bpf_program__fd(programs[i]), &options);
		if (err)
			give_up("flows cannot be opened", err);
	}
}

static void add_addresses(void)
{
	static const struct {
		uint32_t count;
		const char *name;
	} flows[] = {{1, "1 flow"},
		     {1000, "1,000 flows"},
		     {100000, "100,000 flows"},
		     {FLOWS_MAX, "2^20 flows"}};
	const struct packet_spec syn = {TCP6(CLIENT6, 47006, KEY_CONV1, 443, SYN)};
	const struct packet_spec data = {TCP6(CLIENT6, 47006, KEY_CONV1, 443, ACK),
					 LONG_PAYLOAD(200)};
	const struct packet_spec reply = {TCP6("fd00:2::42", 8443, CLIENT6, 47006, ACK),
					  LONG_PAYLOAD(200)};
	const struct frame *opening = frame_of(&syn, LINK_CLIENTS);
	const struct frame *going = frame_of(&data, LINK_CLIENTS);
	char what[64];

	cost->bss->nat_replica = world_address("fd00:2::42");
	fill_flows(opening, FLOWS_MAX);
	path_add("address, SYN of a new flow (and its removal)", opening, XDP_REDIRECT,
		 VARY_NOTHING, 1, FORGET_FLOW);
	for (size_t i = 0; i < sizeof(flows) / sizeof(flows[0]); i++) {
		int line;

		snprintf(what, sizeof(what), "address, established, %s", flows[i].name);
		line = path_add(what, going, XDP_REDIRECT, VARY_AT_RANDOM, flows[i].count,
				FORGET_NOTHING);
		snprintf(what, sizeof(what), "  a plain look-up and NAT, %s", flows[i].name);
		line_add(what, cost->progs.nat_restored, going, bench.lines[line].base,
			 XDP_REDIRECT, VARY_AT_RANDOM, flows[i].count, FORGET_NOTHING);
		snprintf(what, sizeof(what), "  the same with a route look-up, %s", flows[i].name);
		line_add(what, cost->progs.nat_routed_restored, going, bench.lines[line].base,
			 XDP_REDIRECT, VARY_AT_RANDOM, flows[i].count, FORGET_NOTHING);
	}
	simple_path("address, reply", frame_of(&reply, LINK_SERVERS), XDP_REDIRECT);
}

/* --- connections that are handed over -------------------------------------------------------------------------------- */

#define CURL_HEAD                                                                                     \
	"POST /v1/chat/completions HTTP/1.1\r\nHost: llm.example:8000\r\nUser-Agent: curl/7.88.1\r\n" \
	"Accept: */*\r\nx-conversation-id: conv1\r\nContent-Type: application/json\r\n"               \
	"Content-Length: 2\r\n\r\n{}"
#define NGINX_ANSWER                                                                         \
	"HTTP/1.1 200 OK\r\nServer: nginx/1.22.1\r\nDate: Mon, 30 Nov 2026 08:00:00 GMT\r\n" \
	"Content-Type: application/json\r\nContent-Length: 2\r\nConnection: keep-alive\r\n\r\n{}"

static void add_connections(void)
{
	static const struct {
		enum routing_policy policy;
		const char *name;
	} policies[] = {
		{POLICY_ROUND_ROBIN, "round-robin"}, {POLICY_MOD_N, "mod-n"},
		{POLICY_CONSISTENT, "consistent"},   {POLICY_BOUNDED, "bounded"},
		{POLICY_LLM_AWARE, "llm-aware"},
	};
	struct dialogue dialogue = dialogue_new(PROGRAM_XDP, false, 47100);
	const struct world_replica *home;
	struct connection before;
	struct segment segment;
	const struct frame *first, *frame;
	int line;

	dialogue_connect(&dialogue);
	segment = dialogue_send(&dialogue, ACK | PSH, CURL_HEAD);
	first = frame_sent();
	home = dialogue_replica_of(&segment);
	if (!home)
		give_up("the first request was not forwarded", EPROTO);
	for (size_t i = 0; i < sizeof(policies) / sizeof(policies[0]); i++) {
		char what[64];

		snprintf(what, sizeof(what), "handed over, first request, %s", policies[i].name);
		line = path_add(what, first, XDP_REDIRECT, VARY_NOTHING, 1, FORGET_CONNECTION);
		place(line, API, policies[i].policy);
	}
	before = connection_now(&dialogue);
	dialogue_reply(&dialogue, home, dialogue.service_next, dialogue.client_next, ACK, NULL);
	frame = frame_meeting(&before);
	path_add("handed over, the owner's first ACK", frame, XDP_REDIRECT, VARY_NOTHING, 1,
		 RESTORE_CONNECTION);
	before = connection_now(&dialogue);
	dialogue_reply(&dialogue, home, dialogue.service_next, dialogue.client_next, ACK | PSH,
		       NGINX_ANSWER);
	frame = frame_meeting(&before);
	line = path_add("handed over, answer (its end gives the load back)", frame, XDP_REDIRECT,
			VARY_NOTHING, 1, RESTORE_CONNECTION);
	place(line, API, POLICY_CONSISTENT);
	before = connection_now(&dialogue);
	dialogue_send(&dialogue, ACK, NULL);
	frame = frame_meeting(&before);
	path_add("handed over, established, ACK of the client", frame, XDP_REDIRECT, VARY_NOTHING,
		 1, RESTORE_CONNECTION);
	before = connection_now(&dialogue);
	dialogue_send(&dialogue, ACK | PSH, CURL_HEAD);
	frame = frame_meeting(&before);
	line = path_add("handed over, next request, stays", frame, XDP_REDIRECT, VARY_NOTHING, 1,
			RESTORE_CONNECTION);
	place(line, API, POLICY_CONSISTENT);
}

static void add_handshake(void)
{
	const struct packet_spec syn = {
		.family = AF_INET,
		.source = CLIENT4,
		.destination = DIALOGUE_SERVICE4,
		.source_port = 47101,
		.destination_port = DIALOGUE_PORT,
		.protocol = IPPROTO_TCP,
		.hop_limit = 61,
		.sequence = 1000,
		.tcp_flags = SYN,
		.tcp_options = {2, 4, 5, 180, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0, 1, 3, 3, 7},
		.tcp_options_length = 20,
	};
	struct dialogue dialogue = dialogue_new(PROGRAM_XDP, false, 47103);
	struct packet_spec syn6 = syn;

	syn6.family = AF_INET6;
	strcpy(syn6.source, CLIENT6);
	strcpy(syn6.destination, DIALOGUE_SERVICE6);
	simple_path("handed over, SYN to cookie, IPv4", frame_of(&syn, LINK_CLIENTS), XDP_REDIRECT);
	simple_path("handed over, SYN to cookie, IPv6", frame_of(&syn6, LINK_CLIENTS),
		    XDP_REDIRECT);
	dialogue_connect(&dialogue);
	simple_path("handed over, ACK of the handshake", frame_sent(), XDP_DROP);
}

/* A stream: an answer in chunks whose head has gone by. */
static void add_stream(void)
{
	struct dialogue dialogue = dialogue_new(PROGRAM_XDP, false, 47102);
	const struct world_replica *home;
	struct connection before;
	struct segment segment;

	dialogue_connect(&dialogue);
	segment = dialogue_send(&dialogue, ACK | PSH, CURL_HEAD);
	home = dialogue_replica_of(&segment);
	dialogue_answer(&dialogue, home,
			"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
			"Transfer-Encoding: chunked\r\n\r\n");
	before = connection_now(&dialogue);
	dialogue_answer(
		&dialogue, home,
		"b4\r\ndata: {\"id\":\"chatcmpl-0001\",\"object\":\"chat.completion.chunk\","
		"\"created\":1796025600,\"model\":\"llm\",\"choices\":[{\"index\":0,\"delta\":"
		"{\"content\":\" token\"},\"finish_reason\":null}]}          \n\n\r\n");
	path_add("handed over, an event of a stream", frame_meeting(&before), XDP_REDIRECT,
		 VARY_NOTHING, 1, RESTORE_CONNECTION);
}

/* The lines of putting back are of no interest to a reader. */
static void print_lines(FILE *file, bool json)
{
	double floor = bench.lines[0].nanoseconds;

	for (int i = 1; i < bench.count; i++) {
		const struct bench_line *line = &bench.lines[i];
		double alone;

		if (line->base < 0 || !bench_is_wanted(&bench, i))
			continue;
		alone = line->nanoseconds - bench.lines[line->base].nanoseconds;
		if (json)
			fprintf(file,
				"{\"what\": \"%s\", \"nanoseconds\": %.1f, \"floor\": %.1f}\n",
				line->what + strspn(line->what, " "), alone, floor);
		else
			fprintf(file, "%-56s %9.1f %9.2f\n", line->what, alone, alone / floor);
	}
}

static void print(void)
{
	FILE *file = bench_output(&bench);

	if (file) {
		print_lines(file, true);
		fclose(file);
	}
	if (!bench.json)
		printf("Minimum of %d interleaved rounds of %d runs. A test run that does nothing: %.1f ns.\n\n"
		       "%-56s %9s %9s\n",
		       bench.rounds, bench.runs, bench.lines[0].nanoseconds, "", "ns", "x floor");
	print_lines(stdout, bench.json);
}

/* Dialogues assert as tests do: outside of one, a failure ends the program. */
static void prepare_lines(void)
{
	line_add("floor", cost->progs.do_nothing, NULL, -1, XDP_PASS, VARY_NOTHING, 1,
		 FORGET_NOTHING);
	add_datagrams();
	add_addresses();
	add_handshake();
	add_connections();
	add_stream();
}

int main(int argc, char **argv)
{
	const struct bench_line *failed = NULL;
	int err;

	bench.prepare = prepare;
	bench_options(&bench, "Measure what packets cost in the XDP router, by path. Needs root.",
		      argc, argv);
	if (geteuid() != 0)
		give_up("root is needed", EPERM);
	make_world();
	prepare_lines();
	err = bench_run(&bench, &failed);
	if (err)
		give_up(failed ? failed->what : "no line", err);
	print();
	router_cost_bpf__destroy(cost);
	world_unload();
	return 0;
}
