/*
 * Preloaded into iperf3: it combines system calls, which cost most in the guest, and leaves out those
 * whose answer is known. The packets stay the same.
 *
 * A read whose answer is known is not made.  iperf3 reads a block until it is full or the socket
 * has nothing left, and so asks once more after each part of a block, to be told EAGAIN: half of
 * its reads.  Nothing can have come in between, since in the guest no time has passed; on the host,
 * what came is found by the select() that follows.
 *
 * Nor is a write.  iperf3 tries to write ten blocks at a time; a stream that took less than a block
 * takes no more until select() says so.
 *
 * A read that is to follow a select() is made with it (kernel/patches/0022; other kernels do not
 * know that call, and there are two): where the descriptor read last is the only one that is ready,
 * iperf3 reads the next block from it, into the same memory.  From a stream, many rounds of waiting
 * and reading are one call, each at its time: until something else is to be done (another
 * descriptor is ready, or the time of the first select() is up).  iperf3 is then told of it in as
 * few reads as its blocks allow; it looks at how much came, not at what.  Its timers, which it runs
 * where select() leaves no time, have to wait for the last of them: they close an interval.
 *
 * A select() that would return at once, and for nothing, waits.  Between its connections and the
 * server's word to begin, iperf3 asks who can be written to, is told, writes nothing and asks
 * again.  In the guest each round costs virtual time, in steps that depend on whatever else runs
 * there, and the first data would leave late by a part of a step.  So writers that the last
 * select() gave, with nothing read or written since, are left out of the next one.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "preload.h"

#define DESCRIPTORS 1024 /* select() takes no others */
#define ROUNDS 64	 /* of waiting and reading, at most */

/* Blocks of data come by streams that do not wait or by datagrams; only these are looked at. */
enum kind { UNKNOWN, STREAM, DATAGRAM, OTHER };
static unsigned char kinds[DESCRIPTORS];

struct span {
	int fd;
	char *at;
	size_t size;
};
static struct span block = { .fd = -1 }; /* the one read last */
static struct span rest = { .fd = -1 };	 /* what that read did not fill */
static struct span ahead = { .fd = -1 }; /* where data were read with select() */
static size_t unasked;			 /* how many of them iperf3 has not read */
static int ahead_ends;			 /* after them the stream ends, or with an error: */
static int ahead_error;

#define REFUSALS 16	/* without a call, at most: iperf3 then asks select(), or would for ever */
static fd_set full;	/* streams that took less than they were given, since the last select() */
static int refusals;

static fd_set offered; /* writers that the last select() gave */
int idle_since_select; /* and nothing was read or written since */

static void *next(const char *name)
{
	return dlsym(RTLD_NEXT, name);
}

static int is_socket(int fd, int wanted)
{
	int type, saved = errno;
	socklen_t size = sizeof(type);
	int found = !getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) && type == wanted;

	errno = saved;
	return found;
}

static enum kind kind_of(int fd)
{
	if (fd < 0 || fd >= DESCRIPTORS)
		return OTHER;
	if (kinds[fd] == UNKNOWN)
		kinds[fd] = is_socket(fd, SOCK_DGRAM) ? DATAGRAM : OTHER;
	return kinds[fd];
}

int fcntl(int fd, int command, ...)
{
	static int (*real)(int, int, ...);
	va_list arguments;
	long argument;
	int result;

	if (!real)
		real = (int (*)(int, int, ...))next("fcntl");
	va_start(arguments, command);
	argument = va_arg(arguments, long);
	va_end(arguments);
	result = real(fd, command, argument);
	if (command == F_SETFL && !result && fd < DESCRIPTORS)
		kinds[fd] = argument & O_NONBLOCK && is_socket(fd, SOCK_STREAM) ? STREAM : UNKNOWN;
	return result;
}

int close(int fd)
{
	static int (*real)(int);

	if (!real)
		real = (int (*)(int))next("close");
	if (fd >= 0 && fd < DESCRIPTORS)
		kinds[fd] = UNKNOWN; /* another file may get the number */
	FD_ZERO(&full);
	if (fd == block.fd)
		block.fd = rest.fd = ahead.fd = -1;
	return real(fd);
}

static ssize_t read_ahead(char *buffer, size_t size)
{
	size_t part = size < unasked ? size : unasked;
	size_t known = part < ahead.size ? part : ahead.size;

	if (!part && ahead_ends) {
		ahead.fd = -1;
		errno = ahead_error;
		return ahead_error ? -1 : 0;
	}
	if (buffer != ahead.at)
		memmove(buffer, ahead.at, known);
	ahead.at += known;
	ahead.size -= known;
	unasked -= part;
	if (!unasked && !ahead_ends)
		ahead.fd = -1;
	return (ssize_t)part;
}

ssize_t read(int fd, void *buffer, size_t size)
{
	static ssize_t (*real)(int, void *, size_t);
	int drained = fd == rest.fd && buffer == rest.at && size == rest.size;
	enum kind kind = kind_of(fd);
	ssize_t got;

	if (!real)
		real = (ssize_t (*)(int, void *, size_t))next("read");
	idle_since_select = 0;
	if (kind == OTHER)
		return real(fd, buffer, size);
	rest.fd = -1;
	if (drained) {
		errno = EAGAIN;
		return -1;
	}
	block = (struct span){ fd, buffer, size };
	got = fd == ahead.fd ? read_ahead(buffer, size) : real(fd, buffer, size);
	if (kind == STREAM && ahead.fd != fd && got > 0 && (size_t)got < size)
		rest = (struct span){ fd, (char *)buffer + got, size - (size_t)got };
	return got;
}

