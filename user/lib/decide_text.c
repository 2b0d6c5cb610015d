/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/decide_text.h"

#include <math.h>
#include <string.h>

#include "lib/decide_core.h"

double decision_cap(__u64 sum, __u32 cost, __u32 replica_count, __u32 epsilon_millionths,
		    enum load_metric metric)
{
	if (metric == LOAD_REQUESTS) {
		__u64 part = (__u64)replica_count * 1000000;
		__u64 whole = (1000000ULL + epsilon_millionths) * (sum + cost);

		return (double)((whole + part - 1) / part);
	}
	return (1 + epsilon_millionths / 1e6) * (double)(sum + cost) / replica_count;
}

/* Two decimals at most and one at least, as Python writes round(value, 2) of values below 10^16. */
static void print_rounded(FILE *to, double value)
{
	char text[64];
	size_t length;

	snprintf(text, sizeof(text), "%.2f", value);
	length = strlen(text);
	if (text[length - 1] == '0')
		text[length - 1] = '\0';
	fputs(text, to);
}

void decision_print_json(FILE *to, long long request, const char *id,
			 const struct decision *decision, const struct policy_settings *settings,
			 const struct ring *ring, const __u32 *loads)
{
	fprintf(to, "{\"req\": %lld, \"id\": \"%s\", \"replica\": ", request, id);
	if (decision->replica == REPLICA_NONE)
		fputs("null", to);
	else
		fprintf(to, "\"%s\"", ring->names[ring->member_of_slot[decision->replica]]);
	fprintf(to, ", \"reason\": \"%s\", \"cost\": %u, \"total\": ",
		route_reason_text(decision->reason), decision->cost);
	if (decision->flags & DECISION_HAS_CAP && decision->number > 0) {
		double cap = decision_cap(decision->sum, decision->preferred_cost,
					  decision->replica_count, settings->epsilon_millionths,
					  decision->metric);

		fprintf(to, "%llu, \"cap\": ",
			(unsigned long long)decision->sum + decision->preferred_cost);
		if (decision->metric == LOAD_REQUESTS)
			fprintf(to, "%.0f", cap);
		else
			print_rounded(to, cap);
	} else {
		fputs("null, \"cap\": null", to);
	}
	fputs(", \"loads\": {", to);
	for (__u32 i = 0; i < ring->header.member_count; i++)
		fprintf(to, "%s\"%s\": %u", i > 0 ? ", " : "", ring->names[i], loads[i]);
	fputs("}}\n", to);
}
