/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/kubernetes_access.h"

#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Reads a small file without the white space at its end. */
static int read_word(const char *what, const char *path, char *text, size_t size,
		     struct error *error)
{
	/* not to wait for a writer, should it be a pipe */
	int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t length;
	char *letter;

	if (descriptor < 0)
		return error_set(error, -errno, "the %s file %s cannot be opened: %s", what, path,
				 strerror(errno));
	length = read(descriptor, text, size);
	close(descriptor);
	if (length < 0)
		return error_set(error, -errno, "the %s file %s cannot be read: %s", what, path,
				 strerror(errno));
	while (length > 0 && (size_t)length < size && strchr(" \t\r\n", text[length - 1]))
		length--;
	if (length == 0 || (size_t)length == size)
		return error_set(error, -EINVAL, "the %s file %s is %s", what, path,
				 length ? "too long" : "empty");
	text[length] = '\0';
	/* It becomes part of a request: what could end a header or a path must not be in it. */
	for (letter = text; *letter > ' ' && *letter < 0x7f; letter++)
		;
	if (*letter || strlen(text) != (size_t)length)
		return error_set(
			error, -EINVAL,
			"the %s file %s has more in it than one word of printable characters", what,
			path);
	return 0;
}

static int find_server(const struct config_discovery *settings, struct kubernetes_access *access,
		       struct error *error)
{
	const char *host = getenv("KUBERNETES_SERVICE_HOST");
	const char *port = getenv("KUBERNETES_SERVICE_PORT");
	bool ipv6 = host && strchr(host, ':');
	int length;

	if (settings->api_server[0]) {
		memcpy(access->server, settings->api_server, sizeof(access->server));
		length = strlen(access->server);
		while (length > 0 && access->server[length - 1] == '/')
			access->server[--length] = '\0';
		return 0;
	}
	if (!host || !port)
		return error_set(
			error, -ENOENT,
			"api_server: in-cluster needs KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT in the "
			"environment, which only a pod has; state the server's URL");
	length = snprintf(access->server, sizeof(access->server), "https://%s%s%s:%s",
			  ipv6 ? "[" : "", host, ipv6 ? "]" : "", port);
	if (length >= (int)sizeof(access->server))
		return error_set(error, -EINVAL, "KUBERNETES_SERVICE_HOST is too long");
	return 0;
}

static int find_namespace(const struct config_discovery *settings, struct kubernetes_access *access,
			  struct error *error)
{
	char path[sizeof(settings->token_file) + 16];
	const char *slash = strrchr(settings->token_file, '/');

	if (settings->namespace[0]) {
		memcpy(access->namespace, settings->namespace, sizeof(access->namespace));
		return 0;
	}
	if (!slash)
		return error_set(error, -EINVAL,
				 "namespace: in-cluster needs a token_file, beside which the file "
				 "`namespace` is; state the namespace");
	snprintf(path, sizeof(path), "%.*s/namespace", (int)(slash - settings->token_file),
		 settings->token_file);
	return read_word("namespace", path, access->namespace, sizeof(access->namespace), error);
}

int kubernetes_access_read(const struct config_discovery *settings,
			   struct kubernetes_access *access, struct error *error)
{
	int result;

	memset(access, 0, sizeof(*access));
	result = find_server(settings, access, error);
	if (!result)
		result = find_namespace(settings, access, error);
	if (!result && settings->token_file[0])
		result = read_word("token", settings->token_file, access->token,
				   sizeof(access->token), error);
	return result;
}

char *kubernetes_url(const struct kubernetes_access *access, const char *version,
		     const char *service, const char *query)
{
	char *namespace = kubernetes_escape(access->namespace), *name = kubernetes_escape(service);
	char *url = NULL;

	if (namespace && name &&
	    asprintf(&url,
		     "%s/apis/discovery.k8s.io/%s/namespaces/%s/endpointslices"
		     "?labelSelector=kubernetes.io%%2Fservice-name%%3D%s%s",
		     access->server, version, namespace, name, query) < 0)
		url = NULL;
	free(namespace);
	free(name);
	return url;
}

char *kubernetes_escape(const char *text)
{
	return curl_easy_escape(NULL, text,
				0); /* from malloc(), as libcurl was not told otherwise */
}
