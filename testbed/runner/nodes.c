/* Nodes: network namespaces by name, which vanish with the runner. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "runner.h"

static struct node {
	const char *name;
	int fd;
} *nodes;
static size_t node_count;
static int inside = -1; /* the descriptor of the namespace that the runner is in */

static int open_namespace(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		fail("%s: %s", path, strerror(errno));
	return fd;
}

static void add_node(const char *name, int fd)
{
	nodes = grown(nodes, node_count, sizeof(*nodes));
	nodes[node_count++] = (struct node){ name, fd };
}

static void enter_namespace(int fd)
{
	if (fd == inside)
		return;
	if (setns(fd, CLONE_NEWNET))
		fail("cannot enter a namespace: %s", strerror(errno));
	inside = fd;
}

/* node NAME [PATH]: make a namespace, or take the one that is there. */
void make_node(struct words words)
{
	if (!node_count) {
		add_node(HOME, open_namespace("/proc/self/ns/net"));
		inside = nodes[0].fd;
	}
	if (words.count > 2) {
		add_node(words.at[1], open_namespace(words.at[2]));
		return;
	}
	if (unshare(CLONE_NEWNET))
		fail("cannot make the node %s: %s", words.at[1], strerror(errno));
	add_node(words.at[1], open_namespace("/proc/self/ns/net"));
	inside = nodes[node_count - 1].fd;
	enter(HOME);
}

/* Move the runner into a node; what it starts or opens there stays there. */
void enter(const char *name)
{
	for (size_t i = 0; i < node_count; i++)
		if (!strcmp(nodes[i].name, name)) {
			enter_namespace(nodes[i].fd);
			return;
		}
	if (strcmp(name, HOME)) /* before the first node there is no other place */
		fail("there is no node %s", name);
}

/* The descriptor of a node's namespace, for messages that move interfaces there. */
int node_descriptor(const char *name)
{
	for (size_t i = 0; i < node_count; i++)
		if (!strcmp(nodes[i].name, name))
			return nodes[i].fd;
	fail("there is no node %s", name);
}
