/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/agent.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/changes.h"
#include "agent/control.h"
#include "agent/discovery.h"
#include "agent/events.h"
#include "agent/flow_table.h"
#include "agent/forwarding.h"
#include "agent/history.h"
#include "agent/handoff_settings.h"
#include "agent/health.h"
#include "agent/datapath_time.h"
#include "agent/metrics.h"
#include "agent/reconcile.h"
#include "agent/redirect.h"
#include "agent/reported_load.h"
#include "agent/slow_start.h"
#include "lib/log.h"

#define UPKEEP_MILLISECONDS 10000
#define SETTLE_MILLISECONDS 200
#define SWEEP_MILLISECONDS  1000
#define SWEEPS_PER_REPAIR   10 /* every so many sweeps the loads are compared as well */
#define SWEEP_SHARE	    20 /* a sweep that took long is followed by a pause of so many times that */

/* --- which slots are in use -------------------------------------------------------------------------------------- */

static int ask_slot_usage(void *context, bool in_use[REPLICAS_MAX])
{
	struct agent *agent = context;
	__u32 *counts = calloc(REPLICAS_MAX, sizeof(*counts));
	struct replica_load load;
	__u32 slot;
	int result;

	if (!counts)
		return -ENOMEM;
	result = flow_table_count(agent->datapath.flows, agent->datapath.connections, counts);
	for (slot = 0; slot < REPLICAS_MAX && !result; slot++) {
		in_use[slot] = counts[slot] > 0;
		if (bpf_map_lookup_elem(agent->datapath.replica_loads, &slot, &load))
			result = -errno;
		else if (load.requests > 0)
			in_use[slot] = true;
	}
	free(counts);
	return result;
}

struct slot_usage agent_slot_usage(struct agent *agent)
{
	struct slot_usage usage = {.ask = ask_slot_usage, .context = agent};

	return usage;
}

/* --- changing the routing ----------------------------------------------------------------------------------------- */

/*
 * Applies `next`, which becomes the routing. If a map cannot be written in the middle, the routing is read back from the
 * maps, so that what is shown is what is there.
 */
static int apply_next(struct agent *agent, struct routing *next, bool first, struct error *error)
{
	struct changes *changes = first ? NULL : changes_begin(agent, next);
	struct error reading;
	int result;

	slow_start_begin(&agent->routing, next);
	result =
		apply_routing(&agent->datapath, &agent->routing, next, first, &agent->rings, error);
	if (result)
		changes_drop(changes);
	if (!result) {
		agent->routing = *next;
		changes_publish(agent, changes);
		neighbours_refresh(&agent->neighbours, &agent->routing);
		slow_start_follow(agent->slow_start);
		health_follow(agent->health);
		reported_load_follow(agent->reported_load);
		return 0;
	}
	memcpy(next->settings, agent->routing.settings, sizeof(next->settings));
	if (apply_read_routing(&agent->datapath, &agent->routing, &reading))
		log_error("%s", reading.text);
	memcpy(agent->routing.settings, next->settings, sizeof(next->settings));
	return result;
}

int agent_change_routing(struct agent *agent, agent_change change, void *context,
			 struct error *error)
{
	struct routing *next = malloc(sizeof(*next));
	int result;

	if (!next)
		return error_set(error, -ENOMEM, "not enough memory");
	*next = agent->routing;
	result = change(agent, next, context, error);
	if (!result)
		result = apply_next(agent, next, false, error);
	free(next);
	return result;
}

/* --- warnings ------------------------------------------------------------------------------------------------------ */

struct warning_list {
	char *text[AGENT_WARNINGS_MAX];
	unsigned int count;
};

static void collect_warning(void *context, const char *sentence)
{
	struct warning_list *list = context;

	if (list->count < AGENT_WARNINGS_MAX && (list->text[list->count] = strdup(sentence)))
		list->count++;
}

static void check_pins(const struct datapath *datapath, struct warning_list *list)
{
	const char *path = datapath_deleted_pin(datapath);
	char sentence[PATH_MAX + 256];

	if (!path)
		return;
	snprintf(
		sentence, sizeof(sentence),
		"the pin %s was deleted: the next warmpathd cannot take this data path over; make "
		"another one (warmpath detach all, then start warmpathd; connections are forgotten)",
		path);
	collect_warning(list, sentence);
}

