/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * warmpath doctor: the secret that routers and replicas share. It is never shown; its fingerprint is, to be compared between machines.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/doctor.h"
#include "lib/cluster_secret.h"

static void check_file(struct doctor *doctor, const char *path, bool first)
{
	char fingerprint[CLUSTER_FINGERPRINT_SIZE];
	struct error error;
	struct stat status;

	if (cluster_secret_fingerprint(path, fingerprint, &error)) {
		doctor_find(
			doctor, FINDING_PROBLEM, "secret",
			"copy the file from another machine of the cluster, or make one: (umask 077; "
			"head -c 32 /dev/urandom >%s)",
			path, "%s", error.text);
		return;
	}
	if (stat(path, &status) == 0 && (status.st_mode & 077))
		doctor_find(
			doctor, FINDING_PROBLEM, "secret", "chmod 0600 %s", path,
			"others than its owner may open the secret file %s: whoever knows the secret "
			"can hand connections to replicas",
			path);
	if (!first) {
		doctor_find(doctor, FINDING_OK, "secret", NULL, NULL,
			    "the second secret, %s, has the fingerprint %s", path, fingerprint);
	} else if (doctor->expected_secret && strcmp(doctor->expected_secret, fingerprint) != 0) {
		doctor_find(
			doctor, FINDING_PROBLEM, "secret",
			"copy the secret file from the other machine", NULL,
			"the secret %s has the fingerprint %s, not %s: replicas do not believe this "
			"cluster's routers",
			path, fingerprint, doctor->expected_secret);
	} else {
		doctor_find(doctor, FINDING_OK, "secret", NULL, NULL,
			    "the secret %s has the fingerprint %s; all routers and replicas of the "
			    "cluster must say the same",
			    path, fingerprint);
	}
}

/* What the data path works with may be older than the file. */
static void check_loaded(struct doctor *doctor)
{
	struct config_handoff *handoff = &doctor->config->handoff;
	struct handoff_keys loaded = {0};
	struct error error;
	char path[PATH_MAX];
	__u32 first = 0;
	int map;

	snprintf(path, sizeof(path), "%s/" WARMPATH_LAYOUT_DIRECTORY "/handoff_keys",
		 doctor->config->pin_path);
	map = bpf_obj_get(path);
	if (map < 0) {
		if (doctor->status)
			doctor_find(doctor, FINDING_WARNING, "secret-loaded",
				    errno == ENOENT ? "see what the agent warns of"
						    : "run the doctor as root",
				    NULL, "the map %s cannot be opened: %s", path, strerror(errno));
		return;
	}
	if (bpf_map_lookup_elem(map, &first, &loaded) == 0 &&
	    cluster_secrets_load(handoff, &error) == 0) {
		if (loaded.count == handoff->keys.count &&
		    memcmp(&loaded, &handoff->keys, sizeof(loaded)) == 0)
			doctor_find(doctor, FINDING_OK, "secret-loaded", NULL, NULL,
				    "the data path works with the secrets in the files");
		else
			doctor_find(
				doctor, FINDING_PROBLEM, "secret-loaded", "warmpath reload", NULL,
				"the data path works with other secrets than are in the files now");
	}
	explicit_bzero(&loaded, sizeof(loaded));
	close(map);
}

void doctor_check_secret(struct doctor *doctor)
{
	struct config_handoff *handoff = &doctor->config->handoff;

	if (!doctor->hands_over && !doctor->takes_over)
		return;
	if (!handoff->secret_file[0]) {
		doctor_find(doctor, FINDING_PROBLEM, "secret",
			    "set handoff.secret_file to the cluster's secret", NULL,
			    "no secret is configured: no connection is accepted or handed over");
		return;
	}
	check_file(doctor, handoff->secret_file, true);
	if (handoff->second_secret_file[0])
		check_file(doctor, handoff->second_secret_file, false);
	check_loaded(doctor);
	explicit_bzero(&handoff->keys, sizeof(handoff->keys));
}
