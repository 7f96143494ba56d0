/*
 * Preloaded, before pace.c, into an iperf3 that sends a number of bytes over TCP from threads, one a
 * connection, as it does since 3.16.
 *
 * There a thread whose bytes are sent turns round without a system call until the main thread looks
 * whether all are, once a second; in virtual time that second never comes.  Here a thread whose
 * turn to send is over does not return: it waits until its bytes were acknowledged.  The last one
 * says when that was, as pace.c does, and interrupts iperf3, as the trial ends every other flow.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <linux/sockios.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define BLOCK_BYTES	131072	/* --length in testbed/plan/flows.py: the control connection has nothing as long */
#define POLL_NS		1000000	/* how often a sender's buffer is looked at */
#define NS_PER_S	1000000000LL

static size_t limit;		/* read at the first write: a copy has another environment */
static size_t promised;		/* bytes that some thread sends or has sent */
static size_t acknowledged;	/* bytes of threads that have ended */
static __thread size_t own;	/* bytes that this thread has sent */

static void read_limit(void)
{
	const char *text = getenv("LIMIT_BYTES");

	limit = text ? strtoul(text, NULL, 10) : 0;
}

/* How much of a block is this thread's to send. */
static size_t take(size_t size)
{
	size_t before = __atomic_load_n(&promised, __ATOMIC_SEQ_CST), part;

	do
		part = size < limit - before ? size : limit - before;
	while (!__atomic_compare_exchange_n(&promised, &before, before + part, 0, __ATOMIC_SEQ_CST,
					    __ATOMIC_SEQ_CST));
	return part;
}

static void __attribute__((noreturn)) wait_for_the_end(int fd)
{
	const struct timespec pause_ns = { .tv_nsec = POLL_NS };
	struct timespec now;
	int left;

	while (!ioctl(fd, SIOCOUTQ, &left) && left)
		nanosleep(&pause_ns, NULL);
	if (own && __atomic_add_fetch(&acknowledged, own, __ATOMIC_SEQ_CST) == limit) {
		clock_gettime(CLOCK_MONOTONIC, &now);
		dprintf(STDERR_FILENO, "acknowledged %lld\n", now.tv_sec * NS_PER_S + now.tv_nsec);
		kill(getpid(), SIGINT);
	}
	for (;;)
		pause();
}

ssize_t write(int fd, const void *data, size_t size)
{
	static ssize_t (*paced)(int, const void *, size_t);
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	size_t part, done = 0;
	ssize_t sent;

	pthread_once(&once, read_limit);
	if (!limit || size != BLOCK_BYTES) {
		if (!paced)
			paced = (ssize_t (*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write");
		return paced(fd, data, size);
	}
	for (part = take(size); done < part; done += sent, own += sent) {
		sent = syscall(SYS_write, fd, (const char *)data + done, part - done);
		if (sent < 0)
			return sent;
	}
	if (__atomic_load_n(&promised, __ATOMIC_SEQ_CST) == limit)
		wait_for_the_end(fd);
	return (ssize_t)size;
}
