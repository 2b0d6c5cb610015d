/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/config_schema.h"

#include <stdio.h>
#include <string.h>

#include "lib/config.h"

const struct schema_choice choices_log_level[] = {
	{"error", LOG_LEVEL_ERROR},
	{"warning", LOG_LEVEL_WARNING},
	{"info", LOG_LEVEL_INFO},
	{"debug", LOG_LEVEL_DEBUG},
	{NULL, 0},
};

const struct schema_choice choices_role[] = {
	{"router", ROLE_ROUTER},
	{"replica", ROLE_REPLICA},
	{NULL, 0},
};

const struct schema_choice choices_shape[] = {
	{"inline", SHAPE_INLINE},
	{"node-local", SHAPE_NODE_LOCAL},
	{NULL, 0},
};

const struct schema_choice choices_attach_mode[] = {
	{"native", ATTACH_NATIVE},
	{"generic", ATTACH_GENERIC},
	{"tc", ATTACH_TC},
	{"auto", ATTACH_AUTO},
	{NULL, 0},
};

const struct schema_choice choices_protocol[] = {
	{"tcp", PROTOCOL_TCP},
	{"udp", PROTOCOL_UDP},
	{"any", PROTOCOL_ANY},
	{NULL, 0},
};

const struct schema_choice choices_id_from[] = {
	{"offset", ID_FROM_OFFSET},
	{"address", ID_FROM_ADDRESS},
	{"header", ID_FROM_HEADER},
	{NULL, 0},
};

const struct schema_choice choices_dialect[] = {
	{"llm-ring", RING_LLM},
	{"replica-router", RING_REPLICA_ROUTER},
	{NULL, 0},
};

const struct schema_choice choices_policy[] = {
	{"round-robin", POLICY_ROUND_ROBIN}, {"mod-n", POLICY_MOD_N},
	{"consistent", POLICY_CONSISTENT},   {"bounded", POLICY_BOUNDED},
	{"llm-aware", POLICY_LLM_AWARE},     {NULL, 0},
};

const struct schema_choice choices_load_metric[] = {
	{"requests", LOAD_REQUESTS},
	{"tokens", LOAD_TOKENS},
	{NULL, 0},
};

/* --- the table ------------------------------------------------------------------------------------------ */

#define AT(structure, member)                         \
	.offset = offsetof(struct structure, member), \
	.size = sizeof(((struct structure *)0)->member)
#define ITEMS(structure, member, counter, item, most)                                     \
	.kind = SCHEMA_LIST, .offset = offsetof(struct structure, member),                \
	.size = sizeof(struct item), .count_offset = offsetof(struct structure, counter), \
	.line_offset = offsetof(struct item, line), .minimum = 0, .maximum = (most)
#define RANGE(from, to)	 .minimum = (from), .maximum = (to)
#define OR_NONE(value)	 .none_allowed = true, .none_value = (value)
#define ONLY_WITH_OFFSET .only_with = "from", .only_with_word = "offset"
#define ONLY_WITH_HEADER .only_with = "from", .only_with_word = "header"

