/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The configuration file as the agent holds it, and how it gets there: parse (config_document.c), check each value
 * against the schema (config_schema.h), check what spans several keys (config_check.c).
 *
 * Owns: the structs, units and limits of the configuration. May not know: maps, sockets, the running agent.
 *
 * There are no hidden defaults (semantics.md section 5): each key must be stated, and deploy/warmpath.yaml states each.
 */
#ifndef WARMPATH_USER_CONFIG_H
#define WARMPATH_USER_CONFIG_H

#include <limits.h>
#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <warmpath/blake2b.h>
#include <warmpath/http.h>
#include <warmpath/handoff_keys.h>
#include <warmpath/layout.h>

#include "lib/error.h"
#include "lib/log.h"

#define CONFIG_INTERFACES_MAX	     64
#define CONFIG_SERVICE_ADDRESSES_MAX 16
#define CONFIG_REPLICA_ADDRESSES_MAX 2
#define CONFIG_DISCOVERY_MAX	     8 /* sources of a service */
#define DNS_NAME_SIZE		     254
#define KUBERNETES_NAME_SIZE	     64
#define CONFIG_METRICS_ADDRESSES_MAX 4
#define CONFIG_FILE_SIZE_MAX	     (4u << 20)

enum agent_role {
	ROLE_ROUTER = 1, /* sends requests to replicas */
	ROLE_REPLICA =
		2, /* takes the connections that routers hand over to servers on this machine */
};

enum deployment_shape {
	SHAPE_INLINE = 1,     /* replies come back through this machine from elsewhere */
	SHAPE_NODE_LOCAL = 2, /* the replicas run on this machine */
};

enum attach_mode {
	ATTACH_AUTO = 1,
	ATTACH_NATIVE = 2,
	ATTACH_GENERIC = 3,
	ATTACH_TC = 4,
};

enum service_protocol {
	PROTOCOL_TCP = 1,
	PROTOCOL_UDP = 2,
	PROTOCOL_ANY = 3, /* both */
};

struct config_address {
	struct address address;
	unsigned int prefix_length; /* 128, or 64 for a prefix service */
};

struct config_addresses {
	struct config_address item[CONFIG_SERVICE_ADDRESSES_MAX];
	unsigned int count;
};

/* Words that become names of HTTP headers. */
struct config_words {
	char item[HTTP_ID_NAMES_MAX][HTTP_NAME_MAX + 1];
	unsigned int count;
};

struct config_interface {
	char name[IF_NAMESIZE];
	enum attach_mode mode;
	int line;
};

struct config_replica {
	char name[REPLICA_NAME_SIZE];
	struct config_addresses addresses; /* at most one of each family */
	__u16 port;			   /* host byte order */
	__u32 weight_thousandths;
	int line;
};

enum discovery_from {
	DISCOVERY_DNS = 1,
	DISCOVERY_KUBERNETES = 2,
};

enum dns_records {
	DNS_RECORDS_A = 1,
	DNS_RECORDS_AAAA = 2,
	DNS_RECORDS_SRV = 3,
};

/* A source of further replicas: DNS, or the EndpointSlices of a Kubernetes service. */
struct config_discovery {
	enum discovery_from from;
	__u32 weight_thousandths; /* of each replica found */

	char name[DNS_NAME_SIZE]; /* dns, as the next three */
	enum dns_records records;
	__u16 port; /* host byte order; 0: that of the record (srv) */
	char server
		[DNS_NAME_SIZE]; /* empty: those of /etc/resolv.conf; else "ADDRESS" or "ADDRESS:PORT" */

	char api_server
		[PATH_MAX /
		 4]; /* kubernetes, as the rest; empty: that of the cluster the agent runs in */
	char token_file[PATH_MAX];	      /* empty: none */
	char ca_file[PATH_MAX];		      /* empty: those of the system */
	char namespace[KUBERNETES_NAME_SIZE]; /* empty: that beside the token */
	char service[KUBERNETES_NAME_SIZE];
	char port_name[KUBERNETES_NAME_SIZE]; /* empty: the service has one port */
	int line;
};

struct config_ring {
	enum ring_dialect dialect;
	__u32 vnodes; /* points of a replica of weight 1 */
	char hash_key_file[PATH_MAX];
	__u8 hash_key[BLAKE2B_KEY_LENGTH_MAX];
	__u32 hash_key_length; /* 0: not keyed */
};

enum health_check_kind {
	HEALTH_CHECK_NONE = 1,
	HEALTH_CHECK_TCP = 2,  /* a connection is accepted */
	HEALTH_CHECK_HTTP = 3, /* a GET is answered with the expected status */
};

#define HEALTH_PATH_SIZE 128

