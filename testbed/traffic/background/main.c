/*
 * Background traffic: many sessions in one process at either end.
 *
 *   testbed-background serve PORT SESSIONS MSS
 *   testbed-background fetch ADDRESS PORT MSS MEAN_BYTES SHAPE THINK_NS TABLE
 *
 * The server listens on a port for each session, so that a packet tells its session. A session
 * of kind `web` asks for a file, waits until all of it has come, thinks, and asks for the next
 * one, over a new connection each time; one of kind `long` asks once, for data without end. A
 * line of TABLE is a session: its kind, when it starts (ns after our own start), and the seed of
 * its sizes and thoughts, which therefore do not depend on what other sessions do.
 *
 * What costs is waking up, in the guest most of all, and a program that polls stops virtual time:
 * so readers wake for 16 KB or a file's end, data are thrown away unread, writers wake when
 * 8 KB may follow, and one timer serves all who think.
 *
 * SIGTERM ends it with a report on stdout, as JSON.
 */
#include "common.h"
#include <signal.h>
#include <sys/signalfd.h>

int poller, signals;

void die(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(1);
}

int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
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

	if (fd < 0)
		die("socket");
	if (mss)
		set(fd, IPPROTO_TCP, TCP_MAXSEG, mss);
	return fd;
}

static void prepare(void)
{
	sigset_t both;

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
	if (count == 5 && !strcmp(words[1], "serve"))
		return serve(words + 2);
	if (count == 9 && !strcmp(words[1], "fetch"))
		return fetch(words + 2);
	fprintf(stderr, "usage: testbed-background serve | fetch, see main.c\n");
	return 2;
}