const struct schema_key config_schema[] = {
	{.path = "pin_path",
	 .kind = SCHEMA_PATH,
	 AT(config, pin_path),
	 .description = "directory of a BPF file system below which maps and links are pinned"},
	{.path = "control_socket",
	 .kind = SCHEMA_PATH,
	 AT(config, control_socket),
	 .description = "path of the socket on which the agent takes commands"},
	{.path = "log_level",
	 .kind = SCHEMA_CHOICE,
	 .choices = choices_log_level,
	 AT(config, log_level),
	 .description = "how much the agent writes to its log"},
	{.path = "role",
	 .kind = SCHEMA_CHOICE,
	 .choices = choices_role,
	 AT(config, role),
	 .description = "whether this machine routes requests, or only takes them from routers"},
	{.path = "shape",
	 .kind = SCHEMA_CHOICE,
	 .choices = choices_shape,
	 AT(config, shape),
	 .description = "whether the replicas are other machines or run on this one"},

	{.path = "handoff",
	 .kind = SCHEMA_SECTION,
	 .description = "what routers and replicas share to hand connections over"},
	{.path = "handoff.secret_file",
	 .kind = SCHEMA_PATH,
	 AT(config, handoff.secret_file),
	 OR_NONE(0),
	 .description = "file with the cluster's secret, 16 to 64 bytes"},
	{.path = "handoff.second_secret_file",
	 .kind = SCHEMA_PATH,
	 AT(config, handoff.second_secret_file),
	 OR_NONE(0),
	 .description = "file with another secret that is accepted as well, while secrets change"},

	{.path = "interfaces",
	 ITEMS(config, interfaces, interface_count, config_interface, CONFIG_INTERFACES_MAX),
	 .description = "network interfaces that carry traffic of clients or replicas"},
	{.path = "interfaces[].name",
	 .kind = SCHEMA_NAME,
	 AT(config_interface, name),
	 .description = "name of the interface, as `ip link` shows it"},
	{.path = "interfaces[].mode",
	 .kind = SCHEMA_CHOICE,
	 .choices = choices_attach_mode,
	 AT(config_interface, mode),
	 .description = "how the router program is attached"},

	{.path = "limits", .kind = SCHEMA_SECTION, .description = "sizes of the tables"},
	{.path = "limits.flows",
	 .kind = SCHEMA_NUMBER,
	 AT(config, limits.flows),
	 RANGE(1024, 1 << 24),
	 .description = "connections remembered at once"},
	{.path = "limits.requests",
	 .kind = SCHEMA_NUMBER,
	 AT(config, limits.requests),
	 RANGE(1024, 1 << 24),
	 .description = "open requests whose load is accounted"},
	{.path = "limits.fragments",
	 .kind = SCHEMA_NUMBER,
	 AT(config, limits.fragments),
	 RANGE(64, 1 << 20),
	 .description = "fragmented datagrams followed at once"},

	{.path = "trace", .kind = SCHEMA_SECTION, .description = "what `warmpath trace` can show"},
	{.path = "trace.decisions_per_second",
	 .kind = SCHEMA_NUMBER,
	 AT(config, trace.decisions_per_second),
	 RANGE(0, 10000000),
	 .description = "decisions traced in a second, at most, with their completions"},

	{.path = "services",
	 ITEMS(config, services, service_count, config_service, SERVICES_MAX),
	 .description = "public addresses and the replicas behind them"},
	{.path = "services[].name",
	 .kind = SCHEMA_NAME,
	 AT(config_service, name),
	 .description = "name of the service"},
	{.path = "services[].addresses",
	 .kind = SCHEMA_ADDRESSES,
	 AT(config_service, addresses),
	 RANGE(1, CONFIG_SERVICE_ADDRESSES_MAX),
	 .prefixes_allowed = true,
	 .description = "public addresses that clients send to"},
	{.path = "services[].port",
	 .kind = SCHEMA_NUMBER,
	 AT(config_service, port),
	 RANGE(1, 65535),
	 .description = "public port"},
	{.path = "services[].protocol",
	 .kind = SCHEMA_CHOICE,
	 .choices = choices_protocol,
	 AT(config_service, protocol),
	 .description = "transport protocol"},

	{.path = "services[].id",
	 .kind = SCHEMA_SECTION,
	 .description = "where the conversation id is"},
	{.path = "services[].id.from",
	 .kind = SCHEMA_CHOICE,
	 .choices = choices_id_from,
	 AT(config_service, id_from),
	 .description =
		 "a fixed offset of the payload, the IPv6 destination address, or an HTTP header"},
	{.path = "services[].id.offset",
	 .kind = SCHEMA_NUMBER,
	 AT(config_service, id_offset),
	 RANGE(0, 1400),
	 ONLY_WITH_OFFSET,
	 .description = "where the id starts in the payload, in bytes"},
	{.path = "services[].id.length",
	 .kind = SCHEMA_NUMBER,
	 AT(config_service, id_length),
	 RANGE(1, ID_LENGTH_MAX),
	 ONLY_WITH_OFFSET,
	 .description = "length of the id's field, in bytes"},
	{.path = "services[].id.prompt_tokens_offset",
	 .kind = SCHEMA_NUMBER,
	 AT(config_service, prompt_tokens_offset),
	 RANGE(0, 1400),
	 OR_NONE(OFFSET_NONE),
	 ONLY_WITH_OFFSET,
	 .description =
		 "where the number of prompt tokens is in the payload (4 bytes, big-endian)"},
	{.path = "services[].id.max_tokens_offset",
	 .kind = SCHEMA_NUMBER,
	 AT(config_service, max_tokens_offset),
	 RANGE(0, 1400),
	 OR_NONE(OFFSET_NONE),
	 ONLY_WITH_OFFSET,
	 .description =
		 "where the most tokens to generate is in the payload (4 bytes, big-endian)"},

	{.path = "services[].id.names",
	 .kind = SCHEMA_WORDS,
	 AT(config_service, header_names),
	 RANGE(1, HTTP_ID_NAMES_MAX),
	 ONLY_WITH_HEADER,
	 .description = "names of the headers that may carry the id, the most preferred first"},
	{.path = "services[].id.key_bytes",
	 .kind = SCHEMA_NUMBER,
	 AT(config_service, key_bytes),
	 RANGE(0, HTTP_KEY_BYTES_MAX),
	 ONLY_WITH_HEADER,
	 .description = "bytes of the body's start that stand for an id where there is none"},
	{.path = "services[].id.trust_token_headers",
	 .kind = SCHEMA_FLAG,
	 AT(config_service, trust_token_headers),
	 ONLY_WITH_HEADER,
	 .description = "whether x-prompt-tokens and x-max-tokens of clients count"},

	{.path = "services[].ring",
	 .kind = SCHEMA_SECTION,
	 .description = "how ids are spread over the replicas"},
	{.path = "services[].ring.dialect",
	 .kind = SCHEMA_CHOICE,
	 .choices = choices_dialect,
	 AT(config_service, ring.dialect),
	 .description = "hash and look-up rule of the ring"},
	{.path = "services[].ring.vnodes",
	 .kind = SCHEMA_NUMBER,
	 AT(config_service, ring.vnodes),
	 RANGE(1, RING_POINTS_MAX),
	 .description = "virtual nodes of a replica of weight 1"},
	{.path = "services[].ring.hash_key_file",
	 .kind = SCHEMA_PATH,
	 AT(config_service, ring.hash_key_file),
	 OR_NONE(0),
	 .description = "file with the hash's secret key, 1 to 64 bytes"},

	{.path = "services[].policy",
	 .kind = SCHEMA_SECTION,
	 .description = "how a replica is chosen"},
	{.path = "services[].policy.name",
	 .kind = SCHEMA_CHOICE,
	 .choices = choices_policy,
	 AT(config_service, policy.policy),
	 .description = "policy"},
	{.path = "services[].policy.epsilon",
	 .kind = SCHEMA_FRACTION,
	 AT(config_service, policy.epsilon_millionths),
	 RANGE(1, EPSILON_MAX),
	 .digits = 6,
	 .description = "how far above the average a replica may be loaded"},
	{.path = "services[].policy.load_metric",
	 .kind = SCHEMA_CHOICE,
	 .choices = choices_load_metric,
	 AT(config_service, policy.load_metric),
	 .description = "what policy bounded counts as load"},
	{.path = "services[].policy.token_load",
	 .kind = SCHEMA_FLAG,
	 AT(config_service, policy.token_load),
	 .description = "whether llm-aware counts tokens instead of requests"},
	{.path = "services[].policy.long_stickiness",
	 .kind = SCHEMA_FLAG,
	 AT(config_service, policy.long_stickiness),
	 .description = "whether long conversations may overload their replica further"},
	{.path = "services[].policy.placement_memory",
	 .kind = SCHEMA_FLAG,
	 AT(config_service, policy.placement_memory),
	 .description = "whether it is remembered where a conversation was served"},
	{.path = "services[].policy.long_epsilon",
	 .kind = SCHEMA_FRACTION,
	 AT(config_service, policy.long_epsilon_millionths),
	 RANGE(1, EPSILON_MAX),
	 .digits = 6,
	 .description = "the epsilon of long conversations"},
	{.path = "services[].policy.long_threshold_tokens",
	 .kind = SCHEMA_NUMBER,
	 AT(config_service, policy.long_threshold_tokens),
	 RANGE(0, REQUEST_TOKENS_MAX),
	 .description = "prompt tokens from which a conversation is long"},
	{.path = "services[].policy.memory_max_entries",
	 .kind = SCHEMA_NUMBER,
	 AT(config_service, policy.memory_max_entries),
	 RANGE(1, 1 << 24),
	 .description = "conversations whose placement is remembered"},
	{.path = "services[].policy.default_max_tokens",
	 .kind = SCHEMA_NUMBER,
	 AT(config_service, policy.default_max_tokens),
	 RANGE(0, REQUEST_TOKENS_MAX),
	 .description = "tokens to generate where a request does not say"},

	{.path = "services[].request_timeout",
	 .kind = SCHEMA_NUMBER,
	 AT(config_service, request_timeout_milliseconds),
	 RANGE(1, 86400),
	 .scale = 1000,
	 .description = "seconds after which a request counts as abandoned"},

	{.path = "services[].replicas",
	 ITEMS(config_service, replicas, replica_count, config_replica, REPLICAS_MAX),
	 .description = "the servers behind the service; [] if they come later"},
	{.path = "services[].replicas[].name",
	 .kind = SCHEMA_NAME,
	 AT(config_replica, name),
	 .description = "stable name of the replica; its place on the ring depends on this alone"},
	{.path = "services[].replicas[].addresses",
	 .kind = SCHEMA_ADDRESSES,
	 AT(config_replica, addresses),
	 RANGE(1, CONFIG_REPLICA_ADDRESSES_MAX),
	 .description = "where the replica is reached, one address a family"},
	{.path = "services[].replicas[].port",
	 .kind = SCHEMA_NUMBER,
	 AT(config_replica, port),
	 RANGE(1, 65535),
	 .description = "port the replica listens on"},
	{.path = "services[].replicas[].weight",
	 .kind = SCHEMA_FRACTION,
	 AT(config_replica, weight_thousandths),
	 RANGE(1, 1000000),
	 .digits = 3,
	 .description = "share of the ring relative to the other replicas"},
};

