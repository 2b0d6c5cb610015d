/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/counters.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <warmpath/layout.h>

#define VERDICT_FORWARD "forward"
#define VERDICT_PASS	"pass"
#define VERDICT_ANSWER	"answer"
#define VERDICT_DROP	"drop"

const struct counter_description counter_descriptions[COUNTER_COUNT] = {
#define X(name, verdict, sentence) {#name, VERDICT_##verdict, sentence},
	WARMPATH_OUTCOMES(X)
#undef X
#define X(name, sentence) {#name, "note", sentence},
		WARMPATH_NOTES(X)
#undef X
};

__u64 counters_value(const struct counters *counters, unsigned int index)
{
	return ((const __u64 *)counters)[index];
}

int counters_read(int map, struct counters *counters)
{
	int cpus = libbpf_num_possible_cpus(), cpu, result;
	struct counters *each;
	const __u32 key = 0;
	unsigned int i;

	if (cpus < 0)
		return cpus;
	each = calloc(cpus, sizeof(*each));
	if (!each)
		return -ENOMEM;
	result = bpf_map_lookup_elem(map, &key, each) ? -errno : 0;
	memset(counters, 0, sizeof(*counters));
	for (cpu = 0; cpu < cpus && !result; cpu++) {
		for (i = 0; i < COUNTER_COUNT; i++)
			((__u64 *)counters)[i] += counters_value(&each[cpu], i);
	}
	free(each);
	return result;
}

int counters_read_pinned(const char *pin_path, struct counters *counters, struct error *error)
{
	struct bpf_map_info info = {0};
	__u32 length = sizeof(info);
	char path[PATH_MAX];
	int map, result;

	snprintf(path, sizeof(path), "%s/" WARMPATH_LAYOUT_DIRECTORY "/counters", pin_path);
	map = bpf_obj_get(path);
	if (map < 0)
		return error_set(error, -errno, "the counters pinned as %s cannot be opened: %s",
				 path, strerror(errno));
	if (bpf_obj_get_info_by_fd(map, &info, &length) || info.value_size != sizeof(*counters)) {
		result = error_set(error, -EINVAL,
				   "the counters pinned as %s are of another build of warmpath",
				   path);
	} else {
		result = counters_read(map, counters);
		if (result)
			error_set(error, result, "the counters cannot be read: %s",
				  strerror(-result));
	}
	close(map);
	return result;
}

json_t *counters_json(const struct counters *counters)
{
	json_t *object = json_object();
	unsigned int i;

	for (i = 0; i < COUNTER_COUNT; i++)
		json_object_set_new(object, counter_descriptions[i].name,
				    json_integer((json_int_t)counters_value(counters, i)));
	return object;
}
