/*
 * Two calls that packetdrill makes, as it needs them in virtual time and on older kernels.
 *
 * Before a script begins, packetdrill spins on times() until it sees ticks of the clock.  In virtual
 * time a task pays for spinning, and goes on paying in the script.  Here times() sleeps first.
 *
 * A packetdrill that is newer than the kernel ends at the first TCP_INFO, whose fields of today the
 * kernel does not all have.  Here those that are missing are zero.
 */
#define _GNU_SOURCE
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/times.h>
#include <time.h>
#include <unistd.h>

#define SLEEP_NS 100000 /* of the ten milliseconds from one tick to the next */

/* The programs that packetdrill starts are to be as they are. */
__attribute__((constructor)) static void leave_others_alone(void)
{
	unsetenv("LD_PRELOAD");
}

clock_t times(struct tms *used)
{
	struct timespec moment = { 0, SLEEP_NS };

	nanosleep(&moment, NULL);
	return syscall(SYS_times, used);
}

int getsockopt(int file, int level, int option, void *value, socklen_t *length)
{
	socklen_t asked = length ? *length : 0;
	int result = syscall(SYS_getsockopt, file, level, option, value, length);

	if (result == 0 && level == IPPROTO_TCP && option == TCP_INFO && *length < asked) {
		memset((char *)value + *length, 0, asked - *length);
		*length = asked;
	}
	return result;
}
