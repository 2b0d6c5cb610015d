/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The commands of the control socket: the table, and one file for each group of them (command_*.c).
 *
 * Owns: names, arguments and answers of the commands. May not know: sockets.
 */
#ifndef WARMPATH_AGENT_COMMANDS_H
#define WARMPATH_AGENT_COMMANDS_H

#include <jansson.h>
#include <warmpath/layout.h>

#include "lib/error.h"

struct agent;

/*
 * Carries out one command. `answer` is an object to put the results into. 0, or a negative errno with a sentence: then the answer is
 * the refusal alone, with the member "obstacle" if there is one: what the caller may be able to do something about.
 */
typedef int (*command_function)(struct agent *agent, const json_t *message, json_t *answer,
				struct error *error);

/* Runs the command that the message names; a new reference to what is to be answered. */
json_t *commands_run(struct agent *agent, const json_t *message);

/* command_status.c */
int command_status(struct agent *agent, const json_t *message, json_t *answer, struct error *error);
int command_service_list(struct agent *agent, const json_t *message, json_t *answer,
			 struct error *error);
int command_counters(struct agent *agent, const json_t *message, json_t *answer,
		     struct error *error);
int command_version(struct agent *agent, const json_t *message, json_t *answer,
		    struct error *error);
int command_reload(struct agent *agent, const json_t *message, json_t *answer, struct error *error);

/* command_upgrade.c: answers when the other build has */
int command_upgrade(struct agent *agent, const json_t *message, json_t *answer,
		    struct error *error);

/* command_replica.c */
int command_replica_list(struct agent *agent, const json_t *message, json_t *answer,
			 struct error *error);
int command_replica_add(struct agent *agent, const json_t *message, json_t *answer,
			struct error *error);
int command_replica_drain(struct agent *agent, const json_t *message, json_t *answer,
			  struct error *error);
int command_replica_undrain(struct agent *agent, const json_t *message, json_t *answer,
			    struct error *error);
int command_replica_remove(struct agent *agent, const json_t *message, json_t *answer,
			   struct error *error);
int command_replica_weight(struct agent *agent, const json_t *message, json_t *answer,
			   struct error *error);

/* command_drain.c */
int command_replica_busy(struct agent *agent, const json_t *message, json_t *answer,
			 struct error *error);

/* command_policy.c */
int command_policy_show(struct agent *agent, const json_t *message, json_t *answer,
			struct error *error);
int command_policy_set(struct agent *agent, const json_t *message, json_t *answer,
		       struct error *error);

/* command_explain.c */
int command_explain(struct agent *agent, const json_t *message, json_t *answer,
		    struct error *error);

/* command_trace.c: answers, and has the client follow the events from then on (control.h) */
int command_trace(struct agent *agent, const json_t *message, json_t *answer, struct error *error);

/* command_conversation.c */
int command_conversation(struct agent *agent, const json_t *message, json_t *answer,
			 struct error *error);
int command_conversation_forget(struct agent *agent, const json_t *message, json_t *answer,
				struct error *error);

/* command_snapshot.c */
int command_snapshot(struct agent *agent, const json_t *message, json_t *answer,
		     struct error *error);
int command_decisions(struct agent *agent, const json_t *message, json_t *answer,
		      struct error *error);

/* command_ring.c */
int command_ring(struct agent *agent, const json_t *message, json_t *answer, struct error *error);

/* command_route.c */
int command_route(struct agent *agent, const json_t *message, json_t *answer, struct error *error);
int command_address(struct agent *agent, const json_t *message, json_t *answer,
		    struct error *error);

/* command_attach.c */
int command_attach(struct agent *agent, const json_t *message, json_t *answer, struct error *error);
int command_detach(struct agent *agent, const json_t *message, json_t *answer, struct error *error);

/*
 * Reads the argument "id" as the data path reads an id: blanks around it do not count. 0, or -EINVAL with a sentence.
 */
int command_read_id(const json_t *message, char id[ID_LENGTH_MAX + 1], struct error *error);

#endif /* WARMPATH_AGENT_COMMANDS_H */