const unsigned int config_schema_count = sizeof(config_schema) / sizeof(config_schema[0]);

/* --- questions to the table ----------------------------------------------------------------------------- */

const struct schema_key *schema_find(const char *path)
{
	unsigned int i;

	for (i = 0; i < config_schema_count; i++) {
		if (strcmp(config_schema[i].path, path) == 0)
			return &config_schema[i];
	}
	return NULL;
}

const char *schema_key_name(const struct schema_key *key)
{
	const char *dot = strrchr(key->path, '.');

	return dot ? dot + 1 : key->path;
}

bool schema_is_child(const struct schema_key *key, const char *parent)
{
	size_t length = strlen(parent);

	if (length == 0)
		return strchr(key->path, '.') == NULL;
	return strncmp(key->path, parent, length) == 0 && key->path[length] == '.' &&
	       strchr(key->path + length + 1, '.') == NULL;
}

const char *schema_word(const struct schema_choice *choices, int value)
{
	for (; choices->word; choices++) {
		if (choices->value == value)
			return choices->word;
	}
	return "unknown";
}

static void allowed_choices(const struct schema_key *key, char *text, size_t size)
{
	const struct schema_choice *choice;
	size_t used = snprintf(text, size, "one of");

	for (choice = key->choices; choice->word && used < size; choice++)
		used += snprintf(text + used, size - used, "%s %s",
				 choice == key->choices ? "" : ",", choice->word);
}

