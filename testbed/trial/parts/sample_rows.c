/*
 * The kernel's answers about sockets and queues, as rows of CSV, for sampling.py.
 *
 * A trial has tens of thousands of answers. A row is written anew only if what it says has changed,
 * and numbers are written as Python writes them.
 */
#include <linux/gen_stats.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))
#define ESTABLISHED 1
#define INFINITE_SSTHRESH 0x7fffffff
#define ROW_BYTES 512 /* more than any row's numbers take */
#define MARKS 2
#define PACED (1 << 16) /* an option that TCP_INFO has not: the program set SO_MAX_PACING_RATE */
#define ANSWER_BYTES 4096 /* as in testbed/runner/samples.c */
#define WORD 8 /* bytes */

static const char *const states[] = {
	"0",	      "established", "syn-sent", "syn-recv",   "fin-wait-1", "fin-wait-2",
	"time-wait",  "close",	     "close-wait", "last-ack", "listen",     "closing",
};
enum { NOBODY, APPLICATION, SEND_BUFFER };
static const char *const starvers[] = { "", "application", "send-buffer" };
static const char *const ca_states[] = { "open", "disorder", "cwr", "recovery", "loss" };

struct text {
	char *bytes;
	size_t size, room;
};

struct seen { /* of a socket; sampling.py has it too */
	uint64_t cookie; /* 0: no such socket so far */
	int32_t options; /* of TCP_INFO, since it was established; -1: it never was */
	char variant[64]; /* of a program's sockets the names of all, with + between them */
};

struct socket_state { /* what a row says */
	uint64_t pacing, acked, delivery, busy, rwnd_limited, sndbuf_limited;
	uint32_t rto, unacked, lost, retrans, rtt, rttvar, ssthresh, cwnd, total_retrans, min_rtt;
	uint8_t state, ca_state, backoff, starved;
};

struct queue_state {
	uint64_t backlog, packets, drops, marks, overlimits, sent_bytes, sent_packets;
};

struct probe {
	const char *head; /* the columns between the time and the numbers */
	char *row;	  /* all columns after the time */
	size_t size;	  /* of the row; 0: nothing was answered */
	bool answered;	  /* by a socket or queue, the last time */
	size_t answer_size;
	unsigned char answer[ANSWER_BYTES]; /* the last one */
	struct seen seen;
	struct socket_state socket;
	struct queue_state queue, before; /* before: when the trial began */
	int32_t marks[MARKS];		  /* where a queue counts marks; -1: nowhere */
};

struct rows {
	size_t sockets, queues;
	struct text texts[2]; /* of the sockets, of the queues */
	struct probe *probes; /* the sockets, then the queues */
};

void rows_free(struct rows *rows)
{
	for (size_t i = 0; rows->probes && i < rows->sockets + rows->queues; i++)
		free(rows->probes[i].row);
	free(rows->texts[0].bytes);
	free(rows->texts[1].bytes);
	free(rows->probes);
	free(rows);
}

/* The heads are the caller's, and so are each queue's places of marks; NULL without memory. */
struct rows *rows_new(size_t sockets, size_t queues, const char *const *heads,
		      const int32_t (*marks)[MARKS])
{
	struct rows *rows = calloc(1, sizeof(*rows));

	if (!rows)
		return NULL;
	rows->sockets = sockets;
	rows->queues = queues;
	rows->probes = calloc(sockets + queues + 1, sizeof(*rows->probes));
	for (size_t i = 0; rows->probes && i < sockets + queues; i++) {
		struct probe *probe = &rows->probes[i];

		probe->head = heads[i];
		probe->seen.options = -1;
		if (i >= sockets)
			memcpy(probe->marks, marks[i - sockets], sizeof(probe->marks));
		probe->row = malloc(strlen(heads[i]) + ROW_BYTES);
		if (!probe->row)
			break;
	}
	if (rows->probes && (!(sockets + queues) || rows->probes[sockets + queues - 1].row))
		return rows;
	rows_free(rows);
	return NULL;
}

