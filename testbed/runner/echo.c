/* Echo requests on the idle network, as ping sends them. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/ip_icmp.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "runner.h"

#define PAYLOAD_BYTES 56 /* 98 bytes on the wire */

struct request {
	struct icmphdr head;
	unsigned char payload[PAYLOAD_BYTES];
};

static uint16_t checksum(const struct request *request)
{
	const uint16_t *words = (const uint16_t *)request;
	uint32_t sum = 0;

	for (size_t i = 0; i < sizeof(*request) / 2; i++)
		sum += words[i];
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~(sum + (sum >> 16));
}

static bool is_reply(const unsigned char *packet, ssize_t size, int number)
{
	size_t header = (size_t)(packet[0] & 15) * 4;
	const struct icmphdr *head = (const struct icmphdr *)(packet + header);

	return size >= (ssize_t)(header + sizeof(*head)) && head->type == ICMP_ECHOREPLY &&
	       ntohs(head->un.echo.sequence) == number;
}

/* The round-trip time in ns, or -1 if no reply came in time. */
static int64_t round_trip(int fd, int number, int64_t patience_ns)
{
	struct request request = { .head = { .type = ICMP_ECHO } };
	unsigned char packet[2048];
	int64_t begun = now_ns(), left;

	request.head.un.echo.sequence = htons((uint16_t)number);
	request.head.checksum = checksum(&request);
	if (send(fd, &request, sizeof(request), 0) < 0)
		fail("echo request: %s", strerror(errno));
	while ((left = begun + patience_ns - now_ns()) > 0) {
		struct timeval patience = { left / NS_PER_S, left % NS_PER_S / 1000 + 1 };
		ssize_t size;

		setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
		size = recv(fd, packet, sizeof(packet), 0);
		if (size > 0 && is_reply(packet, size, number))
			return now_ns() - begun;
	}
	return -1;
}

/* echo NODE FROM TO NUMBER PATIENCE: answers the round trip of each request, one after another. */
void echo(struct words words)
{
	struct sockaddr_in from = { .sin_family = AF_INET }, to = { .sin_family = AF_INET };
	int fd;

	enter(words.at[1]);
	fd = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMP);
	inet_pton(AF_INET, words.at[2], &from.sin_addr);
	inet_pton(AF_INET, words.at[3], &to.sin_addr);
	if (fd < 0 || bind(fd, (struct sockaddr *)&from, sizeof(from)) ||
	    connect(fd, (struct sockaddr *)&to, sizeof(to)))
		fail("echo requests: %s", strerror(errno));
	sleep_until(now_ns() + 1); /* in the guest, who makes many calls without a sleep pays for them */
	for (int i = 0; i < integer(words.at[4]); i++) {
		int64_t took = round_trip(fd, i, integer(words.at[5]));

		answer(&took, sizeof(took));
	}
	close(fd);
}