const char *schema_allowed(const struct schema_key *key, char *text, size_t size)
{
	const char *or_none = key->none_allowed ? ", or none" : "";
	char from[32], to[32];

	switch (key->kind) {
	case SCHEMA_SECTION:
		snprintf(text, size, "a mapping (keys of its own, indented below it)");
		break;
	case SCHEMA_LIST:
		snprintf(text, size, "a list of %llu to %llu mappings",
			 (unsigned long long)key->minimum, (unsigned long long)key->maximum);
		break;
	case SCHEMA_NAME:
		snprintf(text, size,
			 "a name of 1 to %zu characters out of letters, digits and . _ -",
			 key->size - 1);
		break;
	case SCHEMA_PATH:
		snprintf(text, size, "an absolute path of at most %zu characters%s", key->size - 1,
			 or_none);
		break;
	case SCHEMA_NUMBER:
		snprintf(text, size, "a whole number from %llu to %llu%s",
			 (unsigned long long)key->minimum, (unsigned long long)key->maximum,
			 or_none);
		break;
	case SCHEMA_FRACTION:
		schema_format_fraction(key->minimum, key->digits, from, sizeof(from));
		schema_format_fraction(key->maximum, key->digits, to, sizeof(to));
		snprintf(text, size,
			 "a number from %s to %s with at most %u digits after the point", from, to,
			 key->digits);
		break;
	case SCHEMA_CHOICE:
		allowed_choices(key, text, size);
		break;
	case SCHEMA_FLAG:
		snprintf(text, size, "true or false");
		break;
	case SCHEMA_ADDRESSES:
		snprintf(text, size, "a list of %llu to %llu IPv4 or IPv6 addresses%s",
			 (unsigned long long)key->minimum, (unsigned long long)key->maximum,
			 key->prefixes_allowed ? ", or IPv6 prefixes" : "");
		break;
	case SCHEMA_WORDS:
		snprintf(text, size,
			 "a list of %llu to %llu names of HTTP headers, each of 1 to %d characters",
			 (unsigned long long)key->minimum, (unsigned long long)key->maximum,
			 HTTP_NAME_MAX);
		break;
	}
	return text;
}

