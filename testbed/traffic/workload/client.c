/* The end that asks: every transfer in its time, and when its last byte was here. */
#include "common.h"
#include <sys/timerfd.h>

#define READ_BYTES	16384	/* wake a reader for so much, or for a transfer's end */
#define NONE		(-1)

struct transfer {
	int64_t at_ns, begun_ns, ended_ns;	/* ended: 0 if it has not */
	uint64_t size, got;
	int port;			/* 0: it never began */
	int next;			/* the one behind it on its connection */
};

struct connection {
	int fd, port, open, low_water;	/* fd: negative once it is gone */
	int head, tail, unasked;	/* transfers, in the order in which they are answered */
	uint64_t due;			/* bytes that are still to come */
};

static struct transfer *transfers;
static int transfer_count, next_one, going;
static struct connection *connections;
static int pool, client_mss, first_port, timer;
static struct sockaddr_in server = { .sin_family = AF_INET };
static int64_t zero_ns, real_zero_ns;

static void wake_at(struct connection *one)
{
	struct transfer *head = &transfers[one->head];
	uint64_t left = head->size - head->got;
	int wanted = left < READ_BYTES ? (int)left : READ_BYTES;

	if (wanted != one->low_water)
		set(one->fd, SOL_SOCKET, SO_RCVLOWAT, wanted);
	one->low_water = wanted;
}

static void open_from(struct connection *one, int port)
{
	struct sockaddr_in here = { .sin_family = AF_INET, .sin_port = htons(port) };

	*one = (struct connection){ .fd = new_socket(client_mss), .port = port, .head = NONE,
				    .tail = NONE, .unasked = NONE, .low_water = 1 };
	if (one->fd < 0)
		return;
	set(one->fd, SOL_SOCKET, SO_REUSEADDR, 1);	/* another flow may have the port too */
	if (bind(one->fd, (struct sockaddr *)&here, sizeof(here)))
		die("bind");
	connect(one->fd, (struct sockaddr *)&server, sizeof(server));	/* EINPROGRESS, or EPOLLERR */
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

/* The connection that is to carry the next transfer. */
static struct connection *carrier(void)
{
	struct connection *best = NULL;

	if (!pool) {
		open_from(&connections[next_one], first_port + next_one);
		return &connections[next_one];
	}
	for (int i = 0; i < pool; i++) {
		struct connection *one = &connections[i];

		if (one->fd >= 0 && (!best || one->due < best->due))
			best = one;
	}
	return best;
}

static void begin(int number)
{
	struct transfer *wanted = &transfers[number];
	struct connection *one = carrier();

	if (!one || one->fd < 0)
		return;
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
}

static void arm(void)
{
	struct itimerspec until = { 0 };
	int64_t at = zero_ns + transfers[next_one].at_ns;

	until.it_value.tv_sec = at / NS_PER_S;
	until.it_value.tv_nsec = at % NS_PER_S;
	timerfd_settime(timer, TFD_TIMER_ABSTIME, &until, NULL);
}

/* Those whose time has come; the timer waits for the next one. */
static void begin_due(void)
{
	int64_t since_ns = now_ns(CLOCK_MONOTONIC) - zero_ns;

	for (; next_one < transfer_count && transfers[next_one].at_ns <= since_ns; next_one++)
		begin(next_one);
	if (next_one < transfer_count)
		arm();
}

static void lose(struct connection *one)
{
	close(one->fd);
	one->fd = -1;
	for (; one->head != NONE; one->head = transfers[one->head].next)
		going--;
}

/* Bytes that have come are those of the first transfer, and then of those behind it. */
static void credit(struct connection *one, uint64_t bytes)
{
	one->due -= bytes;
	while (one->head != NONE) {
		struct transfer *head = &transfers[one->head];
		uint64_t part = head->size - head->got < bytes ? head->size - head->got : bytes;

		head->got += part;
		bytes -= part;
		if (head->got < head->size)
			return;
		head->ended_ns = now_ns(CLOCK_MONOTONIC);
		one->head = head->next;
		going--;
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
	long long at_ns;
	unsigned long long size;
	int room = 0;

	if (!table)
		die(path);
	while (fscanf(table, "%lld %llu", &at_ns, &size) == 2) {
		if (transfer_count == room) {
			room = room ? 2 * room : 1024;
			transfers = realloc(transfers, room * sizeof(*transfers));
		}
		transfers[transfer_count++] = (struct transfer){ .at_ns = at_ns, .size = size };
	}
	fclose(table);
}

static int64_t since_zero(int64_t time_ns)
{
	return time_ns ? time_ns - zero_ns : -1;
}

/* What is not finished ends with a reset: the server has nothing left to send to. */
static int report(void)
{
	const struct linger at_once = { .l_onoff = 1 };
	int count = pool ? pool : next_one;

	for (int i = 0; i < count; i++)
		if (connections[i].fd >= 0 && connections[i].head != NONE)
			setsockopt(connections[i].fd, SOL_SOCKET, SO_LINGER, &at_once,
				   sizeof(at_once));
	printf("{\"zero_ns\": %lld, \"real_zero_ns\": %lld, \"transfers\": [",
	       (long long)zero_ns, (long long)real_zero_ns);
	for (int i = 0; i < transfer_count; i++) {	/* port, begin, end, bytes */
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
	first_port = atoi(words[2]);
	pool = atoi(words[3]);
	client_mss = atoi(words[4]);
	timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	watch(timer, EPOLLIN | EPOLLET, &timer);
	read_table(words[5]);
	connections = calloc(pool ? pool : transfer_count, sizeof(*connections));
	zero_ns = now_ns(CLOCK_MONOTONIC);
	real_zero_ns = now_ns(CLOCK_REALTIME);
	for (int i = 0; i < pool; i++)
		open_from(&connections[i], first_port + i);
	begin_due();
}

int ask(char **words)
{
	struct epoll_event events[EVENTS];

	start(words);
	while (going || next_one < transfer_count) {
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