/* The attribute of this type among those that begin at `from`, and its size; or NULL. */
static const unsigned char *attribute(const unsigned char *from, const unsigned char *end, int type,
				      size_t *size)
{
	struct nlattr head;

	while ((size_t)(end - from) >= sizeof(head)) {
		memcpy(&head, from, sizeof(head));
		if (head.nla_len < sizeof(head) || head.nla_len > end - from)
			return NULL;
		if ((head.nla_type & NLA_TYPE_MASK) == type) {
			*size = head.nla_len - sizeof(head);
			return from + sizeof(head);
		}
		if (end - from < NLA_ALIGN(head.nla_len))
			return NULL;
		from += NLA_ALIGN(head.nla_len);
	}
	return NULL;
}

/* Copies what there is of an attribute; what there is not is zero. */
static bool copy(void *to, size_t room, const unsigned char *from, const unsigned char *end, int type)
{
	size_t size;
	const unsigned char *found = attribute(from, end, type, &size);

	memset(to, 0, room);
	if (found)
		memcpy(to, found, size < room ? size : room);
	return found;
}

static char *put(char *to, const char *text)
{
	while (*text)
		*to++ = *text++;
	return to;
}

static char *number(char *to, uint64_t value)
{
	char digits[20];
	int count = 0;

	do
		digits[count++] = '0' + value % 10;
	while (value /= 10);
	while (count)
		*to++ = digits[--count];
	return to;
}

/* value / 10^places: without noughts at the end, but with one digit at least. */
static char *decimal(char *to, uint64_t value, int places)
{
	uint64_t unit = 1;

	for (int i = 0; i < places; i++)
		unit *= 10;
	to = number(to, value / unit);
	*to++ = '.';
	value %= unit;
	do {
		unit /= 10;
		*to++ = '0' + value / unit;
		value %= unit;
	} while (value);
	return to;
}

/* Bytes per second as Mbit/s: the shortest digits that are that very number. */
static char *mbits(char *to, uint64_t bytes)
{
	double value = bytes * 8e-6;
	int size = 0;

	/* the product is not always the double nearest to the exact one, which has six places */
	if (value >= 1e-4 && value < 1e9 && bytes * 8 / 1e6 == value)
		return decimal(to, bytes * 8, 6);
	for (int digits = 15; digits <= 17; digits++) {
		size = sprintf(to, "%.*g", digits, value);
		if (strtod(to, NULL) == value)
			break;
	}
	to[size] = 0;
	return strpbrk(to, ".e") ? to + size : put(to + size, ".0");
}

static void write_socket(struct probe *probe)
{
	const struct socket_state *s = &probe->socket;
	char *to = put(probe->row, probe->head);

#define COLUMN(written) (*to++ = ',', to = (written))
	COLUMN(s->state < LENGTH(states) ? put(to, states[s->state]) : number(to, s->state));
	COLUMN(s->ca_state < LENGTH(ca_states) ? put(to, ca_states[s->ca_state]) :
						 number(to, s->ca_state));
	COLUMN(number(to, s->cwnd));
	COLUMN(s->ssthresh >= INFINITE_SSTHRESH ? to : number(to, s->ssthresh));
	COLUMN(decimal(to, s->rtt, 3));
	COLUMN(decimal(to, s->rttvar, 3));
	COLUMN(decimal(to, s->rto, 3));
	COLUMN(number(to, s->backoff));
	COLUMN(s->min_rtt == UINT32_MAX ? to : decimal(to, s->min_rtt, 3));
	COLUMN(number(to, s->retrans));
	COLUMN(number(to, s->total_retrans));
	COLUMN(number(to, s->lost));
	COLUMN(s->pacing == UINT64_MAX ? to : mbits(to, s->pacing));
	COLUMN(mbits(to, s->delivery));
	COLUMN(number(to, s->unacked));
	COLUMN(number(to, s->acked));
	COLUMN(decimal(to, s->busy, 3));
	COLUMN(decimal(to, s->rwnd_limited, 3));
	COLUMN(decimal(to, s->sndbuf_limited, 3));
	COLUMN(put(to, starvers[s->starved]));
	probe->size = put(to, "\r\n") - probe->row;
}

