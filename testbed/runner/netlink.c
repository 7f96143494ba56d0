/* Requests to the kernel by netlink, whose bytes the host has made. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "calls.h"
#include "runner.h"

#define RECEIVED_BYTES (1 << 18)
#define TCP_LISTEN 10

unsigned char received[RECEIVED_BYTES];

static struct channel { /* a socket for route requests, kept for the next one in that node */
	const char *node;
	int fd;
} *channels;
static size_t channel_count;

static struct object { /* a discipline or class as the kernel described it */
	const char *id, *node;
	unsigned char *message;
	size_t size;
} *objects;
static size_t object_count;

int netlink_socket(const char *node, int protocol)
{
	struct sockaddr_nl any = { .nl_family = AF_NETLINK };
	struct timeval patience = { .tv_sec = 5 };
	int fd, on = 1;

	enter(node);
	fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);
	if (fd < 0 || bind(fd, (struct sockaddr *)&any, sizeof(any)) ||
	    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)))
		fail("netlink: %s", strerror(errno));
	setsockopt(fd, SOL_NETLINK, NETLINK_EXT_ACK, &on, sizeof(on)); /* errors in words */
	return fd;
}

static int route_socket(const char *node)
{
	for (size_t i = 0; i < channel_count; i++)
		if (!strcmp(channels[i].node, node))
			return channels[i].fd;
	channels = grown(channels, channel_count, sizeof(*channels));
	channels[channel_count] = (struct channel){ node, netlink_socket(node, NETLINK_ROUTE) };
	return channels[channel_count++].fd;
}

ssize_t receive(int fd)
{
	ssize_t size;

	while ((size = recv(fd, received, sizeof(received), 0)) < 0)
		if (errno != EINTR)
			fail("netlink: %s", strerror(errno));
	return size;
}

/* Send a request and receive the first message of what it brings. */
static ssize_t exchange(int fd, int type, int flags, const void *payload, size_t size)
{
	struct nlmsghdr head = { .nlmsg_len = (uint32_t)(sizeof(head) + size),
				 .nlmsg_type = (uint16_t)type,
				 .nlmsg_flags = (uint16_t)(flags | NLM_F_REQUEST) };
	struct iovec parts[] = { { &head, sizeof(head) }, { (void *)payload, size } };
	struct msghdr message = { .msg_iov = parts, .msg_iovlen = 2 };
	struct batched_call calls[] = {
		{ SYS_sendmsg, { fd, (long)&message }, head.nlmsg_len, head.nlmsg_len, 0 },
		{ SYS_recvfrom, { fd, (long)received, sizeof(received) }, 1, ANY, 0 },
	};

	switch (make_calls(calls, LENGTH(calls))) {
	case 0:
		fail("netlink: %s", strerror((int)-calls[0].result));
	case 1: /* a signal came between */
		return receive(fd);
	default:
		return calls[1].result;
	}
}

/* The attribute of that type between two offsets; NULL if it is not there. */
static struct rtattr *attribute(unsigned char *bytes, size_t size, int type)
{
	struct rtattr *each = (struct rtattr *)bytes;

	for (int left = (int)size; RTA_OK(each, left); each = RTA_NEXT(each, left))
		if ((each->rta_type & NLA_TYPE_MASK) == type)
			return each;
	return NULL;
}

/* The kernel's own words for an error, if it has any. */
static const char *words_of(const struct nlmsghdr *head, const struct nlmsgerr *error)
{
	size_t echoed = head->nlmsg_flags & NLM_F_CAPPED ? 0 : error->msg.nlmsg_len - NLMSG_HDRLEN;
	unsigned char *from = (unsigned char *)(error + 1) + NLMSG_ALIGN(echoed);
	unsigned char *end = (unsigned char *)head + head->nlmsg_len;
	struct rtattr *text;

	if (!(head->nlmsg_flags & NLM_F_ACK_TLVS) || from >= end)
		return NULL;
	text = attribute(from, (size_t)(end - from), NLMSGERR_ATTR_MSG);
	return text ? RTA_DATA(text) : NULL;
}

static void acknowledged(int fd, int type, int flags, const void *payload, size_t size)
{
	const struct nlmsghdr *head = (const struct nlmsghdr *)received;
	const struct nlmsgerr *error = NLMSG_DATA(head);

	exchange(fd, type, flags | NLM_F_ACK, payload, size);
	if (head->nlmsg_type == NLMSG_ERROR && error->error) {
		const char *text = words_of(head, error);

		fail("%s%s%s", strerror(-error->error), text ? ": " : "", text ? text : "");
	}
}

