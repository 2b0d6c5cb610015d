/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PROBLEMS_SHOWN_MAX 50

/* What the file says is repeated in sentences, for terminals and logs: a line each, and nothing that commands a terminal. */
static void make_printable(char *sentence)
{
	for (; *sentence; sentence++) {
		if ((unsigned char)*sentence < ' ' || *sentence == 0x7f)
			*sentence = '?';
	}
}

void config_problem(struct config_problems *problems, const char *name, int line,
		    const char *format, ...)
{
	char sentence[1024], place[32] = "";
	size_t length = problems->text ? strlen(problems->text) : 0;
	va_list arguments;
	size_t needed;
	char *text;

	if (problems->count++ >= PROBLEMS_SHOWN_MAX)
		return;
	va_start(arguments, format);
	vsnprintf(sentence, sizeof(sentence), format, arguments);
	va_end(arguments);
	make_printable(sentence);
	if (line > 0)
		snprintf(place, sizeof(place), ":%d", line);

	needed = length + strlen(name) + strlen(place) + strlen(sentence) + 4;
	if (needed > problems->size) {
		text = realloc(problems->text, needed * 2);
		if (!text)
			return;
		problems->text = text;
		problems->size = needed * 2;
	}
	snprintf(problems->text + length, problems->size - length, "%s%s%s: %s", length ? "\n" : "",
		 name, place, sentence);
}

void config_problems_free(struct config_problems *problems)
{
	free(problems->text);
	memset(problems, 0, sizeof(*problems));
}

bool config_name_valid(const char *name, size_t size)
{
	size_t length = strlen(name);

	/* one that begins with - the command line would take for an option */
	return length > 0 && name[0] != '-' && length < size &&
	       strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") ==
		       length;
}

void config_free(struct config *config)
{
	unsigned int i;

	for (i = 0; i < config->service_count; i++) {
		free(config->services[i].replicas);
		free(config->services[i].discovery);
		/* The hash key is a secret. */
		explicit_bzero(&config->services[i], sizeof(config->services[i]));
	}
	free(config->services);
	free(config->interfaces);
	memset(config, 0, sizeof(*config));
}

/* Reads the whole file; the caller frees `*text`. */
static int read_file(const char *path, char **text, size_t *length,
		     struct config_problems *problems)
{
	int descriptor = open(path, O_RDONLY | O_CLOEXEC);
	struct stat status;
	ssize_t got = 0;
	int result = 0;

	*text = NULL;
	*length = 0;
	if (descriptor < 0 || fstat(descriptor, &status) < 0) {
		result = -errno;
		config_problem(problems, path, 0, "cannot be read: %s", strerror(errno));
		goto out;
	}
	if (!S_ISREG(status.st_mode) || status.st_size > CONFIG_FILE_SIZE_MAX) {
		result = -EINVAL;
		config_problem(problems, path, 0, "is not a regular file of at most %u bytes",
			       CONFIG_FILE_SIZE_MAX);
		goto out;
	}
	*text = malloc(status.st_size + 1);
	if (!*text) {
		result = -ENOMEM;
		config_problem(problems, path, 0, "not enough memory");
		goto out;
	}
	while (*length < (size_t)status.st_size &&
	       (got = read(descriptor, *text + *length, status.st_size - *length)) > 0)
		*length += got;
	if (got < 0) {
		result = -errno;
		config_problem(problems, path, 0, "cannot be read: %s", strerror(errno));
	}
out:
	if (descriptor >= 0)
		close(descriptor);
	return result;
}

int config_load(const char *path, struct config *config, struct config_problems *problems)
{
	char *text;
	size_t length;
	int result;

	memset(config, 0, sizeof(*config));
	result = read_file(path, &text, &length, problems);
	if (!result)
		result = config_parse(text, length, path, config, problems);
	free(text);
	return result;
}
