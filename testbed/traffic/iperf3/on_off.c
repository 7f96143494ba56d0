/*
 * Preloaded into iperf3 in front of pace.c, for a constant bit rate that is on and off by turns.
 *
 * Each write() of PACE_BYTES to a datagram socket waits for its time.  The first leaves at once;
 * from then on ON_NS with gaps of ON_OFF_GAP_NS, each drawn uniformly from (1 ± PACE_JITTER) times
 * that, and OFF_NS with nothing take turns, and every turn begins with a packet.  pace.c, which is
 * asked for no gaps, passes each on at once.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S	1000000000LL
#define LATE_NS		(NS_PER_S / 100)	/* later than this, don't catch up in a burst */

static uint64_t state;

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

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * NS_PER_S + now.tv_nsec;
}

static void wait_for_turn(void)
{
	static int64_t begin, due, on, turn;
	static double gap, jitter;
	struct timespec until;

	if (!due) {
		gap = number("ON_OFF_GAP_NS");
		jitter = number("PACE_JITTER");
		on = (int64_t)number("ON_NS");
		turn = on + (int64_t)number("OFF_NS");
		state = (uint64_t)number("PACE_SEED");
		begin = due = now_ns();
		return;
	}
	due += (int64_t)(gap * (1 + jitter * (2 * uniform() - 1)));
	if (due < now_ns() - LATE_NS)
		due = now_ns();
	if ((due - begin) % turn >= on)
		due = begin + ((due - begin) / turn + 1) * turn;
	until.tv_sec = due / NS_PER_S;
	until.tv_nsec = due % NS_PER_S;
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
		;
}

ssize_t write(int fd, const void *data, size_t size)
{
	static ssize_t (*next)(int, const void *, size_t);
	static size_t paced;
	static int paced_fd = -1;

	if (!next) {
		next = (ssize_t (*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write");
		paced = (size_t)number("PACE_BYTES");
	}
	if (paced && size == paced && (fd == paced_fd || is_datagram(fd))) {
		paced_fd = fd;
		wait_for_turn();
	}
	return next(fd, data, size);
}
