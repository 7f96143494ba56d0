/*
 * Samples: the same requests again and again, and the kernel's answers as they are.
 *
 * The guest's kernel takes a whole series of rounds by one system call (kernel/patches/0022): it
 * sleeps until the next instant, notes the time and makes all requests, then does so for the
 * instant after.  The runner is not woken in between, which would cost far more than the requests.
 *
 * The file: for each round its time on the trial's clock (-1 before second 0: the rehearsal) and,
 * for each probe, the size of the answer and what is new in it: a bit for each of its words of
 * eight bytes, set if the word is not that of the probe's answer before (at first zero), and these
 * words.  A size of 0: all is as before.
 *
 * A request for a list (NLM_F_DUMP) is answered by the first part of that list, which holds the
 * sockets of a program that has few of them; the others are read and dropped.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "calls.h"
#include "runner.h"

#define ANSWER_BYTES 4096 /* more than any answer takes */
#define MAX_ROUNDS 64
#define ROOM (1 << 19)	    /* for the answers of the rounds that are made by one call */
#define WRITE_BYTES (1 << 20)
#define TIMED 2 /* calls of a round before its requests: sleep, read the clock */
#define PARTS 3 /* of a list: its sockets, its end, and what may be left of the one before */
#define REQUESTS_AWAKE 200 /* requests without a sleep; clock.c says what more would cost */

static struct probe {
	const char *node;
	int protocol, fd;
	bool list;
	unsigned char *request;
	size_t size;
	uint64_t *before; /* the words of the last answer */
} *probes;
static size_t probe_count;

static const char *path;
static int file = -1;
static unsigned char *text;
static size_t used, room;

static struct batched_call *calls, **receipts; /* receipts: those that take the answers */
static struct timespec due_at[MAX_ROUNDS], made_at[MAX_ROUNDS];
static unsigned char *answers, dropped[ANSWER_BYTES];
static size_t most; /* rounds by one call */
static int64_t interval, following;
static int64_t latest = -2;

/* samples FILE */
void open_samples(struct words words)
{
	path = words.at[1];
	file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (file < 0)
		fail("%s: %s", path, strerror(errno));
}

/* One for all probes of a node: a socket for each would be too many for a thousand flows. */
static int probe_socket(const struct probe *probe)
{
	for (size_t i = probe_count; i-- && !probe->list;)
		if (probes[i].protocol == probe->protocol && !probes[i].list &&
		    !strcmp(probes[i].node, probe->node))
			return probes[i].fd;
	return netlink_socket(probe->node, probe->protocol);
}

/* probe NODE PROTOCOL HEX: a request with a single answer, its head included. */
void add_probe(struct words words)
{
	struct probe probe = { .node = words.at[1], .protocol = (int)integer(words.at[2]) };

	enter(probe.node);
	probe.request = bytes_of(words.at[3], &probe.size);
	probe.list = ((const struct nlmsghdr *)probe.request)->nlmsg_flags & NLM_F_ROOT;
	probe.fd = probe_socket(&probe);
	probe.before = calloc(1, ANSWER_BYTES);
	if (!probe.before)
		fail("out of memory");
	if (words.count > 4) { /* the interface whose index belongs at 20 */
		extern unsigned int if_nametoindex(const char *name);
		uint32_t index = if_nametoindex(words.at[4]);

		if (!index)
			fail("there is no interface %s", words.at[4]);
		memcpy(probe.request + 20, &index, sizeof(index));
	}
	probes = grown(probes, probe_count, sizeof(*probes));
	probes[probe_count++] = probe;
}

static void flush(void)
{
	size_t done = 0;

	while (done < used) {
		ssize_t part = write(file, text + done, used - done);

		if (part < 0)
			fail("%s: %s", path, strerror(errno));
		done += (size_t)part;
	}
	used = 0;
}

static void add(const void *bytes, size_t size)
{
	memcpy(text + used, bytes, size);
	used += size;
}

static void add_new_words(uint64_t *before, const unsigned char *answer, size_t size)
{
	size_t count = (size + sizeof(*before) - 1) / sizeof(*before);
	unsigned char *bits = (unsigned char *)text + used;

	memset(bits, 0, (count + 7) / 8);
	used += (count + 7) / 8;
	for (size_t i = 0; i < count; i++) {
		uint64_t word;

		memcpy(&word, answer + i * sizeof(word), sizeof(word));
		if (word == before[i])
			continue;
		bits[i / 8] |= (unsigned char)(1 << i % 8);
		before[i] = word;
		add(&word, sizeof(word));
	}
}

static size_t calls_of_round(void)
{
	size_t lists = 0;

	for (size_t i = 0; i < probe_count; i++)
		lists += probes[i].list;
	return TIMED + 2 * probe_count + (PARTS - 1) * lists + (probe_count - 1) / REQUESTS_AWAKE;
}

static void add_round(size_t round, int64_t time_ns)
{
	size_t largest = sizeof(time_ns) +
			 probe_count * (sizeof(uint32_t) + ANSWER_BYTES + ANSWER_BYTES / 64);

	if (used + largest > room) {
		flush();
		if (largest > room) {
			room = largest + WRITE_BYTES;
			text = realloc(text, room);
			if (!text)
				fail("out of memory");
		}
	}
	latest = time_ns;
	add(&time_ns, sizeof(time_ns));
	for (size_t i = 0; i < probe_count; i++) {
		const unsigned char *each = answers + (round * probe_count + i) * ANSWER_BYTES;
		uint32_t size = ((const struct nlmsghdr *)each)->nlmsg_len;

		if (probes[i].list)
			size = (uint32_t)receipts[round * probe_count + i]->result;
		size = size < ANSWER_BYTES ? size : ANSWER_BYTES;
		if (!memcmp(each, probes[i].before, size))
			size = 0;
		add(&size, sizeof(size));
		add_new_words(probes[i].before, each, size);
	}
}

