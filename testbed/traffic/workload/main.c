/*
 * A workload: many transfers in one process at either end.
 *
 *   testbed-workload serve PORT PORTS UNSENT_BYTES MSS
 *   testbed-workload ask ADDRESS PORT SESSIONS FIRST_PORT POOL MSS TABLE
 *
 * A line of TABLE is a transfer: SESSION, NS, BYTES. Without sessions (SESSIONS is 0) a transfer
 * begins NS after the client's start. With them, each is a closed loop: its first transfer begins
 * NS after the client's start, every other one NS after the end of the one before it. The lines of
 * a session follow each other. A transfer of -1 bytes has no end.
 *
 * The server listens on PORTS ports, one for each session, which identifies the session of a
 * packet, or on one. The client asks over a connection for each transfer, from a port of its own
 * (FIRST_PORT and on, from the start for every session), or, if POOL is not 0, over one of POOL
 * connections that stay open. The server answers a connection's requests in their order.
 *
 * What costs is waking up, in the guest most of all, and a program that polls stops virtual time:
 * so a reader wakes for 16 KB or a transfer's last byte, data are discarded unread, a writer
 * wakes when half of UNSENT_BYTES may follow, one timer serves all arrivals and pauses, and the
 * clock, which is a system call in the guest, is read where a transfer begins or ends only.
 *
 * The client ends with the last transfer, either of them by SIGTERM or SIGINT; it then reports on
 * stdout, as JSON.
 */
#include "common.h"
#include <signal.h>
#include <sys/resource.h>
#include <sys/signalfd.h>

#define DESCRIPTORS 65536 /* more than a client's ports */

int poller, signals;

void die(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(1);
}

int64_t now_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * NS_PER_S + now.tv_nsec;
}

void watch(int fd, uint32_t events, void *who)
{
	struct epoll_event event = { .events = events, .data.ptr = who };

	if (epoll_ctl(poller, EPOLL_CTL_ADD, fd, &event))
		die("epoll_ctl");
}

void set(int fd, int level, int option, int value)
{
	if (setsockopt(fd, level, option, &value, sizeof(value)))
		die("setsockopt");
}

int new_socket(int mss)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0 && errno != EMFILE)
		die("socket");
	if (fd >= 0 && mss)
		set(fd, IPPROTO_TCP, TCP_MAXSEG, mss);
	return fd;
}

static void prepare(void)
{
	struct rlimit limit;
	sigset_t both;

	/* In the guest, whose 1024 are few at 10,000 transfers a second, it may have more. */
	limit = (struct rlimit){ DESCRIPTORS, DESCRIPTORS };
	if (setrlimit(RLIMIT_NOFILE, &limit)) {
		getrlimit(RLIMIT_NOFILE, &limit);
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
	sigemptyset(&both);
	sigaddset(&both, SIGTERM);
	sigaddset(&both, SIGINT);
	sigprocmask(SIG_BLOCK, &both, NULL);
	signal(SIGPIPE, SIG_IGN);
	poller = epoll_create1(EPOLL_CLOEXEC);
	signals = signalfd(-1, &both, SFD_CLOEXEC);
	if (poller < 0 || signals < 0)
		die("epoll or signalfd");
	watch(signals, EPOLLIN, &signals);
}

int main(int count, char **words)
{
	prepare();
	if (count == 6 && !strcmp(words[1], "serve"))
		return serve(words + 2);
	if (count == 9 && !strcmp(words[1], "ask"))
		return ask(words + 2);
	fprintf(stderr, "usage: testbed-workload serve | ask, see main.c\n");
	return 2;
}
