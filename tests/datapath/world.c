/* SPDX-License-Identifier: BSD-2-Clause */
/* See world.h: namespace, programs, running them. */
#include "world.h"

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "packets.h"
#include "pass.skel.h"
#include "router_tc.skel.h"
#include "router_xdp.skel.h"

static uint64_t next_hop_memory;     /* none: what a test changes takes effect at once */
static uint32_t table_size = 131072; /* of flows and the like: enough here, and quickly made */

static const char *const link_names[LINK_COUNT] = {"client-side", "server-side", "narrow-side",
						   "wide-side"};

static struct pass_bpf *pass;
static struct router_xdp_bpf *xdp;
static struct router_tc_bpf *tc;
static uint8_t packet_out[PACKET_SIZE_MAX + 256];

/* One link and its prefixes; the neighbours' link addresses are made from their IP addresses. */
static const char network_script[] =
	"set -e\n"
	"ip link set lo up\n"
	"link() { # name, number, MTU\n"
	"	ip link add $1 mtu $3 address 02:00:00:00:0$2:01 type veth peer name far-$1 mtu $3\n"
	"	ip link set $1 up; ip link set far-$1 up\n"
	"	ip address add 10.0.$2.1/24 dev $1\n"
	"	ip address add fd00:$2::1/64 dev $1 nodad\n"
	"}\n"
	"echo 1 >/proc/sys/net/ipv4/ip_forward\n"
	"echo 1 >/proc/sys/net/ipv6/conf/all/forwarding\n"
	"link client-side 1 1500\n"
	"link server-side 2 1500\n"
	"link narrow-side 4 1300\n"
	"link wide-side 7 9000\n"
	"neighbour() { # device, network, hosts\n"
	"	device=$1 network=$2; shift 2\n"
	"	for host; do\n"
	"		mac=02:00:00:00:0$network:$(printf %02x $host)\n"
	"		ip neighbour add 10.0.$network.$host lladdr $mac dev $device nud permanent\n"
	"		ip neighbour add fd00:$network::$host lladdr $mac dev $device nud permanent\n"
	"	done\n"
	"}\n"
	"neighbour client-side 1 10 11 12 13\n"
	"neighbour server-side 2 10 11 12 20 21 30 31 40 41 42 43 50 254\n"
	"neighbour narrow-side 4 10 11\n"
	"neighbour wide-side 7 10\n"
	"ip route add 10.0.3.0/24 via 10.0.2.254\n"
	"ip route add 10.100.0.0/16 via 10.0.2.254\n"
	"ip route add fd00:3::/64 via fd00:2::254\n"
	"ip route add blackhole 10.0.5.0/24\n"
	"ip route add blackhole fd00:5::/64\n";

bool world_kernel_has(const char *function)
{
	FILE *symbols = fopen("/proc/kallsyms", "r");
	char line[512], name[256];
	bool found = false;

	while (symbols && !found && fgets(line, sizeof(line), symbols))
		found = sscanf(line, "%*s %*s %255s", name) == 1 && strcmp(name, function) == 0;
	if (symbols)
		fclose(symbols);
	return found;
}

int world_make(void)
{
	FILE *shell;

	if (unshare(CLONE_NEWNET))
		return -errno;
	shell = popen("sh", "w");
	if (!shell)
		return -errno;
	fputs(network_script, shell);
	if (pclose(shell)) {
		fprintf(stderr, "the test's network could not be set up\n");
		return -EIO;
	}
	return 0;
}

void world_destroy(void)
{
	/* the namespace goes with the process */
}

int world_interface(enum link link)
{
	return if_nametoindex(link_names[link]);
}

int world_far_interface(enum link link)
{
	char name[IF_NAMESIZE];

	snprintf(name, sizeof(name), "far-%s", link_names[link]);
	return if_nametoindex(name);
}

int world_attach_tc(void)
{
	for (int i = 0; i < LINK_COUNT; i++) {
		LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = world_interface(i),
			    .attach_point = BPF_TC_INGRESS);
		LIBBPF_OPTS(bpf_tc_opts, options, .handle = 1, .priority = 1,
			    .prog_fd = bpf_program__fd(tc->progs.warmpath_router_tc));
		int err;

		bpf_xdp_detach(world_interface(i), 0, NULL);
		err = bpf_tc_hook_create(&hook);
		if (!err)
			err = bpf_tc_attach(&hook, &options);
		if (err)
			return err;
	}
	return 0;
}

void world_link_address(enum link link, uint8_t mac[6])
{
	static const uint8_t networks[LINK_COUNT] = {1, 2, 4, 7};

	memcpy(mac, (uint8_t[]){2, 0, 0, 0, networks[link], 1}, 6);
}

void world_neighbour_address(const char *ip, uint8_t mac[6])
{
	unsigned int network = 0, host = 0;

	/* The last part of an IPv6 address is in hexadecimal, but written like the decimal one of IPv4. */
	if (sscanf(ip, "10.0.%u.%u", &network, &host) != 2 &&
	    sscanf(ip, "fd00:%u::%u", &network, &host) != 2)
		abort();
	memcpy(mac, (uint8_t[]){2, 0, 0, 0, network, host}, 6);
}

struct address world_address(const char *text)
{
	struct address address = {};

	if (inet_pton(AF_INET6, text, &address) == 1)
		return address;
	address.word[2] = htonl(0xffff);
	if (inet_pton(AF_INET, text, &address.word[3]) != 1)
		abort();
	return address;
}

