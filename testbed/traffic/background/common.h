/* What both ends of the background traffic share; main.c tells what it is. */
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
#define REQUEST_BYTES	64	/* a packet from the client: how many bytes it wants, and padding */
#define ENDLESS		UINT64_MAX
#define EVENTS		256	/* taken at once */

extern int poller;		/* epoll's */
extern int signals;		/* readable when we are to end */

void die(const char *what) __attribute__((noreturn));
int64_t now_ns(void);
void watch(int fd, uint32_t events, void *who);
void set(int fd, int level, int option, int value);
int new_socket(int mss);

int serve(char **words);
int fetch(char **words);
