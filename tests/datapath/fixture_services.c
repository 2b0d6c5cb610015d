/* SPDX-License-Identifier: BSD-2-Clause */
/* See fixture.h. Numbers differ from each other wherever they can, so that a swap shows. */
#include "fixture.h"

#include <netinet/in.h>

#define UDP                 \
	{                   \
		IPPROTO_UDP \
	}

const struct world_service fixture_services[SERVICE_COUNT] =
	{
		[SERVICE_CHAT] =
			{
				.name = "chat",
				.addresses = {"10.9.9.9", "fd00:9::9"},
				.port = 8000,
				.protocols = UDP,
				.id_from = ID_FROM_OFFSET,
				.id_offset = 8,
				.id_length = 16,
				.replicas = {{"llm-0", "10.0.2.10", "fd00:2::10", 8001},
					     {"llm-1", "10.0.2.11", "fd00:2::11", 8002},
					     {"llm-2", "10.0.2.12", "fd00:2::12", 8003}},
			},
		[SERVICE_TWO] =
			{
				.name = "two-addresses",
				.addresses = {"10.9.9.20", "10.9.9.21", "fd00:9::20", "fd00:9::21"},
				.port = 8100,
				.protocols = UDP,
				.id_from = ID_FROM_OFFSET,
				.id_offset = 0,
				.id_length = 32,
				.replicas = {{"two-0", "10.0.2.20", "fd00:2::20", 9001},
					     {"two-1", "10.0.2.21", "fd00:2::21", 9002}},
			},
		[SERVICE_SHARED_A] =
			{
				.name = "shared-a",
				.addresses = {"10.9.9.30", "fd00:9::30"},
				.port = 8201,
				.protocols = UDP,
				.id_from = ID_FROM_OFFSET,
				.id_offset = 2,
				.id_length = 8,
				.replicas = {{"shared-a-0", "10.0.2.30", "fd00:2::30", 9100}},
			},
		[SERVICE_SHARED_B] =
			{
				.name = "shared-b",
				.addresses = {"10.9.9.31", "fd00:9::31"},
				.port = 8202,
				.protocols = UDP,
				.id_from = ID_FROM_OFFSET,
				.id_offset = 2,
				.id_length = 8,
				.replicas = {{"shared-b-0", "10.0.2.30", "fd00:2::30", 9100}},
			},
		[SERVICE_PREFIX] =
			{
				.name = "prefix",
				.addresses = {"fd00:5:5:5::/64"},
				.port = 443,
				.protocols = {IPPROTO_TCP, IPPROTO_UDP},
				.id_from = ID_FROM_ADDRESS,
				.timeout_milliseconds = 300000,
				.replicas = {{"prefix-0", NULL, "fd00:2::40", 8443},
					     {"prefix-1", NULL, "fd00:2::41", 8443},
					     {"prefix-2", NULL, "fd00:2::42", 8443}},
			},
		[SERVICE_UNRESOLVED] =
			{
				.name = "unresolved",
				.addresses = {"10.9.9.50", "fd00:9::50"},
				.port = 8500,
				.protocols = UDP,
				.id_from = ID_FROM_OFFSET,
				.id_offset = 1,
				.id_length = 6,
				.replicas = {{"unresolved-0", "10.0.2.99", "fd00:2::99", 9500}},
			},
		[SERVICE_NARROW] =
			{
				.name = "narrow",
				.addresses = {"10.9.9.60", "fd00:9::60"},
				.port = 8600,
				.protocols = UDP,
				.id_from = ID_FROM_OFFSET,
				.id_offset = 0,
				.id_length = 6,
				.replicas = {{"narrow-0", "10.0.4.10", "fd00:4::10", 9600}},
			},
		[SERVICE_BLACKHOLE] =
			{
				.name = "blackhole",
				.addresses = {"10.9.9.70", "fd00:9::70"},
				.port = 8700,
				.protocols = UDP,
				.id_from = ID_FROM_OFFSET,
				.id_offset = 0,
				.id_length = 6,
				.replicas = {{"blackhole-0", "10.0.5.10", "fd00:5::10", 9700}},
			},
		[SERVICE_EMPTY] =
			{
				.name = "empty",
				.addresses = {"10.9.9.80", "fd00:9::80"},
				.port = 8800,
				.protocols = UDP,
				.id_from = ID_FROM_OFFSET,
				.id_offset = 0,
				.id_length = 6,
				.replicas = {{"empty-0", "10.0.2.43", "fd00:2::43", 9800,
					      REPLICA_DOWN}},
			},
		[SERVICE_LOCAL] =
			{
				.name = "local",
				.addresses = {"10.9.9.90", "fd00:9::90"},
				.port = 8900,
				.protocols = UDP,
				.id_from = ID_FROM_OFFSET,
				.id_offset = 0,
				.id_length = 6,
				.replicas = {{"local-0", "10.0.2.1", "fd00:2::1", 9900}},
			},
		[SERVICE_GATEWAY] =
			{
				.name = "gateway",
				.addresses = {"10.9.9.95", "fd00:9::95"},
				.port = 8950,
				.protocols = UDP,
				.id_from = ID_FROM_OFFSET,
				.id_offset = 0,
				.id_length = 6,
				.replicas = {{"gateway-0", "10.0.3.10", "fd00:3::10", 9950}},
			},
		[SERVICE_JUMBO] =
			{
				.name = "jumbo",
				.addresses = {"10.9.9.97", "fd00:9::97"},
				.port = 8970,
				.protocols = UDP,
				.id_from = ID_FROM_OFFSET,
				.id_offset = 5000,
				.id_length = 6,
				.replicas = {{"jumbo-0", "10.0.7.10", "fd00:7::10", 9970}},
			},
};
