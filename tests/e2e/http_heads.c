/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Heads of requests in all their forms: each has to reach the home of the conversation it names, or a replica that the content decides, or to be
 * refused, as the table below says. Where a replica answers, the answer has to be, byte for byte, its answer to the same bytes sent directly.
 *
 *   http_heads ADDRESS PORT PLAN REPLICA-PORT NAME=ADDRESS...
 *
 * PLAN has lines "ID HOME"; the ids of the first line and of the first one with another home are used, and one of 128 characters. Prints TAP.
 */
#include <stdlib.h>

#include "raw_exchange.h"

#define REPLICAS_MAX 16
#define REQUEST_MAX  65536

enum outcome {
	TO_ONE,	  /* the home of id `one` */
	TO_OTHER, /* the home of id `other` */
	TO_LONG,  /* the home of the id of 128 characters */
	TO_ANY,	  /* any replica, always the same for the same body */
	REFUSED,  /* 400 from the router, with a whole answer */
};

struct replica {
	char name[64];
	struct server server;
};

static struct server service;
static struct replica replicas[REPLICAS_MAX];
static unsigned int replica_count, number, failures;
static char one[132], other[132], longest[132];
static char home_of_one[64], home_of_other[64], home_of_longest[64];

/* The request being made. */
static char request[REQUEST_MAX];
static size_t length;

static void say(const char *text)
{
	size_t more = strlen(text);

	memcpy(request + length, text, more);
	length += more;
}

static void begin(const char *line)
{
	length = 0;
	say(line);
	say("\r\nHost: replica\r\n");
}

static void header(const char *name, const char *value)
{
	say(name);
	say(": ");
	say(value);
	say("\r\n");
}

static void end_with_body(const char *body)
{
	char value[32];

	snprintf(value, sizeof(value), "%zu", strlen(body));
	header("Content-Length", value);
	header("Connection", "close");
	say("\r\n");
	say(body);
}

static void end(void)
{
	end_with_body("a body");
}

/* --- what has to come of it --------------------------------------------------------------------------------------- */

static struct replica *find_replica(const char *name)
{
	for (unsigned int i = 0; i < replica_count; i++) {
		if (strcmp(replicas[i].name, name) == 0)
			return &replicas[i];
	}
	return NULL;
}

static bool is_refusal(const struct transcript *got)
{
	const char *field = strcasestr(got->text, "\r\nContent-Length: ");
	const char *body = strstr(got->text, "\r\n\r\n");

	return strncmp(got->text, "HTTP/1.1 400 ", 13) == 0 && field && body && got->closed &&
	       strcasestr(got->text, "\r\nConnection: close\r\n") &&
	       !strcasestr(got->text, "\r\nX-Replica:") &&
	       strtoul(field + 18, NULL, 10) == strlen(body + 4) && strlen(body + 4) > 0;
}

/* The replica that gave this answer, by comparing with what each answers directly; NULL: none. */
static struct replica *replica_of(const struct transcript *got)
{
	static struct transcript expected;

	for (unsigned int i = 0; i < replica_count; i++) {
		raw_exchange(&replicas[i].server, request, length, 0, 0, &expected);
		if (got->length == expected.length && got->length > 0 &&
		    memcmp(got->text, expected.text, got->length) == 0 &&
		    got->closed == expected.closed && got->error == expected.error)
			return &replicas[i];
	}
	return NULL;
}

static void expect(const char *what, enum outcome outcome)
{
	const char *const homes[] = {home_of_one, home_of_other, home_of_longest};
	static struct transcript got;
	struct replica *from;
	bool good;

	raw_exchange(&service, request, length, 0, 0, &got);
	if (outcome == REFUSED) {
		good = is_refusal(&got);
		from = NULL;
	} else {
		from = replica_of(&got);
		good = from && (outcome == TO_ANY || from == find_replica(homes[outcome]));
	}
	printf("%sok %u - %s\n", good ? "" : "not ", ++number, what);
	if (!good) {
		printf("# %s; error %d; the answer:\n", from ? from->name : "no replica's answer",
		       got.error);
		for (const char *at = got.text; *at && at < got.text + 300;
		     at += strcspn(at, "\n") + (strchr(at, '\n') != NULL))
			printf("#   %.*s\n", (int)strcspn(at, "\r\n"), at);
	}
	failures += !good;
}

/* --- the table ------------------------------------------------------------------------------------------------------ */

