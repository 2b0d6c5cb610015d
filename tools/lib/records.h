/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What was measured, as files: one CSV row a request.
 *
 * Owns: the columns, writing and reading them. May not know: who measures, what is made of it.
 */
#ifndef TOOLS_RECORDS_H
#define TOOLS_RECORDS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "fields.h"

#define RECORD_NAME_SIZE  64
#define RECORD_ERROR_SIZE 160

/* Times are model time where replicas run at another speed than real ones. */
struct record {
	char run_id[RECORD_NAME_SIZE * 2];
	char policy[RECORD_NAME_SIZE * 2];
	char conversation_id[RECORD_NAME_SIZE];
	bool heavy;
	uint32_t turn;			/* from 1 */
	double t_start_s, t_end_s;	/* since the run began */
	int status;			/* of HTTP; 0: no answer */
	char replica[RECORD_NAME_SIZE]; /* empty: not known */
	char route_reason[RECORD_NAME_SIZE];
	double latency_ms;
	uint32_t est_prompt_tokens;
	bool has_timings; /* else the five below are empty in the file */
	uint32_t cache_n, prompt_n;
	double prompt_ms;
	uint32_t predicted_n;
	double predicted_ms;
	char error[RECORD_ERROR_SIZE]; /* empty: none */
};

/* Each 0, or a negative errno if the row could not be written (disk full). Rows are flushed one by one. */
int records_write_header(FILE *file);
int records_write(FILE *file, const struct record *record);

/*
 * Reads a file of rows; calls `each` for every one. 0, or a negative errno with one plain sentence in `error` that names file and
 * line. A last line that was cut off in mid-row (the program was killed, the disk was full) is left out.
 */
int records_read(const char *path, void (*each)(const struct record *record, void *context),
		 void *context, char error[TOOLS_ERROR_SIZE]);

#endif /* TOOLS_RECORDS_H */