/* Put what only the runner knows into a message: WHAT OFFSET NAME, any number of times. */
static void fill_in(const char *node, unsigned char *message, size_t size, struct words words)
{
	for (int i = 0; i + 2 < words.count; i += 3) {
		const char *what = words.at[i], *name = words.at[i + 2];
		size_t offset = (size_t)integer(words.at[i + 1]);
		int64_t value;

		if (!strcmp(what, "zero")) {
			value = zero_ns();
		} else if (!strcmp(what, "node")) {
			value = node_descriptor(name);
		} else if (!strcmp(what, "program")) {
			value = bpf_descriptor(name);
		} else if (!strcmp(what, "index")) {
			enter(node);
			value = if_nametoindex(name);
			if (!value)
				fail("there is no interface %s", name);
		} else {
			fail("%s cannot be filled in", what);
		}
		size_t width = strcmp(what, "zero") ? sizeof(int32_t) : sizeof(value);

		if (offset + width > size)
			fail("the message has no room at %zu", offset);
		memcpy(message + offset, &value, width);
	}
}

static struct words after(struct words words, int count)
{
	if (count > words.count)
		count = words.count;
	return (struct words){ words.at + count, words.count - count };
}

/* send NODE TYPE FLAGS HEX [WHAT OFFSET NAME]...: a request that the kernel acknowledges. */
void send_request(struct words words)
{
	size_t size;
	unsigned char *payload = bytes_of(words.at[4], &size);

	fill_in(words.at[1], payload, size, after(words, 5));
	acknowledged(route_socket(words.at[1]), (int)integer(words.at[2]), (int)integer(words.at[3]),
		     payload, size);
	free(payload);
}

static bool is_last(ssize_t size)
{
	for (struct nlmsghdr *each = (struct nlmsghdr *)received; NLMSG_OK(each, size);
	     each = NLMSG_NEXT(each, size))
		if (each->nlmsg_type == NLMSG_DONE || each->nlmsg_type == NLMSG_ERROR)
			return true;
	return false;
}

/* dump NODE TYPE HEX INTERFACE: answers all messages of a list, with their heads. */
void dump_objects(struct words words)
{
	int fd = route_socket(words.at[1]);
	size_t size;
	ssize_t got;
	unsigned char *payload = bytes_of(words.at[3], &size);

	if (*words.at[4]) {
		char *place[] = { "index", "4", words.at[4] };

		fill_in(words.at[1], payload, size, (struct words){ place, LENGTH(place) });
	}
	got = exchange(fd, (int)integer(words.at[2]), NLM_F_DUMP, payload, size);
	free(payload);
	answer(received, (size_t)got);
	while (!is_last(got)) {
		got = receive(fd);
		answer(received, (size_t)got);
	}
}

/*
 * Ask for one discipline or class, by NODE TYPE HEX [WHAT OFFSET NAME]..., and answer what the
 * kernel says of it: into `received`, behind its head, of which the size is returned.
 */
static size_t described(struct words words)
{
	const struct nlmsghdr *head = (const struct nlmsghdr *)received;
	int fd = route_socket(words.at[0]);
	size_t size;
	unsigned char *payload = bytes_of(words.at[2], &size);

	fill_in(words.at[0], payload, size, after(words, 3));
	/* rtnetlink answers a discipline's request only as an echo */
	exchange(fd, (int)integer(words.at[1]), NLM_F_ECHO, payload, size);
	free(payload);
	if (head->nlmsg_type == NLMSG_ERROR)
		fail("there is no such discipline or class");
	size = head->nlmsg_len - NLMSG_HDRLEN;
	answer(NLMSG_DATA(head), size);
	return size;
}

/* ask NODE TYPE HEX [WHAT OFFSET NAME]...: answers what a discipline or class is now. */
void ask_object(struct words words)
{
	described(after(words, 1));
}

/* keep ID NODE TYPE HEX [WHAT OFFSET NAME]...: the same, for an object that will be changed. */
void keep_object(struct words words)
{
	struct object object = { .id = words.at[1], .node = words.at[2] };

	object.size = described(after(words, 2));
	object.message = malloc(object.size);
	if (!object.message)
		fail("out of memory");
	memcpy(object.message, received + NLMSG_HDRLEN, object.size);
	objects = grown(objects, object_count, sizeof(*objects));
	objects[object_count++] = object;
}