static void write_queue(struct probe *probe)
{
	const struct queue_state *now = &probe->queue, *before = &probe->before;
	char *to = put(probe->row, probe->head);

	COLUMN(number(to, now->backlog));
	COLUMN(number(to, now->packets));
	COLUMN(number(to, now->drops - before->drops));
	COLUMN(number(to, now->marks - before->marks));
	COLUMN(number(to, now->overlimits - before->overlimits));
	COLUMN(number(to, now->sent_bytes - before->sent_bytes));
	COLUMN(number(to, now->sent_packets - before->sent_packets));
	probe->size = put(to, "\r\n") - probe->row;
}

/*
 * Who has left a sender without a whole segment to send, though its congestion window has room;
 * while a loss is repaired, it is the repair that limits it.
 * The application is woken once a third of the buffer is free (sk_stream_is_writeable).  The
 * kernel's sndbuf_limited is less: it leaves out the time in which a part of a segment waits.
 */
static uint8_t starved_by(const struct tcp_info *info, const uint32_t *memory)
{
	uint32_t queued = memory[SK_MEMINFO_WMEM_QUEUED];
	uint32_t gone = info->tcpi_sacked + info->tcpi_lost;

	if (info->tcpi_notsent_bytes >= info->tcpi_snd_mss || info->tcpi_ca_state >= TCP_CA_Recovery ||
	    info->tcpi_unacked + info->tcpi_retrans >= info->tcpi_snd_cwnd + gone)
		return NOBODY;
	return memory[SK_MEMINFO_SNDBUF] < queued + queued / 2 ? SEND_BUFFER : APPLICATION;
}

/* Adds a name to those of a program's sockets, if it is not among them and has room. */
static void add_variant(struct seen *seen, const char *name)
{
	size_t size = strlen(seen->variant), more = strlen(name);

	for (const char *each = seen->variant; *each; each += strcspn(each, "+"), each += *each == '+')
		if (strcspn(each, "+") == more && !memcmp(each, name, more))
			return;
	if (more && size + more + 2 <= sizeof(seen->variant))
		sprintf(seen->variant + size, "%s%s", size ? "+" : "", name);
}

static bool read_socket(struct probe *probe, const unsigned char *answer, const unsigned char *end,
			bool of_list)
{
	const unsigned char *attributes = answer + NLMSG_LENGTH(sizeof(struct inet_diag_msg));
	struct inet_diag_msg socket;
	struct tcp_info info;
	char variant[20];
	uint32_t memory[SK_MEMINFO_VARS];

	if (attributes > end)
		return false;
	memcpy(&socket, answer + NLMSG_HDRLEN, sizeof(socket));
	memcpy(&probe->seen.cookie, socket.id.idiag_cookie, sizeof(probe->seen.cookie));
	if (!copy(&info, sizeof(info), attributes, end, INET_DIAG_INFO))
		return false;
	if (of_list || info.tcpi_state == ESTABLISHED) { /* a list has none that connects */
		int32_t others = of_list && probe->seen.options >= 0 ? probe->seen.options : -1;

		probe->seen.options = info.tcpi_options & others & ~PACED;
		if (of_list && ((others >= 0 && others & PACED) || info.tcpi_max_pacing_rate != UINT64_MAX))
			probe->seen.options |= PACED;
	}
	variant[sizeof(variant) - 1] = 0;
	if (copy(variant, sizeof(variant) - 1, attributes, end, INET_DIAG_CONG)) {
		if (!of_list)
			memset(probe->seen.variant, 0, sizeof(probe->seen.variant));
		add_variant(&probe->seen, variant);
	}
	copy(memory, sizeof(memory), attributes, end, INET_DIAG_SKMEMINFO);

	struct socket_state now = {
		.pacing = info.tcpi_pacing_rate,
		.acked = info.tcpi_bytes_acked,
		.delivery = info.tcpi_delivery_rate,
		.busy = info.tcpi_busy_time,
		.rwnd_limited = info.tcpi_rwnd_limited,
		.sndbuf_limited = info.tcpi_sndbuf_limited,
		.rto = info.tcpi_rto,
		.unacked = info.tcpi_unacked,
		.lost = info.tcpi_lost,
		.retrans = info.tcpi_retrans,
		.rtt = info.tcpi_rtt,
		.rttvar = info.tcpi_rttvar,
		.ssthresh = info.tcpi_snd_ssthresh,
		.cwnd = info.tcpi_snd_cwnd,
		.total_retrans = info.tcpi_total_retrans,
		.min_rtt = info.tcpi_min_rtt,
		.state = info.tcpi_state,
		.ca_state = info.tcpi_ca_state,
		.backoff = info.tcpi_backoff,
		.starved = starved_by(&info, memory),
	};
	if (!probe->size || memcmp(&now, &probe->socket, sizeof(now))) {
		probe->socket = now;
		write_socket(probe);
	}
	return true;
}