/* Each test program has maps of its own; XDP and tc share them, as in production. */
static void open_maps(struct bpf_object *object, struct bpf_object *shared)
{
	struct bpf_map *map;

	bpf_object__for_each_map(map, object)
	{
		bool pinned = bpf_map__pin_path(map);

		bpf_map__set_pin_path(map, NULL);
		if (bpf_map__max_entries(map) > table_size || strstr(bpf_map__name(map), "flows"))
			bpf_map__set_max_entries(map, table_size);
		if (shared && pinned) {
			struct bpf_map *same =
				bpf_object__find_map_by_name(shared, bpf_map__name(map));

			bpf_map__reuse_fd(map, bpf_map__fd(same));
		}
	}
}

void world_set_next_hop_memory(uint64_t nanoseconds)
{
	next_hop_memory = nanoseconds;
}

void world_set_table_size(uint32_t entries)
{
	table_size = entries;
}

int world_load(bool replicas_are_local)
{
	int err;

	pass = pass_bpf__open_and_load();
	xdp = router_xdp_bpf__open();
	tc = router_tc_bpf__open();
	if (!pass || !xdp || !tc)
		return -ENOMEM;
	xdp->rodata->replicas_are_local = replicas_are_local;
	tc->rodata->replicas_are_local = replicas_are_local;
	xdp->rodata->next_hop_memory = next_hop_memory;
	tc->rodata->next_hop_memory = next_hop_memory;
	open_maps(xdp->obj, NULL);
	err = router_xdp_bpf__load(xdp);
	if (err)
		return err;
	open_maps(tc->obj, xdp->obj);
	err = router_tc_bpf__load(tc);
	if (err)
		return err;
	for (int i = 0; i < LINK_COUNT; i++) {
		uint32_t key = world_interface(i);
		struct redirect_device usable = {.usable = 1};

		err = bpf_xdp_attach(key, bpf_program__fd(pass->progs.pass), 0, NULL);
		if (!err)
			err = bpf_map_update_elem(world_map("redirect_devices"), &key, &usable, 0);
		if (err)
			return err;
	}
	return 0;
}

void world_unload(void)
{
	for (int i = 0; i < LINK_COUNT; i++)
		bpf_xdp_detach(world_interface(i), 0, NULL);
	pass_bpf__destroy(pass);
	router_xdp_bpf__destroy(xdp);
	router_tc_bpf__destroy(tc);
	xdp = NULL;
	tc = NULL;
}

int world_map(const char *name)
{
	return bpf_object__find_map_fd_by_name(xdp->obj, name);
}

struct ring_maps world_ring_maps(void)
{
	return ring_maps_of(xdp->obj);
}

const char *world_program_name(enum program program)
{
	static const char *const names[PROGRAM_COUNT] = {"xdp", "tc", "return"};

	return names[program];
}

/* Adds the sum over all CPUs to `sums`, times `sign`. */
static int read_counters(int64_t *sums, int sign)
{
	int cpus = libbpf_num_possible_cpus();
	struct counters *values = calloc(cpus, sizeof(*values));
	uint32_t first = 0;
	int err;

	if (!values)
		return -ENOMEM;
	err = bpf_map_lookup_elem(world_map("counters"), &first, values);
	for (int cpu = 0; !err && cpu < cpus; cpu++)
		for (int i = 0; i < COUNTER_COUNT; i++)
			sums[i] += sign * (int64_t)((uint64_t *)&values[cpu])[i];
	free(values);
	return err;
}

int world_run(enum program program, enum link link, const uint8_t *packet, int length,
	      int segment_size, struct run *run)
{
	struct xdp_md xdp_context = {
		.data_end = length,
		.ingress_ifindex = world_interface(link),
	};
	struct __sk_buff tc_context = {
		.mark = WORLD_MARK,
		.ifindex = world_interface(link),
		.gso_size = segment_size,
		.gso_segs = segment_size ? (length + segment_size - 1) / segment_size : 0,
	};
	LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = packet, .data_size_in = length,
		    .data_out = packet_out, .data_size_out = sizeof(packet_out));
	int descriptor, err;

	if (program == PROGRAM_XDP) {
		descriptor = bpf_program__fd(xdp->progs.warmpath_router_xdp);
		options.ctx_in = &xdp_context;
		options.ctx_size_in = sizeof(xdp_context);
	} else {
		descriptor = bpf_program__fd(program == PROGRAM_TC ? tc->progs.warmpath_router_tc
								   : tc->progs.warmpath_return_tc);
		options.ctx_in = options.ctx_out = &tc_context;
		options.ctx_size_in = options.ctx_size_out = sizeof(tc_context);
	}

	memset(run, 0, sizeof(*run));
	err = read_counters(run->counters, -1);
	if (!err)
		err = bpf_prog_test_run_opts(descriptor, &options);
	if (!err)
		err = read_counters(run->counters, 1);
	run->verdict = (int)options.retval;
	run->bytes = packet_out;
	run->length = options.data_size_out;
	run->mark = tc_context.mark;
	return err;
}

static void empty(const char *name)
{
	int map = world_map(name);
	uint8_t key[64];

	while (!bpf_map_get_next_key(map, NULL, key))
		bpf_map_delete_elem(map, key);
}

void world_forget_flows(void)
{
	empty("flows");
	empty("return_flows");
	empty("fragments");
	empty("requests");
	empty("connections");
	empty("held_heads");
	empty("strangers");
	world_reset_loads();
}
