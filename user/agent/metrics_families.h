/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The metrics: names, types, help. Names and labels are a contract with dashboards: they are added to, not changed.
 *
 * X(id, name, type, help). docs/metrics.md has the same list, which a test compares.
 */
#ifndef WARMPATH_AGENT_METRICS_FAMILIES_H
#define WARMPATH_AGENT_METRICS_FAMILIES_H

#define WARMPATH_METRICS(X)                                                                        \
	X(INFO, "warmpath_info", "gauge", "Always 1; version, role and shape of the agent.")       \
	X(START_TIME, "warmpath_start_time_seconds", "gauge",                                      \
	  "When this agent was started, in seconds since 1970.")                                   \
	X(CONFIG_TIME, "warmpath_configuration_applied_time_seconds", "gauge",                     \
	  "When the configuration was last applied, in seconds since 1970.")                       \
	X(WARNINGS, "warmpath_warnings", "gauge",                                                  \
	  "Things around the agent that are wrong at present.")                                    \
	X(PACKETS, "warmpath_packets_total", "counter",                                            \
	  "Packets seen by the data path, by what became of them.")                                \
	X(NOTES, "warmpath_notes_total", "counter", "Things that happened to packets on the way.") \
	X(HANDOFF, "warmpath_handoff_segments_total", "counter",                                   \
	  "Role replica: segments that routers have handed over, by what became of them.")         \
	X(DECISIONS, "warmpath_decisions_total", "counter", "Requests decided.")                   \
	X(RELEASES, "warmpath_releases_total", "counter",                                          \
	  "Charges given back: requests that have ended.")                                         \
	X(REASONS, "warmpath_traced_decisions_total", "counter",                                   \
	  "Traced decisions by their reason.")                                                     \
	X(MOVES, "warmpath_traced_moves_total", "counter",                                         \
	  "Traced decisions that moved a conversation to another replica, by cause.")              \
	X(COMPLETIONS, "warmpath_traced_completions_total", "counter",                             \
	  "Traced requests that have ended, by how.")                                              \
	X(PROMPT_TOKENS, "warmpath_traced_prompt_tokens_total", "counter",                         \
	  "Prompt tokens of traced decisions, by the replica chosen.")                             \
	X(CACHED_TOKENS, "warmpath_traced_cached_tokens_total", "counter",                         \
	  "Of the prompt tokens those that the replica had served before: estimated cache hits.")  \
	X(OPEN_REQUESTS, "warmpath_open_requests", "gauge", "Requests in flight at a replica.")    \
	X(OPEN_TOKENS, "warmpath_open_tokens", "gauge", "Tokens charged for requests in flight.")  \
	X(REPLICA_DECISIONS, "warmpath_replica_decisions_total", "counter",                        \
	  "Requests ever given to a replica.")                                                     \
	X(CONTACTS, "warmpath_replica_contacts_total", "counter",                                  \
	  "Connections handed to a replica, by what it did with them.")                            \
	X(STATE, "warmpath_replica_state", "gauge",                                                \
	  "1 for the state the replica is in, 0 for the others.")                                  \
	X(INCARNATION, "warmpath_replica_incarnation", "gauge",                                    \
	  "Number of the replica's life; it rises when its cache is lost.")                        \
	X(WEIGHT, "warmpath_replica_weight", "gauge", "Weight of a replica.")                      \
	X(SLOW_START, "warmpath_replica_slow_start_ratio", "gauge",                                \
	  "How much of its share a replica has; below 1 during slow start.")                       \
	X(SHARE, "warmpath_replica_share_ratio", "gauge", "Share of the ring: 0 to 1.")            \
	X(HEALTH, "warmpath_replica_health", "gauge",                                              \
	  "1: checks find the replica well, 0: they do not; absent while unknown or unchecked.")   \
	X(CHECKS, "warmpath_replica_checks_total", "counter",                                      \
	  "Health checks of a replica, by result.")                                                \
	X(CHECK_TIME, "warmpath_replica_check_seconds", "gauge",                                   \
	  "How long the last health check took.")                                                  \
	X(REPORTED_RUNNING, "warmpath_reported_requests_running", "gauge",                         \
	  "Requests a replica says it works on (reported_load).")                                  \
	X(REPORTED_WAITING, "warmpath_reported_requests_waiting", "gauge",                         \
	  "Requests a replica says are in its queue.")                                             \
	X(REPORTED_CACHE, "warmpath_reported_cache_usage_ratio", "gauge",                          \
	  "How full a replica says its KV cache is: 0 to 1.")                                      \
	X(REPORTED_AGE, "warmpath_reported_age_seconds", "gauge",                                  \
	  "How long ago a replica has said so.")                                                   \
	X(FOREIGN, "warmpath_foreign_requests", "gauge",                                           \
	  "Requests of others that count as a replica's load (reported_load.correct).")            \
	X(RING_POINTS, "warmpath_ring_points", "gauge", "Points of the service's ring.")           \
	X(RING_MEMBERS, "warmpath_ring_members", "gauge", "Replicas on the service's ring.")       \
	X(RING_GENERATION, "warmpath_ring_generation", "gauge",                                    \
	  "Number of the service's ring; it rises by one with each.")                              \
	X(DISCOVERY_UP, "warmpath_discovery_up", "gauge",                                          \
	  "1: the source of replicas can be asked; 0: it cannot, what it said last stays.")        \
	X(DISCOVERY_AGE, "warmpath_discovery_age_seconds", "gauge",                                \
	  "Since what the source says was confirmed; absent until it has answered.")               \
	X(DISCOVERY_MEMBERS, "warmpath_discovery_members", "gauge",                                \
	  "Endpoints or addresses that the source has found.")                                     \
	X(DISCOVERY_FAILURES, "warmpath_discovery_failures_total", "counter",                      \
	  "Times that the source could not be asked.")                                             \
	X(RECONCILES, "warmpath_reconciles_total", "counter",                                      \
	  "Walks over the open requests by this agent.")                                           \
	X(RECONCILE_TIMEOUTS, "warmpath_reconcile_ended_total", "counter",                         \
	  "Requests that were ended by these walks, by why.")                                      \
	X(RECONCILE_REPAIRS, "warmpath_reconcile_repairs_total", "counter",                        \
	  "Loads of replicas that were found wrong and corrected.")                                \
	X(EVENTS_DROPPED, "warmpath_events_dropped_total", "counter",                              \
	  "Events that found the ring buffer full.")                                               \
	X(DATAPATH_RUNS, "warmpath_datapath_runs_total", "counter",                                \
	  "Runs of a program that the kernel has timed (metrics.datapath_time).")                  \
	X(DATAPATH_SECONDS, "warmpath_datapath_seconds_total", "counter",                          \
	  "Time of these runs, with some 20 ns each that timing costs itself.")                    \
	X(SCRAPES, "warmpath_scrapes_total", "counter", "Requests for metrics that were answered.")

enum metric {
#define X(id, name, type, help) METRIC_##id,
	WARMPATH_METRICS(X)
#undef X
		METRIC_COUNT,
};

#endif /* WARMPATH_AGENT_METRICS_FAMILIES_H */
