/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ring in the kernel: rings built by the library, swapped in by ring_maps, asked through bpf/lib/ring.h. Every answer
 * equals user space's.
 */
#include "../common/ring_fixture.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "lib/ring_maps.h"
#include "ring_lookup.h"
#include "ring_lookup.skel.h"

#define IDS   10000
#define SWAPS 1000

static struct ring_lookup_bpf *skeleton;
static struct ring_maps maps;

static int load(void **state)
{
	struct bpf_map *map;

	(void)state;
	skeleton = ring_lookup_bpf__open();
	if (!skeleton)
		return -1;
	/* only the ring's maps, and for this process alone */
	bpf_object__for_each_map(map, skeleton->obj)
	{
		const char *name = bpf_map__name(map);
		const char *base = strstr(name, "ring");

		bpf_map__set_pin_path(map, NULL);
		if (base != name && strcmp(name, "id_blocks") != 0 &&
		    strcmp(name, "remembered_ids") != 0)
			bpf_map__set_autocreate(map, false);
	}
	if (ring_lookup_bpf__load(skeleton))
		return -1;
	maps.rings = bpf_map__fd(skeleton->maps.rings);
	maps.ring_points = bpf_map__fd(skeleton->maps.ring_points);
	maps.ring_index = bpf_map__fd(skeleton->maps.ring_index);
	maps.ring_index_large = bpf_map__fd(skeleton->maps.ring_index_large);
	maps.ring_members = bpf_map__fd(skeleton->maps.ring_members);
	return 0;
}

static int unload(void **state)
{
	(void)state;
	ring_lookup_bpf__destroy(skeleton);
	return 0;
}

static int clear(void **state)
{
	(void)state;
	for (__u32 service = 0; service < SERVICES_MAX; service++)
		if (ring_maps_clear(&maps, service, NULL))
			return -1;
	return 0;
}

/* 0, or a negative errno if the program could not be run. Thread-safe. */
static int run(const struct bpf_program *program, struct lookup *lookup)
{
	LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = lookup, .data_size_in = sizeof(*lookup),
		    .data_out = lookup, .data_size_out = sizeof(*lookup), .repeat = 1);
	int err = bpf_prog_test_run_opts(bpf_program__fd(program), &options);

	if (!err && options.retval != 2 /* XDP_PASS */)
		err = -EPROTO;
	return err;
}

static void ask(struct lookup *lookup)
{
	assert_int_equal(run(skeleton->progs.ring_lookup, lookup), 0);
}

static void swap(__u32 service, struct ring *ring)
{
	struct error error;

	if (ring_maps_swap(&maps, service, ring, &error))
		fail_msg("%s", error.text);
}

static void assert_answer(const struct ring *ring, const struct lookup *lookup, __u64 hash)
{
	assert_int_equal(lookup->status, LOOKUP_DONE);
	assert_true(lookup->hash == hash);
	assert_int_equal(lookup->generation, ring->header.generation);
	assert_int_equal(lookup->point, ring_lookup(ring, hash));
	assert_int_equal(lookup->replica, ring_home_slot(ring, hash));
	assert_int_equal(lookup->replica_of_point, lookup->replica);
}

/* Ids of every length from 1 to ID_LENGTH_MAX. */
static void check_ids(const struct ring *ring, __u32 service)
{
	__u64 random = 2463534242;

	for (int i = 0; i < IDS; i++) {
		struct lookup lookup = {.service = service, .id_length = 1 + i % ID_LENGTH_MAX};

		for (__u32 at = 0; at < lookup.id_length; at++)
			lookup.id[at] =
				"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVW"
				"XYZ._:-"[next_random(&random) % 66];
		ask(&lookup);
		assert_answer(ring, &lookup, ring_hash(ring, lookup.id, lookup.id_length));
	}
}

static void check_key(const struct ring *ring, __u32 service, __u64 hash)
{
	struct lookup lookup = {.service = service, .hash = hash};

	ask(&lookup);
	assert_answer(ring, &lookup, hash);
}

