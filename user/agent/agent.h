/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The agent as a whole: what it holds, and the operations that commands and signals ask for.
 *
 * Owns: putting the parts together. May not know: JSON (commands.h), how any part does its work.
 */
#ifndef WARMPATH_AGENT_AGENT_H
#define WARMPATH_AGENT_AGENT_H

#include <time.h>
#include <uv.h>

#include "agent/apply.h"
#include "agent/attach.h"
#include "agent/datapath.h"
#include "agent/neighbours.h"
#include "lib/netlink.h"
#include "agent/pins.h"
#include "agent/reconcile.h"
#include "agent/quiet_close.h"
#include "agent/routing.h"
#include "agent/service_manager.h"
#include "lib/config.h"

#define AGENT_WARNINGS_MAX 32

struct agent {
	uv_loop_t loop;
	const char *config_path;
	int verbose;		  /* -v, how often: log_level of the file does not count */
	const char *program_path; /* of the file this process was started from */
	struct config *config;
	struct pins pins;
	struct netlink netlink;
	struct datapath datapath;
	struct attachments attachments;
	struct neighbours neighbours;
	struct routing routing;
	struct live_rings rings;
	struct timespec started; /* CLOCK_MONOTONIC */
	char *next_program; /* what to become after agent_stop(); NULL: nothing. Freed by main */
	struct upgrade *upgrade; /* a build is being asked whether it can take over */
	struct timespec loaded;	 /* CLOCK_REALTIME: when the configuration was last applied */
	char *warnings[AGENT_WARNINGS_MAX];
	unsigned int warning_count;

	struct service_manager service_manager;
	struct control *control;
	struct events *events_reader;
	struct quiet_close quiet_close;
	struct history *history;
	struct discovery *discovery; /* NULL until the event loop runs */
	struct health *health;
	struct slow_start *slow_start;
	struct metrics *metrics;
	struct reported_load *reported_load;
	struct reconcile_totals reconciled;
	uv_signal_t signals[3];
	uv_poll_t netlink_events;
	uv_timer_t upkeep; /* every few seconds */
	uv_timer_t sweep;  /* open requests: see agent_sweep() */
	unsigned int sweeps;
	uv_timer_t settle;   /* after a burst of netlink events */
	unsigned int events; /* what has changed since: enum netlink_event */
};

/* Loads or adopts the data path and brings it to the configuration. 0 or a negative errno with a sentence. */
int agent_start(struct agent *agent, struct error *error);

/* Frees what the agent holds; the data path in the kernel goes on. */
void agent_stop(struct agent *agent);

/* Runs the event loop until a signal ends it. 0 or a negative errno with a sentence. */
int agent_run(struct agent *agent, struct error *error);

/* Reads the file again and applies it; on error (a sentence) everything is as before. */
int agent_reload(struct agent *agent, struct error *error);

/* The configuration in the file, checked; NULL with a sentence. agent_drop_config() frees it (NULL is fine). */
struct config *agent_load_config(const char *path, struct error *error);
void agent_drop_config(struct config *config);

/* Makes the configuration's log_level count, unless -v was given. */
void agent_take_log_level(const struct agent *agent);

/* An agent_change (below) that brings the routing to a configuration; its context is a struct merge_request. */
struct merge_request {
	const struct config *config;
	enum routing_merge merge;
};
int agent_merge_config(struct agent *agent, struct routing *next, void *context,
		       struct error *error);

/*
 * Changes the routing: `change` edits a copy, which is then applied. On error (a sentence) everything is as before.
 */
typedef int (*agent_change)(struct agent *agent, struct routing *next, void *context,
			    struct error *error);
int agent_change_routing(struct agent *agent, agent_change change, void *context,
			 struct error *error);

/* For routing_merge() and others: which slots flows and open requests refer to. */
struct slot_usage agent_slot_usage(struct agent *agent);

/*
 * Opens what a former agent pinned, and no more, to take it away with agent_detach_all(). 0 or a negative errno with a sentence
 * (-EBUSY: an agent is running).
 */
int agent_open_pinned(struct agent *agent, struct error *error);

/* Detaches everything and removes all pins: the end of the data path. The agent should end then. */
int agent_detach_all(struct agent *agent, struct error *error);

/* Finds out anew what is wrong around us, and logs what is new of it. */
void agent_refresh_warnings(struct agent *agent);

#endif /* WARMPATH_AGENT_AGENT_H */
