/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * simreplica: an HTTP server that behaves like a llama-server replica, but sleeps where that one computes.
 *
 * Owns: what the parts of the program share. The parts: server.c (connections), routes.c (which request goes where),
 * completion.c (requests for answers), reply.c (how answers are worded), stream_store.c (streams that can be taken up again),
 * status.c (health, metrics, slots, properties), slot_files.c (slots saved to files).
 *
 * Time: "model time" is real time multiplied by --speed, in nanoseconds. All delays, time-outs and reported times are model time.
 */
#ifndef SIMREPLICA_H
#define SIMREPLICA_H

#include <http_parser.h>
#include <jansson.h>
#include <uv.h>

#include "../lib/bytes.h"
#include "../lib/replica.h"

#define SECOND		    1000000000ull
#define KEEP_ALIVE_REQUESTS 100
#define IDLE_SECONDS	    5
#define CONVERSATION_ID_MAX 128
#define STREAM_KEPT_SECONDS 300

enum metrics_dialect {
	METRICS_LLAMA,
	METRICS_VLLM,
	METRICS_SGLANG,
};

struct options {
	const char *address, *port, *name, *model_name, *slot_save_path;
	struct replica_settings replica;
	struct cost_model model;
	double speed, load_seconds;
	uint32_t answer_tokens; /* the length of an answer whose request sets no lower limit */
	enum metrics_dialect dialect; /* whose metrics */
	bool metrics, slots;	      /* the two endpoints */
};

struct server {
	uv_loop_t loop;
	uv_tcp_t listener;
	uv_signal_t terminate, interrupt;
	uv_poll_t work; /* on work_timer: uv's own timers only know milliseconds */
	int work_timer;
	struct options options;
	struct replica *replica;
	struct connection *connections;
	struct job *jobs;
	struct stream *streams;
	uint64_t started, ready; /* model time */
	uint64_t
		last_result; /* when the loop last gave anybody anything: see on_watch in completion.c */
	time_t process_start;
	bool frozen; /* SIGTERM came while answers were running */
	struct {
		uint64_t prompt_tokens, prompt_nanoseconds, predicted_tokens, predicted_nanoseconds;
	} last_scrape;
};

/* A client's connection. Works on one request at a time; nothing is read meanwhile. */
struct connection {
	uv_tcp_t tcp;
	uv_timer_t idle;
	struct server *server;
	struct connection *next;
	http_parser parser;
	struct bytes url, body, field, value;
	char conversation_id[CONVERSATION_ID_MAX + 1];
	uint32_t requests;
	bool in_value, expects_continue, complete;
	bool keep_alive; /* after the current answer */
	bool answering;	 /* an answer is due */
	bool closing;
	struct job *job;       /* the answer being made, if it takes time */
	struct stream *replay; /* or the stream being played to it */
	size_t replayed;       /* bytes of it */
};

/* A request for an answer, from its arrival to its last byte. */
struct job {
	struct server *server;
	struct job *next;
	struct connection *connection; /* NULL: the client is gone */
	struct stream *stream;	       /* kept for later replay, or NULL */
	struct replica_request request;
	uv_timer_t watch; /* looks whether the client is still there, sends pings */
	uint64_t arrives; /* when it will have been tokenised */
	bool submitted;
	bool doomed; /* to be cancelled as soon as the model may be called */
	bool chat, openai, streamed, include_usage, return_progress, head_sent;
	bool survives; /* came with X-Conversation-Id: goes on without its client */
	uint64_t answer_seed, last_event;
	time_t created;
	char id[48];
	struct bytes prompt_text; /* /completion gives it back */
	const char *model_name;
};

/* A stream that outlives its connection: everything sent so far. */
struct stream {
	struct stream *next;
	char conversation_id[CONVERSATION_ID_MAX + 1];
	struct bytes sent;
	struct job *job; /* still making it, or NULL */
	bool done;
	uint64_t started_at, completed_at; /* Unix milliseconds */
	uint64_t expires;		   /* model time; 0: still running */
};

uint64_t model_now(const struct server *server);
/* Milliseconds of real time for a span of model time, rounded up. */
uint64_t real_milliseconds(const struct server *server, uint64_t nanoseconds);
uint64_t unix_milliseconds(void);

/* server.c */
int server_run(struct server *server);
/* Sends bytes as they are (copies them). */
void connection_send(struct connection *connection, const void *data, size_t length);
/* A whole answer. Error statuses close the connection. */
void connection_answer(struct connection *connection, unsigned int status, const char *type,
		       const char *headers, const char *body, size_t length);
/* The head of a chunked answer, and its chunks; an empty one ends it. */
void connection_stream_head(struct connection *connection);
void connection_chunk(struct connection *connection, const void *data, size_t length);
/* The answer is complete: next request, or close. */
void connection_answered(struct connection *connection);
void connection_close(struct connection *connection);
/* Whether the client has closed its side (nothing is read meanwhile: one has to look). */
bool connection_gone(struct connection *connection);
/* Sets the alarm for the model's next event. */
void server_schedule(struct server *server);

/* routes.c */
void route(struct connection *connection);
void answer_json(struct connection *connection, unsigned int status,
		 json_t *json); /* takes the reference */
void answer_error(struct connection *connection, unsigned int code, const char *type,
		  const char *message);
/* Reads NAME=... of the query string into `value`, URL-decoded; false: not there or too long. */
bool query_value(const struct connection *connection, const char *name, char *value, size_t size);

/* completion.c */
enum completion_kind {
	COMPLETION_CHAT,
	COMPLETION_OWN,	   /* /completion */
	COMPLETION_OPENAI, /* /v1/completions */
};
extern const struct replica_observer completion_observer;
void completion_request(struct connection *connection, enum completion_kind kind);
/* The client is gone, or has been cut off. */
void job_abandon(struct job *job);
/* Ends a running answer at once. */
void job_cancel(struct job *job);
/* When the next request will have been tokenised (REPLICA_NEVER: none), and submitting those that have been by `now`. */
uint64_t jobs_next_arrival(const struct server *server);
void jobs_arrive(struct server *server, uint64_t now);
/* Cancels those whose client has been found gone. */
void jobs_sweep(struct server *server);

/* reply.c: events and bodies as JSON; the caller owns what is returned */
json_t *reply_timings(const struct job *job, uint64_t finished);
json_t *reply_whole(const struct job *job, uint64_t finished);
void reply_event_head(struct job *job, struct bytes *out);
void reply_event_token(struct job *job, struct bytes *out);
void reply_event_progress(struct job *job, struct bytes *out, uint64_t when);
void reply_event_last(struct job *job, struct bytes *out, uint64_t finished);

/* stream_store.c */
struct stream *stream_new(struct server *server, const char *conversation_id, struct job *job);
void stream_add(struct stream *stream, struct server *server, const void *data, size_t length);
void stream_end(struct stream *stream, struct server *server);
void stream_replay(struct connection *connection);
void stream_delete(struct connection *connection);
void stream_lookup(struct connection *connection);
void stream_detach(struct connection *connection);
void stream_free_all(struct server *server);

/* status.c */
void status_health(struct connection *connection);
void status_metrics(struct connection *connection);
void status_slots(struct connection *connection);
void status_properties(struct connection *connection);
void status_models(struct connection *connection);

/* slot_files.c */
void slot_action(struct connection *connection, const char *slot);

#endif /* SIMREPLICA_H */