/* Where rounding and off-by-one would show: at points, between, at both ends, at the edges of buckets. */
static void check_edges(const struct ring *ring, __u32 service)
{
	__u32 every = ring->header.point_count / 500 + 1;

	for (__u32 i = 0; i < ring->header.point_count; i += every)
		for (int step = -1; step <= 1; step++)
			check_key(ring, service, ring->points[i].hash + step);
	check_key(ring, service, ring->points[ring->header.point_count - 1].hash + 1);
	check_key(ring, service, 0);
	check_key(ring, service, UINT64_MAX);
	for (__u64 b = 1; b < 64; b++) {
		check_key(ring, service, b << (64 - ring->header.index_bits));
		check_key(ring, service, (b << (64 - ring->header.index_bits)) - 1);
	}
}

/* A plain ring, one with a secret, one of the other dialect. */
#define KINDS 3

static struct ring_settings kind(__u32 number)
{
	struct ring_settings settings =
		number == 2 ? replica_router_settings(3) : llm_settings(100);

	if (number == 1) {
		settings.hash_key = "0123456789abcdef0123456789abcdef";
		settings.hash_key_length = 32;
	}
	return settings;
}

static void equals_user_space(size_t replicas)
{
	struct replica_list *list = make_replicas(replicas, "llm-%d.pool", 0);

	for (__u32 i = 0; i < KINDS; i++) {
		struct ring_settings settings = kind(i);
		__u32 service = i * 31; /* 0, 31, 62: three rings side by side */
		struct ring ring;

		build(&ring, &settings, list);
		swap(service, &ring);
		check_ids(&ring, service);
		check_edges(&ring, service);
		ring_free(&ring);
	}
	free(list);
}

/* The same ids, again and again, of rings with different hashes: what the data path remembers of one is not for another. */
static void remembered_ids_are_each_rings_own(void **state)
{
	struct replica_list *list = make_replicas(5, "llm-%d.pool", 0);
	struct ring rings[KINDS];

	(void)state;
	for (__u32 i = 0; i < KINDS; i++) {
		struct ring_settings settings = kind(i);

		build(&rings[i], &settings, list);
		swap(i, &rings[i]);
	}
	for (__u32 round = 0; round < 3; round++) {
		for (__u32 i = 0; i < 50 * KINDS; i++) {
			struct lookup lookup = {.service = i % KINDS};

			/* of the same characters and of different lengths */
			snprintf((char *)lookup.id, sizeof(lookup.id), "chat-%u", i / KINDS);
			lookup.id_length = strlen((char *)lookup.id) + (round == 2);
			ask(&lookup);
			assert_answer(&rings[i % KINDS], &lookup,
				      ring_hash(&rings[i % KINDS], lookup.id, lookup.id_length));
		}
	}
	for (__u32 i = 0; i < KINDS; i++)
		ring_free(&rings[i]);
	free(list);
}

static void one_replica(void **state)
{
	(void)state;
	equals_user_space(1);
}

static void three_replicas(void **state)
{
	(void)state;
	equals_user_space(3);
}

static void eight_replicas(void **state)
{
	(void)state;
	equals_user_space(8);
}

static void sixty_four_replicas(void **state)
{
	(void)state;
	equals_user_space(64);
}

static void thousand_replicas(void **state)
{
	(void)state;
	equals_user_space(1000);
}

static void services_have_rings_of_their_own(void **state)
{
	struct replica_list *lists[2] = {make_replicas(5, "a%d", 0), make_replicas(7, "b%d", 0)};
	struct ring_settings settings = llm_settings(20);
	struct ring rings[2];

	(void)state;
	for (__u32 i = 0; i < 2; i++) {
		build(&rings[i], &settings, lists[i]);
		swap(SERVICES_MAX - 1 - i, &rings[i]);
	}
	for (__u32 i = 0; i < 2; i++) {
		check_edges(&rings[i], SERVICES_MAX - 1 - i);
		ring_free(&rings[i]);
		free(lists[i]);
	}
}

static void expect_failure(__u32 service, int error)
{
	struct lookup lookup = {.service = service, .hash = UINT64_MAX};

	ask(&lookup);
	assert_int_equal(lookup.status, LOOKUP_FAILED);
	assert_int_equal(lookup.error, error);
	assert_int_equal(run(skeleton->progs.ring_lookup_many, &lookup), 0);
	assert_int_equal(lookup.status, LOOKUP_FAILED);
	assert_int_equal(lookup.error, error);
}

static void no_ring(void **state)
{
	struct lookup lookup = {.service = 3};

	(void)state;
	ask(&lookup);
	assert_int_equal(lookup.status, LOOKUP_NO_RING);
	lookup.service = SERVICES_MAX; /* there is no such service */
	ask(&lookup);
	assert_int_equal(lookup.status, LOOKUP_NO_RING);
}

