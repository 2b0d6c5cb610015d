/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * warmpath doctor
 */
#include "cli/doctor.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/client.h"
#include "lib/config_schema.h"
#include "lib/control.h"
#include "lib/log.h"

#define CONFIG_DEFAULT "/etc/warmpath/warmpath.yaml"

static const char *const level_names[] = {"ok", "warning", "problem"};

struct doctor_arguments {
	struct plain_arguments plain;
	const char *config;
	const char *expected_secret;
	bool only_bad;
};

static error_t parse(int key, char *argument, struct argp_state *state)
{
	struct doctor_arguments *arguments = state->input;

	switch (key) {
	case 'c':
		arguments->config = argument;
		return 0;
	case 'e':
		if (strlen(argument) != 16 || strspn(argument, "0123456789abcdef") != 16)
			argp_error(
				state,
				"--expect-secret \"%s\": a fingerprint as this command prints it "
				"is needed, 16 digits 0 to 9, a to f",
				argument);
		arguments->expected_secret = argument;
		return 0;
	case 'q':
		arguments->only_bad = true;
		return 0;
	default:
		return client_parse_plain(key, argument, state);
	}
}

/* --- findings ---------------------------------------------------------------------------------------------------- */

void doctor_find(struct doctor *doctor, enum finding_level level, const char *check,
		 const char *remedy, const char *subject, const char *format, ...)
{
	char sentence[768], advice[512] = "";
	const char *hole = remedy ? strstr(remedy, "%s") : NULL;
	va_list arguments;
	json_t *finding;

	va_start(arguments, format);
	vsnprintf(sentence, sizeof(sentence), format, arguments);
	va_end(arguments);
	if (hole)
		snprintf(advice, sizeof(advice), "%.*s%s%s", (int)(hole - remedy), remedy,
			 subject ? subject : "", hole + 2);
	else if (remedy)
		snprintf(advice, sizeof(advice), "%s", remedy);
	finding = json_pack("{s:s, s:s, s:s}", "check", check, "level", level_names[level],
			    "finding", sentence);
	if (advice[0])
		json_object_set_new(finding, "remedy", json_string(advice));
	json_array_append_new(doctor->findings, finding);
	doctor->problems += level == FINDING_PROBLEM;
	doctor->warnings += level == FINDING_WARNING;
}

int doctor_sysctl(const char *path_format, ...)
{
	char path[256] = "/proc/sys/";
	size_t length = strlen(path);
	va_list arguments;
	int value = -1;
	FILE *file;

	va_start(arguments, path_format);
	vsnprintf(path + length, sizeof(path) - length, path_format, arguments);
	va_end(arguments);
	file = fopen(path, "re");
	if (!file)
		return -1;
	if (fscanf(file, "%d", &value) != 1)
		value = -1;
	fclose(file);
	return value;
}

int doctor_interface_index(const char *name)
{
	return if_nametoindex(name);
}

/* --- what is looked at -------------------------------------------------------------------------------------------- */

/* The running agent's status; NULL with the reason if none answers. The caller drops the reference. */
static json_t *ask_status(const struct client_options *options, struct error *error)
{
	json_t *message = json_pack("{s:s}", "command", "status"), *answer = NULL;
	int descriptor = control_connect(client_socket(options), error);

	if (descriptor >= 0 && message)
		control_ask(descriptor, message, &answer, error);
	if (descriptor >= 0)
		close(descriptor);
	json_decref(message);
	return answer;
}

static void take_parts(struct doctor *doctor)
{
	const struct config *config = doctor->config;

	doctor->routes = config->role == ROLE_ROUTER;
	doctor->inline_ = doctor->routes && config->shape == SHAPE_INLINE;
	for (unsigned int i = 0; i < config->service_count; i++)
		doctor->hands_over |=
			doctor->routes && config_service_is_handed_over(&config->services[i]);
	doctor->takes_over = !doctor->routes || (doctor->hands_over && !doctor->inline_);
}