struct config_health {
	enum health_check_kind check;
	char path[HEALTH_PATH_SIZE];
	__u16 status;
	__u16 port; /* host byte order; 0: the replica's own */
	__u32 interval_milliseconds;
	__u32 timeout_milliseconds;
	__u32 rise;
	__u32 fall;
	__u32 passive_failures;	       /* 0: requests of users do not count */
	__u32 slow_start_milliseconds; /* 0: a replica has its whole share at once */
};

enum load_source {
	LOAD_FROM_NONE = 1,
	LOAD_FROM_VLLM = 2,
	LOAD_FROM_SGLANG = 3,
	LOAD_FROM_LLAMA = 4,
};

/* What replicas themselves say about their load. */
struct config_reported_load {
	enum load_source from;
	char path[HEALTH_PATH_SIZE];
	__u16 port; /* host byte order; 0: the replica's own */
	__u32 interval_milliseconds;
	__u8 correct; /* 1: what others have sent there counts as load */
};

struct config_service {
	char name[SERVICE_NAME_SIZE];
	struct config_addresses addresses;
	__u16 port; /* host byte order */
	enum service_protocol protocol;
	enum id_source id_from;
	__u16 id_offset;
	__u16 id_length;
	__u16 prompt_tokens_offset;
	__u16 max_tokens_offset;
	struct config_words header_names; /* id_from = header, as the next three */
	struct http_settings http;	  /* made of them */
	__u32 key_bytes;		  /* of the body, where there is no id */
	__u8 trust_token_headers;
	struct config_ring ring;
	struct policy_settings policy;
	struct config_health health;
	struct config_reported_load reported_load;
	__u32 request_timeout_milliseconds;
	struct config_replica *replicas;
	unsigned int replica_count;
	struct config_discovery *discovery;
	unsigned int discovery_count;
	int line;
};

struct config_limits {
	__u32 flows;
	__u32 requests;
	__u32 fragments;
};

/* What all routers and replicas of a cluster share. */
struct config_handoff {
	char secret_file[PATH_MAX]; /* empty: none */
	char second_secret_file[PATH_MAX];
	struct handoff_keys keys; /* made of the files by cluster_secrets_load() */
};

struct config_trace {
	__u32 decisions_per_second; /* put into the ring buffer, at most */
};

struct config_metrics {
	struct config_addresses addresses; /* none: no metrics are given */
	__u16 port;			   /* host byte order */
	__u8 datapath_time; /* 1: the kernel is asked to time the data path's programs */
};

struct config {
	char pin_path[PATH_MAX / 2]; /* room for names below it */
	char control_socket[108];    /* sizeof(sockaddr_un.sun_path) */
	enum log_level log_level;
	enum agent_role role;
	enum deployment_shape shape;
	bool redirect_peer;
	struct config_handoff handoff;
	struct config_limits limits;
	struct config_trace trace;
	struct config_metrics metrics;
	struct config_interface *interfaces;
	unsigned int interface_count;
	struct config_service *services;
	unsigned int service_count;
};

/* Everything that is wrong with a file, a line each: "FILE:LINE: sentence". */
struct config_problems {
	char *text; /* NULL while there is none */
	size_t size;
	unsigned int count;
};

/* Are connections of the service accepted by the router and handed over (docs/handoff.md)? */
bool config_service_is_handed_over(const struct config_service *service);

/*
 * Reads, parses and checks the file `path` into `config`. 0, or -EINVAL with every problem found in `problems`, or another
 * negative errno (file cannot be read) with that one problem. `config` is to be freed either way, `problems` too.
 */
int config_load(const char *path, struct config *config, struct config_problems *problems);

/* The same from memory; `name` stands for the file in the sentences. */
int config_parse(const char *text, size_t length, const char *name, struct config *config,
		 struct config_problems *problems);

/* The checks that span several keys; `config` is complete as far as the schema goes. */
void config_check(struct config *config, const char *name, struct config_problems *problems);

/*
 * A replica of `service` that stands at a public address of `public_service` would send its requests round in a circle. That address of
 * the replica, or NULL.
 */
const struct address *config_find_circle(const struct config_service *public_service,
					 const struct config_service *service,
					 const struct config_replica *replica);

void config_free(struct config *config);

/* Adds one line. `line` is 1-based; 0: the file as a whole. At most 50 are kept, all are counted. */
void config_problem(struct config_problems *problems, const char *name, int line,
		    const char *format, ...) __attribute__((format(printf, 4, 5)));
void config_problems_free(struct config_problems *problems);

/* The rules for names: 1 to `size` - 1 characters out of letters, digits, . _ -, the first of which is no - */
bool config_name_valid(const char *name, size_t size);

#endif /* WARMPATH_USER_CONFIG_H */
