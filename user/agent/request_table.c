/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/request_table.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BATCH_ENTRIES 4096 /* more than any bucket of the table holds */

struct batch {
	struct open_request_key keys[BATCH_ENTRIES];
	struct open_request requests[BATCH_ENTRIES];
};

int request_table_each(int requests, request_function take, void *context, struct error *error)
{
	LIBBPF_OPTS(bpf_map_batch_opts, options);
	/* cleared, as memcheck does not know that the kernel fills it */
	struct batch *batch = calloc(1, sizeof(*batch));
	__u32 position, *last = NULL, count, i;
	int end = 0, result = 0;

	if (!batch)
		return error_set(error, -ENOMEM, "not enough memory");
	while (!end && !result) {
		count = BATCH_ENTRIES;
		end = bpf_map_lookup_batch(requests, last, &position, batch->keys, batch->requests,
					   &count, &options)
			      ? errno
			      : 0;
		if (end && end != ENOENT) {
			result = error_set(error, -end, "map requests cannot be read: %s",
					   strerror(end));
			break;
		}
		for (i = 0; i < count && !result; i++)
			result = take(context, &batch->keys[i], &batch->requests[i]);
		last = &position;
	}
	free(batch);
	return result;
}