static void check_agent(struct doctor *doctor)
{
	const json_t *status = doctor->status, *interfaces, *entry;
	size_t i;

	if (!status) {
		doctor_find(
			doctor, FINDING_WARNING, "agent",
			geteuid()
				? "run the doctor as root"
				: "start it (systemctl start warmpathd, or warmpathd -c FILE); what is "
				  "attached and pinned goes on meanwhile",
			NULL, "no agent answers: %s", doctor->no_answer);
		return;
	}
	doctor_find(doctor, FINDING_OK, "agent", NULL, NULL, "warmpathd %s runs as process %lld",
		    client_text(status, "version"), (long long)client_number(status, "process"));
	interfaces = json_object_get(status, "interfaces");
	json_array_foreach(interfaces, i, entry)
	{
		const char *problem = client_text(entry, "problem");

		if (problem[0])
			doctor_find(doctor, FINDING_PROBLEM, "attached",
				    "see the sentence; the agent tries again whenever links change",
				    NULL, "%s is not attached: %s", client_text(entry, "name"),
				    problem);
		else
			doctor_find(doctor, FINDING_OK, "attached", NULL, NULL,
				    "%s is attached (%s)", client_text(entry, "name"),
				    client_text(entry, "attached"));
	}
}

/* Whether a finding says what the sentence says, as far as its colon. */
static bool is_found(const struct doctor *doctor, const char *sentence)
{
	size_t length = strcspn(sentence, ":"), i;
	const json_t *finding;

	json_array_foreach(doctor->findings, i, finding)
	{
		if (strncmp(client_text(finding, "finding"), sentence, length) == 0)
			return true;
	}
	return false;
}

/* What the agent warns of, and no check has found by itself. */
static void check_warnings(struct doctor *doctor)
{
	const json_t *warnings = json_object_get(doctor->status, "warnings"), *warning;
	size_t i;

	json_array_foreach(warnings, i, warning)
	{
		const char *sentence = json_string_value(warning);

		if (sentence && !is_found(doctor, sentence))
			doctor_find(doctor, FINDING_WARNING, "agent", "see the sentence", NULL,
				    "%s", sentence);
	}
}

static void run_checks(struct doctor *doctor)
{
	static void (*const groups[])(struct doctor * doctor) = {
		check_agent,
		doctor_check_kernel,
		doctor_check_interfaces,
		doctor_check_forwarding,
		doctor_check_replicas,
		doctor_check_health,
		doctor_check_tcp,
		doctor_check_listeners,
		doctor_check_secret,
		doctor_check_counters,
		check_warnings,
	};

	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++)
		groups[i](doctor);
}

/* --- what is said ---------------------------------------------------------------------------------------------------- */

static void print_findings(const struct doctor *doctor, bool only_bad)
{
	static const char *const words[] = {"ok", "WARNING", "PROBLEM"};
	const json_t *finding;
	size_t i;

	json_array_foreach(doctor->findings, i, finding)
	{
		const char *level = client_text(finding, "level");
		const char *remedy = client_text(finding, "remedy");
		int number = strcmp(level, "ok") == 0 ? 0 : strcmp(level, "warning") == 0 ? 1 : 2;

		if (only_bad && number == 0)
			continue;
		printf("%-8s %-16s %s\n", words[number], client_text(finding, "check"),
		       client_text(finding, "finding"));
		if (remedy[0])
			printf("%-8s %-16s   -> %s\n", "", "", remedy);
	}
	printf("%zu findings: %u problem%s, %u warning%s\n", json_array_size(doctor->findings),
	       doctor->problems, doctor->problems == 1 ? "" : "s", doctor->warnings,
	       doctor->warnings == 1 ? "" : "s");
}