static bool read_queue(struct probe *probe, const unsigned char *answer, const unsigned char *end)
{
	const unsigned char *attributes = answer + NLMSG_LENGTH(sizeof(struct tcmsg)), *stats, *own;
	size_t size;
	struct gnet_stats_basic basic;
	struct gnet_stats_queue queue;
	struct queue_state now = { 0 };

	if (attributes > end || !(stats = attribute(attributes, end, TCA_STATS2, &size)))
		return false;
	end = stats + size;
	if (!copy(&basic, sizeof(basic), stats, end, TCA_STATS_BASIC) ||
	    !copy(&queue, sizeof(queue), stats, end, TCA_STATS_QUEUE))
		return false;
	now.sent_bytes = basic.bytes;
	now.sent_packets = basic.packets;
	now.backlog = queue.backlog;
	now.packets = queue.qlen;
	now.drops = queue.drops;
	now.overlimits = queue.overlimits;
	own = attribute(stats, end, TCA_STATS_APP, &size);
	for (int i = 0; own && i < MARKS; i++) {
		uint32_t marks = 0;

		if (probe->marks[i] >= 0 && size >= probe->marks[i] + sizeof(marks))
			memcpy(&marks, own + probe->marks[i], sizeof(marks));
		now.marks += marks;
	}
	if (!probe->size || memcmp(&now, &probe->queue, sizeof(now))) {
		probe->queue = now;
		write_queue(probe);
	}
	return true;
}

/* Reads an answer of so much room; false if the socket or the queue is not there. */
static bool read_answer(const struct rows *rows, size_t number, const unsigned char *answer,
			size_t room)
{
	struct nlmsghdr head;
	bool of_socket = number < rows->sockets;

	memcpy(&head, answer, sizeof(head));
	if (head.nlmsg_type != (of_socket ? SOCK_DIAG_BY_FAMILY : RTM_NEWQDISC))
		return false;
	const unsigned char *end = answer + (head.nlmsg_len < room ? head.nlmsg_len : room);

	if (of_socket)
		return read_socket(&rows->probes[number], answer, end, head.nlmsg_flags & NLM_F_MULTI);
	return read_queue(&rows->probes[number], answer, end);
}

/* Whether the answer is a part of a list: of any number of sockets. */
static bool is_list(const struct probe *probe)
{
	struct nlmsghdr head;

	memcpy(&head, probe->answer, sizeof(head));
	return probe->answer_size >= NLMSG_HDRLEN && head.nlmsg_flags & NLM_F_MULTI;
}

static bool make_room(struct text *text, size_t more)
{
	size_t room = 2 * text->room + more + (1 << 16);
	char *bytes;

	if (more <= text->room - text->size)
		return true;
	bytes = realloc(text->bytes, room);
	if (!bytes)
		return false;
	text->bytes = bytes;
	text->room = room;
	return true;
}

/* Takes the counters that the queue has answered last as zero. */
static void begin(struct probe *probe)
{
	probe->before = probe->queue;
	probe->size = 0;
}

static bool add_row(struct text *text, const char *time, size_t time_size,
		    const struct probe *probe)
{
	if (!make_room(text, time_size + probe->size))
		return false;
	memcpy(text->bytes + text->size, time, time_size);
	memcpy(text->bytes + text->size + time_size, probe->row, probe->size);
	text->size += time_size + probe->size;
	return true;
}