static bool was_known(const struct agent *agent, const char *sentence)
{
	unsigned int i;

	for (i = 0; i < agent->warning_count; i++) {
		if (strcmp(agent->warnings[i], sentence) == 0)
			return true;
	}
	return false;
}

static void drop_warnings(struct agent *agent)
{
	while (agent->warning_count > 0)
		free(agent->warnings[--agent->warning_count]);
}

void agent_refresh_warnings(struct agent *agent)
{
	struct warning_list list = {.count = 0};
	unsigned int i;

	forwarding_check(&agent->attachments, &agent->routing, &agent->netlink, collect_warning,
			 &list);
	discovery_check(agent->discovery, collect_warning, &list);
	check_pins(&agent->datapath, &list);
	for (i = 0; i < list.count; i++) {
		if (!was_known(agent, list.text[i]))
			log_warning("%s", list.text[i]);
	}
	drop_warnings(agent);
	memcpy(agent->warnings, list.text, sizeof(agent->warnings));
	agent->warning_count = list.count;
}

/* --- upkeep --------------------------------------------------------------------------------------------------------- */

static int forget_removed(struct agent *agent, struct routing *next, void *context,
			  struct error *error)
{
	bool *in_use = context;

	(void)agent;
	(void)error;
	routing_forget_removed(next, in_use);
	return 0;
}

/* Frees the slots of removed replicas whose last connection has ended. */
static void free_slots(struct agent *agent)
{
	bool in_use[REPLICAS_MAX] = {false}, waiting = false;
	struct error error;
	unsigned int slot;
	int result;

	for (slot = 0; slot < REPLICAS_MAX; slot++)
		waiting |= agent->routing.replicas[slot].state == REPLICA_REMOVED &&
			   replica_has_traffic(&agent->routing.replicas[slot]);
	if (!waiting)
		return;
	result = ask_slot_usage(agent, in_use);
	if (result) {
		log_warning("the flows cannot be read: %s", strerror(-result));
		return;
	}
	if (agent_change_routing(agent, forget_removed, in_use, &error))
		log_warning("%s", error.text);
}

static void on_upkeep(uv_timer_t *timer)
{
	struct agent *agent = timer->data;

	attachments_refresh(&agent->attachments);
	neighbours_refresh(&agent->neighbours, &agent->routing);
	agent_refresh_warnings(agent);
	free_slots(agent);
}

/* Ends requests that are overdue, and now and then repairs loads. */
static void on_sweep(uv_timer_t *timer)
{
	struct agent *agent = timer->data;
	bool repair = agent->sweeps++ % SWEEPS_PER_REPAIR == 0;
	uint64_t begun = uv_hrtime(), took;
	struct reconcile_result found;
	struct error error;

	if (reconcile(&agent->datapath, &agent->routing, repair,
		      reported_load_foreign(agent->reported_load), &found, &error))
		log_warning("%s", error.text);
	else if (found.repaired > 0)
		log_info(
			"loads of %u replicas were off by %lld requests and %lld tokens and have been "
			"repaired",
			found.repaired, found.requests, found.tokens);
	agent->reconciled.passes++;
	agent->reconciled.timed_out += found.timed_out;
	agent->reconciled.abandoned += found.abandoned;
	agent->reconciled.repaired += found.repaired;
	took = (uv_hrtime() - begun) / 1000000 * SWEEP_SHARE;
	uv_timer_start(timer, on_sweep, took > SWEEP_MILLISECONDS ? took : SWEEP_MILLISECONDS, 0);
}

static void on_settled(uv_timer_t *timer)
{
	struct agent *agent = timer->data;
	unsigned int events = agent->events;

	agent->events = 0;
	if (events & NETLINK_EVENT_LINK)
		attachments_refresh(&agent->attachments);
	else if (events & NETLINK_EVENT_QUEUE)
		redirect_refresh(&agent->attachments);
	if (events & (NETLINK_EVENT_LINK | NETLINK_EVENT_ROUTE)) {
		neighbours_refresh(&agent->neighbours, &agent->routing);
		agent_refresh_warnings(agent);
	}
}

