/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where the programs are attached: one entry for each interface that is configured or was attached by command.
 *
 * Owns: choosing the mode, coming and going interfaces, the list for `warmpath status`. May not know: how each kind of
 * attachment is made (attach_xdp.h, attach_dispatcher.h, attach_tc.h).
 *
 * Attachments outlive the agent: XDP by a link pinned below pin_path/v1/links (or in libxdp's dispatcher), tc as a filter of the
 * interface. A restarted agent puts its programs in the place of the former's, without a moment without one.
 */
#ifndef WARMPATH_AGENT_ATTACH_H
#define WARMPATH_AGENT_ATTACH_H

#include <net/if.h>

#include "agent/datapath.h"
#include "lib/netlink.h"
#include "agent/pins.h"
#include "lib/config.h"

#define ATTACHMENTS_MAX	 (CONFIG_INTERFACES_MAX * 2)
#define DRIVER_NAME_SIZE 32

enum attached_kind {
	ATTACHED_NOT = 0,
	ATTACHED_NATIVE = 1,
	ATTACHED_GENERIC = 2,
	ATTACHED_TC = 3,
};

struct attachment {
	char name[IF_NAMESIZE];
	enum attach_mode wanted;
	bool by_command; /* not in the configuration */
	int index;	 /* 0: there is no such interface at present */
	char driver[DRIVER_NAME_SIZE];
	bool ethernet;
	enum attached_kind kind;
	bool dispatched; /* XDP through libxdp's dispatcher, with other programs */
	__u32 program_id;
	bool redirect_target; /* XDP of other interfaces may redirect to it */
	bool redirect_peer;   /* tc of other interfaces may give packets to its other end */
	struct error problem; /* why it is not attached; empty if it is */
};

struct attachments {
	const struct datapath *datapath;
	const struct pins *pins;
	struct netlink *netlink;
	char run_directory
		[128];	    /* of files that end with the machine: that of the control socket */
	bool force;	    /* replace programs that are not ours */
	bool redirect_peer; /* of the configuration */
	struct attachment item[ATTACHMENTS_MAX];
	unsigned int count;
};

/*
 * Attaches all interfaces that the configuration has, as it says; those that do not exist are waited for. At a start
 * (`first`), what is found attached but not configured is kept and listed. 0; or a negative errno with a sentence if one
 * that exists could not be attached as demanded (the others are).
 */
int attachments_configure(struct attachments *attachments, const struct config *config, bool first,
			  struct error *error);

/* Detaches what the configuration does not have. */
void attachments_detach_unconfigured(struct attachments *attachments, const struct config *config);

/* Goes back to how things were, as well as possible: `before` is a copy made then. */
void attachments_restore(struct attachments *attachments, const struct attachments *before);

/* Lists what a former agent attached, so that it can be detached. */
void attachments_find(struct attachments *attachments);

/* Attaches one interface by command, or changes its mode. 0 or a negative errno with a sentence. */
int attachments_add(struct attachments *attachments, const char *name, enum attach_mode mode,
		    bool force, struct error *error);

/* Detaches one interface by command. 0 or a negative errno with a sentence. */
int attachments_remove(struct attachments *attachments, const char *name, struct error *error);

/* Detaches all. 0, or the first error (the others are detached nevertheless). */
int attachments_remove_all(struct attachments *attachments, struct error *error);

/* Looks which interfaces came and went, attaches those that came; also refreshes the redirect targets. */
void attachments_refresh(struct attachments *attachments);

/* The word for a kind: "native", "generic", "tc", "not attached". */
const char *attached_kind_name(enum attached_kind kind);

#endif /* WARMPATH_AGENT_ATTACH_H */
