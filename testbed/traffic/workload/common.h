/* What both ends of a workload share; main.c tells what it is. */
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
#define REQUEST_BYTES	16	/* REQUEST_BYTES of transfer_streams.py: the size, and padding */
#define EVENTS		256	/* taken at once */

extern int poller;		/* epoll's */
extern int signals;		/* readable when we are to end */

void die(const char *what) __attribute__((noreturn));
int64_t now_ns(clockid_t clock);
void watch(int fd, uint32_t events, void *who);
void set(int fd, int level, int option, int value);
int new_socket(int mss);	/* negative: out of descriptors */

int serve(char **words);
int ask(char **words);