static void on_netlink(uv_poll_t *poll, int status, int ready)
{
	struct agent *agent = poll->data;

	(void)ready;
	if (status < 0)
		return;
	agent->events |= netlink_take_events(&agent->netlink);
	/* Events come in bursts (an interface with its addresses and routes): act once, when they are over. */
	if (agent->events && !uv_is_active((uv_handle_t *)&agent->settle))
		uv_timer_start(&agent->settle, on_settled, SETTLE_MILLISECONDS, 0);
}

static void on_signal(uv_signal_t *signal, int number)
{
	struct agent *agent = signal->data;
	struct error error;

	if (number != SIGHUP) {
		log_info("ending; the data path goes on");
		service_manager_stopping();
		uv_stop(&agent->loop);
	} else if (agent_reload(agent, &error)) {
		log_error("reload: %s", error.text);
	}
}

/* --- beginning and end ------------------------------------------------------------------------------------------------ */

static int start_routing(struct agent *agent, struct error *error)
{
	struct merge_request request = {.config = agent->config, .merge = MERGE_START};
	struct routing *next;
	int result = apply_read_routing(&agent->datapath, &agent->routing, error);

	if (result)
		return result;
	next = malloc(sizeof(*next));
	if (!next)
		return error_set(error, -ENOMEM, "not enough memory");
	*next = agent->routing;
	result = agent_merge_config(agent, next, &request, error);
	if (!result)
		result = apply_next(agent, next, true, error);
	free(next);
	return result;
}

/* The control socket's directory. */
static void name_run_directory(struct agent *agent)
{
	char *directory = agent->attachments.run_directory, *slash;

	snprintf(directory, sizeof(agent->attachments.run_directory), "%s",
		 agent->config->control_socket);
	slash = strrchr(directory, '/');
	if (slash)
		*slash = '\0';
	else
		snprintf(directory, sizeof(agent->attachments.run_directory), ".");
}

/* Configuration, netlink, lock: what all works begin with. */
static int begin(struct agent *agent, struct error *error)
{
	int result;

	agent->pins.lock = -1;
	agent->quiet_close.ipv4 = agent->quiet_close.ipv6 = -1;
	agent->config = agent_load_config(agent->config_path, error);
	if (!agent->config)
		return -EINVAL;
	agent_take_log_level(agent);
	agent->neighbours.netlink = &agent->netlink;
	agent->attachments.datapath = &agent->datapath;
	agent->attachments.pins = &agent->pins;
	agent->attachments.netlink = &agent->netlink;
	name_run_directory(agent);
	result = netlink_open(&agent->netlink);
	if (result)
		return error_set(error, result, "netlink cannot be used: %s", strerror(-result));
	return pins_open(&agent->pins, agent->config->pin_path, error);
}

int agent_start(struct agent *agent, struct error *error)
{
	int result = begin(agent, error);

	if (result)
		return result;
	/* while there are the privileges for it; elsewhere no connection leaves anything behind */
	if (agent->config->role == ROLE_ROUTER && agent->config->shape == SHAPE_INLINE)
		quiet_close_open(&agent->quiet_close);
	datapath_time_configure(agent->config->metrics.datapath_time);
	clock_gettime(CLOCK_MONOTONIC, &agent->started);
	clock_gettime(CLOCK_REALTIME, &agent->loaded);
	result = datapath_open(&agent->datapath, &agent->pins, agent->config, error);
	if (result) {
		if (!agent->datapath.adopted)
			pins_remove(&agent->pins, agent->config->pin_path, NULL);
		return result;
	}
	log_info(agent->datapath.adopted ? "adopted the data path pinned below %s"
					 : "made a new data path, pinned below %s",
		 agent->pins.directory);
	result = handoff_keys_write(agent->datapath.handoff_keys, &agent->config->handoff, error);
	if (!result)
		result = start_routing(agent, error);
	if (!result)
		result = events_configure(agent, error);
	if (!result)
		result = attachments_configure(&agent->attachments, agent->config, true, error);
	if (!result)
		program_pins_settle(&agent->datapath, &agent->pins);
	/* A first start that fails leaves nothing behind; a later one must not end what is running. */
	if (result && !agent->datapath.adopted)
		agent_detach_all(agent, NULL);
	if (!result)
		agent_refresh_warnings(agent);
	return result;
}