/* --- "did you mean": Levenshtein distance over short words ------------------------------------------------ */

#define WORD_MAX 48

static unsigned int edit_distance(const char *a, const char *b)
{
	size_t length_a = strlen(a), length_b = strlen(b), i, j;
	unsigned int row[WORD_MAX + 1];

	if (length_a > WORD_MAX || length_b > WORD_MAX)
		return WORD_MAX;
	for (j = 0; j <= length_b; j++)
		row[j] = j;
	for (i = 1; i <= length_a; i++) {
		unsigned int diagonal = row[0];

		row[0] = i;
		for (j = 1; j <= length_b; j++) {
			unsigned int above = row[j];
			unsigned int best = diagonal + (a[i - 1] != b[j - 1]);

			if (above + 1 < best)
				best = above + 1;
			if (row[j - 1] + 1 < best)
				best = row[j - 1] + 1;
			row[j] = best;
			diagonal = above;
		}
	}
	return row[length_b];
}

const char *schema_nearest(const char *parent, const char *name)
{
	/* Up to a third of the letters wrong is a slip; more is another word. */
	unsigned int best = strlen(name) / 3 + 2;
	const char *nearest = NULL;
	unsigned int i;

	for (i = 0; i < config_schema_count; i++) {
		const char *known = schema_key_name(&config_schema[i]);
		unsigned int distance;

		if (!schema_is_child(&config_schema[i], parent))
			continue;
		distance = edit_distance(name, known);
		if (distance < best) {
			best = distance;
			nearest = known;
		}
	}
	return nearest;
}
