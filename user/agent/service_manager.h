/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the service manager (systemd, or whoever sets NOTIFY_SOCKET) is told: ready, reloading, ending, still alive.
 *
 * Owns: the words and the rhythm. May not know: what the agent does in between. Without a service manager all of it does nothing.
 */
#ifndef WARMPATH_AGENT_SERVICE_MANAGER_H
#define WARMPATH_AGENT_SERVICE_MANAGER_H

#include <stdbool.h>
#include <uv.h>

/* The timer that shows a watchdog that the event loop still turns. */
struct service_manager {
	uv_timer_t pulse;
	bool watched; /* `pulse` is a handle of the loop */
};

/* The commands are answered and the data path is as configured. Starts the pulse if a watchdog asks for it. */
void service_manager_ready(struct service_manager *manager, uv_loop_t *loop);

/* The configuration is being applied anew; to be followed by service_manager_reloaded(). */
void service_manager_reloading(void);
void service_manager_reloaded(void);

/* The process ends; or another program is about to take its place, which will say itself when it is ready. */
void service_manager_stopping(void);
void service_manager_upgrading(void);

#endif /* WARMPATH_AGENT_SERVICE_MANAGER_H */
