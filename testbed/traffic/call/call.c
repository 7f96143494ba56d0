/*
 * A call: datagrams of RTP from one host to another, at the times of a table.
 *
 *   testbed-call send ADDRESS PORT OWN_PORT TABLE
 *   testbed-call receive PORT
 *
 * A line of TABLE is a datagram: NS after the start, BYTES, TICKS of the media's clock, and 1 if it
 * ends a frame.  A datagram is RTP's header (RFC 3550, section 5.1) and zeros.  Both end by SIGTERM
 * and then report on stdout, as JSON; the receiver says on stderr when it has its port.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define LARGEST 1500
#define NS_PER_S 1000000000LL
#define SOURCE 0x7465737u /* RTP's SSRC: any number */
#define PAYLOAD_TYPE 96   /* the first of the dynamic ones */
#define MARKER 0x80

static volatile sig_atomic_t ending;

static void end(int signal)
{
	(void)signal;
	ending = 1;
}

static void die(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(1);
}

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * NS_PER_S + now.tv_nsec;
}

/* An address of either version of IP; null stands for all. */
static socklen_t address_of(struct sockaddr_storage *to, const char *text, int port)
{
	struct sockaddr_in *four = (struct sockaddr_in *)to;
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)to;

	memset(to, 0, sizeof(*to));
	if (text && inet_pton(AF_INET, text, &four->sin_addr) == 1) {
		four->sin_family = AF_INET;
		four->sin_port = htons((uint16_t)port);
		return sizeof(*four);
	}
	six->sin6_family = AF_INET6;
	six->sin6_port = htons((uint16_t)port);
	if (text && inet_pton(AF_INET6, text, &six->sin6_addr) != 1) {
		fprintf(stderr, "%s: no address\n", text);
		exit(1);
	}
	return sizeof(*six);
}

static int bound(int family, int port)
{
	struct sockaddr_storage here;
	socklen_t size = address_of(&here, family == AF_INET ? "0.0.0.0" : NULL, port);
	int fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd >= 0 && bind(fd, (struct sockaddr *)&here, size))
		die("bind");
	return fd;
}

static void report(uint64_t datagrams, uint64_t bytes)
{
	printf("{\"datagrams\": %llu, \"bytes\": %llu}\n", (unsigned long long)datagrams,
	       (unsigned long long)bytes);
	fflush(stdout);
}

static void send_all(const char *address, int port, int own_port, FILE *table)
{
	static unsigned char datagram[LARGEST];
	struct sockaddr_storage to;
	socklen_t size = address_of(&to, address, port);
	int64_t start_ns = now_ns(), at_ns;
	uint64_t count = 0, bytes = 0;
	unsigned int length, ticks, ends;
	int fd = bound(to.ss_family, own_port);
	sigset_t until, before;

	sigemptyset(&until);
	if (fd < 0 || connect(fd, (struct sockaddr *)&to, size))
		die(address);
	while (!ending && fscanf(table, "%ld %u %u %u", &at_ns, &length, &ticks, &ends) == 4) {
		int64_t due_ns = start_ns + at_ns;
		struct timespec due = { due_ns / NS_PER_S, due_ns % NS_PER_S };
		uint32_t words[2] = { htonl(ticks), htonl(SOURCE) };
		uint16_t number = htons((uint16_t)count);

		while (!ending && clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL) == EINTR)
			;
		if (ending || length > LARGEST)
			break;
		datagram[0] = 2 << 6;
		datagram[1] = PAYLOAD_TYPE | (ends ? MARKER : 0);
		memcpy(datagram + 2, &number, sizeof(number));
		memcpy(datagram + 4, words, sizeof(words));
		/* a queue of the host's own that is full loses it, as the network would */
		if (send(fd, datagram, length, 0) < 0 && errno != ENOBUFS && errno != ECONNREFUSED)
			die("send");
		count++;
		bytes += length;
	}
	sigaddset(&until, SIGTERM);
	sigprocmask(SIG_BLOCK, &until, &before);
	while (!ending)
		sigsuspend(&before);
	report(count, bytes);
}

static void receive_all(int port)
{
	static unsigned char datagram[LARGEST];
	uint64_t count = 0, bytes = 0;
	int fd = bound(AF_INET6, port);

	if (fd < 0)
		fd = bound(AF_INET, port);
	if (fd < 0)
		die("socket");
	fprintf(stderr, "ready\n");
	while (!ending) {
		ssize_t got = recv(fd, datagram, sizeof(datagram), MSG_TRUNC);

		if (got < 0 && errno != EINTR)
			die("recv");
		if (got >= 0) {
			count++;
			bytes += (uint64_t)got;
		}
	}
	report(count, bytes);
}

int main(int count, char **words)
{
	struct sigaction action = { .sa_handler = end };

	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	if (count == 6 && !strcmp(words[1], "send")) {
		FILE *table = fopen(words[5], "r");

		if (!table)
			die(words[5]);
		send_all(words[2], atoi(words[3]), atoi(words[4]), table);
	} else if (count == 3 && !strcmp(words[1], "receive")) {
		receive_all(atoi(words[2]));
	} else {
		fprintf(stderr, "usage: see call.c\n");
		return 2;
	}
	return 0;
}
