/*
 * Samples of queues and sockets: the lines of `guest.sampled`, times in ns, words with %XX for what
 * is no visible character.
 *
 *   queue TIME NODE DEVICE HANDLE KIND BACKLOG_BYTES BACKLOG_PACKETS DROPS BYTES PACKETS
 *   socket TIME NODE SOURCE PORT DESTINATION PORT CWND SSTHRESH SRTT_US UNACKED RETRANSMITTED
 *          BYTES_ACKED
 *
 * A queue or socket that is as in its last sample has no line.
 */
#define _GNU_SOURCE
#include "sampler.h"
#include "namespaces.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/inet_diag.h>
#include <linux/pkt_sched.h>
#include <linux/tcp.h>
#include <net/if.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#define MAX_BYTES (64L << 20) /* of the lines */
#define PLACES (1 << 16)       /* of the table of hashes: two that share one have more lines */
#define AWAKE 16 /* namespaces without a sleep: the kernel charges tasks that make many calls */
#define ESTABLISHED (1 << 1)   /* TCP_ESTABLISHED, as a bit */
#define CLOSING (1 << 4 | 1 << 5 | 1 << 8 | 1 << 9 | 1 << 11)

static FILE *lines;
static uint64_t written[PLACES]; /* hashes of the last lines' numbers, by queue or socket */
static long long time_ns;
static const char *node;
static unsigned long namespace;
static unsigned visited;

void begin_samples(int trial)
{
	int file = openat(trial, "guest.sampled", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	lines = file < 0 ? NULL : fdopen(file, "w");
}

/* FNV-1a */
static uint64_t hash(uint64_t value, const void *bytes, size_t size)
{
	const unsigned char *byte = bytes;

	while (size--)
		value = (value ^ *byte++) * 0x100000001b3;
	return value;
}

/* Whether the numbers of a queue or socket differ from those of its last line. */
static int is_new(const void *subject, size_t size, const uint64_t *numbers, size_t count)
{
	uint64_t *place = written + hash(hash(namespace, "", 1), subject, size) % PLACES;
	uint64_t now = 0;
	size_t each;

	for (each = 0; each < count; each++)
		now |= numbers[each];
	if (now) /* of all zeros it is 0, as at the beginning */
		now = hash(hash(14695981039346656037u, subject, size), numbers,
			   count * sizeof(*numbers));
	if (*place == now)
		return 0;
	*place = now;
	return 1;
}

static void write_numbers(const uint64_t *numbers, size_t count)
{
	size_t each;

	for (each = 0; each < count; each++)
		fprintf(lines, " %llu", (unsigned long long)numbers[each]);
	fputc('\n', lines);
}

static void begin_line(const char *kind)
{
	fprintf(lines, "%s %lld", kind, time_ns);
	write_word(lines, node);
}

static void sample_queue(const struct nlmsghdr *message)
{
	const struct tcmsg *about = NLMSG_DATA(message);
	uint32_t subject[] = { about->tcm_ifindex, about->tcm_handle, about->tcm_parent };
	char name[IF_NAMESIZE];
	struct queue queue;

	if (!read_queue(message, &queue) || !strcmp(queue.kind, "noqueue"))
		return;
	uint64_t numbers[] = { queue.waiting.backlog, queue.waiting.qlen, queue.waiting.drops,
			       queue.passed.bytes, queue.passed.packets };

	if (!is_new(subject, sizeof(subject), numbers, 5) ||
	    !if_indextoname(about->tcm_ifindex, name))
		return;
	begin_line("queue");
	write_word(lines, name);
	fprintf(lines, " %x:", about->tcm_handle >> 16);
	write_word(lines, queue.kind);
	write_numbers(numbers, 5);
}

static void write_end(int family, const __be32 *address, __be16 port)
{
	char text[INET6_ADDRSTRLEN] = "?";
	const unsigned char *bytes = (const unsigned char *)address;

	if (family == AF_INET6 && !memcmp(bytes, "\0\0\0\0\0\0\0\0\0\0\377\377", 12)) {
		family = AF_INET;
		bytes += 12;
	}
	inet_ntop(family, bytes, text, sizeof(text));
	fprintf(lines, " %s %u", text, ntohs(port));
}

static void sample_socket(const struct nlmsghdr *message)
{
	const struct inet_diag_msg *about = NLMSG_DATA(message);
	const struct rtattr *first = (const struct rtattr *)(about + 1);
	int length = message->nlmsg_len - NLMSG_LENGTH(sizeof(*about));
	const struct rtattr *found = attribute(first, length, INET_DIAG_INFO);
	struct tcp_info info = { 0 };

	if (!found)
		return;
	memcpy(&info, RTA_DATA(found),
	       RTA_PAYLOAD(found) < sizeof(info) ? RTA_PAYLOAD(found) : sizeof(info));
	if (!info.tcpi_data_segs_out)
		return;
	uint64_t numbers[] = { info.tcpi_snd_cwnd, info.tcpi_snd_ssthresh, info.tcpi_rtt,
			       info.tcpi_unacked, info.tcpi_total_retrans,
			       info.tcpi_bytes_acked };

	if (!is_new(&about->id, sizeof(about->id), numbers, 6))
		return;
	begin_line("socket");
	write_end(about->idiag_family, about->id.idiag_src, about->id.idiag_sport);
	write_end(about->idiag_family, about->id.idiag_dst, about->id.idiag_dport);
	write_numbers(numbers, 6);
}

/* By inet_diag's older request, whose answer has the sockets of IPv4 and of IPv6. */
static void sample_sockets(void)
{
	struct {
		struct nlmsghdr head;
		struct inet_diag_req about;
	} request = { { sizeof(request), TCPDIAG_GETSOCK, NLM_F_REQUEST | NLM_F_DUMP, 1, 0 },
		      { .idiag_family = AF_INET,
			.idiag_ext = 1 << (INET_DIAG_INFO - 1),
			.idiag_states = ESTABLISHED | CLOSING } };

	dump(NETLINK_SOCK_DIAG, &request, sizeof(request), sample_socket);
}

static void sample_namespace(const char *path, unsigned long inode, const char *label)
{
	static const struct timespec least = { 0, 1 };

	if (++visited % AWAKE == 0)
		nanosleep(&least, NULL);
	if (!enter_namespace(path))
		return;
	node = label;
	namespace = inode;
	dump_routing(RTM_GETQDISC, sample_queue);
	sample_sockets();
	leave_namespace();
}

void take_sample(void)
{
	if (!lines || ftell(lines) > MAX_BYTES)
		return;
	time_ns = monotonic_ns();
	visit_namespaces(sample_namespace);
}

void end_samples(void)
{
	if (lines)
		fclose(lines);
	lines = NULL;
}