static void names(void)
{
	static const char plain[] = "x-conversation-id";
	char name[sizeof(plain)];

	for (size_t i = 0; i < sizeof(plain) - 1; i++) {
		if (plain[i] == '-')
			continue;
		strcpy(name, plain);
		name[i] -= 'a' - 'A';
		begin("POST /upload HTTP/1.1");
		header(name, one);
		end();
		expect(name, TO_ONE);
	}
	begin("POST /upload HTTP/1.1");
	header("X-CONVERSATION-ID", other);
	end();
	expect("X-CONVERSATION-ID", TO_OTHER);

	begin("POST /upload HTTP/1.1");
	header("x_conversation_id", "not valid!");
	end();
	expect("x_conversation_id is not it", TO_ANY);
	begin("POST /upload HTTP/1.1");
	header("x_conversation_id", other);
	header("x-conversation-id", one);
	end();
	expect("x_conversation_id in front of x-conversation-id", TO_ONE);
	begin("POST /upload HTTP/1.1");
	header("x-conversation-id-2", "not valid!");
	header("-x-conversation-id", "not valid!");
	header("x-conversation-i", "not valid!");
	header("x-conversation-id", other);
	end();
	expect("names that begin, or end, like it", TO_OTHER);
	begin("POST /x-conversation-id:%20bad HTTP/1.1");
	header("Cookie", "x-conversation-id: not valid!");
	header("x-conversation-id", one);
	end();
	expect("its name in the target and in another header's value", TO_ONE);
	begin("POST /upload HTTP/1.1");
	header("x-conversation-id", one);
	header("x-conversation-id", other);
	end();
	expect("twice: the first counts", TO_ONE);
	begin("POST /upload HTTP/1.1");
	header("x-conversation-id", other);
	header("X-Conversation-Id", "not valid!");
	end();
	expect("twice: the second is not looked at", TO_OTHER);
}

static void values(void)
{
	static const struct {
		const char *what, *value;
		enum outcome outcome;
	} refused[] = {
		{"a blank inside", "conv 1", REFUSED}, {"UTF-8", "conv-\xc3\xa9", REFUSED},
		{"a slash", "conv/1", REFUSED},	       {"a control character", "conv\x01", REFUSED},
		{"DEL", "conv\x7f", REFUSED},	       {"empty", "", TO_ANY},
		{"blanks", "     ", TO_ANY},	       {"tabs", "\t\t", TO_ANY},
	};
	char text[20000];

	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		begin("POST /upload HTTP/1.1");
		header("x-conversation-id", refused[i].value);
		end();
		expect(refused[i].what, refused[i].outcome);
	}
	begin("POST /upload HTTP/1.1");
	snprintf(text, sizeof(text), " \t %s \t ", one);
	header("x-conversation-id", text);
	end();
	expect("blanks around it", TO_ONE);
	begin("POST /upload HTTP/1.1");
	say("x-conversation-id:");
	say(other);
	say("\r\n");
	end();
	expect("no blank behind the colon", TO_OTHER);
	begin("POST /upload HTTP/1.1");
	header("x-conversation-id", longest);
	end();
	expect("128 characters", TO_LONG);
	begin("POST /upload HTTP/1.1");
	snprintf(text, sizeof(text), "%sx", longest);
	header("x-conversation-id", text);
	end();
	expect("129 characters", REFUSED);
	begin("POST /upload HTTP/1.1");
	memset(text, 'a', 16384);
	text[16384] = '\0';
	header("x-conversation-id", text);
	end();
	expect("16 KiB", REFUSED);
	begin("POST /upload HTTP/1.1");
	say("x-conversation-id: conv");
	request[length++] = '\0';
	say("1\r\n");
	end();
	expect("NUL", REFUSED);
	begin("POST /upload HTTP/1.1");
	say("x-conversation-id: ");
	say(one);
	say("\r\n more\r\n");
	end();
	expect("continued on the next line", REFUSED);
}

static void other_headers(void)
{
	char text[20000];

	memset(text, 'c', sizeof(text));
	text[3000] = '\0';
	begin("POST /upload HTTP/1.1");
	header("Cookie", text);
	header("x-conversation-id", other);
	end();
	expect("behind a cookie of 3,000 bytes", TO_OTHER);
	text[3000] = 'c';
	text[16384] = '\0';
	begin("POST /upload HTTP/1.1");
	header("x-conversation-id", one);
	header("Cookie", text);
	end();
	expect("in front of a cookie of 16 KiB", TO_ONE);
	begin("POST /upload HTTP/1.1");
	header("Cookie", text);
	header("x-conversation-id", one);
	end();
	expect("behind a cookie of 16 KiB: beyond what is looked at", TO_ANY);
	begin("GET /none HTTP/1.1");
	say("\r\n");
	length -= 2;
	end();
	expect("no header at all", TO_ANY);
}

