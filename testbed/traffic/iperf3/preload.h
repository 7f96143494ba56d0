/* What the libraries preloaded into iperf3 share. */
#pragma once

#include <sys/types.h>

/*
 * Several system calls by one, on the guest's kernel (kernel/patches/0022): it takes an array of
 * struct batched_call and its length, and returns how many calls it made.
 */
#define BATCHED_CALLS 4096

struct batched_call {
	long number;
	long arguments[6];
	long least, most; /* the series goes on after results in this range only */
	long result;
};

extern int idle_since_select; /* nothing was read or written since the last select() */

ssize_t write_if_room(int fd, const void *data, size_t size);
