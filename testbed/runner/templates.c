/*
 * Templates: programs that are loaded once, and copied for each start.
 *
 * What is preloaded into them makes the copies (testbed/traffic/iperf3/template.c): children of the
 * runner, with their own arguments, environment, files and node, as if they had been started by it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../traffic/iperf3/template.h"
#include "runner.h"

static struct template {
	const char *id;
	int fd;
} *templates;
static size_t template_count;

static int template_socket(const char *id)
{
	for (size_t i = 0; i < template_count; i++)
		if (!strcmp(templates[i].id, id))
			return templates[i].fd;
	fail("there is no template %s", id);
}

/* template ID NUMBER [NAME=VALUE]... ARGV...: start a program that waits to be copied. */
void start_template(struct words words)
{
	int more = (int)integer(words.at[2]), ends[2];
	char **variables = calloc((size_t)more + 1, sizeof(char *)), *variable;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) || !variables)
		fail("cannot make a template: %s", strerror(errno));
	fcntl(ends[1], F_SETFD, 0); /* it goes to the program, and to nobody else */
	if (asprintf(&variable, "TEMPLATE_SOCKET=%d", ends[1]) < 0)
		fail("out of memory");
	memcpy(variables, words.at + 3, (size_t)more * sizeof(char *));
	variables[more] = variable;
	start_silently(words.at[1], words.at + 3 + more, words.count - 3 - more, variables,
		       more + 1);
	close(ends[1]);
	templates = grown(templates, template_count, sizeof(*templates));
	templates[template_count++] = (struct template){ words.at[1], ends[0] };
}

static size_t put(char *text, size_t used, const char *word)
{
	size_t size = strlen(word) + 1;

	if (used + size > TEMPLATE_BYTES - 1)
		fail("too many words for a template");
	memcpy(text + used, word, size);
	return used + size;
}

static void request(int fd, char *text, size_t size, const int files[TEMPLATE_FILES])
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(TEMPLATE_FILES * sizeof(int))];
	} control = { .head = { CMSG_LEN(TEMPLATE_FILES * sizeof(int)), SOL_SOCKET, SCM_RIGHTS } };
	struct iovec part = { text, size };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control,
				  .msg_controllen = sizeof(control) };

	memcpy(CMSG_DATA(&control.head), files, TEMPLATE_FILES * sizeof(int));
	if (sendmsg(fd, &message, MSG_NOSIGNAL) < 0)
		fail("the template has ended: %s", strerror(errno));
}

/* copy ID TEMPLATE NODE STDOUT STDERR NUMBER [NAME=VALUE]... ARGV...: as `start`. */
void copy_template(struct words words)
{
	static char text[TEMPLATE_BYTES];
	int more = (int)integer(words.at[6]), fd = template_socket(words.at[2]);
	char **variables = environment_with(words.at + 7, more);
	int files[TEMPLATE_FILES] = {
		opened("/dev/null", O_RDONLY),
		opened(words.at[4], O_WRONLY | O_CREAT | O_TRUNC),
		opened(words.at[5], O_WRONLY | O_CREAT | O_TRUNC),
		node_descriptor(words.at[3]),
	};
	size_t size = 0;
	int32_t pid;

	for (int i = 7 + more; i < words.count; i++)
		size = put(text, size, words.at[i]);
	size = put(text, size, "");
	for (char **each = variables; *each; each++)
		size = put(text, size, *each);
	hold_children(true); /* it is to be known before it can have ended */
	request(fd, text, size, files);
	if (read(fd, &pid, sizeof(pid)) != sizeof(pid))
		fail("the template has ended");
	if (pid < 0)
		fail("cannot fork: %s", strerror(-pid));
	add_program(words.at[1], pid);
	hold_children(false);
	for (int i = 0; i < TEMPLATE_FILES - 1; i++)
		close(files[i]);
	free(variables);
}
