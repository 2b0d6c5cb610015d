// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A client for datagrams with a conversation id at offset 8 (datagram.h), and the book-keeping of what came back.
 *
 *   datagram-client [options] PORT [ADDRESS] < IDS
 *
 * Standard input: one "ID" a line, sent to ADDRESS; or "ID ADDRESS", each then over a socket of its own. All sockets are connected:
 * an answer from any other address or port than the one sent to is not seen, so it counts as lost.
 *
 * One pass (the default): each id is sent once; one line each, in the order of the input:
 *     ID REPLICA            who answered
 *     ID -                  nobody did
 *     ID ! TYPE CODE FROM   an ICMP error came instead (numbers of the family's ICMP), FROM whom
 * With --rate, continuously, ids in turn, until SIGTERM, SIGINT or --seconds; then one line for each id,
 *     ID SENT RECEIVED CHANGES REPLICA,REPLICA,...     (in the order in which they first answered)
 * In both cases a last line: total sent=N received=N lost=N duplicate=N corrupt=N errors=N too_big=N
 * (ICMP errors; those that only say "too big" apart). Exit status 1 if anything was lost, corrupt or an error.
 */
#include <err.h>
#include <errno.h>
#include <getopt.h>
#include <netdb.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "datagram.h"
#include "icmp-error.h"

#define RECEIVE_BUFFER_BYTES (8 << 20)
#define REPLICAS_SEEN_MAX    64
#define LOSSES_SHOWN_MAX     10

struct conversation {
	char id[DATAGRAM_ID_SIZE + 1];
	int fd;
	uint64_t sent, received, changes;
	unsigned int tries;	/* one pass: datagrams sent */
	uint64_t tried_at;	/* nanoseconds */
	bool done;		/* one pass: answered, failed or given up */
	int last_replica;	/* index into `replicas`, -1: none yet */
	uint64_t replicas_seen; /* a bit for each of the first 64 */
	uint8_t seen_order[REPLICAS_SEEN_MAX];
	unsigned int seen_count;
	char error[96];
};

/* One for each datagram, indexed by its sequence number. */
struct sending {
	uint32_t conversation;
	uint32_t sent_at_milliseconds;
	bool answered;
};

static struct settings {
	uint16_t port;
	const char *address;
	double rate, seconds;
	unsigned int window, tries;
	uint64_t timeout; /* nanoseconds */
	size_t size, answer_size;
	int ttl;
	uint16_t source_port;
	uint32_t prompt_tokens, max_tokens;
} settings = {.window = 16, .tries = 1, .timeout = 1000000000ull, .size = 64, .answer_size = 64};

static struct conversation *conversations;
static size_t conversation_count;
static struct sending *sendings;
static size_t sending_count, sending_room;
static char replicas[REPLICAS_SEEN_MAX][DATAGRAM_REPLICA_MAX];
static int replica_count;
static uint64_t received, duplicates, corrupt, errors, too_big, started;
static int poller;
static volatile sig_atomic_t stop;

static uint64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000ull + (uint64_t)time.tv_nsec;
}

static void on_signal(int signal_number)
{
	(void)signal_number;
	stop = 1;
}

/* --- setting up ----------------------------------------------------------------------------------------- */

static void set_options(int fd, int family)
{
	int on = 1, buffer = RECEIVE_BUFFER_BYTES;

	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &buffer, sizeof(buffer)))
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof(buffer));
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	icmp_error_enable(fd, family);
	if (settings.ttl && family == AF_INET)
		setsockopt(fd, IPPROTO_IP, IP_TTL, &settings.ttl, sizeof(settings.ttl));
	else if (settings.ttl)
		setsockopt(fd, IPPROTO_IPV6, IPV6_UNICAST_HOPS, &settings.ttl,
			   sizeof(settings.ttl));
}