static void empty_ring(void **state)
{
	struct replica_list *list = make_replicas(0, "llm-%d", 0);
	struct ring_settings settings = llm_settings(100);
	struct ring ring;

	(void)state;
	build(&ring, &settings, list);
	swap(9, &ring);
	expect_failure(9, -ENOENT);
	ring_free(&ring);
	free(list);
}

static void missing_tables(void **state)
{
	struct replica_list *list = make_replicas(4, "llm-%d", 0);
	struct ring_settings settings = llm_settings(100);
	struct ring ring;

	(void)state;
	build(&ring, &settings, list);
	swap(9, &ring);
	check_key(&ring, 9, 1);
	assert_int_equal(bpf_map_delete_elem(maps.ring_points, &ring.header.slot), 0);
	expect_failure(9, -ENOENT);
	swap(9, &ring);
	check_key(&ring, 9, 1);
	assert_int_equal(bpf_map_delete_elem(maps.ring_index, &ring.header.slot), 0);
	expect_failure(9, -ENOENT);
	ring_free(&ring);
	free(list);
}

/* A header that contradicts its tables leads to an error or to some replica, never further. */
static void contradicting_header(void **state)
{
	struct replica_list *list = make_replicas(4, "llm-%d", 0);
	struct ring_settings settings = llm_settings(100);
	struct lookup lookup = {.service = 9, .hash = UINT64_MAX};
	__u32 service = 9, first = 0, id;
	struct ring_header header;
	struct ring ring;
	int fd;

	(void)state;
	build(&ring, &settings, list);
	swap(9, &ring);
	assert_int_equal(bpf_map_lookup_elem(maps.rings, &service, &id), 0);
	fd = bpf_map_get_fd_by_id(id);
	assert_true(fd >= 0);
	header = ring.header;
	header.index_bits = RING_INDEX_BITS_MAX; /* more buckets than there are */
	assert_int_equal(bpf_map_update_elem(fd, &first, &header, BPF_ANY), 0);
	expect_failure(9, -ENOENT);
	header = ring.header;
	header.slot = RING_SLOTS_MAX;
	assert_int_equal(bpf_map_update_elem(fd, &first, &header, BPF_ANY), 0);
	expect_failure(9, -ENOENT);
	header = ring.header;
	header.index_bits = 0;
	assert_int_equal(bpf_map_update_elem(fd, &first, &header, BPF_ANY), 0);
	ask(&lookup);
	assert_int_not_equal(lookup.status, LOOKUP_NO_RING);
	close(fd);
	ring_free(&ring);
	free(list);
}

static __u32 map_id_of_slot(int outer, __u32 slot)
{
	__u32 id = 0;

	return bpf_map_lookup_elem(outer, &slot, &id) ? 0 : id;
}

static void swaps_alternate_between_two_slots(void **state)
{
	struct replica_list *list = make_replicas(8, "llm-%d", 0);
	struct ring_settings settings = llm_settings(100);
	struct ring_header header;
	struct ring ring;

	(void)state;
	assert_int_equal(ring_maps_current(&maps, 6, &header), -ENOENT);
	build(&ring, &settings, list);
	for (__u64 generation = 1; generation <= 5; generation++) {
		swap(6, &ring);
		assert_int_equal(ring_maps_current(&maps, 6, &header), 0);
		assert_memory_equal(&header, &ring.header, sizeof(header));
		assert_int_equal(header.generation, generation);
		assert_int_equal(header.slot, 6 * 2 + (generation - 1) % 2);
		check_edges(&ring, 6);
	}
	assert_int_equal(ring_maps_clear(&maps, 6, NULL), 0);
	assert_int_equal(ring_maps_current(&maps, 6, &header), -ENOENT);
	for (__u32 slot = 6 * 2; slot < 7 * 2; slot++) {
		assert_int_equal(map_id_of_slot(maps.ring_points, slot), 0);
		assert_int_equal(map_id_of_slot(maps.ring_index, slot), 0);
		assert_int_equal(map_id_of_slot(maps.ring_members, slot), 0);
	}
	assert_int_equal(ring_maps_clear(&maps, 6, NULL), 0);
	ring_free(&ring);
	free(list);
}