static void prepare_round(size_t round)
{
	struct batched_call *call = calls + round * calls_of_round();

	*call++ = (struct batched_call){
		SYS_clock_nanosleep, { CLOCK_MONOTONIC, TIMER_ABSTIME, (long)&due_at[round] }, 0, 0, 0
	};
	*call++ = (struct batched_call){
		SYS_clock_gettime, { CLOCK_MONOTONIC, (long)&made_at[round] }, 0, 0, 0
	};
	for (size_t i = 0; i < probe_count; i++) {
		unsigned char *place = answers + (round * probe_count + i) * ANSWER_BYTES;
		long size = (long)probes[i].size;

		if (i && i % REQUESTS_AWAKE == 0) /* until what has passed: for a nanosecond */
			*call++ = (struct batched_call){
				SYS_clock_nanosleep,
				{ CLOCK_MONOTONIC, TIMER_ABSTIME, (long)&due_at[round] }, 0, 0, 0
			};
		*call++ = (struct batched_call){
			SYS_sendto, { probes[i].fd, (long)probes[i].request, size }, size, size, 0
		};
		receipts[round * probe_count + i] = call;
		*call++ = (struct batched_call){
			SYS_recvfrom, { probes[i].fd, (long)place, ANSWER_BYTES }, 1, ANY, 0
		};
		for (int part = 1; probes[i].list && part < PARTS; part++)
			*call++ = (struct batched_call){
				SYS_recvfrom,
				{ probes[i].fd, (long)dropped, ANSWER_BYTES, MSG_DONTWAIT }, -EAGAIN, ANY, 0
			};
	}
}

/* Make these calls to their end, whatever signals come between. */
static void make_all(size_t first, size_t end)
{
	while (first < end) {
		first += make_calls(calls + first, end - first);
		if (first < end && calls[first].result != -EINTR)
			fail("a sample: %s", strerror((int)-calls[first].result));
	}
}

static int64_t time_of(size_t round)
{
	return trial_ns(made_at[round].tv_sec * NS_PER_S + made_at[round].tv_nsec);
}

static void sample_now(void)
{
	if (probe_count)
		make_all(1, calls_of_round());
}

/* rehearse: the first look-up of a socket draws hash tables' keys; counters begin with it. */
void rehearse(struct words words)
{
	(void)words;
	if (!probe_count)
		return;
	most = ROOM / ANSWER_BYTES / probe_count;
	most = most < 1 ? 1 : most > MAX_ROUNDS ? MAX_ROUNDS : most;
	answers = calloc(most * probe_count, ANSWER_BYTES);
	calls = calloc(most * calls_of_round(), sizeof(*calls));
	receipts = calloc(most * probe_count, sizeof(struct batched_call *));
	if (!answers || !calls || !receipts)
		fail("out of memory");
	for (size_t round = 0; round < most; round++)
		prepare_round(round);
	sample_now();
	add_round(0, -1);
}

static int64_t microseconds(int64_t time_ns)
{
	return (time_ns + 500) / 1000;
}

/* sample: now, but at most once per instant, which tables give to the microsecond. */
void sample(struct words words)
{
	(void)words;
	if (!probe_count || microseconds(trial_ns(now_ns())) == microseconds(latest))
		return;
	sample_now();
	add_round(0, time_of(0));
}

/* interval NS: from second 0 on, while waiting. */
void set_interval(struct words words)
{
	interval = integer(words.at[1]);
	following = 0;
}

/* Make the rounds that are due at the first of these instants, and return their number. */
static size_t sample_at(size_t count)
{
	size_t each = calls_of_round(), made = make_calls(calls, count * each);
	size_t rounds = made / each;

	if (made % each || !rounds)
		make_all(made, ++rounds * each);
	return rounds;
}

/* A late sample for all instants that were missed, as on a slow host. */
static void catch_up(void)
{
	int64_t late = trial_ns(now_ns()) - following;

	if (late < interval)
		return;
	sample_now();
	add_round(0, time_of(0));
	following += (late / interval + 1) * interval;
}

/* Sample at all instants before this one. */
int64_t sample_while_waiting(int64_t until_ns)
{
	int64_t until = trial_ns(until_ns);

	while (interval && probe_count && following < until) {
		size_t count = 0, made;

		catch_up();
		if (following >= until)
			break;
		if (microseconds(following) == microseconds(latest)) {
			following += interval;
			continue;
		}
		for (int64_t due = following; due < until && count < most; due += interval) {
			int64_t at = due + zero_ns();

			due_at[count++] = (struct timespec){ at / NS_PER_S, at % NS_PER_S };
		}
		made = sample_at(count);
		for (size_t round = 0; round < made; round++)
			add_round(round, time_of(round));
		following += (int64_t)made * interval;
	}
	return following;
}

void write_samples(void)
{
	if (file < 0)
		return;
	flush();
	close(file);
}