static int print_json(const struct doctor *doctor, const char *path)
{
	json_t *answer = json_pack(
		"{s:b, s:s, s:s, s:s, s:b, s:i, s:i, s:O}", "ok", doctor->problems == 0,
		"configuration", path, "role", doctor->routes ? "router" : "replica", "shape",
		schema_word(choices_shape, doctor->config->shape), "agent_running",
		doctor->status != NULL, "problems", (int)doctor->problems, "warnings",
		(int)doctor->warnings, "findings", doctor->findings);
	int result = answer ? json_dumpf(answer, stdout, JSON_INDENT(2)) : -1;

	putchar('\n');
	json_decref(answer);
	return result;
}

static int examine(const struct doctor_arguments *arguments, struct config *config,
		   const char *path, const json_t *status, const char *no_answer)
{
	struct doctor doctor = {
		.config = config,
		.status = status,
		.no_answer = no_answer,
		.expected_secret = arguments->expected_secret,
		.findings = json_array(),
	};

	if (netlink_open(&doctor.netlink) || !doctor.findings) {
		complain("the kernel's tables cannot be asked: %s", strerror(errno));
		netlink_close(&doctor.netlink);
		json_decref(doctor.findings);
		return EXIT_FAILED;
	}
	take_parts(&doctor);
	if (!arguments->plain.client.json)
		printf("%s: role %s, shape %s\n", path, doctor.routes ? "router" : "replica",
		       schema_word(choices_shape, config->shape));
	run_checks(&doctor);
	if (arguments->plain.client.json)
		print_json(&doctor, path);
	else
		print_findings(&doctor, arguments->only_bad);
	netlink_close(&doctor.netlink);
	json_decref(doctor.findings);
	return doctor.problems ? EXIT_FAILED : EXIT_DONE;
}

/* Without a configuration there is nothing to look at. */
static int refuse(const struct doctor_arguments *arguments, const char *sentence)
{
	json_t *answer;

	if (!arguments->plain.client.json) {
		complain("%s", sentence);
		return EXIT_FAILED;
	}
	answer = json_pack("{s:b, s:s}", "ok", 0, "error", sentence);
	json_dumpf(answer, stdout, JSON_INDENT(2));
	putchar('\n');
	json_decref(answer);
	return EXIT_FAILED;
}

int doctor_main(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"config", 'c', "FILE", 0,
		 "The configuration to look at (default: the running agent's, else " CONFIG_DEFAULT
		 ")",
		 0},
		{"expect-secret", 'e', "FINGERPRINT", 0,
		 "A problem if the cluster's secret has another fingerprint than this, which the same "
		 "command has printed on another machine",
		 0},
		{"quiet", 'q', NULL, 0, "Leave out what is well", 0},
		{0},
	};
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.children = client_children,
		.doc = "Look for what may keep this machine, as router or replica, from working, and say what "
		       "to do about each. Ends with 1 if there is a problem.\v"
		       "Run it where warmpathd runs, as root. With or without a running agent.\n\n"
		       "Examples:\n  warmpath doctor\n"
		       "  warmpath doctor -c /etc/warmpath/warmpath.yaml --expect-secret 5ad0c3be21f94477",
	};
	struct doctor_arguments arguments = {0};
	struct config_problems problems = {0};
	struct error no_answer = {.text = ""};
	struct config *config;
	const char *path;
	json_t *status;
	int code;

	argp_parse(&argp, argc, argv, 0, NULL, &arguments);
	config = calloc(1, sizeof(*config));
	if (!config)
		return EXIT_FAILED;
	log_set_level(LOG_LEVEL_ERROR);
	status = ask_status(&arguments.plain.client, &no_answer);
	path = arguments.config;
	if (!path && status)
		path = client_text(status, "configuration");
	if (!path)
		path = CONFIG_DEFAULT;
	if (config_load(path, config, &problems)) {
		code = refuse(&arguments, problems.text ? problems.text : "not enough memory");
	} else {
		code = examine(&arguments, config, path, status, no_answer.text);
	}
	config_problems_free(&problems);
	config_free(config);
	free(config);
	json_decref(status);
	return code;
}
