/* The trial's clock: second 0, and waiting. */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "runner.h"

#define BEGIN 4097 /* the guest's system call, of kernel/patches: clock, timers and dice begin */

/* Instructions without a sleep: some three calls each, and from 1024 on the kernel charges time. */
#define INSTRUCTIONS_AWAKE 300

static int64_t zero, shift;
static int awake; /* instructions since the last sleep */

static int64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * NS_PER_S + now.tv_nsec;
}

int64_t now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

int64_t trial_ns(int64_t monotonic_ns)
{
	return monotonic_ns - zero;
}

int64_t zero_ns(void)
{
	return zero;
}

void sleep_until(int64_t monotonic_ns)
{
	struct timespec until = { monotonic_ns / NS_PER_S, monotonic_ns % NS_PER_S };

	/* Not if it is due already: the guest's kernel sleeps for a nanosecond at least. */
	while (now_ns() < monotonic_ns) {
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
		awake = 0;
	}
}

/*
 * Sleep for a nanosecond after many instructions: in the guest, who makes more than 1024 system
 * calls without a sleep pays for each with time of the clock.
 */
void rest(void)
{
	if (++awake > INSTRUCTIONS_AWAKE)
		sleep_until(now_ns() + 1);
}

/*
 * begin NUMBER INSTANT: wait until that instant of the wall clock; in the guest what follows
 * depends on the seed and the number alone.
 */
void begin_clock(struct words words)
{
	if (syscall(BEGIN, integer(words.at[2]), integer(words.at[1])) < 0 && errno != ENOSYS)
		fail("cannot begin: %s", strerror(errno));
	awake = 0;
}

/* zero INSTANT LEAD: second 0 is that instant of the wall clock or, if it is 0, so far ahead. */
void set_zero(struct words words)
{
	int64_t epoch = integer(words.at[1]), lead = integer(words.at[2]);
	int64_t monotonic = now_ns(), real = clock_ns(CLOCK_REALTIME);

	if (!epoch)
		epoch = real + lead;
	zero = monotonic + epoch - real;
	answer(&zero, sizeof(zero));
	answer(&epoch, sizeof(epoch));
}

/* at TIME: wait until then, and sample on the way. Answers when it is. */
void wait_until(struct words words)
{
	int64_t until = zero + shift + integer(words.at[1]), now;

	sample_while_waiting(until);
	sleep_until(until);
	now = trial_ns(now_ns());
	answer(&now, sizeof(now));
}

/* What was planned for that time of the trial is due now. */
void shift_clock(int64_t planned_ns)
{
	shift = trial_ns(now_ns()) - planned_ns;
	answer(&shift, sizeof(shift));
}
