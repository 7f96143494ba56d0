/* The sockets of programs, which know nothing of it. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runner.h"

#define NAME_BYTES 16 /* TCP_CA_NAME_MAX */

/* The port of a socket's end; 0 of what is no socket of TCP's, or is not connected. */
static int port_of(int fd, int (*end)(int, struct sockaddr *, socklen_t *))
{
	struct sockaddr_storage address = { 0 };
	socklen_t size = sizeof(address), room = sizeof(int);
	int protocol = 0;

	if (getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &room) || protocol != IPPROTO_TCP ||
	    end(fd, (struct sockaddr *)&address, &size))
		return 0;
	return ntohs(address.ss_family == AF_INET6 ?
			     ((struct sockaddr_in6 *)&address)->sin6_port :
			     ((struct sockaddr_in *)&address)->sin_port);
}

/* A copy of a process's descriptor of the connection between two ports; -1: it has none. */
static int copied_socket(pid_t pid, int local, int remote)
{
	int process = (int)syscall(SYS_pidfd_open, pid, 0), copy = -1;
	char path[64];
	DIR *all;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	all = opendir(path);
	if (process < 0 || !all)
		fail("its program: %s", strerror(errno));
	for (struct dirent *each; copy < 0 && (each = readdir(all));) {
		copy = (int)syscall(SYS_pidfd_getfd, process, atoi(each->d_name), 0);
		if (copy >= 0 && (port_of(copy, getsockname) != local ||
				  port_of(copy, getpeername) != remote)) {
			close(copy);
			copy = -1;
		}
	}
	closedir(all);
	close(process);
	return copy;
}

static void answer_control(int fd)
{
	char name[NAME_BYTES + 1] = { 0 };
	socklen_t size = NAME_BYTES;

	if (getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &size))
		fail("%s", strerror(errno));
	answer(name, strlen(name) + 1);
}

/*
 * control ID NAME REMOTE LOCAL...: another congestion control of a program's connections from these
 * ports to that one.  Answers what the kernel called each one's until then, and calls it now, each
 * with a zero byte behind it.
 */
void set_control(struct words words)
{
	const char *wanted = words.at[2];

	if (have_ended(words.at + 1, 1))
		fail("its program has ended");
	for (int i = 4; i < words.count; i++) {
		int fd = copied_socket(pid_of(words.at[1]), (int)integer(words.at[i]),
				       (int)integer(words.at[3]));

		if (fd < 0)
			fail("port %s has no connection just then", words.at[i]);
		answer_control(fd);
		if (setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, wanted, (socklen_t)strlen(wanted)))
			fail("%s", errno == ENOENT ? "the kernel has none of that name" :
						     strerror(errno));
		answer_control(fd);
		close(fd);
	}
}
