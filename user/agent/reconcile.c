/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How a leak is told from work in progress
 * ----------------------------------------
 * For each replica, in one locked section (CONTROL_MARK): its load A, and the number M of the last decision of its service. A is made of decisions up
 * to M. From then on the data path counts apart what is given back of those (R). After every program that was running then has finished, so that
 * whoever was charged is in the table, the table is walked: S is what is open there of decisions up to M. Each charge in A is now in
 * S, or in R, or (given back between the walk and the reading of R) in both, or in neither: lost. So
 *
 *	A - S - R > 0	is the least that has been lost: it is taken off
 *	S - A > 0	means that open requests are not in the load: it is added
 *
 * and a charge that is just being given back can hide a loss for one pass, but never look like one.
 */
#include "agent/reconcile.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/membarrier.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "agent/request_table.h"
#include "lib/calls.h"

/* From the decision on a request; of one that took longer the entry goes at once. */
#define IDLE_NANOSECONDS 1000000000ULL

/* If the kernel cannot say when all programs have finished (isolated CPUs): they take microseconds. */
#define PATIENCE_NANOSECONDS 100000000L

struct account {
	bool asked;
	__u32 service;
	__u64 mark;
	struct replica_load before; /* A */
	__u64 requests;		    /* S */
	__u64 tokens;
};

struct pass {
	const struct datapath *datapath;
	const struct routing *routing;
	const struct foreign_load *foreign;
	struct reconcile_result *result;
	struct error *error;
	__u64 now;
	struct account accounts[REPLICAS_MAX];
};

/* --- A ------------------------------------------------------------------------------------------------------------- */

static int mark_replica(struct pass *pass, __u32 slot)
{
	const struct replica *replica = &pass->routing->replicas[slot];
	struct account *account = &pass->accounts[slot];

	if (replica->state == REPLICA_UNUSED)
		return 0;
	account->asked = true;
	account->service = replica->service;
	return control_mark(pass->datapath->control_program, replica->service, slot,
			    &account->before, &account->mark, pass->error);
}

static int mark_replicas(struct pass *pass)
{
	int result = 0;

	for (__u32 slot = 0; slot < REPLICAS_MAX && !result; slot++)
		result = mark_replica(pass, slot);
	return result;
}

static void wait_for_programs(void)
{
	static const struct timespec patience = {.tv_nsec = PATIENCE_NANOSECONDS};

	if (syscall(__NR_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0))
		nanosleep(&patience, NULL);
}

/* --- S ------------------------------------------------------------------------------------------------------------- */

/* COMPLETION_* that is to end the request, or 0: it stays open. */
static enum completion_status verdict_on(const struct pass *pass,
					 const struct open_request *request)
{
	const struct service *service;
	const struct replica *replica;

	if (request->service >= SERVICES_MAX || request->replica >= REPLICAS_MAX)
		return COMPLETION_ABANDONED;
	service = &pass->routing->services[request->service];
	replica = &pass->routing->replicas[request->replica];
	if (service->state != SERVICE_ACTIVE || replica->state == REPLICA_UNUSED ||
	    replica->service != request->service)
		return COMPLETION_ABANDONED;
	if (pass->now > request->decided_nanoseconds &&
	    pass->now - request->decided_nanoseconds >
		    service->request_timeout_milliseconds * 1000000ULL)
		return COMPLETION_TIMED_OUT;
	return 0;
}

/* The entry of an ended request waits for the next one of its connection, for a moment: room is for those that are open. */
static int forget_request(struct pass *pass, const struct open_request_key *key,
			  const struct open_request *request)
{
	bool forgotten = false;
	int result;

	if (pass->now < request->decided_nanoseconds + IDLE_NANOSECONDS)
		return 0;
	result = control_forget_request(pass->datapath->control_program, key, &forgotten,
					pass->error);
	pass->result->forgotten += forgotten;
	return result;
}

static int take_request(void *context, const struct open_request_key *key,
			const struct open_request *request)
{
	struct pass *pass = context;
	enum completion_status status;
	struct account *account;
	bool closed;
	int result;

	if (request->number == REQUEST_ENDED)
		return forget_request(pass, key, request);
	if (!request_is_open(request))
		return 0;
	status = verdict_on(pass, request);
	if (status) {
		result = control_close_request(pass->datapath->control_program, key,
					       request->number, status, &closed, pass->error);
		if (!result && closed && status == COMPLETION_TIMED_OUT)
			pass->result->timed_out++;
		else if (!result && closed)
			pass->result->abandoned++;
		return result;
	}
	pass->result->open++;
	account = &pass->accounts[request->replica];
	if (account->asked && request->number <= account->mark) {
		account->requests += request->request_charge;
		account->tokens += request->charge;
	}
	return 0;
}

/* --- the verdict --------------------------------------------------------------------------------------------------- */

/* What is to be added to a load: see the top. */
static __s64 correction(__s64 before, __s64 open, __s64 given_back)
{
	if (before - open - given_back > 0)
		return -(before - open - given_back);
	return open > before ? open - before : 0;
}

static int settle_replica(struct pass *pass, __u32 slot)
{
	struct account *account = &pass->accounts[slot];
	int program = pass->datapath->control_program, result;
	struct replica_load after;
	__s64 requests, tokens;

	if (!account->asked)
		return 0;
	result = control_read(program, account->service, slot, &after, pass->error);
	if (result)
		return result;
	if (pass->foreign) {
		account->requests += pass->foreign[slot].requests;
		account->tokens += pass->foreign[slot].tokens;
	}
	requests = correction(account->before.requests, account->requests, after.marked_requests);
	tokens = correction(account->before.tokens, account->tokens, after.marked_tokens);
	if (requests == 0 && tokens == 0)
		return 0;
	pass->result->repaired++;
	pass->result->requests += requests;
	pass->result->tokens += tokens;
	return control_repair(program, account->service, slot, requests, tokens, pass->error);
}

int reconcile(const struct datapath *datapath, const struct routing *routing, bool loads,
	      const struct foreign_load *foreign, struct reconcile_result *summary,
	      struct error *error)
{
	struct pass *pass = calloc(1, sizeof(*pass));
	struct timespec now;
	int result = 0;

	memset(summary, 0, sizeof(*summary));
	if (!pass)
		return error_set(error, -ENOMEM, "not enough memory");
	pass->datapath = datapath;
	pass->routing = routing;
	pass->result = summary;
	pass->error = error;
	pass->foreign = foreign;
	if (loads) {
		result = mark_replicas(pass);
		wait_for_programs();
	}
	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	pass->now = now.tv_sec * 1000000000ULL + now.tv_nsec;
	if (!result)
		result = request_table_each(datapath->requests, take_request, pass, error);
	for (__u32 slot = 0; loads && slot < REPLICAS_MAX && !result; slot++)
		result = settle_replica(pass, slot);
	free(pass);
	return result;
}
