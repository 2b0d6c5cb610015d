/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The words that values of the configuration may be, where they are one of few.
 */
#include "lib/config.h"
#include "lib/config_schema.h"

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

const struct schema_choice choices_discovery_from[] = {
	{"dns", DISCOVERY_DNS},
	{"kubernetes", DISCOVERY_KUBERNETES},
	{NULL, 0},
};

const struct schema_choice choices_dns_records[] = {
	{"a", DNS_RECORDS_A},
	{"aaaa", DNS_RECORDS_AAAA},
	{"srv", DNS_RECORDS_SRV},
	{NULL, 0},
};

const struct schema_choice choices_health_check[] = {
	{"none", HEALTH_CHECK_NONE},
	{"tcp", HEALTH_CHECK_TCP},
	{"http", HEALTH_CHECK_HTTP},
	{NULL, 0},
};

const struct schema_choice choices_load_source[] = {
	{"none", LOAD_FROM_NONE},
	{"vllm", LOAD_FROM_VLLM},
	{"sglang", LOAD_FROM_SGLANG},
	{"llama.cpp", LOAD_FROM_LLAMA},
	{NULL, 0},
};
