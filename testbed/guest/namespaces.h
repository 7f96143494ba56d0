/* The network namespaces of the guest, and what their kernel says of them by netlink. */
#ifndef NAMESPACES_H
#define NAMESPACES_H

#include <linux/gen_stats.h>
#include <linux/rtnetlink.h>
#include <stddef.h>
#include <stdio.h>

long long monotonic_ns(void);

/* Write a space and a word, with %XX for what is no visible character. */
void write_word(FILE *lines, const char *word);

/* Enter a network namespace by its file, and say whether that was possible; go back to ours. */
int enter_namespace(const char *path);
void leave_namespace(void);

typedef void visit(const char *path, unsigned long inode, const char *label);

/* Visit each namespace that a process is in or that has a name; a label of "-" is none. */
void visit_namespaces(visit *visit);

typedef void write_answer(const struct nlmsghdr *message);

/* Hand on each answer of the kernel to a request, of routing's or of another protocol. */
void dump_routing(int type, write_answer *write_one);
void dump(int protocol, const void *request, size_t size, write_answer *write_one);

/* Return an attribute, and a number in one; NULL and 0 if it is missing. */
const struct rtattr *attribute(const struct rtattr *first, int length, int type);
unsigned number_of(const struct rtattr *first, int length, int type);

/* A queue discipline with what passed it and what waits there. */
struct queue {
	const char *kind;
	struct gnet_stats_basic passed;
	struct gnet_stats_queue waiting;
};

/* Read the queue discipline that an answer is about, and say whether it has counters. */
int read_queue(const struct nlmsghdr *message, struct queue *queue);

#endif
