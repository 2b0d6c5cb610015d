/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/service_manager.h"

#include <stdint.h>
#include <systemd/sd-daemon.h>
#include <time.h>

#define UPGRADE_MICROSECONDS 120000000ULL

static void on_pulse(uv_timer_t *timer)
{
	(void)timer;
	sd_notify(0, "WATCHDOG=1");
}

void service_manager_ready(struct service_manager *manager, uv_loop_t *loop)
{
	uint64_t microseconds;

	sd_notify(0, "READY=1\nSTATUS=Routing.");
	if (manager->watched || sd_watchdog_enabled(0, &microseconds) <= 0)
		return;
	/* what it was before service_manager_upgrading(), if this is the build that took over */
	sd_notifyf(0, "WATCHDOG_USEC=%llu", (unsigned long long)microseconds);
	uv_timer_init(loop, &manager->pulse);
	manager->watched = true;
	/* thrice in the time allowed, so that a pulse that comes late is not the last */
	uv_timer_start(&manager->pulse, on_pulse, 0, microseconds / 3000 + 1);
}

void service_manager_reloading(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%llu\nSTATUS=Applying the configuration.",
		   (unsigned long long)now.tv_sec * 1000000 + now.tv_nsec / 1000);
}

void service_manager_reloaded(void)
{
	sd_notify(0, "READY=1\nSTATUS=Routing.");
}

void service_manager_stopping(void)
{
	sd_notify(0, "STOPPING=1\nSTATUS=Ending; the data path goes on.");
}

void service_manager_upgrading(void)
{
	uint64_t microseconds;

	sd_notify(0, "STATUS=Being replaced by another build.");
	/* The other build loads its programs before it can show that it is alive. */
	if (sd_watchdog_enabled(0, &microseconds) > 0)
		sd_notifyf(0, "WATCHDOG_USEC=%llu\nWATCHDOG=1",
			   (unsigned long long)microseconds + UPGRADE_MICROSECONDS);
}
