/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * warmpath doctor: what has gone wrong already, as the data path has counted it.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <warmpath/handoff_counters.h>
#include <warmpath/outcome.h>

#include "cli/doctor.h"
#include "lib/counters.h"

struct symptom {
	unsigned int counter;
	const char *remedy;
};

static const struct symptom router_symptoms[] = {
	{NOTE_note_replica_refused,
	 "on the replicas: warmpath doctor; is the server up, and warmpathd running in role replica?"},
	{OUTCOME_reset_cookie_expired,
	 "clients wait minutes before their first request, or the clocks of routers differ by that much"},
	{OUTCOME_drop_no_route, "look at the routes to replicas and clients: ip route get ADDRESS"},
	{OUTCOME_drop_internal,
	 "restart warmpathd; if it counts on, warmpath detach all and restart"},
	{OUTCOME_drop_flow_table_full, "raise limits.flows"},
	{OUTCOME_reset_held_lost,
	 "requests whose heads come in pieces are evicted: raise limits.flows"},
};

static const struct symptom handoff_symptoms[] = {
	{HANDOFF_drop_mark_forged,
	 "compare the secrets: warmpath doctor on router and replica must show the same fingerprint; where they do, "
	 "somebody else sends marks"},
	{HANDOFF_drop_stale_remains,
	 "sysctl net.ipv4.tcp_rfc1337=0; where it is 0 already, one in 100,000 moves is nothing to mend"},
	{HANDOFF_no_listener,
	 "start the server, or correct the replica's port in the router's configuration"},
	{HANDOFF_refused_version, "run the same version of warmpath on routers and replicas"},
	{HANDOFF_refused_mptcp, "have the server listen without MPTCP"},
	{HANDOFF_refused_options,
	 "sysctl net.ipv4.tcp_timestamps=1 net.ipv4.tcp_sack=1 net.ipv4.tcp_window_scaling=1"},
	{HANDOFF_refused_memory,
	 "the machine is short of memory for sockets: look at net.ipv4.tcp_mem"},
};

static const struct {
	const char *name, *sentence;
} handoff_descriptions[] = {
#define X(name, sentence) {#name, sentence},
	WARMPATH_HANDOFF_COUNTERS(X)
#undef X
};

static void report(struct doctor *doctor, const struct symptom *symptom, const char *name,
		   const char *sentence, __u64 value, unsigned int *found)
{
	if (!value)
		return;
	*found += 1;
	doctor_find(doctor, FINDING_WARNING, "counted", symptom->remedy, NULL, "%s: %llu (%s)",
		    name, (unsigned long long)value, sentence);
}

/* False: there are none. */
static bool read_handoff_counters(const char *pin_path, struct handoff_counters *sum)
{
	int cpus = libbpf_num_possible_cpus(), map;
	struct handoff_counters *values;
	char path[PATH_MAX];
	__u32 first = 0;
	bool read;

	snprintf(path, sizeof(path), "%s/" WARMPATH_LAYOUT_DIRECTORY "/handoff_counters", pin_path);
	map = bpf_obj_get(path);
	if (map < 0 || cpus < 1)
		return false;
	values = calloc(cpus, sizeof(*values));
	read = values && bpf_map_lookup_elem(map, &first, values) == 0;
	for (int i = 0; read && i < cpus; i++) {
		for (unsigned int j = 0; j < HANDOFF_COUNTER_COUNT; j++)
			((__u64 *)sum)[j] += ((const __u64 *)&values[i])[j];
	}
	free(values);
	close(map);
	return read;
}

void doctor_check_counters(struct doctor *doctor)
{
	struct handoff_counters handoff = {0};
	unsigned int found = 0;
	struct counters router;
	struct error error;
	bool read = false;

	if (doctor->routes &&
	    counters_read_pinned(doctor->config->pin_path, &router, &error) == 0) {
		read = true;
		for (size_t i = 0; i < sizeof(router_symptoms) / sizeof(router_symptoms[0]); i++) {
			unsigned int counter = router_symptoms[i].counter;

			report(doctor, &router_symptoms[i], counter_descriptions[counter].name,
			       counter_descriptions[counter].sentence,
			       counters_value(&router, counter), &found);
		}
	}
	if (doctor->takes_over && read_handoff_counters(doctor->config->pin_path, &handoff)) {
		read = true;
		for (size_t i = 0; i < sizeof(handoff_symptoms) / sizeof(handoff_symptoms[0]);
		     i++) {
			unsigned int counter = handoff_symptoms[i].counter;

			report(doctor, &handoff_symptoms[i], handoff_descriptions[counter].name,
			       handoff_descriptions[counter].sentence,
			       ((const __u64 *)&handoff)[counter], &found);
		}
	}
	if (read && !found)
		doctor_find(doctor, FINDING_OK, "counted", NULL, NULL,
			    "nothing has been counted that points to a fault");
}
