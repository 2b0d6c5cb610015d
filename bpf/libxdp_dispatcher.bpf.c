// SPDX-License-Identifier: GPL-2.0-only
/*
 * libxdp's dispatcher: the program on an interface that calls up to ten XDP programs in turn, after the protocol of libxdp ("Protocol for
 * atomic loading of multi-prog dispatchers", version 2). libxdp fills in the configuration and puts a program in the place of each function
 * slot that it needs; the names are its.
 *
 * It is here for kernels (6.12 of Debian, 6.13 and newer) that refuse a program that changes the packet's size in the place of a function
 * that does not, which those of libxdp's own dispatcher did not before 1.5.5. Here they do, by nothing.
 */
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>
#include <xdp/prog_dispatcher.h>

/* read at run time, though constant here: libxdp fills it in before loading */
static volatile const struct xdp_dispatcher_config conf = {};

__uint(dispatcher_version, XDP_DISPATCHER_VERSION) SEC(XDP_METADATA_SECTION);

/* What runs if no program is in the slot: the chain goes on. The value is hidden from the compiler. */
#define SLOT(number)                                                   \
	__attribute__((noinline)) int prog##number(struct xdp_md *ctx) \
	{                                                              \
		volatile int result = XDP_DISPATCHER_RETVAL;           \
                                                                       \
		if (!ctx)                                              \
			return XDP_ABORTED;                            \
		bpf_xdp_adjust_tail(ctx, 0);                           \
		return result;                                         \
	}

SLOT(0)
SLOT(1)
SLOT(2)
SLOT(3)
SLOT(4)
SLOT(5)
SLOT(6)
SLOT(7)
SLOT(8)
SLOT(9)
_Static_assert(MAX_DISPATCHER_ACTIONS == 10, "as many slots as the configuration has room for");

/* What libxdp replaces to find out whether the kernel can. */
__attribute__((noinline)) int compat_test(struct xdp_md *ctx)
{
	volatile int result = XDP_DISPATCHER_RETVAL;

	if (!ctx)
		return XDP_ABORTED;
	return result;
}

#define CALL(number)                                                     \
	do {                                                             \
		if (programs <= number)                                  \
			return XDP_PASS;                                 \
		result = prog##number(ctx);                              \
		if (!((1U << result) & conf.chain_call_actions[number])) \
			return result;                                   \
	} while (0)

SEC("xdp")
int xdp_dispatcher(struct xdp_md *ctx)
{
	__u8 programs = conf.num_progs_enabled;
	int result;

	CALL(0);
	CALL(1);
	CALL(2);
	CALL(3);
	CALL(4);
	CALL(5);
	CALL(6);
	CALL(7);
	CALL(8);
	CALL(9);
	/* never reached, but a function that is not called is not loaded */
	if (programs > MAX_DISPATCHER_ACTIONS)
		return compat_test(ctx);
	return XDP_PASS;
}

/* What libxdp loads in the place of compat_test. */
SEC("xdp")
int xdp_pass(struct xdp_md *ctx)
{
	return XDP_PASS;
}

char LICENSE[] SEC("license") = "GPL";