/* Write, if the stream may have room. */
ssize_t write_if_room(int fd, const void *data, size_t size)
{
	static ssize_t (*real)(int, const void *, size_t);
	int is_stream = kind_of(fd) == STREAM;
	ssize_t sent;

	if (!real)
		real = (ssize_t (*)(int, const void *, size_t))next("write");
	if (is_stream && FD_ISSET(fd, &full) && refusals < REFUSALS) {
		refusals++;
		errno = EAGAIN;
		return -1;
	}
	sent = real(fd, data, size);
	refusals = 0;
	if (is_stream && sent < (ssize_t)size)
		FD_SET(fd, &full);
	return sent;
}

static int only_one_is_ready(fd_set *readers, fd_set *writers, fd_set *others)
{
	FD_ZERO(readers);
	FD_SET(ahead.fd, readers);
	if (writers)
		FD_ZERO(writers);
	if (others)
		FD_ZERO(others);
	return 1;
}

struct round {
	struct batched_call wait, read;
};

/* Each round has sets of its own: the kernel writes which descriptors are ready over them. */
static struct round rounds[ROUNDS];
static fd_set sets[ROUNDS][3];

static void prepare(struct round *round, int count, fd_set *asked[3], fd_set *own,
		    struct timespec *wait)
{
	size_t size = ((size_t)count + 63) / 64 * sizeof(long);
	long arguments[3];

	for (int i = 0; i < 3; i++) {
		if (asked[i] && own)
			memcpy(&own[i], asked[i], size);
		arguments[i] = asked[i] ? (long)(own ? &own[i] : asked[i]) : 0;
	}
	round->wait = (struct batched_call){
		SYS_pselect6, { count, arguments[0], arguments[1], arguments[2], (long)wait, 0 },
		1, 1, 0
	};
	round->read = (struct batched_call){
		SYS_recvfrom, { block.fd, (long)block.at, (long)block.size, MSG_DONTWAIT, 0, 0 },
		1, (long)block.size, 0
	};
}

/* Collect what the rounds' reads gave, after this number of calls. */
static void gather(long made)
{
	ahead = (struct span){ -1, block.at, block.size };
	unasked = 0;
	ahead_ends = 0;
	for (long i = 0; i < made / 2; i++) {
		long result = rounds[i].read.result;

		if (result == -EAGAIN)
			break;
		ahead.fd = block.fd;
		if (result > 0) {
			unasked += (size_t)result;
		} else {
			ahead_ends = 1;
			ahead_error = (int)-result;
		}
	}
}

/* iperf3 runs its timers after a select() that leaves it no time: not if more is to be read. */
static void leave_time(struct timeval *timeout)
{
	if (timeout && unasked > block.size && !timeout->tv_sec && !timeout->tv_usec)
		timeout->tv_usec = 1;
}

/* select() and, where only the last block's descriptor is ready, the next block's read. */
static int select_and_read(int count, fd_set *readers, fd_set *writers, fd_set *others,
			   struct timeval *timeout)
{
	fd_set *asked[] = { readers, writers, others };
	struct timespec wait = { timeout ? timeout->tv_sec : 0,
				 timeout ? timeout->tv_usec * 1000 : 0 };
	int most = kind_of(block.fd) == STREAM ? ROUNDS : 1;
	long made;

	/* the first one's are what select() returns, so the others' are copied before */
	for (int i = most - 1; i >= 0; i--)
		prepare(&rounds[i], count, asked, i ? sets[i] : NULL, timeout ? &wait : NULL);
	made = syscall(BATCHED_CALLS, rounds, 2L * most);
	if (made < 0)
		return -1;
	if (timeout) {
		timeout->tv_sec = wait.tv_sec;
		timeout->tv_usec = wait.tv_nsec / 1000;
	}
	gather(made);
	leave_time(timeout);
	return (int)rounds[0].wait.result;
}

/* With the next block's read where that can be. */
static int select_ahead(int count, fd_set *readers, fd_set *writers, fd_set *others,
			struct timeval *timeout)
{
	static int (*real)(int, fd_set *, fd_set *, fd_set *, struct timeval *);
	static int alone; /* this kernel makes one call at a time */
	int ready;

	if (!real)
		real = (int (*)(int, fd_set *, fd_set *, fd_set *, struct timeval *))next("select");
	if (alone || block.fd < 0 || !readers || !FD_ISSET(block.fd, readers))
		return real(count, readers, writers, others, timeout);
	if (ahead.fd == block.fd) {
		leave_time(timeout);
		return only_one_is_ready(readers, writers, others);
	}
	ready = select_and_read(count, readers, writers, others, timeout);
	alone = ready < 0 && errno == ENOSYS;
	return alone ? real(count, readers, writers, others, timeout) : ready;
}

int select(int count, fd_set *readers, fd_set *writers, fd_set *others, struct timeval *timeout)
{
	int ready;

	FD_ZERO(&full);
	if (writers && idle_since_select)
		for (int fd = 0; fd < count; fd++)
			if (FD_ISSET(fd, &offered))
				FD_CLR(fd, writers);
	ready = select_ahead(count, readers, writers, others, timeout);
	idle_since_select = writers && ready > 0;
	if (idle_since_select)
		offered = *writers;
	return ready;
}
