/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Conversations, their homes, and what a replica at each home answers: of the test programs for HTTP.
 *
 * Owns: reading the plan (lines "ID HOME") and the bodies (EXPECTED/HOME/NAME, for the path /files/NAME). May not know: connections.
 */
#ifndef WARMPATH_TEST_EXPECTED_BODIES_H
#define WARMPATH_TEST_EXPECTED_BODIES_H

#include <dirent.h>
#include <err.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define CONVERSATIONS_MAX 4096
#define HOMES_MAX	  64
#define FILES_MAX	  64

struct body {
	char *bytes;
	size_t length;
};

struct conversation {
	char id[132];
	unsigned int home;
};

static struct conversation conversations[CONVERSATIONS_MAX];
static unsigned int conversation_count;
static char homes[HOMES_MAX][64];
static unsigned int home_count;
static char files[FILES_MAX][64];
static unsigned int file_count;
static struct body bodies[HOMES_MAX][FILES_MAX];

static unsigned int home_number(const char *name)
{
	for (unsigned int i = 0; i < home_count; i++) {
		if (strcmp(homes[i], name) == 0)
			return i;
	}
	if (home_count == HOMES_MAX)
		errx(2, "more than %d homes", HOMES_MAX);
	snprintf(homes[home_count], sizeof(homes[0]), "%s", name);
	return home_count++;
}

static void read_plan(const char *path)
{
	FILE *file = fopen(path, "re");
	char id[132], home[64];

	if (!file)
		err(2, "%s", path);
	while (conversation_count < CONVERSATIONS_MAX &&
	       fscanf(file, "%131s %63s", id, home) == 2) {
		struct conversation *conversation = &conversations[conversation_count++];

		memcpy(conversation->id, id, sizeof(id));
		conversation->home = home_number(home);
	}
	fclose(file);
	if (!conversation_count)
		errx(2, "%s: no lines \"ID HOME\"", path);
}

static void read_body(const char *path, struct body *body)
{
	struct stat status;
	FILE *file = fopen(path, "re");

	if (!file || fstat(fileno(file), &status))
		err(2, "%s", path);
	body->length = status.st_size;
	body->bytes = malloc(body->length + 1);
	if (!body->bytes || fread(body->bytes, 1, body->length, file) != body->length)
		err(2, "%s", path);
	fclose(file);
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static void read_bodies(const char *directory)
{
	char path[768];
	struct dirent **entries;
	int count;

	snprintf(path, sizeof(path), "%.500s/%.63s", directory, homes[0]);
	count = scandir(path, &entries, NULL, by_name);
	for (int i = 0; i < count; i++) {
		if (entries[i]->d_name[0] != '.' && file_count < FILES_MAX)
			snprintf(files[file_count++], sizeof(files[0]), "%.63s",
				 entries[i]->d_name);
		free(entries[i]);
	}
	if (count > 0)
		free(entries);
	if (!file_count)
		errx(2, "%s: no files", path);
	for (unsigned int home = 0; home < home_count; home++) {
		for (unsigned int i = 0; i < file_count; i++) {
			snprintf(path, sizeof(path), "%.500s/%.63s/%.63s", directory, homes[home],
				 files[i]);
			read_body(path, &bodies[home][i]);
		}
	}
}

#endif /* WARMPATH_TEST_EXPECTED_BODIES_H */
