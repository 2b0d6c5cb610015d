/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Another build of warmpathd takes over from this one, in this process: it is asked first whether it can, with the configuration as it is
 * now and the maps that are pinned; only then this agent ends and becomes it. The data path goes on all the time.
 *
 * Owns: asking, and the refusal. May not know: what makes a build fit (datapath.h), sockets.
 */
#ifndef WARMPATH_AGENT_UPGRADE_H
#define WARMPATH_AGENT_UPGRADE_H

#include "lib/error.h"

struct agent;

/*
 * What the question came to: `error` is NULL if the build can take over, else a sentence. Called once, from the event loop.
 */
typedef void (*upgrade_answered)(void *context, const struct error *error);

/*
 * Asks the program at the absolute path `program` whether it can take over. 0, and `answered` will be called; or a negative errno with a
 * sentence (-EBUSY: another one is being asked).
 */
int upgrade_ask(struct agent *agent, const char *program, upgrade_answered answered, void *context,
		struct error *error);

/*
 * Becomes `program`, which replaces this process under the same number; agent_stop() has been called. Returns only if that fails, a negative
 * errno.
 */
int upgrade_become(const char *program, const char *config_path, int verbose);

/*
 * The other side of the question: whether this build, with this configuration, can take over what is pinned. Nothing is changed. 0 or a
 * negative errno with a sentence.
 */
int upgrade_check(const char *config_path, struct error *error);

#endif /* WARMPATH_AGENT_UPGRADE_H */
