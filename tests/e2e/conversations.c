/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Conversations of many turns over datagrams: each sends a turn, waits for its answer, thinks, and sends the next, with a prompt that grows by
 * every turn.
 *
 *   conversations --count N --seconds S --think MS [--prefix TEXT] [--quiet-after MS] [--no-id] PORT ADDRESS
 *
 * Ids are PREFIX-1 to PREFIX-N (default "talk"); with --no-id none is sent. One line for each:
 *     ID turns=N median_ms=X max_ms=X REPLICA=N...
 * and "total turns=N lost=N". A turn without an answer in --quiet-after milliseconds (10000) is lost; the next one follows.
 */
#include <err.h>
#include <errno.h>
#include <getopt.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "../../tools/datagram.h"

#define CONVERSATIONS_MAX 512
#define TURNS_MAX	  20000
#define REPLICAS_MAX	  16
#define FIRST_PROMPT	  200 /* tokens */
#define TURN_TOKENS	  40
#define MAX_TOKENS	  48

struct conversation {
	char id[DATAGRAM_ID_SIZE + 1];
	int fd;
	uint32_t sequence; /* of the turn under way or to come */
	bool waiting;
	double due; /* milliseconds: when to send, or when to give up */
	double sent;
	float *latencies;
	unsigned int turns;
	char replicas[REPLICAS_MAX][DATAGRAM_REPLICA_MAX];
	unsigned int served[REPLICAS_MAX];
};

static struct conversation conversations[CONVERSATIONS_MAX];
static unsigned int count = 24, seconds = 5, think = 50, patience = 10000;
static bool without_id;
static unsigned long lost;

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1e3 + time.tv_nsec / 1e6;
}

static void open_all(const char *prefix, const char *port, const char *address)
{
	struct addrinfo hints = {.ai_socktype = SOCK_DGRAM, .ai_flags = AI_NUMERICHOST}, *found;

	if (getaddrinfo(address, port, &hints, &found))
		errx(2, "%s port %s is no address", address, port);
	for (unsigned int i = 0; i < count; i++) {
		struct conversation *talk = &conversations[i];

		snprintf(talk->id, sizeof(talk->id), "%.8s-%u", prefix, i + 1);
		talk->latencies = calloc(TURNS_MAX, sizeof(*talk->latencies));
		talk->fd = socket(found->ai_family, SOCK_DGRAM | SOCK_NONBLOCK, 0);
		if (!talk->latencies || talk->fd < 0 ||
		    connect(talk->fd, found->ai_addr, found->ai_addrlen))
			err(1, "a socket to %s", address);
		/* they do not all begin at once */
		talk->due = now() + (double)think * i / count;
	}
	freeaddrinfo(found);
}

static void send_turn(struct conversation *talk)
{
	struct datagram_request request = {
		.magic = htonl(DATAGRAM_REQUEST),
		.sequence = htonl(talk->sequence),
		.prompt_tokens = htonl(FIRST_PROMPT + TURN_TOKENS * talk->sequence),
		.max_tokens = htonl(MAX_TOKENS),
	};

	if (!without_id)
		memcpy(request.id, talk->id, strnlen(talk->id, sizeof(request.id)));
	talk->sent = now();
	talk->due = talk->sent + patience;
	talk->waiting = true;
	/* a refusal shows as a lost turn */
	if (send(talk->fd, &request, sizeof(request), 0) < 0)
		talk->due = talk->sent;
}

static void note_replica(struct conversation *talk, const char *name)
{
	for (int i = 0; i < REPLICAS_MAX; i++) {
		if (!talk->replicas[i][0])
			snprintf(talk->replicas[i], sizeof(talk->replicas[i]), "%s", name);
		if (strcmp(talk->replicas[i], name) == 0) {
			talk->served[i]++;
			return;
		}
	}
}

static void take_answers(struct conversation *talk)
{
	struct datagram_answer answer;

	while (recv(talk->fd, &answer, sizeof(answer), 0) == sizeof(answer)) {
		if (ntohl(answer.magic) != DATAGRAM_ANSWER || !talk->waiting ||
		    ntohl(answer.sequence) != talk->sequence)
			continue; /* of a turn given up */
		answer.replica[sizeof(answer.replica) - 1] = '\0';
		note_replica(talk, answer.replica);
		if (talk->turns < TURNS_MAX)
			talk->latencies[talk->turns++] = (float)(now() - talk->sent);
		talk->waiting = false;
		talk->sequence++;
		talk->due = now() + think;
	}
}

static void run(void)
{
	double end = now() + seconds * 1e3;
	struct pollfd polls[CONVERSATIONS_MAX];
	bool waiting = true;

	while (now() < end || (waiting && now() < end + patience)) {
		bool over = now() >= end;

		for (unsigned int i = 0; i < count; i++)
			polls[i] = (struct pollfd){.fd = conversations[i].fd, .events = POLLIN};
		poll(polls, count, 1);
		waiting = false;
		for (unsigned int i = 0; i < count; i++) {
			struct conversation *talk = &conversations[i];

			if (polls[i].revents)
				take_answers(talk);
			if (talk->waiting && now() >= talk->due) {
				lost++;
				talk->waiting = false;
				talk->sequence++;
			}
			if (!over && !talk->waiting && now() >= talk->due)
				send_turn(talk);
			waiting |= talk->waiting;
		}
	}
}

static int by_value(const void *a, const void *b)
{
	float difference = *(const float *)a - *(const float *)b;

	return difference < 0 ? -1 : difference > 0;
}

static void report(void)
{
	unsigned long turns = 0;

	for (unsigned int i = 0; i < count; i++) {
		struct conversation *talk = &conversations[i];

		qsort(talk->latencies, talk->turns, sizeof(*talk->latencies), by_value);
		printf("%s turns=%u median_ms=%.2f max_ms=%.2f", talk->id, talk->turns,
		       talk->turns ? talk->latencies[talk->turns / 2] : 0,
		       talk->turns ? talk->latencies[talk->turns - 1] : 0);
		for (int j = 0; j < REPLICAS_MAX && talk->replicas[j][0]; j++)
			printf(" %s=%u", talk->replicas[j], talk->served[j]);
		putchar('\n');
		turns += talk->turns;
	}
	printf("total turns=%lu lost=%lu\n", turns, lost);
}

static unsigned int number(const char *text, unsigned int most)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	if (*end != '\0' || end == text || value < 1 || value > most)
		errx(2, "\"%s\" is not a number from 1 to %u", text, most);
	return value;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {{"count", required_argument, NULL, 'c'},
						{"seconds", required_argument, NULL, 's'},
						{"think", required_argument, NULL, 't'},
						{"prefix", required_argument, NULL, 'p'},
						{"quiet-after", required_argument, NULL, 'q'},
						{"no-id", no_argument, NULL, 'n'},
						{0}};
	const char *prefix = "talk";
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option == 'c')
			count = number(optarg, CONVERSATIONS_MAX);
		else if (option == 's')
			seconds = number(optarg, 3600);
		else if (option == 't')
			think = number(optarg, 100000);
		else if (option == 'q')
			patience = number(optarg, 1000000);
		else if (option == 'n')
			without_id = true;
		else if (option == 'p')
			prefix = optarg;
		else
			return 2;
	}
	if (argc - optind != 2)
		errx(2, "usage: conversations [OPTIONS] PORT ADDRESS");
	open_all(prefix, argv[optind], argv[optind + 1]);
	run();
	report();
	return lost > 0;
}
