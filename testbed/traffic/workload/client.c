/* The end that asks for every transfer in its time, and notes when its last byte has come. */
#include "common.h"
#include <sys/timerfd.h>

#define READ_BYTES	16384	/* wake a reader for this much, or for a transfer's end */
#define NONE		(-1)
#define NEVER		INT64_MAX
#define LOST		(-1)	/* the end of a transfer whose connection failed */

struct transfer {
	int64_t after_ns, begun_ns, ended_ns;	/* begun and ended: 0 if it has not */
	uint64_t size, got;
	int session;
	int port;			/* 0: it never began */
	int next;			/* the one behind it on its connection */
};

struct session {			/* all transfers are one where none waits for another */
	int first, next, end;		/* places in `transfers` */
	int64_t due_ns;			/* when the next one begins; NEVER while one runs */
};

struct connection {
	int fd, port, open, low_water;	/* fd: negative once it is gone */
	int head, tail, unasked;	/* transfers, in the order in which they are answered */
	uint64_t due;			/* bytes that are still to come */
};

static struct transfer *transfers;
static struct session *sessions;
static int transfer_count, session_count, closed, waiting, going;
static struct connection *connections;
static int pool, client_mss, first_port, timer;
static struct sockaddr_in server = { .sin_family = AF_INET };
static int64_t zero_ns, real_zero_ns, armed_ns;

static void wake_at(struct connection *one)
{
	struct transfer *head = &transfers[one->head];
	uint64_t left = head->size - head->got;
	int wanted = left < READ_BYTES ? (int)left : READ_BYTES;

	if (wanted != one->low_water)
		set(one->fd, SOL_SOCKET, SO_RCVLOWAT, wanted);
	one->low_water = wanted;
}

static void open_from(struct connection *one, int port, int session)
{
	struct sockaddr_in here = { .sin_family = AF_INET, .sin_port = htons(port) };
	struct sockaddr_in there = server;

	*one = (struct connection){ .fd = new_socket(client_mss), .port = port, .head = NONE,
				    .tail = NONE, .unasked = NONE, .low_water = 1 };
	if (one->fd < 0)
		return;
	there.sin_port = htons(ntohs(server.sin_port) + session);
	/* another session, or another flow, may have the port too */
	set(one->fd, SOL_SOCKET, SO_REUSEADDR, 1);
	if (bind(one->fd, (struct sockaddr *)&here, sizeof(here)))
		die("bind");
	connect(one->fd, (struct sockaddr *)&there, sizeof(there));	/* EINPROGRESS, or EPOLLERR */
	watch(one->fd, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, one);
}

static void ask_for_next(struct connection *one)
{
	while (one->open && one->unasked != NONE) {
		struct transfer *wanted = &transfers[one->unasked];
		char request[REQUEST_BYTES] = "";

		memcpy(request, &wanted->size, sizeof(wanted->size));
		if (send(one->fd, request, sizeof(request), 0) != sizeof(request))
			return;
		if (pool)
			wanted->begun_ns = now_ns(CLOCK_MONOTONIC);
		one->unasked = wanted->next;
	}
}

/* The connection that is to carry a transfer. */
static struct connection *carrier(int number)
{
	struct connection *best = NULL;
	int session = transfers[number].session;

	if (!pool) {
		open_from(&connections[number], first_port + number - sessions[session].first,
			  session);
		return &connections[number];
	}
	for (int i = 0; i < pool; i++) {
		struct connection *one = &connections[i];

		if (one->fd >= 0 && (!best || one->due < best->due))
			best = one;
	}
	return best;
}

/* Whether it could: there may be no descriptor left, or no connection. */
static int begin(int number)
{
	struct transfer *wanted = &transfers[number];
	struct connection *one = carrier(number);

	waiting--;
	if (!one || one->fd < 0)
		return 0;
	wanted->port = one->port;
	wanted->begun_ns = pool ? 0 : now_ns(CLOCK_MONOTONIC);
	wanted->next = NONE;
	if (one->head == NONE)
		one->head = number;
	else
		transfers[one->tail].next = number;
	if (one->unasked == NONE)
		one->unasked = number;
	one->tail = number;
	one->due += wanted->size;
	going++;
	if (one->head == number)
		wake_at(one);
	ask_for_next(one);
	return 1;
}

static void arm(int64_t at_ns)
{
	struct itimerspec until = { 0 };

	armed_ns = at_ns;
	until.it_value.tv_sec = at_ns / NS_PER_S;
	until.it_value.tv_nsec = at_ns % NS_PER_S;
	timerfd_settime(timer, TFD_TIMER_ABSTIME, &until, NULL);
}

static void set_due(struct session *one, int64_t since_ns)
{
	one->due_ns = one->next < one->end ? since_ns + transfers[one->next].after_ns : NEVER;
}

/* Begin the transfers whose time has come; the timer waits for the next one. */
static void begin_due(void)
{
	int64_t now = now_ns(CLOCK_MONOTONIC), next_ns = NEVER;

	for (int i = 0; i < session_count; i++) {
		struct session *one = &sessions[i];

		while (one->due_ns <= now) {
			int begun = begin(one->next++);

			if (closed && begun)
				one->due_ns = NEVER;
			else
				set_due(one, closed ? now : zero_ns);
		}
		if (one->due_ns < next_ns)
			next_ns = one->due_ns;
	}
	if (next_ns != NEVER)
		arm(next_ns);
	else
		armed_ns = NEVER;
}

