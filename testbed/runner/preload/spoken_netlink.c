/*
 * Preloaded into `ip` and `tc`: nothing is sent to the kernel.  What they would send is written to
 * the descriptor SPOKEN_TO: netlink messages, which the runner sends in a node.
 *
 * Every request is acknowledged.  Interfaces that they ask for are there: the n-th name that is
 * asked for has the index FIRST_INDEX + n, and stands on a line of its own in what is written to
 * SPOKEN_NAMES.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#define FIRST_INDEX 0x7ead0000u
#define NAMES 4096
#define QUEUED 64

static char *names[NAMES];
static unsigned int name_count;
static struct {
	struct nlmsghdr head;
	struct nlmsgerr error;
} queue[QUEUED];
static size_t first, behind;

static int descriptor(const char *name)
{
	const char *text = getenv(name);

	return text ? atoi(text) : -1;
}

unsigned int if_nametoindex(const char *name)
{
	for (unsigned int i = 0; i < name_count; i++)
		if (!strcmp(names[i], name))
			return FIRST_INDEX + i;
	if (name_count == NAMES)
		return 0;
	names[name_count] = strdup(name);
	dprintf(descriptor("SPOKEN_NAMES"), "%s\n", name);
	return FIRST_INDEX + name_count++;
}

static uint32_t port_of(int fd)
{
	struct sockaddr_nl own = { 0 };
	socklen_t size = sizeof(own);

	getsockname(fd, (struct sockaddr *)&own, &size);
	return own.nl_pid;
}

static void take(int fd, const struct nlmsghdr *head)
{
	int is_question = head->nlmsg_type == RTM_GETLINK;
	int is_list = is_question && head->nlmsg_flags & NLM_F_DUMP;

	if (!is_question && write(descriptor("SPOKEN_TO"), head, head->nlmsg_len) < 0)
		abort();
	if (behind == QUEUED)
		abort();
	queue[behind].head = (struct nlmsghdr){ .nlmsg_len = sizeof(queue[0]),
						.nlmsg_type = is_list ? NLMSG_DONE : NLMSG_ERROR,
						.nlmsg_seq = head->nlmsg_seq,
						.nlmsg_pid = port_of(fd) };
	/* it then asks by the name */
	queue[behind].error.error = is_question && !is_list ? -ENODEV : 0;
	queue[behind].error.msg = *head;
	behind++;
}

static ssize_t take_all(int fd, const void *bytes, size_t size)
{
	const struct nlmsghdr *head = bytes;

	for (size_t left = size; NLMSG_OK(head, left); head = NLMSG_NEXT(head, left))
		take(fd, head);
	return (ssize_t)size;
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
	char bytes[65536];
	size_t size = 0;

	(void)flags;
	for (size_t i = 0; i < message->msg_iovlen; i++) {
		const struct iovec *part = &message->msg_iov[i];

		if (size + part->iov_len > sizeof(bytes))
			abort();
		memcpy(bytes + size, part->iov_base, part->iov_len);
		size += part->iov_len;
	}
	return take_all(fd, bytes, size);
}

ssize_t send(int fd, const void *bytes, size_t size, int flags)
{
	(void)flags;
	return take_all(fd, bytes, size);
}

ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
	size_t size = sizeof(queue[0]);

	if (first == behind) {
		errno = EBADF; /* they would wait for ever */
		return -1;
	}
	(void)fd;
	if (message->msg_name) {
		memset(message->msg_name, 0, sizeof(struct sockaddr_nl));
		((struct sockaddr_nl *)message->msg_name)->nl_family = AF_NETLINK;
		message->msg_namelen = sizeof(struct sockaddr_nl);
	}
	message->msg_flags = 0;
	message->msg_controllen = 0;
	if (message->msg_iovlen && message->msg_iov[0].iov_len)
		memcpy(message->msg_iov[0].iov_base, &queue[first],
		       message->msg_iov[0].iov_len < size ? message->msg_iov[0].iov_len : size);
	if (!(flags & MSG_PEEK) && ++first == behind)
		first = behind = 0;
	return (ssize_t)size;
}
