/*
 * Preloaded into iperf3 where it is not exact: a constant bit rate over UDP, and a
 * number of bytes over TCP.
 *
 * iperf3 paces by a timer that asks "am I behind?", so that its gaps are multiples
 * of the timer.  Here iperf3 sends without a limit (--bitrate 0) and each write() of
 * PACE_BYTES to a datagram socket waits for an absolute time: even gaps of
 * PACE_GAP_NS, or gaps drawn uniformly from (1 ± PACE_JITTER) times that, seeded by
 * PACE_SEED.  The first packet leaves at once.
 *
 * iperf3 opens a UDP stream with a greeting across the network; from connect() until
 * the first paced packet the socket carries a mark, by which the greeting is routed
 * beside the network under test (testbed/plan/control_network.py).
 *
 * A TCP flow with a number of bytes ends, for iperf3, when the kernel has taken the last
 * block of them: it then tells the server, which hangs up on what is still on its way.
 * Here the last block is cut to what is left of LIMIT_BYTES, and the word to the server
 * waits until everything was acknowledged. When that was goes to stderr, in
 * nanoseconds of CLOCK_MONOTONIC.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "preload.h"

#define CONTROL_MARK	9
#define NS_PER_S	1000000000LL
#define TEST_END	4	/* iperf3's protocol: a byte on the control connection */
#define BLOCK_BYTES	131072	/* --length in testbed/plan/flows.py */
#define POLL_NS		1000000	/* how often a sender's buffer is looked at */
#define MAX_STREAMS	128
#define LATE_NS		(NS_PER_S / 100)	/* later than this, don't catch up in a burst */

static uint64_t state;
static ssize_t (*real_write)(int, const void *, size_t);

static double uniform(void)	/* splitmix64, in [0, 1) */
{
	uint64_t z = (state += 0x9e3779b97f4a7c15ULL);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return (double)((z ^ (z >> 31)) >> 11) / (double)(1ULL << 53);
}

static double number(const char *name)
{
	const char *text = getenv(name);

	return text ? strtod(text, NULL) : 0;
}

static int is_datagram(int fd)
{
	int type = 0;
	socklen_t size = sizeof(type);

	return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_DGRAM;
}

static void set_mark(int fd, int mark)
{
	int saved = errno;

	setsockopt(fd, SOL_SOCKET, SO_MARK, &mark, sizeof(mark));
	errno = saved;
}

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * NS_PER_S + now.tv_nsec;
}

/* Waits and writes, by one system call if there is one for both. */
static ssize_t write_at(const struct timespec *until, int fd, const void *data, size_t size)
{
	static int alone;
	struct batched_call calls[] = {
		{ SYS_clock_nanosleep, { CLOCK_MONOTONIC, TIMER_ABSTIME, (long)until }, 0, 0, 0 },
		{ SYS_write, { fd, (long)data, (long)size }, 0, (long)size, 0 },
	};

	long made = alone ? 0 : syscall(BATCHED_CALLS, calls, 2L);

	if (made == 2 && calls[1].result < 0) {
		errno = (int)-calls[1].result;
		return -1;
	}
	if (made == 2)
		return (ssize_t)calls[1].result;
	alone |= made < 0 && errno == ENOSYS;
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, until, NULL) == EINTR)
		;
	return real_write(fd, data, size);
}

static ssize_t write_in_turn(int fd, const void *data, size_t size)
{
	static int64_t due;
	static double gap, jitter;
	struct timespec until;

	if (!due) {
		gap = number("PACE_GAP_NS");
		jitter = number("PACE_JITTER");
		state = (uint64_t)number("PACE_SEED");
		due = now_ns();
		set_mark(fd, 0);
		return real_write(fd, data, size);
	}
	due += (int64_t)(gap * (1 + jitter * (2 * uniform() - 1)));
	if (due < now_ns() - LATE_NS)
		due = now_ns();
	until.tv_sec = due / NS_PER_S;
	until.tv_nsec = due % NS_PER_S;
	return write_at(&until, fd, data, size);
}

int connect(int fd, const struct sockaddr *address, socklen_t length)
{
	static int (*real)(int, const struct sockaddr *, socklen_t);

	if (!real)
		real = (int (*)(int, const struct sockaddr *, socklen_t))dlsym(RTLD_NEXT, "connect");
	if (is_datagram(fd))
		set_mark(fd, CONTROL_MARK);
	return real(fd, address, length);
}

static int streams[MAX_STREAMS];	/* the data connections of a flow of so many bytes */
static int stream_count;

/* The control connection sends nothing as long as a block; a data connection that took
 * a part of a block is then given the rest. */
static int is_stream(int fd, size_t size)
{
	for (int i = 0; i < stream_count; i++)
		if (streams[i] == fd)
			return 1;
	if (size != BLOCK_BYTES || stream_count == MAX_STREAMS)
		return 0;
	streams[stream_count++] = fd;
	return 1;
}

/* Sends what is left of the limit and claims to have sent it all. */
static ssize_t write_within(size_t limit, int fd, const void *data, size_t size)
{
	static size_t sent;
	size_t part = size < limit - sent ? size : limit - sent;
	ssize_t done = part ? write_if_room(fd, data, part) : 0;

	if (done < 0)
		return done;
	sent += done;
	return (size_t)done == part ? (ssize_t)size : done;
}

static void wait_until_acknowledged(void)
{
	const struct timespec pause = { .tv_nsec = POLL_NS };
	int unacknowledged;

	for (int i = 0; i < stream_count; i++)
		while (!ioctl(streams[i], SIOCOUTQ, &unacknowledged) && unacknowledged)
			nanosleep(&pause, NULL);
	dprintf(STDERR_FILENO, "acknowledged %lld\n", (long long)now_ns());
}

ssize_t write(int fd, const void *data, size_t size)
{
	static size_t paced, limit;
	static int paced_fd = -1;

	idle_since_select = 0;
	if (!real_write) {
		real_write = (ssize_t (*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write");
		paced = (size_t)number("PACE_BYTES");
		limit = (size_t)number("LIMIT_BYTES");
	}
	if (paced && size == paced && (fd == paced_fd || is_datagram(fd))) {
		paced_fd = fd;
		return write_in_turn(fd, data, size);
	}
	if (limit && is_stream(fd, size))
		return write_within(limit, fd, data, size);
	if (limit && size == 1 && *(const char *)data == TEST_END)
		wait_until_acknowledged();
	return write_if_room(fd, data, size);
}
