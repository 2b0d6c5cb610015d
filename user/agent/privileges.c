/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/privileges.h"

#include <cap-ng.h>

#include "lib/log.h"

static const unsigned int kept[] = {
	CAP_BPF,       /* maps, programs */
	CAP_PERFMON,   /* loading programs that do pointer arithmetic */
	CAP_NET_ADMIN, /* attaching, neighbours */
	CAP_NET_RAW, /* quiet_close.h: only at a start, which an upgrade in this process is as well */
	/* reading configuration and secrets again on a reload, whoever owns the files: as root could at the start */
	CAP_DAC_READ_SEARCH,
};

void drop_privileges(bool opens_by_id)
{
	capng_type_t sets = CAPNG_EFFECTIVE | CAPNG_PERMITTED | CAPNG_BOUNDING_SET;
	capng_select_t which;
	unsigned int i;

	if (capng_get_caps_process()) {
		log_warning("the capabilities of the process cannot be read: all are kept");
		return;
	}
	if (capng_have_capabilities(CAPNG_SELECT_CAPS) == CAPNG_NONE)
		return;
	for (i = 0; i < sizeof(kept) / sizeof(kept[0]); i++) {
		if (!capng_have_capability(CAPNG_EFFECTIVE, kept[i]))
			log_debug("capability %s is not there", capng_capability_to_name(kept[i]));
	}
	/* who may not change the bounding set had it set for them: by the unit, or by the agent before an upgrade */
	which = capng_have_capability(CAPNG_EFFECTIVE, CAP_SETPCAP) ? CAPNG_SELECT_BOTH
								    : CAPNG_SELECT_CAPS;
	capng_clear(which);
	for (i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
		capng_update(CAPNG_ADD, sets, kept[i]);
	if (opens_by_id)
		capng_update(CAPNG_ADD, sets, CAP_SYS_ADMIN);
	if (capng_apply(which))
		log_warning("capabilities cannot be given up: all are kept");
	else
		log_debug(
			"kept the capabilities BPF, PERFMON, NET_ADMIN, NET_RAW, DAC_READ_SEARCH%s only",
			opens_by_id ? ", SYS_ADMIN (for libxdp's dispatcher)" : "");
}