static void forms(void)
{
	begin("POST /upload HTTP/1.1");
	header("x-conversation-id", one);
	header("Transfer-Encoding", "chunked");
	header("Connection", "close");
	say("\r\n5\r\nabcde\r\nA;extension=1\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\n");
	expect("a chunked upload", TO_ONE);
	begin("POST /upload HTTP/1.1");
	header("x-conversation-id", other);
	header("Content-Length", "5");
	say("\r\nabcde and more than was announced\r\n\r\n");
	expect("a body longer than Content-Length", TO_OTHER);
	begin("POST /upload HTTP/1.1");
	header("x-conversation-id", one);
	header("Content-Length", "5");
	header("Transfer-Encoding", "chunked");
	header("Connection", "close");
	say("\r\n5\r\nabcde\r\n0\r\n\r\n");
	expect("Content-Length and chunked", TO_ONE);
	begin("POST /upload HTTP/1.0");
	header("x-conversation-id", other);
	end();
	expect("HTTP/1.0", TO_OTHER);
	begin("HEAD /files/none HTTP/1.1");
	header("x-conversation-id", one);
	header("Connection", "close");
	say("\r\n");
	expect("HEAD", TO_ONE);
	begin("\r\n\r\nGET /x HTTP/1.1");
	header("x-conversation-id", other);
	header("Connection", "close");
	say("\r\n");
	expect("empty lines in front", TO_OTHER);
	length = 0;
	say("GET /x HTTP/1.1\nHost: replica\nx-conversation-id: ");
	say(one);
	say("\nConnection: close\n\n");
	expect("lines that end in LF alone", TO_ONE);
	length = 0;
	say("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
	expect("HTTP/2 with prior knowledge", REFUSED);
	length = 0;
	say("\x16\x03\x01\x02");
	expect("TLS", REFUSED);
	length = 0;
	say("GET /x y HTTP/1.1\r\nHost: replica\r\n\r\n");
	expect("a request line with a blank too many", REFUSED);
}

/* The head first; the body only when the server has asked for it. */
static void expect_continue(void)
{
	static struct transcript got;
	struct replica *from;
	int connection = raw_connect(&service);
	size_t head;
	bool good;

	begin("POST /upload HTTP/1.1");
	header("x-conversation-id", other);
	header("Expect", "100-continue");
	header("Connection", "close");
	head = length + strlen("Content-Length: 10\r\n\r\n");
	say("Content-Length: 10\r\n\r\n0123456789");
	memset(&got, 0, sizeof(got));
	raw_send(connection, request, head);
	raw_read(connection, &got, "100 Continue\r\n\r\n");
	raw_send(connection, request + head, length - head);
	raw_read(connection, &got, NULL);
	close(connection);
	mask_dates(&got);
	from = replica_of(&got);
	good = from && from == find_replica(home_of_other);
	printf("%sok %u - Expect: 100-continue\n", good ? "" : "not ", ++number);
	failures += !good;
}

/* Without an id the body decides: the same body the same replica, and not all bodies the same one. */
static void keyless(void)
{
	static struct transcript got;
	unsigned int used[REPLICAS_MAX] = {0}, spread = 0, wrong = 0;

	for (unsigned int i = 0; i < 24; i++) {
		struct replica *first = NULL;
		char body[64];

		snprintf(body, sizeof(body), "{\"messages\": [\"conversation %u begins\"]}", i);
		for (unsigned int again = 0; again < 3; again++) {
			struct replica *from;

			begin("POST /upload HTTP/1.1");
			end_with_body(body);
			raw_exchange(&service, request, length, again * 77, 500, &got);
			from = replica_of(&got);
			if (!from || (first && from != first)) {
				printf("# body %u, time %u: %s, error %d, %zu bytes, not %s\n", i,
				       again, from ? from->name : "no answer", got.error,
				       got.length, first ? first->name : "one");
				wrong++;
			}
			first = from;
		}
		if (first)
			used[first - replicas]++;
	}
	for (unsigned int i = 0; i < replica_count; i++)
		spread += used[i] > 0;
	printf("%sok %u - no id, 24 bodies, three times each: the same replica for the same body\n",
	       wrong ? "not " : "", ++number);
	printf("%sok %u - no id: not all at one replica\n", spread > 1 ? "" : "not ", ++number);
	failures += (wrong > 0) + (spread < 2);
}

/* --- arguments ----------------------------------------------------------------------------------------------------------- */

static void read_plan(const char *path)
{
	FILE *file = fopen(path, "re");
	char id[132], home[64];

	if (!file)
		err(2, "%s", path);
	while (fscanf(file, "%131s %63s", id, home) == 2) {
		if (!one[0]) {
			strcpy(one, id);
			strcpy(home_of_one, home);
		} else if (!other[0] && strcmp(home, home_of_one) != 0) {
			strcpy(other, id);
			strcpy(home_of_other, home);
		} else if (strlen(id) == 128) {
			strcpy(longest, id);
			strcpy(home_of_longest, home);
		}
	}
	fclose(file);
	if (!other[0] || !longest[0])
		errx(2, "%s: two homes and an id of 128 characters are needed", path);
}

int main(int argc, char **argv)
{
	if (argc < 6 || argc - 5 > REPLICAS_MAX)
		errx(2, "usage: http_heads ADDRESS PORT PLAN REPLICA-PORT NAME=ADDRESS...");
	setvbuf(stdout, NULL, _IOLBF, 0);
	service.length = parse_server_address(argv[1], argv[2], &service.address);
	read_plan(argv[3]);
	for (int i = 5; i < argc; i++) {
		struct replica *replica = &replicas[replica_count++];
		char *equals = strchr(argv[i], '=');

		if (!equals) {
			warnx("%s: NAME=ADDRESS is needed", argv[i]);
			return 2;
		}
		*equals = '\0';
		snprintf(replica->name, sizeof(replica->name), "%s", argv[i]);
		replica->server.length =
			parse_server_address(equals + 1, argv[4], &replica->server.address);
	}
	names();
	values();
	other_headers();
	forms();
	expect_continue();
	keyless();
	printf("1..%u\n", number);
	return failures ? 1 : 0;
}