static struct object *object_of(const char *id)
{
	for (size_t i = 0; i < object_count; i++)
		if (!strcmp(objects[i].id, id))
			return &objects[i];
	fail("no object %s was kept", id);
}

/*
 * Where a number stands in an object's options: PATH is the types of the attributes that lead
 * there, between commas, of which the first follows HEAD bytes; none if it is in the head.
 */
static unsigned char *place_of(unsigned char *options, size_t size, const char *path, size_t head)
{
	while (*path) {
		char *end;
		long type = strtol(path, &end, 10);
		struct rtattr *inner;

		if (head > size || !(inner = attribute(options + head, size - head, (int)type)))
			return NULL;
		options = RTA_DATA(inner);
		size = RTA_PAYLOAD(inner);
		head = 0;
		path = *end == ',' ? end + 1 : end;
	}
	return options;
}

/*
 * change ID TYPE [PATH HEAD OFFSET BYTES VALUE]...: change a kept object, with these numbers in
 * the options that the kernel gave.  Answers when that was done.
 */
void change_object(struct words words)
{
	struct object *object = object_of(words.at[1]);
	struct tcmsg *head = (struct tcmsg *)object->message;
	unsigned char *attributes = object->message + NLMSG_ALIGN(sizeof(*head));
	size_t size = object->size - NLMSG_ALIGN(sizeof(*head));
	struct rtattr *kind = attribute(attributes, size, TCA_KIND);
	struct rtattr *options = attribute(attributes, size, TCA_OPTIONS);
	unsigned char message[8192] = { 0 };
	size_t used = NLMSG_ALIGN(sizeof(*head));
	int64_t done;

	if (!kind || !options ||
	    used + RTA_ALIGN(kind->rta_len) + RTA_ALIGN(options->rta_len) > sizeof(message))
		fail("the kernel did not describe the object");
	memcpy(message, head, sizeof(*head));
	((struct tcmsg *)message)->tcm_info = 0;
	memcpy(message + used, kind, kind->rta_len);
	used += RTA_ALIGN(kind->rta_len);
	memcpy(message + used, options, options->rta_len);
	options = (struct rtattr *)(message + used);
	used += RTA_ALIGN(options->rta_len);
	for (int i = 3; i + 4 < words.count; i += 5) {
		int64_t value = integer(words.at[i + 4]);
		unsigned char *place = place_of(RTA_DATA(options), RTA_PAYLOAD(options), words.at[i],
						(size_t)integer(words.at[i + 1]));

		if (place) /* a kernel need not report every number */
			memcpy(place + integer(words.at[i + 2]), &value,
			       (size_t)integer(words.at[i + 3]));
	}
	acknowledged(route_socket(object->node), (int)integer(words.at[2]), 0, message, used);
	done = trial_ns(now_ns());
	answer(&done, sizeof(done));
}

static bool listens_by(int fd, int family, int port)
{
	struct inet_diag_req_v2 wanted = { .sdiag_family = (uint8_t)family,
					   .sdiag_protocol = IPPROTO_TCP,
					   .idiag_states = 1 << TCP_LISTEN };
	bool does = false;
	ssize_t size = exchange(fd, SOCK_DIAG_BY_FAMILY, NLM_F_DUMP, &wanted, sizeof(wanted));

	for (;; size = receive(fd)) {
		ssize_t left = size;

		for (struct nlmsghdr *each = (struct nlmsghdr *)received; NLMSG_OK(each, left);
		     each = NLMSG_NEXT(each, left)) {
			const struct inet_diag_msg *found = NLMSG_DATA(each);

			does |= each->nlmsg_type == SOCK_DIAG_BY_FAMILY &&
				ntohs(found->id.idiag_sport) == port;
		}
		if (is_last(size))
			return does;
	}
}

/* Whether a process in the node listens on a TCP port, also by IPv6, as iperf3 does. */
bool listens(const char *node, int port)
{
	int fd = netlink_socket(node, NETLINK_SOCK_DIAG);
	bool does = listens_by(fd, AF_INET, port) || listens_by(fd, AF_INET6, port);

	close(fd);
	return does;
}