int agent_open_pinned(struct agent *agent, struct error *error)
{
	int result = begin(agent, error);

	if (!result)
		result = datapath_open_pinned(&agent->datapath, &agent->pins, agent->config, error);
	/* The next hops that the former agent had the kernel keep are those of the replicas it left in the maps. */
	if (!result && apply_read_routing(&agent->datapath, &agent->routing, NULL) == 0)
		neighbours_refresh(&agent->neighbours, &agent->routing);
	if (!result)
		attachments_find(&agent->attachments);
	return result;
}

void agent_stop(struct agent *agent)
{
	drop_warnings(agent);
	live_rings_free(&agent->rings);
	datapath_close(&agent->datapath);
	pins_close(&agent->pins);
	netlink_close(&agent->netlink);
	quiet_close_close(&agent->quiet_close);
	agent_drop_config(agent->config);
	agent->config = NULL;
}

int agent_detach_all(struct agent *agent, struct error *error)
{
	int result = attachments_remove_all(&agent->attachments, error);

	if (!result) {
		neighbours_release(&agent->neighbours);
		result = pins_remove(&agent->pins, agent->config->pin_path, error);
	}
	return result;
}

static void close_handle(uv_handle_t *handle, void *context)
{
	(void)context;
	if (!uv_is_closing(handle))
		uv_close(handle, NULL);
}

static void watch_signals(struct agent *agent)
{
	static const int numbers[] = {SIGHUP, SIGTERM, SIGINT};
	unsigned int i;

	for (i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		uv_signal_init(&agent->loop, &agent->signals[i]);
		agent->signals[i].data = agent;
		uv_signal_start(&agent->signals[i], on_signal, numbers[i]);
	}
}

int agent_run(struct agent *agent, struct error *error)
{
	int result = uv_loop_init(&agent->loop);

	if (result)
		return error_set(error, result, "no event loop: %s", uv_strerror(result));
	watch_signals(agent);
	uv_poll_init(&agent->loop, &agent->netlink_events,
		     netlink_event_descriptor(&agent->netlink));
	agent->netlink_events.data = agent;
	uv_poll_start(&agent->netlink_events, UV_READABLE, on_netlink);
	uv_timer_init(&agent->loop, &agent->settle);
	agent->settle.data = agent;
	uv_timer_init(&agent->loop, &agent->upkeep);
	agent->upkeep.data = agent;
	uv_timer_start(&agent->upkeep, on_upkeep, UPKEEP_MILLISECONDS, UPKEEP_MILLISECONDS);

	uv_timer_init(&agent->loop, &agent->sweep);
	agent->sweep.data = agent;
	uv_timer_start(&agent->sweep, on_sweep, SWEEP_MILLISECONDS, 0);

	agent->history = history_new();
	if (agent->history)
		result = control_listen(agent, &agent->control, error);
	else
		result = error_set(error, -ENOMEM, "not enough memory");
	if (!result)
		result = events_open(agent, &agent->events_reader, error);
	if (!result)
		result = discovery_open(agent, &agent->discovery, error);
	if (!result)
		result = slow_start_open(agent, &agent->slow_start, error);
	if (!result)
		result = health_open(agent, &agent->health, error);
	if (!result)
		result = reported_load_open(agent, &agent->reported_load, error);
	if (!result)
		result = metrics_open(agent, &agent->metrics, error);
	if (!result) {
		log_info("ready");
		service_manager_ready(&agent->service_manager, &agent->loop);
		uv_run(&agent->loop, UV_RUN_DEFAULT);
	}
	discovery_close(agent->discovery);
	agent->discovery = NULL;
	metrics_close(agent->metrics);
	agent->metrics = NULL;
	reported_load_close(agent->reported_load);
	agent->reported_load = NULL;
	health_close(agent->health);
	slow_start_close(agent->slow_start);
	agent->health = NULL;
	agent->slow_start = NULL;
	events_close(agent->events_reader);
	control_close(agent->control);
	uv_walk(&agent->loop, close_handle, NULL);
	uv_run(&agent->loop, UV_RUN_DEFAULT);
	uv_loop_close(&agent->loop);
	agent->control = NULL;
	history_free(agent->history);
	agent->history = NULL;
	return result;
}
