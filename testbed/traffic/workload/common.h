/* What both ends of a workload share; main.c describes the program. */
#pragma once
#define _GNU_SOURCE
#include <errno.h>
#include <linux/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <arpa/inet.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S	1000000000LL
#define REQUEST_BYTES	16	/* REQUEST_BYTES of wire_transfers.py: the size, and padding */
#define ENDLESS		UINT64_MAX	/* the size of a transfer without an end: -1 in the table */
#define EVENTS		256	/* of one epoll_wait */

extern int poller;		/* epoll's */
extern int signals;		/* readable once SIGTERM or SIGINT has come */

void die(const char *what) __attribute__((noreturn));
int64_t now_ns(clockid_t clock);
void watch(int fd, uint32_t events, void *who);
void set(int fd, int level, int option, int value);
int new_socket(int mss);	/* negative: out of descriptors */

int serve(char **words);
int ask(char **words);