static int connect_to(const char *address)
{
	struct addrinfo hints = {.ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_DGRAM}, *result;
	struct epoll_event event = {.events = EPOLLIN};
	char port[8];
	int fd;

	snprintf(port, sizeof(port), "%u", settings.port);
	if (getaddrinfo(address, port, &hints, &result))
		errx(2, "%s is not an IP address", address);
	fd = socket(result->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		err(1, "cannot open a socket");
	set_options(fd, result->ai_family);
	if (settings.source_port) {
		struct sockaddr_in6 from = {.sin6_family = (sa_family_t)result->ai_family,
					    .sin6_port = htons(settings.source_port)};
		/* the port has the same place in both families' addresses, and the rest is zero: any address */
		if (bind(fd, (struct sockaddr *)&from, result->ai_addrlen))
			err(1, "cannot bind to port %u", settings.source_port);
	}
	if (connect(fd, result->ai_addr, result->ai_addrlen))
		err(1, "cannot connect to %s", address);
	freeaddrinfo(result);
	event.data.fd = fd;
	if (epoll_ctl(poller, EPOLL_CTL_ADD, fd, &event))
		err(1, "cannot watch a socket");
	return fd;
}

static void read_conversations(void)
{
	char line[256], id[64], address[64];
	int common = settings.address ? connect_to(settings.address) : -1;

	while (fgets(line, sizeof(line), stdin)) {
		struct conversation *conversation;
		int words = sscanf(line, "%63s %63s", id, address);

		if (words < 1)
			continue;
		if (strlen(id) > DATAGRAM_ID_SIZE)
			errx(2, "id %s is longer than %d characters", id, DATAGRAM_ID_SIZE);
		if (words == 1 && common < 0)
			errx(2, "id %s has no address", id);
		conversations =
			realloc(conversations, (conversation_count + 1) * sizeof(*conversations));
		if (!conversations)
			err(1, "no memory");
		conversation = &conversations[conversation_count++];
		*conversation = (struct conversation){.last_replica = -1};
		snprintf(conversation->id, sizeof(conversation->id), "%.16s", id);
		conversation->fd = words == 2 ? connect_to(address) : common;
	}
	if (!conversation_count)
		errx(2, "no ids on standard input");
}

/* --- sending -------------------------------------------------------------------------------------------- */

static void send_request(size_t index)
{
	static uint8_t datagram[DATAGRAM_SIZE_MAX];
	struct conversation *conversation = &conversations[index];
	struct datagram_request request = {
		.magic = htonl(DATAGRAM_REQUEST),
		.sequence = htonl((uint32_t)sending_count),
		.prompt_tokens = htonl(settings.prompt_tokens),
		.max_tokens = htonl(settings.max_tokens),
		.answer_size = htonl((uint32_t)settings.answer_size),
	};

	if (sending_count == sending_room) {
		sending_room = sending_room ? sending_room * 2 : 4096;
		sendings = realloc(sendings, sending_room * sizeof(*sendings));
		if (!sendings)
			err(1, "no memory");
	}
	conversation->tried_at = now();
	sendings[sending_count++] = (struct sending){
		.conversation = (uint32_t)index,
		.sent_at_milliseconds = (uint32_t)((conversation->tried_at - started) / 1000000),
	};
	conversation->tries++;
	conversation->sent++;
	memcpy(request.id, conversation->id, DATAGRAM_ID_SIZE);
	memcpy(datagram, &request, sizeof(request));
	datagram_fill(datagram, request.id, sizeof(request), settings.size);
	/* a pending ICMP error of an earlier datagram is reported by the first try: it is read from the error queue */
	for (int attempt = 0; attempt < 3; attempt++) {
		if (send(conversation->fd, datagram, settings.size, 0) >= 0)
			return;
		if (errno != ECONNREFUSED && errno != EHOSTUNREACH && errno != ENETUNREACH &&
		    errno != EMSGSIZE && errno != EACCES)
			err(1, "cannot send");
	}
}

/* --- receiving ------------------------------------------------------------------------------------------ */

static int replica_number(const char *name)
{
	for (int index = 0; index < replica_count; index++) {
		if (!strcmp(replicas[index], name))
			return index;
	}
	if (replica_count == REPLICAS_SEEN_MAX)
		errx(1, "more than %d replicas have answered", REPLICAS_SEEN_MAX);
	snprintf(replicas[replica_count], DATAGRAM_REPLICA_MAX, "%s", name);
	return replica_count++;
}

static void note_replica(struct conversation *conversation, int replica)
{
	conversation->received++;
	if (conversation->last_replica >= 0 && conversation->last_replica != replica)
		conversation->changes++;
	conversation->last_replica = replica;
	if (!(conversation->replicas_seen & (1ull << replica))) {
		conversation->replicas_seen |= 1ull << replica;
		conversation->seen_order[conversation->seen_count++] = (uint8_t)replica;
	}
}

static bool answer_is_intact(const uint8_t *datagram, size_t size,
			     const struct datagram_answer *answer, int fd)
{
	const struct sending *sending;
	const struct conversation *conversation;

	if (ntohl(answer->magic) != DATAGRAM_ANSWER || ntohl(answer->sequence) >= sending_count)
		return false;
	sending = &sendings[ntohl(answer->sequence)];
	conversation = &conversations[sending->conversation];
	return conversation->fd == fd && size == settings.answer_size &&
	       !memcmp(answer->id, conversation->id, DATAGRAM_ID_SIZE) &&
	       ntohl(answer->request_size) == settings.size && ntohl(answer->request_intact) == 1 &&
	       memchr(answer->replica, 0, DATAGRAM_REPLICA_MAX) &&
	       datagram_filler_intact(datagram, answer->id, sizeof(*answer), size);
}

static void receive_answers(int fd)
{
	static uint8_t datagram[65536];
	ssize_t size;

	while ((size = recv(fd, datagram, sizeof(datagram), MSG_DONTWAIT)) >= 0) {
		struct datagram_answer answer = {0};
		struct sending *sending;

		if ((size_t)size >= sizeof(answer))
			memcpy(&answer, datagram, sizeof(answer));
		if (!answer_is_intact(datagram, (size_t)size, &answer, fd)) {
			corrupt++;
			continue;
		}
		sending = &sendings[ntohl(answer.sequence)];
		if (sending->answered) {
			duplicates++;
			continue;
		}
		sending->answered = true;
		received++;
		conversations[sending->conversation].done = true;
		note_replica(&conversations[sending->conversation], replica_number(answer.replica));
	}
}

/* Whose datagram an ICMP error quotes: the kernel hands out the payload that came with it. */
static struct conversation *quoted_conversation(const uint8_t *payload, ssize_t size, int fd)
{
	struct datagram_request request;

	if (size >= 24) {
		memcpy(&request, payload, 24);
		if (ntohl(request.sequence) < sending_count)
			return &conversations[sendings[ntohl(request.sequence)].conversation];
	}
	for (size_t index = 0; index < conversation_count; index++) {
		if (conversations[index].fd == fd && conversations[index].sent &&
		    !conversations[index].done)
			return &conversations[index];
	}
	return NULL;
}

static void receive_errors(int fd)
{
	struct icmp_error error;

	while (icmp_error_read(fd, &error)) {
		struct conversation *conversation =
			quoted_conversation(error.payload, error.payload_size, fd);

		if (error.error == EMSGSIZE)
			too_big++;
		else
			errors++;
		if (!conversation)
			continue;
		snprintf(conversation->error, sizeof(conversation->error), "! %u %u %s", error.type,
			 error.code, error.from);
		/* a message about size is no end: the next try is fragmented by the sender itself */
		if (error.error != EMSGSIZE || conversation->tries >= settings.tries)
			conversation->done = true;
	}
}

/* Waits for answers and errors until `deadline`, or until something has come. */
static void wait_for_answers(uint64_t deadline)
{
	struct epoll_event events[64];
	uint64_t time = now(), left = deadline > time ? deadline - time : 0;
	struct timespec wait = {.tv_sec = (time_t)(left / 1000000000ull),
				.tv_nsec = (long)(left % 1000000000ull)};
	int count = epoll_pwait2(poller, events, 64, &wait, NULL);

	for (int index = 0; index < count; index++) {
		if (events[index].events & EPOLLERR)
			receive_errors(events[index].data.fd);
		receive_answers(events[index].data.fd);
	}
}

/* --- the two ways of sending ---------------------------------------------------------------------------- */

static void one_pass(void)
{
	size_t next = 0, first_open = 0;

	while (first_open < conversation_count && !stop) {
		uint64_t time = now(), wake = time + settings.timeout;
		unsigned int open = 0;

		for (size_t index = first_open; index < next; index++) {
			struct conversation *conversation = &conversations[index];

			if (conversation->done)
				continue;
			if (time >= conversation->tried_at + settings.timeout) {
				if (conversation->tries >= settings.tries) {
					conversation->done = true;
					continue;
				}
				send_request(index);
			}
			open++;
			if (conversation->tried_at + settings.timeout < wake)
				wake = conversation->tried_at + settings.timeout;
		}
		while (open < settings.window && next < conversation_count) {
			send_request(next++);
			open++;
		}
		while (first_open < next && conversations[first_open].done)
			first_open++;
		if (open)
			wait_for_answers(wake);
	}
}

static void continuously(void)
{
	uint64_t interval = (uint64_t)(1e9 / settings.rate), due = now(), end;
	uint64_t until =
		settings.seconds > 0 ? due + (uint64_t)(settings.seconds * 1e9) : UINT64_MAX;
	size_t next = 0;

	while (!stop && now() < until) {
		if (now() >= due) {
			send_request(next);
			next = (next + 1) % conversation_count;
			due += interval;
			/* no bursts to make up for a pause: whoever stopped us is not to be blamed on the network */
			if (now() > due + 100000000ull)
				due = now();
		}
		wait_for_answers(due < until ? due : until);
	}
	end = now() + settings.timeout;
	while (now() < end && received + errors + too_big < sending_count)
		wait_for_answers(end);
}

/* --- reporting ------------------------------------------------------------------------------------------ */

static void print_conversation(const struct conversation *conversation)
{
	if (settings.rate <= 0) {
		const char *replica =
			conversation->received ? replicas[conversation->last_replica] : "-";

		printf("%s %s\n", conversation->id,
		       conversation->received || !conversation->error[0] ? replica
									 : conversation->error);
		return;
	}
	printf("%s %llu %llu %llu ", conversation->id, (unsigned long long)conversation->sent,
	       (unsigned long long)conversation->received,
	       (unsigned long long)conversation->changes);
	for (unsigned int index = 0; index < conversation->seen_count; index++)
		printf("%s%s", index ? "," : "", replicas[conversation->seen_order[index]]);
	printf("%s\n", conversation->seen_count ? "" : "-");
}

/* Returns the number of datagrams without an answer; in one pass, of ids without one. */
static uint64_t print_report(void)
{
	uint64_t lost = 0;

	for (size_t index = 0; index < conversation_count; index++) {
		print_conversation(&conversations[index]);
		if (settings.rate <= 0)
			lost += !conversations[index].received;
	}
	for (size_t sequence = 0; settings.rate > 0 && sequence < sending_count; sequence++) {
		if (sendings[sequence].answered)
			continue;
		if (lost++ < LOSSES_SHOWN_MAX)
			fprintf(stderr, "# lost: %s at %.3f s\n",
				conversations[sendings[sequence].conversation].id,
				sendings[sequence].sent_at_milliseconds / 1e3);
	}
	printf("total sent=%zu received=%llu lost=%llu duplicate=%llu corrupt=%llu errors=%llu too_big=%llu\n",
	       sending_count, (unsigned long long)received, (unsigned long long)lost,
	       (unsigned long long)duplicates, (unsigned long long)corrupt,
	       (unsigned long long)errors, (unsigned long long)too_big);
	return lost;
}

static void read_options(int argc, char **argv)
{
	static const struct option options[] = {{"rate", required_argument, NULL, 'r'},
						{"seconds", required_argument, NULL, 's'},
						{"window", required_argument, NULL, 'w'},
						{"tries", required_argument, NULL, 'y'},
						{"timeout", required_argument, NULL, 't'},
						{"size", required_argument, NULL, 'z'},
						{"answer-size", required_argument, NULL, 'a'},
						{"ttl", required_argument, NULL, 'l'},
						{"source-port", required_argument, NULL, 'p'},
						{"prompt-tokens", required_argument, NULL, 'P'},
						{"max-tokens", required_argument, NULL, 'M'},
						{0}};
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		double number = optarg ? strtod(optarg, NULL) : 0;

		switch (option) {
		case 'r':
			settings.rate = number;
			break;
		case 's':
			settings.seconds = number;
			break;
		case 'w':
			settings.window = (unsigned int)number;
			break;
		case 'y':
			settings.tries = (unsigned int)number;
			break;
		case 't':
			settings.timeout = (uint64_t)(number * 1e6);
			break;
		case 'z':
			settings.size = (size_t)number;
			break;
		case 'a':
			settings.answer_size = (size_t)number;
			break;
		case 'l':
			settings.ttl = (int)number;
			break;
		case 'p':
			settings.source_port = (uint16_t)number;
			break;
		case 'P':
			settings.prompt_tokens = (uint32_t)number;
			break;
		case 'M':
			settings.max_tokens = (uint32_t)number;
			break;
		default:
			exit(2);
		}
	}
	if (optind < argc)
		settings.port = (uint16_t)strtoul(argv[optind++], NULL, 10);
	if (optind < argc)
		settings.address = argv[optind++];
	if (!settings.port || optind < argc)
		errx(2,
		     "usage: datagram-client [--rate PER-SECOND [--seconds S]] [--window N] [--tries N]"
		     " [--timeout MILLISECONDS] [--size BYTES] [--answer-size BYTES] [--ttl N]"
		     " [--source-port PORT] [--prompt-tokens N] [--max-tokens N] PORT [ADDRESS] < IDS");
	if (settings.size < sizeof(struct datagram_request) || settings.size > DATAGRAM_SIZE_MAX ||
	    settings.answer_size < sizeof(struct datagram_answer) ||
	    settings.answer_size > DATAGRAM_SIZE_MAX)
		errx(2, "sizes must be from 64 to %d", DATAGRAM_SIZE_MAX);
}

int main(int argc, char **argv)
{
	uint64_t lost;

	read_options(argc, argv);
	signal(SIGTERM, on_signal);
	signal(SIGINT, on_signal);
	poller = epoll_create1(EPOLL_CLOEXEC);
	if (poller < 0)
		err(1, "cannot make an epoll instance");
	read_conversations();
	started = now();
	if (settings.rate > 0)
		continuously();
	else
		one_pass();
	lost = print_report();
	return lost || corrupt || errors;
}
