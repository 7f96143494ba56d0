/*
 * testbed-guard PROGRAM [ARGUMENT ...]: becomes the program, which the kernel kills when the process
 * that started it dies.
 *
 * As setpriv --pdeathsig KILL, but without libraries of its own: loading them is half of a start in
 * the guest, where it starts browsers.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

int main(int count, char **words)
{
	if (count < 2 || prctl(PR_SET_PDEATHSIG, SIGKILL)) {
		fprintf(stderr, "usage: testbed-guard PROGRAM [ARGUMENT ...]\n");
		return 2;
	}
	execvp(words[1], words + 1);
	fprintf(stderr, "testbed-guard: %s: %s\n", words[1], strerror(errno));
	return 127;
}
