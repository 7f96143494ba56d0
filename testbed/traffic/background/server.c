/* The end that sends: a port a session, a connection a file. */
#include "common.h"

#define UNSENT_BYTES	16384	/* so much may wait unsent; a writer wakes at half of it */

static char block[1 << 16];	/* what files are made of */

struct port {		/* where one session is served, and what its connections came to */
	int listener;
	uint32_t connections, resets, min_rtt_us, window;
	uint64_t sent_bytes, retransmitted_bytes, segments, retransmissions;
	char control[16];
};

struct connection {
	int fd, asked, finished;	/* asked: bytes of the request that have come */
	uint64_t left;
	struct port *port;
	struct connection *next, *previous;
	char request[REQUEST_BYTES];
};

static struct port *ports;
static int port_count;
static struct connection live = { .next = &live, .previous = &live };

static void listen_on(int first, int mss)
{
	for (int i = 0; i < port_count; i++) {
		struct sockaddr_in here = { .sin_family = AF_INET, .sin_port = htons(first + i) };

		ports[i].listener = new_socket(mss);
		ports[i].min_rtt_us = UINT32_MAX;
		set(ports[i].listener, SOL_SOCKET, SO_REUSEADDR, 1);
		if (bind(ports[i].listener, (struct sockaddr *)&here, sizeof(here)) ||
		    listen(ports[i].listener, 8))
			die("listen");
		watch(ports[i].listener, EPOLLIN, &ports[i]);
	}
}

static void accept_on(struct port *port)
{
	int fd = accept4(port->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	struct connection *one;
	char control[sizeof(port->control)] = "";
	socklen_t size = sizeof(control);

	if (fd < 0)
		return;
	one = calloc(1, sizeof(*one));
	*one = (struct connection){ .fd = fd, .port = port, .next = live.next, .previous = &live };
	live.next->previous = one;
	live.next = one;
	port->connections++;
	getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, control, &size);
	if (port->control[0] && strcmp(port->control, control))
		strcpy(control, "several");
	strcpy(port->control, control);
	set(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, UNSENT_BYTES);
	watch(fd, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, one);
}

/* Adds what the kernel says of a connection to its session. */
static void account(struct connection *one)
{
	struct port *port = one->port;
	struct tcp_info info = { 0 };
	socklen_t size = sizeof(info);

	if (getsockopt(one->fd, IPPROTO_TCP, TCP_INFO, &info, &size))
		return;
	if (info.tcpi_min_rtt && info.tcpi_min_rtt < port->min_rtt_us)
		port->min_rtt_us = info.tcpi_min_rtt;
	if (info.tcpi_snd_wnd > port->window)
		port->window = info.tcpi_snd_wnd;
	port->sent_bytes += info.tcpi_bytes_sent;
	port->retransmitted_bytes += info.tcpi_bytes_retrans;
	port->segments += info.tcpi_data_segs_out;
	port->retransmissions += info.tcpi_total_retrans;
}

static void hang_up(struct connection *one)
{
	account(one);
	close(one->fd);
	one->next->previous = one->previous;
	one->previous->next = one->next;
	free(one);
}

static void feed(struct connection *one)
{
	while (one->left) {
		int last = one->left <= sizeof(block);
		/* MSG_MORE: a file's last bytes leave with the FIN */
		ssize_t done = send(one->fd, block, last ? one->left : sizeof(block),
				    last ? MSG_MORE : 0);

		if (done < 0)
			return;
		if (one->left != ENDLESS)
			one->left -= done;
	}
	one->finished = 1;
	shutdown(one->fd, SHUT_WR);
}

static void serve_one(struct connection *one, uint32_t events)
{
	if (events & EPOLLERR) {
		one->port->resets++;
		hang_up(one);
		return;
	}
	if (one->asked < REQUEST_BYTES && events & EPOLLIN) {
		ssize_t got = recv(one->fd, one->request + one->asked,
				   REQUEST_BYTES - one->asked, 0);

		one->asked += got > 0 ? got : 0;
		if (one->asked == REQUEST_BYTES)
			memcpy(&one->left, one->request, sizeof(one->left));
	}
	if (events & EPOLLRDHUP)
		hang_up(one);
	else if (one->asked == REQUEST_BYTES && !one->finished)
		feed(one);
}

static void report_server(void)
{
	const struct linger at_once = { .l_onoff = 1 };

	for (struct connection *one = live.next; one != &live; one = one->next) {
		account(one);
		/* a reset: what the kernel still holds is not sent */
		setsockopt(one->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
	}
	printf("{\"sessions\": [");
	for (int i = 0; i < port_count; i++) {
		struct port *p = &ports[i];

		printf("%s\n {\"connections\": %u, \"resets\": %u, \"control\": \"%s\", "
		       "\"min_rtt_us\": %u, \"window_bytes\": %u, \"sent_bytes\": %llu, "
		       "\"retransmitted_bytes\": %llu, \"segments\": %llu, "
		       "\"retransmissions\": %llu}",
		       i ? "," : "", p->connections, p->resets, p->control,
		       p->min_rtt_us == UINT32_MAX ? 0 : p->min_rtt_us, p->window,
		       (unsigned long long)p->sent_bytes,
		       (unsigned long long)p->retransmitted_bytes,
		       (unsigned long long)p->segments, (unsigned long long)p->retransmissions);
	}
	printf("]}\n");
}

int serve(char **words)
{
	struct epoll_event events[EVENTS];

	port_count = atoi(words[1]);
	ports = calloc(port_count, sizeof(*ports));
	listen_on(atoi(words[0]), atoi(words[2]));
	for (;;) {
		int count = epoll_wait(poller, events, EVENTS, -1);

		for (int i = 0; i < count; i++) {
			void *who = events[i].data.ptr;

			if (who == &signals) {
				report_server();
				return 0;
			}
			if ((struct port *)who >= ports && (struct port *)who < ports + port_count)
				accept_on(who);
			else
				serve_one(who, events[i].events);
		}
	}
}