/* A transfer is over: its session's next one begins after a pause. */
static void end(struct transfer *one, int64_t ended_ns, int64_t now)
{
	struct session *session = &sessions[one->session];

	one->ended_ns = ended_ns;
	going--;
	if (!closed)
		return;
	set_due(session, now);
	if (session->due_ns < armed_ns)
		arm(session->due_ns);
}

static void lose(struct connection *one)
{
	int64_t now = one->head != NONE && closed ? now_ns(CLOCK_MONOTONIC) : 0;

	close(one->fd);
	one->fd = -1;
	for (; one->head != NONE; one->head = transfers[one->head].next)
		end(&transfers[one->head], LOST, now);
}

/* Count bytes that have come for the first transfer, and then for those behind it. */
static void credit(struct connection *one, uint64_t bytes)
{
	one->due -= bytes;
	while (one->head != NONE) {
		struct transfer *head = &transfers[one->head];
		int64_t now;
		uint64_t part = head->size - head->got < bytes ? head->size - head->got : bytes;

		head->got += part;
		bytes -= part;
		if (head->got < head->size)
			return;
		now = now_ns(CLOCK_MONOTONIC);
		end(head, now, now);
		one->head = head->next;
	}
}

static void serve_one(struct connection *one, uint32_t events)
{
	ssize_t got;

	if (events & EPOLLOUT && !(events & EPOLLERR)) {
		one->open = 1;
		ask_for_next(one);
	}
	if (events & EPOLLIN && (got = recv(one->fd, NULL, 1 << 30, MSG_TRUNC)) > 0)
		credit(one, (uint64_t)got);
	if (events & (EPOLLERR | EPOLLHUP | EPOLLRDHUP)) {
		lose(one);
	} else if (one->head != NONE) {
		if (events & EPOLLIN)
			wake_at(one);
	} else if (!pool && events & EPOLLIN) {
		close(one->fd);
		one->fd = -1;
	}
}

static void read_table(const char *path)
{
	FILE *table = fopen(path, "r");
	int session, room = 0;
	long long after_ns, size;

	if (!table)
		die(path);
	sessions = calloc(session_count, sizeof(*sessions));
	while (fscanf(table, "%d %lld %lld", &session, &after_ns, &size) == 3) {
		if (transfer_count == room) {
			room = room ? 2 * room : 1024;
			transfers = realloc(transfers, room * sizeof(*transfers));
		}
		if (!sessions[session].end)
			sessions[session].first = sessions[session].next = transfer_count;
		transfers[transfer_count++] = (struct transfer){
			.after_ns = after_ns, .size = (uint64_t)size, .session = session };
		sessions[session].end = transfer_count;
	}
	waiting = transfer_count;
	fclose(table);
}

static int64_t since_zero(int64_t time_ns)
{
	if (time_ns == LOST)
		return -2;
	return time_ns ? time_ns - zero_ns : -1;
}

static void reset_at_exit(struct connection *one)
{
	const struct linger at_once = { .l_onoff = 1 };

	if (one->fd >= 0 && one->head != NONE)
		setsockopt(one->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
}

/* What is not finished ends with a reset: nobody is left for the server to send to. */
static int report(void)
{
	for (int i = 0; i < (pool ? pool : transfer_count); i++)
		if (pool || transfers[i].port)
			reset_at_exit(&connections[i]);
	printf("{\"zero_ns\": %lld, \"real_zero_ns\": %lld, \"transfers\": [",
	       (long long)zero_ns, (long long)real_zero_ns);
	for (int i = 0; i < transfer_count; i++) {	/* port, begin, end (-2: lost), bytes */
		struct transfer *one = &transfers[i];

		printf("%s\n[%d, %lld, %lld, %llu]", i ? "," : "", one->port,
		       (long long)since_zero(one->begun_ns), (long long)since_zero(one->ended_ns),
		       (unsigned long long)one->got);
	}
	printf("]}\n");
	return 0;
}

static void start(char **words)
{
	if (inet_pton(AF_INET, words[0], &server.sin_addr) != 1)
		die(words[0]);
	server.sin_port = htons(atoi(words[1]));
	closed = atoi(words[2]) > 0;
	session_count = closed ? atoi(words[2]) : 1;
	first_port = atoi(words[3]);
	pool = atoi(words[4]);
	client_mss = atoi(words[5]);
	timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	watch(timer, EPOLLIN | EPOLLET, &timer);
	read_table(words[6]);
	connections = calloc(pool ? pool : transfer_count, sizeof(*connections));
	zero_ns = now_ns(CLOCK_MONOTONIC);
	real_zero_ns = now_ns(CLOCK_REALTIME);
	for (int i = 0; i < pool; i++)
		open_from(&connections[i], first_port + i, 0);
	for (int i = 0; i < session_count; i++)
		set_due(&sessions[i], zero_ns);
	begin_due();
}

int ask(char **words)
{
	struct epoll_event events[EVENTS];

	start(words);
	while (going || waiting) {
		int count = epoll_wait(poller, events, EVENTS, -1);

		for (int i = 0; i < count; i++) {
			void *who = events[i].data.ptr;

			if (who == &signals)
				return report();
			if (who == &timer)
				begin_due();
			else
				serve_one(who, events[i].events);
		}
	}
	return report();
}