static __u32 swap_and_name_points_map(__u32 service, size_t replicas)
{
	struct replica_list *list = make_replicas(replicas, "llm-%d", 0);
	struct ring_settings settings = llm_settings(100);
	struct ring ring;
	__u32 id;

	build(&ring, &settings, list);
	swap(service, &ring);
	check_edges(&ring, service);
	id = map_id_of_slot(maps.ring_points, ring.header.slot);
	ring_free(&ring);
	free(list);
	return id;
}

static void maps_serve_again_where_they_fit(void **state)
{
	__u32 first = swap_and_name_points_map(4, 9); /* 900 points: room for 1024 */
	__u32 second = swap_and_name_points_map(4, 40), larger;

	(void)state;
	assert_int_not_equal(first, second);
	assert_int_equal(swap_and_name_points_map(4, 10), first);
	assert_int_equal(swap_and_name_points_map(4, 11), second);
	larger = swap_and_name_points_map(4, 11); /* 1100 points */
	assert_int_not_equal(larger, first);
	assert_int_equal(bpf_map_get_fd_by_id(first), -ENOENT); /* given back */
	assert_int_equal(swap_and_name_points_map(4, 11), second);
	assert_int_not_equal(swap_and_name_points_map(4, 1), larger); /* far too large for 100 */
}

/* A kernel before 6.2 takes no typed map into a map of maps whose template has no types. */
static bool kernel_takes_typed_inner_maps(void)
{
	struct utsname name;
	unsigned int major = 0, minor = 0;

	return uname(&name) == 0 && sscanf(name.release, "%u.%u", &major, &minor) == 2 &&
	       (major > 6 || (major == 6 && minor >= 2));
}

/* A small ring and a large one have their indexes in different outer maps. */
static void rings_change_between_small_and_large(void **state)
{
	struct ring_settings settings = llm_settings(100);

	(void)state;
	for (int i = 0; i < 5; i++) {
		struct replica_list *list = make_replicas(i % 2 ? 400 : 6, "llm-%d", 0);
		struct ring ring;

		build(&ring, &settings, list);
		assert_int_equal(ring.header.index_bits > RING_INDEX_BITS_SMALL, i % 2);
		swap(63, &ring);
		check_ids(&ring, 63);
		check_edges(&ring, 63);
		ring_free(&ring);
		free(list);
	}
}

static void inner_maps_have_types(void **state)
{
	struct replica_list *list = make_replicas(8, "llm-%d", 0);
	struct ring_settings settings = llm_settings(100);
	const int outer[] = {maps.ring_points, maps.ring_index, maps.ring_members};
	struct ring ring;

	(void)state;
	build(&ring, &settings, list);
	swap(0, &ring);
	for (int i = 0; i < 3; i++) {
		const __u32 entries[] = {1024, 1u << RING_INDEX_BITS_SMALL, 8};
		struct bpf_map_info info = {0};
		__u32 size = sizeof(info);
		int fd = bpf_map_get_fd_by_id(map_id_of_slot(outer[i], ring.header.slot));

		assert_true(fd >= 0);
		assert_int_equal(bpf_obj_get_info_by_fd(fd, &info, &size), 0);
		assert_int_equal(info.max_entries, entries[i]);
		if (kernel_takes_typed_inner_maps()) /* bpftool prints names */
			assert_int_not_equal(info.btf_value_type_id, 0);
		close(fd);
	}
	ring_free(&ring);
	free(list);
}

static void failed_swap_changes_nothing(void **state)
{
	struct replica_list *list = make_replicas(8, "llm-%d", 0);
	struct ring_settings settings = llm_settings(100);
	struct ring_maps broken[3] = {maps, maps, maps};
	struct ring ring, other;
	struct error error;

	(void)state;
	broken[0].ring_points = -1;
	broken[1].ring_index = -1;
	broken[2].ring_members = -1;
	build(&ring, &settings, list);
	swap(2, &ring);
	list->count = 3;
	build(&other, &settings, list);
	for (int i = 0; i < 3; i++) {
		error.text[0] = '\0';
		assert_int_equal(ring_maps_swap(&broken[i], 2, &other, &error), -EBADF);
		assert_non_null(strstr(error.text, "of a ring with 300 points cannot be loaded"));
		check_edges(&ring, 2);
	}
	assert_int_equal(ring_maps_swap(&maps, SERVICES_MAX, &other, &error), -EINVAL);
	assert_int_equal(ring_maps_clear(&maps, SERVICES_MAX, &error), -EINVAL);
	ring_free(&ring);
	ring_free(&other);
	free(list);
}

