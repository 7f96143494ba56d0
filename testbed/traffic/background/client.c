/* The end that asks: it draws sizes and thoughts, and waits. */
#include "common.h"
#include <math.h>
#include <sys/timerfd.h>

#define READ_BYTES	16384	/* wake a reader for so much, or for the end */

struct file {
	int64_t begun_ns, took_ns;
	uint64_t bytes;
};

struct session {
	int endless, fd, asked;
	uint64_t state;			/* of its generator */
	int64_t due_ns, begun_ns;	/* when it acts next, INT64_MAX while a file comes */
	uint64_t wanted, got, bytes;	/* of this file, and of all */
	uint32_t connections, failures, file_count, room;
	int low_water;
	struct file *files;
};

static struct session *sessions;
static int session_count, client_mss;
static double mean_bytes, shape, think_ns;
static struct sockaddr_in server = { .sin_family = AF_INET };
static int timer;
static int64_t zero_ns;

static double uniform(struct session *s)	/* splitmix64, in [0, 1) */
{
	uint64_t z = (s->state += 0x9e3779b97f4a7c15ULL);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return (double)((z ^ (z >> 31)) >> 11) / (double)(1ULL << 53);
}

static uint64_t draw_size(struct session *s)	/* Pareto: its least is mean (shape - 1) / shape */
{
	return (uint64_t)ceil(mean_bytes * (shape - 1) / shape *
			      pow(1 - uniform(s), -1 / shape));
}

static int64_t draw_thought(struct session *s)	/* exponential */
{
	return (int64_t)(-think_ns * log(1 - uniform(s)));
}

static void wake_at(struct session *s)
{
	uint64_t more = s->wanted - s->got;	/* one more than comes: only the end will do */
	int wanted = more < READ_BYTES ? (int)more + 1 : READ_BYTES;

	if (wanted != s->low_water)
		set(s->fd, SOL_SOCKET, SO_RCVLOWAT, wanted);
	s->low_water = wanted;
}

static void begin(struct session *s, int64_t now)
{
	struct sockaddr_in there = server;

	s->wanted = s->endless ? ENDLESS : draw_size(s);
	s->got = s->asked = s->low_water = 0;
	s->begun_ns = now;
	s->due_ns = INT64_MAX;
	s->fd = new_socket(client_mss);
	wake_at(s);
	there.sin_port = htons(ntohs(server.sin_port) + (uint16_t)(s - sessions));
	s->connections++;
	connect(s->fd, (struct sockaddr *)&there, sizeof(there));	/* EINPROGRESS, or EPOLLERR */
	watch(s->fd, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, s);
}

/* The file is here, or will not come. */
static void finish(struct session *s, int64_t now)
{
	if (s->got == s->wanted) {
		if (s->file_count == s->room) {
			s->room = s->room ? 2 * s->room : 64;
			s->files = realloc(s->files, s->room * sizeof(*s->files));
		}
		s->files[s->file_count++] = (struct file){
			.begun_ns = s->begun_ns - zero_ns,
			.took_ns = now - s->begun_ns,
			.bytes = s->wanted,
		};
	} else {
		s->failures++;
	}
	close(s->fd);
	s->fd = -1;
	s->due_ns = now + draw_thought(s);
}

static void take(struct session *s)
{
	ssize_t done = recv(s->fd, NULL, 1 << 30, MSG_TRUNC);

	if (done > 0) {
		s->got += done;
		s->bytes += done;
	}
}

static void fetch_one(struct session *s, uint32_t events, int64_t now)
{
	if (!s->asked && events & EPOLLOUT && !(events & EPOLLERR)) {
		char request[REQUEST_BYTES] = "";

		memcpy(request, &s->wanted, sizeof(s->wanted));
		s->asked = send(s->fd, request, sizeof(request), 0) == sizeof(request);
	}
	if (events & EPOLLIN)
		take(s);
	if (events & (EPOLLRDHUP | EPOLLERR | EPOLLHUP))
		finish(s, now);
	else if (events & EPOLLIN)
		wake_at(s);
}

/* Whose time has come begins; the timer waits for the next one. */
static void begin_due(int64_t now)
{
	static int64_t armed = INT64_MAX;
	int64_t next = INT64_MAX;
	struct itimerspec until = { 0 };

	for (int i = 0; i < session_count; i++) {
		if (sessions[i].due_ns <= now)
			begin(&sessions[i], now);
		if (sessions[i].due_ns < next)
			next = sessions[i].due_ns;
	}
	if (next == armed)
		return;
	armed = next;
	if (next != INT64_MAX) {
		until.it_value.tv_sec = next / NS_PER_S;
		until.it_value.tv_nsec = next % NS_PER_S;
	}
	timerfd_settime(timer, TFD_TIMER_ABSTIME, &until, NULL);
}

static void read_table(const char *path)
{
	FILE *table = fopen(path, "r");
	char kind[8];
	long long start_ns;
	unsigned long long seed;

	if (!table)
		die(path);
	while (fscanf(table, "%7s %lld %llu", kind, &start_ns, &seed) == 3) {
		sessions = realloc(sessions, (session_count + 1) * sizeof(*sessions));
		sessions[session_count++] = (struct session){
			.endless = !strcmp(kind, "long"),
			.fd = -1,
			.state = seed,
			.due_ns = zero_ns + start_ns,
		};
	}
	fclose(table);
}

static void report_client(int64_t now)
{
	printf("{\"seconds\": %.9f, \"sessions\": [", (double)(now - zero_ns) / NS_PER_S);
	for (int i = 0; i < session_count; i++) {
		struct session *s = &sessions[i];

		if (s->fd >= 0)
			take(s);
		printf("%s\n {\"kind\": \"%s\", \"connections\": %u, \"failures\": %u, "
		       "\"bytes\": %llu, \"files\": [", i ? "," : "", s->endless ? "long" : "web",
		       s->connections, s->failures, (unsigned long long)s->bytes);
		for (uint32_t j = 0; j < s->file_count; j++)	/* begin, duration, bytes */
			printf("%s[%lld, %lld, %llu]", j ? ", " : "",
			       (long long)s->files[j].begun_ns, (long long)s->files[j].took_ns,
			       (unsigned long long)s->files[j].bytes);
		printf("]}");
	}
	printf("]}\n");
}

int fetch(char **words)
{
	struct epoll_event events[EVENTS];

	zero_ns = now_ns();
	if (inet_pton(AF_INET, words[0], &server.sin_addr) != 1)
		die(words[0]);
	server.sin_port = htons(atoi(words[1]));
	client_mss = atoi(words[2]);
	mean_bytes = strtod(words[3], NULL);
	shape = strtod(words[4], NULL);
	think_ns = strtod(words[5], NULL);
	timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	watch(timer, EPOLLIN | EPOLLET, &timer);
	read_table(words[6]);
	begin_due(zero_ns);
	for (;;) {
		int count = epoll_wait(poller, events, EVENTS, -1);
		int64_t now = now_ns();

		for (int i = 0; i < count; i++) {
			void *who = events[i].data.ptr;

			if (who == &signals) {
				report_client(now);
				return 0;
			}
			if (who != &timer)
				fetch_one(who, events[i].events, now);
		}
		begin_due(now);
	}
}
