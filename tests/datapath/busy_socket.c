/* SPDX-License-Identifier: BSD-2-Clause */
/* See busy_socket.h. */
#include "busy_socket.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "replica_side.h"

static struct {
	int connection;
	int faults; /* where the kernel says that the page is wanted */
	void *page;
	long page_size;
	pthread_t user, watcher;
	bool is_watched;
	enum handoff_counter counter;
	atomic_bool watching;
} busy;

/* The n-th CPU that this process may run on; -1: there are not as many. */
static int cpu_of(int n)
{
	static cpu_set_t allowed;
	static bool known;

	/* before this process keeps to one of them */
	if (!known && sched_getaffinity(0, sizeof(allowed), &allowed))
		return -1;
	known = true;
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &allowed) && n-- == 0)
			return cpu;
	return -1;
}

static void keep_to(pthread_t thread, int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	assert_int_equal(pthread_setaffinity_np(thread, sizeof(set), &set), 0);
}

static void *use(void *unused)
{
	(void)unused;
	send(busy.connection, busy.page, 1, MSG_NOSIGNAL);
	return NULL;
}

static void let_go(void)
{
	struct uffdio_zeropage page = {
		.range = {.start = (uintptr_t)busy.page, .len = busy.page_size},
	};

	/* the second time, the page is there */
	ioctl(busy.faults, UFFDIO_ZEROPAGE, &page);
}

static void *watch(void *unused)
{
	uint64_t before = replica_count(busy.counter);

	(void)unused;
	atomic_store(&busy.watching, true);
	while (replica_count(busy.counter) == before && atomic_load(&busy.watching))
		;
	let_go();
	return NULL;
}

bool busy_socket_is_possible(void)
{
	return cpu_of(1) >= 0;
}

void busy_socket_take(int connection)
{
	struct uffdio_api api = {.api = UFFD_API};
	struct uffdio_register range = {.mode = UFFDIO_REGISTER_MODE_MISSING};
	struct pollfd wanted = {.events = POLLIN};

	keep_to(pthread_self(), cpu_of(0));
	busy.connection = connection;
	busy.page_size = sysconf(_SC_PAGESIZE);
	busy.page = mmap(NULL, busy.page_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			 -1, 0);
	assert_true(busy.page != MAP_FAILED);
	busy.faults = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	assert_true(busy.faults >= 0);
	assert_int_equal(ioctl(busy.faults, UFFDIO_API, &api), 0);
	range.range.start = (uintptr_t)busy.page;
	range.range.len = busy.page_size;
	assert_int_equal(ioctl(busy.faults, UFFDIO_REGISTER, &range), 0);
	assert_int_equal(pthread_create(&busy.user, NULL, use, NULL), 0);
	keep_to(busy.user, cpu_of(1));
	wanted.fd = busy.faults;
	assert_int_equal(poll(&wanted, 1, WAIT), 1);
}

void busy_socket_let_go_at(enum handoff_counter counter)
{
	busy.counter = counter;
	busy.is_watched = true;
	assert_int_equal(pthread_create(&busy.watcher, NULL, watch, NULL), 0);
	keep_to(busy.watcher, cpu_of(1));
	while (!atomic_load(&busy.watching))
		sched_yield();
}

void busy_socket_end(void)
{
	atomic_store(&busy.watching, false);
	if (busy.is_watched)
		pthread_join(busy.watcher, NULL);
	busy.is_watched = false;
	let_go();
	pthread_join(busy.user, NULL);
	close(busy.faults);
	munmap(busy.page, busy.page_size);
}
