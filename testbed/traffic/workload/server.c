/* The end that sends what each connection has asked for, in order. */
#include "common.h"

#define BACKLOG		4096

static char block[1 << 16];	/* what data are made of */

struct port {			/* the port of a session, or of all transfers, and its totals */
	int listener;
	uint32_t connections, resets, min_rtt_us, window_bytes;
	uint64_t sent_bytes, segments, retransmissions;
	unsigned int options;	/* of TCP, that every connection agreed on */
	char control[16];
};

struct connection {
	int fd, part;		/* bytes of an incomplete request */
	uint64_t left;
	struct port *port;
	struct connection *next, *previous;
	char requests[64 * REQUEST_BYTES];
};

static struct connection live = { .next = &live, .previous = &live };
static struct port *ports;
static int port_count;

static void accept_on(struct port *port)
{
	int fd = accept4(port->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	struct connection *one;

	if (fd < 0)
		return;
	one = calloc(1, sizeof(*one));
	*one = (struct connection){ .fd = fd, .port = port, .next = live.next, .previous = &live };
	live.next->previous = one;
	live.next = one;
	port->connections++;
	watch(fd, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, one);
}

/* Add what the kernel reports of a connection to its port's totals. */
static void account(struct connection *one)
{
	struct port *port = one->port;
	struct tcp_info info = { 0 };
	socklen_t size = sizeof(info), name_size = sizeof(port->control);
	char name[sizeof(port->control)] = "";

	if (getsockopt(one->fd, IPPROTO_TCP, TCP_INFO, &info, &size))
		return;
	port->sent_bytes += info.tcpi_bytes_sent;
	port->segments += info.tcpi_data_segs_out;
	port->retransmissions += info.tcpi_total_retrans;
	port->options &= info.tcpi_options;
	if (info.tcpi_min_rtt && info.tcpi_min_rtt < port->min_rtt_us)
		port->min_rtt_us = info.tcpi_min_rtt;
	if (info.tcpi_snd_wnd > port->window_bytes)
		port->window_bytes = info.tcpi_snd_wnd;
	getsockopt(one->fd, IPPROTO_TCP, TCP_CONGESTION, name, &name_size);
	if (port->control[0] && strcmp(port->control, name))
		strcpy(name, "several");
	memcpy(port->control, name, sizeof(name));
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
		one->left = size == ENDLESS ? ENDLESS : one->left + size;
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
		if (one->left != ENDLESS)
			one->left -= done;
	}
}

static void serve_one(struct connection *one, uint32_t events)
{
	if (events & EPOLLIN)
		read_requests(one);
	if (events & (EPOLLERR | EPOLLRDHUP | EPOLLHUP)) {
		one->port->resets += events & EPOLLERR ? 1 : 0;
		hang_up(one);
		return;
	}
	feed(one);
}

static void listen_on(struct port *port, int number, int unsent_bytes, int mss)
{
	struct sockaddr_in here = { .sin_family = AF_INET, .sin_port = htons(number) };
	int fd = new_socket(mss);

	if (fd < 0)
		die("socket");
	*port = (struct port){ .listener = fd, .min_rtt_us = UINT32_MAX, .options = ~0u };
	set(fd, SOL_SOCKET, SO_REUSEADDR, 1);
	/* a connection inherits them from its listener */
	set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	set(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, unsent_bytes);
	if (bind(fd, (struct sockaddr *)&here, sizeof(here)) || listen(fd, BACKLOG))
		die("listen");
	watch(fd, EPOLLIN, port);
}

static void report(void)
{
	for (struct connection *one = live.next; one != &live; one = one->next)
		account(one);
	printf("{\"ports\": [");
	for (int i = 0; i < port_count; i++) {
		struct port *p = &ports[i];

		printf("%s\n{\"connections\": %u, \"resets\": %u, \"control\": \"%s\", "
		       "\"options\": %u, \"min_rtt_us\": %u, \"window_bytes\": %u, "
		       "\"sent_bytes\": %llu, \"segments\": %llu, \"retransmissions\": %llu}",
		       i ? "," : "", p->connections, p->resets, p->control,
		       p->connections ? p->options : 0,
		       p->min_rtt_us == UINT32_MAX ? 0 : p->min_rtt_us, p->window_bytes,
		       (unsigned long long)p->sent_bytes, (unsigned long long)p->segments,
		       (unsigned long long)p->retransmissions);
	}
	printf("]}\n");
}

int serve(char **words)
{
	struct epoll_event events[EVENTS];

	port_count = atoi(words[1]);
	/* With many C libraries a process's first allocation takes a random number: before second 0,
	 * where it moves none of those that the trial's packets have. */
	ports = calloc(port_count, sizeof(*ports));
	if (!ports)
		die("ports");
	for (int i = 0; i < port_count; i++)
		listen_on(&ports[i], atoi(words[0]) + i, atoi(words[2]), atoi(words[3]));
	for (;;) {
		int count = epoll_wait(poller, events, EVENTS, -1);

		for (int i = 0; i < count; i++) {
			void *who = events[i].data.ptr;

			if (who == &signals) {
				report();
				return 0;
			}
			if ((struct port *)who >= ports && (struct port *)who < ports + port_count)
				accept_on(who);
			else
				serve_one(who, events[i].events);
		}
	}
}
