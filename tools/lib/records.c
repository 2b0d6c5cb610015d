/* SPDX-License-Identifier: BSD-2-Clause */
#include "records.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define COLUMNS 18

static const char header[] =
	"run_id,policy,conversation_id,heavy,turn,t_start_s,t_end_s,status,replica,route_reason,"
	"latency_ms,est_prompt_tokens,cache_n,prompt_n,prompt_ms,predicted_n,predicted_ms,error";

static int written(FILE *file)
{
	if (fflush(file) == 0 && !ferror(file))
		return 0;
	return errno ? -errno : -EIO;
}

int records_write_header(FILE *file)
{
	fprintf(file, "%s\n", header);
	return written(file);
}

/* Quoted where CSV (RFC 4180) asks for it; line ends become blanks. */
static void write_text(FILE *file, const char *text, char after)
{
	if (strpbrk(text, ",\"\r\n")) {
		fputc('"', file);
		for (; *text; text++) {
			if (*text == '"')
				fputc('"', file);
			fputc(*text == '\n' || *text == '\r' ? ' ' : *text, file);
		}
		fputc('"', file);
	} else {
		fputs(text, file);
	}
	fputc(after, file);
}

int records_write(FILE *file, const struct record *r)
{
	errno = 0;
	write_text(file, r->run_id, ',');
	write_text(file, r->policy, ',');
	write_text(file, r->conversation_id, ',');
	fprintf(file, "%d,%u,%.6f,%.6f,%d,", r->heavy, r->turn, r->t_start_s, r->t_end_s,
		r->status);
	write_text(file, r->replica, ',');
	write_text(file, r->route_reason, ',');
	fprintf(file, "%.3f,%u,", r->latency_ms, r->est_prompt_tokens);
	if (r->has_timings)
		fprintf(file, "%u,%u,%.3f,%u,%.3f,", r->cache_n, r->prompt_n, r->prompt_ms,
			r->predicted_n, r->predicted_ms);
	else
		fputs(",,,,,", file);
	write_text(file, r->error, '\n');
	return written(file);
}

/* Splits a row in place; returns the number of columns, or -1 if a quote is not closed. */
static int split(char *line, char *columns[COLUMNS])
{
	int count = 0;
	char *in = line;

	for (;;) {
		char *out = in;

		if (count < COLUMNS)
			columns[count] = out;
		count++;
		if (*in == '"') {
			for (in++; *in && (*in != '"' || in[1] == '"'); in++) {
				if (*in == '"')
					in++;
				*out++ = *in;
			}
			if (!*in)
				return -1;
			in++;
		} else {
			in += strcspn(in, ",");
			out = in;
		}
		if (*in != ',') {
			*out = '\0';
			return count;
		}
		in++;
		*out = '\0';
	}
}

static bool read_number(const char *text, double *value)
{
	char *end;

	*value = strtod(text, &end);
	return end != text && !*end;
}

static bool read_count(const char *text, uint32_t *value)
{
	double number;

	if (!read_number(text, &number) || number < 0 || number > UINT32_MAX)
		return false;
	*value = (uint32_t)number;
	return true;
}

static void copy(char *to, size_t size, const char *from)
{
	snprintf(to, size, "%s", from);
}

/* The name of the first column that is wrong, or NULL. */
static const char *parse(char *c[COLUMNS], struct record *r)
{
	double status;
	uint32_t heavy;

	*r = (struct record){0};
	copy(r->run_id, sizeof(r->run_id), c[0]);
	copy(r->policy, sizeof(r->policy), c[1]);
	copy(r->conversation_id, sizeof(r->conversation_id), c[2]);
	if (!read_count(c[3], &heavy) || heavy > 1)
		return "heavy";
	r->heavy = heavy;
	if (!read_count(c[4], &r->turn))
		return "turn";
	if (!read_number(c[5], &r->t_start_s))
		return "t_start_s";
	if (!read_number(c[6], &r->t_end_s))
		return "t_end_s";
	if (!read_number(c[7], &status))
		return "status";
	r->status = (int)status;
	copy(r->replica, sizeof(r->replica), c[8]);
	copy(r->route_reason, sizeof(r->route_reason), c[9]);
	if (!read_number(c[10], &r->latency_ms))
		return "latency_ms";
	if (!read_count(c[11], &r->est_prompt_tokens))
		return "est_prompt_tokens";
	copy(r->error, sizeof(r->error), c[17]);
	r->has_timings = c[12][0] != '\0';
	if (!r->has_timings)
		return NULL;
	if (!read_count(c[12], &r->cache_n))
		return "cache_n";
	if (!read_count(c[13], &r->prompt_n))
		return "prompt_n";
	if (!read_number(c[14], &r->prompt_ms))
		return "prompt_ms";
	if (!read_count(c[15], &r->predicted_n))
		return "predicted_n";
	return read_number(c[16], &r->predicted_ms) ? NULL : "predicted_ms";
}

static int read_row(const char *path, int number, char *line,
		    void (*each)(const struct record *record, void *context), void *context,
		    char *error)
{
	char *columns[COLUMNS];
	struct record record;
	int count = split(line, columns);
	const char *wrong;

	if (count != COLUMNS) {
		snprintf(error, TOOLS_ERROR_SIZE, "%s, line %d: %d columns instead of %d", path,
			 number, count, COLUMNS);
		return -EINVAL;
	}
	wrong = parse(columns, &record);
	if (wrong) {
		snprintf(error, TOOLS_ERROR_SIZE, "%s, line %d: column %s is not what it should be",
			 path, number, wrong);
		return -EINVAL;
	}
	each(&record, context);
	return 0;
}

int records_read(const char *path, void (*each)(const struct record *record, void *context),
		 void *context, char error[TOOLS_ERROR_SIZE])
{
	FILE *file = fopen(path, "re");
	char *line = NULL;
	size_t size = 0;
	ssize_t length;
	int result = 0, number = 0;

	if (!file) {
		result = -errno;
		snprintf(error, TOOLS_ERROR_SIZE, "%s: cannot be read: %s", path,
			 strerror(-result));
		return result;
	}
	while (!result && (length = getline(&line, &size, file)) > 0) {
		number++;
		if (line[length - 1] != '\n')
			break;
		line[length - 1] = '\0';
		if (number > 1) {
			result = read_row(path, number, line, each, context, error);
		} else if (strcmp(line, header) != 0) {
			snprintf(error, TOOLS_ERROR_SIZE,
				 "%s: not a file of requests (the first line is not its header)",
				 path);
			result = -EINVAL;
		}
	}
	free(line);
	fclose(file);
	return result;
}
