/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Puts a tcx program that does nothing on the way out of an interface, and takes it off at SIGTERM.
 *
 *   tcx_egress INTERFACE
 *
 * Prints "attached" as soon as it is there. Needs root. Exit status 3: the kernel has no tcx (before Linux 6.6).
 */
#include <bpf/bpf.h>
#include <err.h>
#include <errno.h>
#include <linux/bpf.h>
#include <net/if.h>
#include <signal.h>
#include <stdio.h>

#define TCX_EGRESS 47 /* BPF_TCX_EGRESS, for builds on older kernels */
#define TCX_NEXT   (-1)

int main(int argc, char **argv)
{
	const struct bpf_insn pass[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = TCX_NEXT},
		{.code = BPF_JMP | BPF_EXIT},
	};
	int program, interface, signal;
	sigset_t end;

	if (argc != 2)
		errx(2, "usage: tcx_egress INTERFACE");
	interface = (int)if_nametoindex(argv[1]);
	if (!interface)
		err(1, "%s", argv[1]);
	program = bpf_prog_load(BPF_PROG_TYPE_SCHED_CLS, "pass", "GPL", pass, 2, NULL);
	if (program < 0)
		err(1, "the program cannot be loaded");
	sigemptyset(&end);
	sigaddset(&end, SIGTERM);
	sigprocmask(SIG_BLOCK, &end, NULL);
	if (bpf_prog_attach(program, interface, TCX_EGRESS, 0))
		err(errno == EINVAL ? 3 : 1, "the program cannot be attached");
	puts("attached");
	fflush(stdout);
	sigwait(&end, &signal);
	if (bpf_prog_detach2(program, interface, TCX_EGRESS))
		err(1, "the program cannot be detached");
	return 0;
}