/* A row's first column, in seconds with six places as Python rounds them, and the comma. */
static size_t write_time(char *to, int64_t time_ns)
{
	uint64_t us = ((uint64_t)time_ns + 500) / 1000;
	char *end;

	if (time_ns < 0 || time_ns % 1000 == 500 || time_ns > (int64_t)1e15)
		return sprintf(to, "%.6f,", time_ns / 1e9);
	end = number(to, us / 1000000);
	*end = '.';
	for (int i = 6; i; i--, us /= 10)
		end[i] = '0' + us % 10;
	end[7] = ',';
	return end + 8 - to;
}

/* Adds a row for each socket of a list; none before the trial's beginning, which has no time. */
static bool add_list(struct rows *rows, size_t number, const char *time, size_t time_size)
{
	struct probe *probe = &rows->probes[number];
	size_t at = 0;

	while (at + NLMSG_HDRLEN <= probe->answer_size) {
		struct nlmsghdr head;

		memcpy(&head, probe->answer + at, sizeof(head));
		if (head.nlmsg_len < NLMSG_HDRLEN || head.nlmsg_len > probe->answer_size - at)
			break;
		if (read_answer(rows, number, probe->answer + at, head.nlmsg_len) && time_size &&
		    !add_row(&rows->texts[0], time, time_size, probe))
			return false;
		at += NLMSG_ALIGN(head.nlmsg_len);
	}
	return true;
}

/* Brings the probe's answer up to date; NULL where the bytes end before, else where they go on. */
static const unsigned char *take_words(struct probe *probe, size_t size,
				       const unsigned char *from, const unsigned char *end)
{
	size_t count = (size + WORD - 1) / WORD;
	const unsigned char *bits = from;

	if ((count + 7) / 8 > (size_t)(end - from))
		return NULL;
	from += (count + 7) / 8;
	for (size_t i = 0; i < count; i++) {
		if (!(bits[i / 8] >> i % 8 & 1))
			continue;
		if (end - from < WORD)
			return NULL;
		memcpy(probe->answer + i * WORD, from, WORD);
		from += WORD;
	}
	probe->answer_size = size;
	return from;
}

/*
 * Reads what testbed/runner/samples.c has written, which says how.  False without memory; a part
 * of a round is left out.
 */
bool rows_read(struct rows *rows, const unsigned char *rounds, size_t size)
{
	const unsigned char *end = rounds + size;
	int64_t time_ns;

	while ((size_t)(end - rounds) >= sizeof(time_ns)) {
		char time[32];
		size_t time_size;

		memcpy(&time_ns, rounds, sizeof(time_ns));
		rounds += sizeof(time_ns);
		time_size = write_time(time, time_ns);
		for (size_t i = 0; i < rows->sockets + rows->queues; i++) {
			struct probe *probe = &rows->probes[i];
			uint32_t new;

			if ((size_t)(end - rounds) < sizeof(new))
				return true;
			memcpy(&new, rounds, sizeof(new));
			rounds += sizeof(new);
			if (new && (new > ANSWER_BYTES ||
				    !(rounds = take_words(probe, new, rounds, end))))
				return true;
			if ((new || !probe->size) && !is_list(probe))
				probe->answered = probe->answer_size >= NLMSG_HDRLEN &&
						  read_answer(rows, i, probe->answer,
							      probe->answer_size);
			if (is_list(probe)) {
				if (!add_list(rows, i, time, time_ns < 0 ? 0 : time_size))
					return false;
				continue;
			}
			if (!probe->answered)
				continue;
			if (time_ns < 0)
				begin(probe);
			else if (!add_row(&rows->texts[i >= rows->sockets], time, time_size, probe))
				return false;
		}
	}
	return true;
}

/* What was seen of a socket. */
const struct seen *rows_seen(const struct rows *rows, size_t number)
{
	return &rows->probes[number].seen;
}

/* The rows of the sockets (0) or of the queues (1), and their size. */
const char *rows_text(const struct rows *rows, int which, size_t *size)
{
	*size = rows->texts[which].size;
	return rows->texts[which].bytes;
}
