/* Several system calls by one, where the kernel can (kernel/patches/0022). */
#ifndef CALLS_H
#define CALLS_H

#include <stddef.h>

#include "../traffic/iperf3/preload.h"

#define ANY 0x4000000000000000 /* more than any call returns */

/* Make calls in their order, until one returns what is outside of its range; how many did not. */
size_t make_calls(struct batched_call *calls, size_t count);

#endif
