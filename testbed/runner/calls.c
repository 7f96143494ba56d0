/* A series of system calls: made by one on the guest's kernel, and singly on another. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "calls.h"

static bool is_expected(const struct batched_call *call)
{
	return call->result >= call->least && call->result <= call->most;
}

static size_t made_singly(struct batched_call *calls, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const long *a = calls[i].arguments;

		calls[i].result = syscall(calls[i].number, a[0], a[1], a[2], a[3], a[4], a[5]);
		if (calls[i].result < 0)
			calls[i].result = -errno;
		if (!is_expected(&calls[i]))
			return i;
	}
	return count;
}

size_t make_calls(struct batched_call *calls, size_t count)
{
	static bool alone; /* this kernel makes one call at a time */
	long made = -1;

	if (!alone)
		made = syscall(BATCHED_CALLS, calls, (long)count);
	if (made < 0) {
		alone = alone || errno == ENOSYS;
		return made_singly(calls, count);
	}
	return (size_t)made - !is_expected(&calls[made - 1]);
}
