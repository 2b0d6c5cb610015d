/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The agent's end of the control socket.
 *
 * Owns: the socket file, connections, their limits. May not know: what a command does (commands.h).
 *
 * Limits: CONTROL_CLIENTS_MAX connections, lines of CONTROL_LINE_MAX bytes, CONTROL_IDLE_SECONDS without a whole line or with an
 * answer that is not taken; whoever exceeds them is told, if that can be, and hung up on. Only root and the user the agent
 * runs as are served.
 */
#ifndef WARMPATH_AGENT_CONTROL_H
#define WARMPATH_AGENT_CONTROL_H

#include <jansson.h>
#include <stdbool.h>

#include "agent/events.h"
#include "lib/error.h"

#define CONTROL_CLIENTS_MAX  32
#define CONTROL_IDLE_SECONDS 30

struct agent;
struct control;
struct control_client;

/* Listens on the configured path (mode 0600) in the agent's loop. 0 or a negative errno with a sentence. */
int control_listen(struct agent *agent, struct control **control, struct error *error);

/* Hangs up on all and removes the socket file; the loop then has to run to free the rest. `control` may be NULL. */
void control_close(struct control *control);

/*
 * The client whose command is being carried out gets, after its answer, every message published that passes the filter, until it hangs
 * up. One that reads too slowly misses messages, and is told how many.
 */
void control_follow(struct control *control, const struct event_filter *filter);

/* Whether anybody would get a message about that service and ring key. */
bool control_is_followed(const struct control *control, __u32 service, __u64 id_hash);

/* Sends the message to all who follow it; drops the reference to it. */
void control_publish(struct control *control, __u32 service, __u64 id_hash, json_t *message);

/*
 * The client whose command is being carried out is answered later: what the command answers now is not sent. Returns what to name it by in
 * control_answer_deferred(), to be called once; 0: there is no such client.
 */
unsigned long control_defer(struct control *control);

/* Sends a deferred answer and drops the reference to it. False: the client has hung up, or there was none (ticket 0). */
bool control_answer_deferred(struct control *control, unsigned long ticket, json_t *answer);

/* control_publish() for a message about a change of a service's set, to those who follow changes. */
bool control_changes_are_followed(const struct control *control, __u32 service);
void control_publish_change(struct control *control, __u32 service, json_t *message);

/* Sends one answer as one line; drops the reference to it. */
void control_answer(struct control_client *client, json_t *answer);

#endif /* WARMPATH_AGENT_CONTROL_H */