/* --- swapping under load ---------------------------------------------------------------------------------- */

struct watcher {
	const struct ring *rings[2]; /* by parity of the generation */
	atomic_bool stop;
	atomic_ulong answers;
	unsigned long wrong, failed;
	unsigned long of_parity[2];
};

static void *watch(void *argument)
{
	struct watcher *watcher = argument;
	__u64 random = 1181783497276652981;

	while (!atomic_load(&watcher->stop)) {
		struct lookup lookup = {.service = 1, .hash = next_random(&random)};
		const struct ring *ring;

		if (run(skeleton->progs.ring_lookup_many, &lookup) ||
		    lookup.status != LOOKUP_DONE) {
			watcher->failed++;
			continue;
		}
		ring = watcher->rings[lookup.generation % 2];
		for (__u64 i = 0; i < LOOKUP_KEYS; i++)
			if ((int)lookup.homes[i] !=
			    ring_home_slot(ring, lookup.hash + i * LOOKUP_STEP))
				watcher->wrong++;
		watcher->of_parity[lookup.generation % 2]++;
		atomic_fetch_add(&watcher->answers, 1);
	}
	return NULL;
}

/* Rings of different size with no slot in common: a mixture would give an answer of neither, or none at all. */
static void a_packet_sees_one_ring_through_swaps(void **state)
{
	struct replica_list *list = make_replicas(40, "llm-%d", 0);
	struct ring_settings settings[2] = {llm_settings(100), llm_settings(70)};
	struct ring rings[2];
	struct watcher watcher = {.rings = {&rings[0], &rings[1]}};
	pthread_t thread;

	(void)state;
	for (int i = 0; i < 2; i++) {
		list->count = i ? 40 : 25;
		for (size_t replica = 0; replica < list->count; replica++)
			list->replicas[replica].slot = replica * 2 + i;
		build(&rings[i], &settings[i], list);
	}
	swap(1, &rings[1]);
	assert_int_equal(pthread_create(&thread, NULL, watch, &watcher), 0);
	for (int i = 2; i < SWAPS + 2; i++)
		swap(1, &rings[i % 2]);
	/* the program must have run all the while */
	for (int wait = 0; wait < 1000 && atomic_load(&watcher.answers) < SWAPS; wait++)
		usleep(10000);
	atomic_store(&watcher.stop, true);
	pthread_join(thread, NULL);
	print_message(
		"# %d swaps, %lu packets of %d keys each: %lu of one ring, %lu of the other\n",
		SWAPS, atomic_load(&watcher.answers), LOOKUP_KEYS, watcher.of_parity[0],
		watcher.of_parity[1]);
	assert_int_equal(watcher.failed, 0);
	assert_int_equal(watcher.wrong, 0);
	assert_true(watcher.of_parity[0] > 100 && watcher.of_parity[1] > 100);
	for (int i = 0; i < 2; i++)
		ring_free(&rings[i]);
	free(list);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(one_replica, clear),
		cmocka_unit_test_setup(three_replicas, clear),
		cmocka_unit_test_setup(eight_replicas, clear),
		cmocka_unit_test_setup(sixty_four_replicas, clear),
		cmocka_unit_test_setup(thousand_replicas, clear),
		cmocka_unit_test_setup(services_have_rings_of_their_own, clear),
		cmocka_unit_test_setup(remembered_ids_are_each_rings_own, clear),
		cmocka_unit_test_setup(no_ring, clear),
		cmocka_unit_test_setup(empty_ring, clear),
		cmocka_unit_test_setup(missing_tables, clear),
		cmocka_unit_test_setup(contradicting_header, clear),
		cmocka_unit_test_setup(swaps_alternate_between_two_slots, clear),
		cmocka_unit_test_setup(maps_serve_again_where_they_fit, clear),
		cmocka_unit_test_setup(rings_change_between_small_and_large, clear),
		cmocka_unit_test_setup(inner_maps_have_types, clear),
		cmocka_unit_test_setup(failed_swap_changes_nothing, clear),
		cmocka_unit_test_setup(a_packet_sees_one_ring_through_swaps, clear),
	};

	return cmocka_run_group_tests_name("ring in the kernel", tests, load, unload);
}
