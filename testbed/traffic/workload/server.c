/* The end that sends: what every connection has asked for, in order. */
#include "common.h"

#define UNSENT_BYTES	131072	/* so much may wait unsent; a writer wakes at half of it */
#define BACKLOG		4096

static char block[1 << 16];	/* what data are made of */

struct connection {
	int fd, part;		/* bytes of a request that is not whole */
	uint64_t left;
	struct connection *next, *previous;
	char requests[64 * REQUEST_BYTES];
};

static struct connection live = { .next = &live, .previous = &live };
static int listener;
static uint32_t connections, resets;
static uint64_t sent_bytes, segments, retransmissions;
static unsigned int options = ~0u;	/* of TCP, that every connection agreed on */
static char control[16];

static void accept_one(void)
{
	int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	struct connection *one;

	if (fd < 0)
		return;
	one = calloc(1, sizeof(*one));
	*one = (struct connection){ .fd = fd, .next = live.next, .previous = &live };
	live.next->previous = one;
	live.next = one;
	connections++;
	watch(fd, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, one);
}

/* Adds what the kernel says of a connection. */
static void account(struct connection *one)
{
	struct tcp_info info = { 0 };
	socklen_t size = sizeof(info), name_size = sizeof(control);
	char name[sizeof(control)] = "";

	if (getsockopt(one->fd, IPPROTO_TCP, TCP_INFO, &info, &size))
		return;
	sent_bytes += info.tcpi_bytes_sent;
	segments += info.tcpi_data_segs_out;
	retransmissions += info.tcpi_total_retrans;
	options &= info.tcpi_options;
	getsockopt(one->fd, IPPROTO_TCP, TCP_CONGESTION, name, &name_size);
	if (control[0] && strcmp(control, name))
		strcpy(name, "several");
	memcpy(control, name, sizeof(control));
}

static void hang_up(struct connection *one)
{
	account(one);
	close(one->fd);
	one->next->previous = one->previous;
	one->previous->next = one->next;
	free(one);
}

static void read_requests(struct connection *one)
{
	ssize_t got = recv(one->fd, one->requests + one->part,
			   sizeof(one->requests) - one->part, 0);
	uint64_t size;
	int done = 0;

	if (got <= 0)
		return;
	one->part += got;
	for (; one->part - done >= REQUEST_BYTES; done += REQUEST_BYTES) {
		memcpy(&size, one->requests + done, sizeof(size));
		one->left += size;
	}
	one->part -= done;
	memmove(one->requests, one->requests + done, one->part);
}

static void feed(struct connection *one)
{
	while (one->left) {
		int last = one->left <= sizeof(block);
		/* MSG_MORE: no segment is cut short where a block ends */
		ssize_t done = send(one->fd, block, last ? one->left : sizeof(block),
				    last ? 0 : MSG_MORE);

		if (done < 0)
			return;
		one->left -= done;
	}
}

static void serve_one(struct connection *one, uint32_t events)
{
	if (events & EPOLLIN)
		read_requests(one);
	if (events & (EPOLLERR | EPOLLRDHUP | EPOLLHUP)) {
		resets += events & EPOLLERR ? 1 : 0;
		hang_up(one);
		return;
	}
	feed(one);
}

static void listen_on(int port, int mss)
{
	struct sockaddr_in here = { .sin_family = AF_INET, .sin_port = htons(port) };

	listener = new_socket(mss);
	if (listener < 0)
		die("socket");
	set(listener, SOL_SOCKET, SO_REUSEADDR, 1);
	/* a connection has them from its listener */
	set(listener, IPPROTO_TCP, TCP_NODELAY, 1);
	set(listener, IPPROTO_TCP, TCP_NOTSENT_LOWAT, UNSENT_BYTES);
	if (bind(listener, (struct sockaddr *)&here, sizeof(here)) || listen(listener, BACKLOG))
		die("listen");
	watch(listener, EPOLLIN, &listener);
}

static void report(void)
{
	for (struct connection *one = live.next; one != &live; one = one->next)
		account(one);
	printf("{\"connections\": %u, \"resets\": %u, \"control\": \"%s\", \"options\": %u, "
	       "\"sent_bytes\": %llu, \"segments\": %llu, \"retransmissions\": %llu}\n",
	       connections, resets, control, connections ? options : 0,
	       (unsigned long long)sent_bytes, (unsigned long long)segments,
	       (unsigned long long)retransmissions);
}

int serve(char **words)
{
	struct epoll_event events[EVENTS];

	listen_on(atoi(words[0]), atoi(words[1]));
	for (;;) {
		int count = epoll_wait(poller, events, EVENTS, -1);

		for (int i = 0; i < count; i++) {
			void *who = events[i].data.ptr;

			if (who == &signals) {
				report();
				return 0;
			}
			if (who == &listener)
				accept_one();
			else
				serve_one(who, events[i].events);
		}
	}
}
