/* SPDX-License-Identifier: BSD-2-Clause */
/* POST /slots/N?action=save|restore|erase: a conversation's state to a file and back, on this replica or another. */
#include "simreplica.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char magic[8] = "SIMSLOT1";

static int save(const char *path, struct span content)
{
	FILE *file = fopen(path, "we");
	int result = 0;

	if (!file)
		return -errno;
	if (fwrite(magic, sizeof(magic), 1, file) != 1 ||
	    fwrite(&content.length, sizeof(content.length), 1, file) != 1)
		result = -EIO;
	for (uint32_t i = 0; i < content.length && !result; i++) {
		uint32_t token = text_token(content.text, i);

		if (fwrite(&token, sizeof(token), 1, file) != 1)
			result = -EIO;
	}
	if (fclose(file))
		result = -EIO;
	return result;
}

static int restore(const char *path, struct text *text)
{
	FILE *file = fopen(path, "re");
	char start[sizeof(magic)];
	uint32_t length, token;
	int result = 0;

	if (!file)
		return -errno;
	if (fread(start, sizeof(start), 1, file) != 1 || memcmp(start, magic, sizeof(magic)) != 0 ||
	    fread(&length, sizeof(length), 1, file) != 1)
		result = -EINVAL;
	for (uint32_t i = 0; !result && i < length; i++) {
		if (fread(&token, sizeof(token), 1, file) != 1)
			result = -EINVAL;
		else
			result = text_append_token(text, token);
	}
	fclose(file);
	return result;
}

static bool file_name(struct connection *connection, char *path, size_t size, const char **name,
		      json_t **body)
{
	*body = json_loadb(connection->body.data ? connection->body.data : "",
			   connection->body.length, 0, NULL);
	*name = json_string_value(json_object_get(*body, "filename"));
	if (!*name || !**name || strchr(*name, '/') || **name == '.') {
		answer_error(connection, 400, "invalid_request_error", "Invalid filename");
		return false;
	}
	snprintf(path, size, "%s/%s", connection->server->options.slot_save_path, *name);
	return true;
}

static void save_or_restore(struct connection *connection, uint32_t slot, bool saving)
{
	struct server *server = connection->server;
	struct span content = replica_slot_content(server->replica, slot);
	struct text *text = NULL;
	const char *name;
	json_t *body;
	char path[4096];
	json_int_t size;
	int result;

	if (!file_name(connection, path, sizeof(path), &name, &body)) {
		json_decref(body);
		return;
	}
	if (saving) {
		result = save(path, content);
	} else {
		text = text_new();
		result = text ? restore(path, text) : -ENOMEM;
		content = (struct span){text, text ? text_length(text) : 0};
		if (!result && content.length >= server->options.replica.context_tokens)
			result = -EINVAL;
		if (!result)
			result = replica_slot_set(server->replica, slot, content);
		text_release(text);
	}
	size = (json_int_t)content.length * server->options.model.kv_bytes_per_token;
	if (result)
		answer_error(connection, 400, "invalid_request_error",
			     saving ? "Unable to save slot" : "Unable to restore slot");
	else if (saving)
		answer_json(connection, 200,
			    json_pack("{s:i,s:s,s:i,s:I,s:{s:f}}", "id_slot", (int)slot, "filename",
				      name, "n_saved", (int)content.length, "n_written", size,
				      "timings", "save_ms", 8.0));
	else
		answer_json(connection, 200,
			    json_pack("{s:i,s:s,s:i,s:I,s:{s:f}}", "id_slot", (int)slot, "filename",
				      name, "n_restored", (int)content.length, "n_read", size,
				      "timings", "restore_ms", 6.0));
	json_decref(body);
}

void slot_action(struct connection *connection, const char *slot)
{
	struct server *server = connection->server;
	uint32_t index = (uint32_t)strtoul(slot, NULL, 10);
	char action[16];

	if (!server->options.slot_save_path) {
		answer_error(
			connection, 501, "not_supported_error",
			"This server does not support slots action. Start it with `--slot-save-path`");
		return;
	}
	if (index >= server->options.replica.slots) {
		answer_error(connection, 400, "invalid_request_error", "Invalid slot ID");
		return;
	}
	if (!query_value(connection, "action", action, sizeof(action)))
		action[0] = '\0';
	if (replica_slot_request(server->replica, index)) {
		answer_error(connection, 503, "unavailable_error", "the slot is busy");
	} else if (strcmp(action, "save") == 0) {
		save_or_restore(connection, index, true);
	} else if (strcmp(action, "restore") == 0) {
		save_or_restore(connection, index, false);
	} else if (strcmp(action, "erase") == 0) {
		int erased = (int)replica_slot_content(server->replica, index).length;

		replica_slot_set(server->replica, index, (struct span){0});
		answer_json(connection, 200,
			    json_pack("{s:i,s:i}", "id_slot", (int)index, "n_erased", erased));
	} else {
		answer_error(connection, 400, "invalid_request_error", "Invalid action");
	}
}
