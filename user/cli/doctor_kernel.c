/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * warmpath doctor: what the kernel has, where maps are pinned, what the agent may do.
 */
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <cap-ng.h>
#include <errno.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/utsname.h>
#include <sys/vfs.h>

#include "cli/client.h"
#include "cli/doctor.h"

#ifndef BPF_FS_MAGIC
#define BPF_FS_MAGIC 0xcafe4a11
#endif

/* Functions of the kernel that programs call by name. */
static const struct {
	const char *name;
	const char *since;
} takeover_functions[] = {{"bpf_sk_assign_tcp_reqsk", "6.9"}};

static void check_functions(struct doctor *doctor, const struct btf *types)
{
	for (size_t i = 0; i < sizeof(takeover_functions) / sizeof(takeover_functions[0]); i++) {
		const char *name = takeover_functions[i].name;

		if (btf__find_by_name_kind(types, name, BTF_KIND_FUNC) > 0)
			doctor_find(doctor, FINDING_OK, "kernel-functions", NULL, NULL,
				    "the kernel has %s", name);
		else
			doctor_find(
				doctor, FINDING_PROBLEM, "kernel-functions",
				"run Linux %s or newer here", takeover_functions[i].since,
				"the kernel has no function %s: no connection can be taken over",
				name);
	}
}

static void check_types(struct doctor *doctor)
{
	struct btf *types;
	struct utsname name;

	uname(&name);
	types = btf__load_vmlinux_btf();
	if (libbpf_get_error(types) || !types) {
		doctor_find(
			doctor, FINDING_PROBLEM, "kernel",
			"run a kernel built with CONFIG_DEBUG_INFO_BTF, as distributions' are",
			NULL,
			"Linux %s has no type information (/sys/kernel/btf/vmlinux): no program can "
			"be loaded",
			name.release);
		return;
	}
	doctor_find(doctor, FINDING_OK, "kernel", NULL, NULL, "Linux %s, with type information",
		    name.release);
	if (doctor->takes_over)
		check_functions(doctor, types);
	btf__free(types);
}

static void check_compiler(struct doctor *doctor)
{
	/* only the first network namespace shows it */
	int enabled = doctor_sysctl("net/core/bpf_jit_enable");

	if (enabled == 0)
		doctor_find(doctor, FINDING_WARNING, "jit", "sysctl net.core.bpf_jit_enable=1",
			    NULL, "programs are interpreted: several times slower");
	else if (enabled > 0)
		doctor_find(doctor, FINDING_OK, "jit", NULL, NULL, "programs are compiled");
}

static void check_pins(struct doctor *doctor)
{
	char path[sizeof(doctor->config->pin_path)];
	struct statfs status;
	char *slash;

	memcpy(path, doctor->config->pin_path, sizeof(path));
	/* the agent makes what is missing of it */
	while (statfs(path, &status)) {
		slash = strrchr(path, '/');
		if (!slash || slash == path)
			break;
		*slash = '\0';
	}
	if ((unsigned long)status.f_type == BPF_FS_MAGIC)
		doctor_find(doctor, FINDING_OK, "pin-path", NULL, NULL,
			    "%s is on a BPF file system", doctor->config->pin_path);
	else if (strncmp(doctor->config->pin_path, "/sys/fs/bpf/", 12) == 0)
		doctor_find(doctor, FINDING_WARNING, "pin-path",
			    "mount -t bpf bpf /sys/fs/bpf (or leave it to the agent)", NULL,
			    "no BPF file system is mounted on /sys/fs/bpf");
	else
		doctor_find(doctor, FINDING_PROBLEM, "pin-path",
			    "name a directory below /sys/fs/bpf in pin_path", NULL,
			    "pin_path %s is not on a BPF file system: nothing can be pinned there",
			    doctor->config->pin_path);
}

/* Of the running agent if there is one, else of this command, as which the agent would be started. */
static void check_capabilities(struct doctor *doctor)
{
	static const struct {
		unsigned int number;
		const char *name, *what;
	} needed[] = {
		{CAP_BPF, "CAP_BPF", "load programs and make maps"},
		{CAP_PERFMON, "CAP_PERFMON", "load programs that read packets"},
		{CAP_NET_ADMIN, "CAP_NET_ADMIN", "attach programs and resolve neighbours"},
	};
	int process = doctor->status ? client_number(doctor->status, "process") : 0;
	bool all = true;

	if (process)
		capng_setpid(process);
	if (capng_get_caps_process()) {
		doctor_find(doctor, FINDING_WARNING, "capabilities", "run the doctor as root", NULL,
			    "the capabilities of %s cannot be read",
			    process ? "the agent" : "this process");
		return;
	}
	for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++) {
		if (capng_have_capability(CAPNG_EFFECTIVE, needed[i].number))
			continue;
		all = false;
		doctor_find(
			doctor, FINDING_PROBLEM, "capabilities",
			process ? "give the agent %s: start it as root, or see deploy/warmpathd.service"
				: "run as root; the agent needs %s, too",
			needed[i].name, "%s lacks %s: it cannot %s",
			process ? "the agent" : "this process", needed[i].name, needed[i].what);
	}
	if (all)
		doctor_find(doctor, FINDING_OK, "capabilities", NULL, NULL, "%s has what is needed",
			    process ? "the agent" : "this process");
}

void doctor_check_kernel(struct doctor *doctor)
{
	check_types(doctor);
	check_compiler(doctor);
	check_pins(doctor);
	check_capabilities(doctor);
}
