/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * warmpath doctor: settings of TCP on a machine that takes connections over.
 */
#include "cli/doctor.h"

/* Settings without which the kernel refuses to make a connection, or to let go of an old one. */
static const struct {
	const char *name;
	int good, other; /* values that are well */
	const char *consequence;
} settings[] = {
	{"tcp_syncookies", 1, 2,
	 "the kernel makes no connection of what a router hands over: every client gets a 503"},
	{"tcp_rfc1337", 0, 0,
	 "a connection that a server has closed first stays in the way of the next one from the same port, "
	 "for a minute"},
	{"tcp_timestamps", 1, 2,
	 "the kernel refuses the connections of clients that use timestamps, which is nearly all"},
	{"tcp_sack", 1, 1,
	 "the kernel refuses the connections of clients that use selective acknowledgements, which is nearly all"},
	{"tcp_window_scaling", 1, 1,
	 "the kernel refuses the connections of clients that scale their window, which is nearly all"},
};

void doctor_check_tcp(struct doctor *doctor)
{
	bool all = true;

	if (!doctor->takes_over)
		return;
	for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
		int value = doctor_sysctl("net/ipv4/%s", settings[i].name);
		char wanted[64];

		if (value == settings[i].good || value == settings[i].other)
			continue;
		all = false;
		snprintf(wanted, sizeof(wanted), "%s=%d", settings[i].name, settings[i].good);
		if (value < 0)
			doctor_find(doctor, FINDING_WARNING, settings[i].name,
				    "run the doctor where warmpathd runs", NULL,
				    "net.ipv4.%s cannot be read", settings[i].name);
		else
			doctor_find(doctor, FINDING_PROBLEM, settings[i].name, "sysctl net.ipv4.%s",
				    wanted, "net.ipv4.%s is %d: %s", settings[i].name, value,
				    settings[i].consequence);
	}
	if (all)
		doctor_find(
			doctor, FINDING_OK, "tcp", NULL, NULL,
			"tcp_syncookies, tcp_rfc1337, timestamps, SACK and window scaling are as "
			"needed");
}
