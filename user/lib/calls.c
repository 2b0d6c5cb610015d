/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/calls.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>

int call_program(int program, void *argument, size_t size)
{
	LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = argument, .data_size_in = size,
		    .data_out = argument, .data_size_out = size, .repeat = 1);
	int err = bpf_prog_test_run_opts(program, &options);

	if (err)
		return err;
	/* XDP_PASS is 2; anything else means that the argument did not reach the program whole */
	return options.retval == 2 && options.data_size_out == size ? 0 : -EIO;
}

static int control(int program, struct control_call *call, struct error *error)
{
	int err = call_program(program, call, sizeof(*call));

	if (err)
		return error_set(error, err, "the control program cannot be run: %s",
				 strerror(-err));
	return 0;
}

static int refused(const struct control_call *call, struct error *error)
{
	return error_set(error, call->result,
			 "the control program refuses replica slot %u of service %u: %s",
			 call->replica, call->service, strerror(-call->result));
}

int control_set_member(int program, __u32 service, __u32 replica, bool member, struct error *error)
{
	struct control_call call = {
		.operation = member ? CONTROL_ENTER : CONTROL_LEAVE,
		.service = service,
		.replica = replica,
	};
	int err = control(program, &call, error);

	return !err && call.result ? refused(&call, error) : err;
}

int control_close_request(int program, const struct open_request_key *key, __u64 number,
			  enum completion_status status, bool *closed, struct error *error)
{
	struct control_call call = {
		.operation = CONTROL_CLOSE,
		.key = *key,
		.number = number,
		.status = status,
	};
	int err = control(program, &call, error);

	*closed = !err && call.result == 0;
	return err;
}

int control_forget_request(int program, const struct open_request_key *key, bool *forgotten,
			   struct error *error)
{
	struct control_call call = {.operation = CONTROL_FORGET, .key = *key};
	int err = control(program, &call, error);

	*forgotten = !err && call.result == 0;
	return err;
}

static int read_loads(int program, enum control_operation operation, __u32 service, __u32 replica,
		      struct control_call *call, struct error *error)
{
	int err;

	*call = (struct control_call){
		.operation = operation,
		.service = service,
		.replica = replica,
	};
	err = control(program, call, error);
	return !err && call->result ? refused(call, error) : err;
}

int control_mark(int program, __u32 service, __u32 replica, struct replica_load *load,
		 __u64 *decisions, struct error *error)
{
	struct control_call call;
	int err = read_loads(program, CONTROL_MARK, service, replica, &call, error);

	if (err)
		return err;
	*load = call.replica_load;
	*decisions = call.service_decisions;
	return 0;
}

int control_read(int program, __u32 service, __u32 replica, struct replica_load *load,
		 struct error *error)
{
	struct control_call call;
	int err = read_loads(program, CONTROL_READ, service, replica, &call, error);

	if (!err)
		*load = call.replica_load;
	return err;
}

static int add_load(int program, __u32 service, __u32 replica, __s64 requests, __s64 tokens,
		    bool foreign, struct error *error)
{
	struct control_call call = {
		.operation = CONTROL_REPAIR,
		.service = service,
		.replica = replica,
		.requests = requests,
		.tokens = tokens,
		.foreign = foreign,
	};
	int err = control(program, &call, error);

	return !err && call.result ? refused(&call, error) : err;
}

int control_repair(int program, __u32 service, __u32 replica, __s64 requests, __s64 tokens,
		   struct error *error)
{
	return add_load(program, service, replica, requests, tokens, false, error);
}

int control_add_foreign(int program, __u32 service, __u32 replica, __s64 requests, __s64 tokens,
			struct error *error)
{
	return add_load(program, service, replica, requests, tokens, true, error);
}
