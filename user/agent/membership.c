/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/membership.h"

#include "lib/calls.h"
#include "lib/log.h"

int membership_changed(const struct datapath *datapath, __u32 slot, const struct replica *replica,
		       bool entering, struct error *error)
{
	log_debug("replica %s (slot %u, service %u, incarnation %u) %s", replica->name, slot,
		  replica->service, replica->incarnation, entering ? "enters" : "leaves");
	return control_set_member(datapath->control_program, replica->service, slot, entering,
				  error);
}
