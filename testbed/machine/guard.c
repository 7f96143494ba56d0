/*
 * testbed-guard [--all] PROGRAM [ARGUMENT ...]: becomes the program, which the kernel kills when the
 * process that started it dies.
 *
 * As setpriv --pdeathsig KILL, but without libraries of its own: loading them is half of a start in
 * the guest, where it starts browsers.
 *
 * With --all it stays, and what the program has started ends with the program, sessions of its own
 * included: orphans become children of ours.  SIGTERM, also that for the death of who started us,
 * ends all.  Exit status: the program's, or 128 + N after signal N.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* Wait for a child's end, or end it when told to; return its status as waitpid has it. */
static int wait_for(pid_t child, const sigset_t *heard)
{
	int status;
	pid_t ended;

	for (;;) {
		if (sigwaitinfo(heard, NULL) == SIGTERM)
			kill(child, SIGKILL);
		while ((ended = waitpid(-1, &status, WNOHANG)) > 0)
			if (ended == child)
				return status;
	}
}

/* Kill our children; return whether there was one that we may kill. */
static bool kill_children(void)
{
	FILE *children;
	bool killed = false;
	char name[64];
	int each;

	snprintf(name, sizeof(name), "/proc/self/task/%d/children", getpid());
	children = fopen(name, "re");
	while (children && fscanf(children, "%d", &each) == 1)
		killed |= !kill(each, SIGKILL); /* it is ours until we wait for it */
	if (children)
		fclose(children);
	return killed;
}

/* Stay while a child becomes the program: return its status, or -1 in the child. */
static int hold(void)
{
	sigset_t heard, before;
	pid_t here = getpid(), child;
	int status;

	sigemptyset(&heard);
	sigaddset(&heard, SIGTERM);
	sigaddset(&heard, SIGCHLD);
	sigprocmask(SIG_BLOCK, &heard, &before);
	if (prctl(PR_SET_PDEATHSIG, SIGTERM) || prctl(PR_SET_CHILD_SUBREAPER, 1) ||
	    (child = fork()) < 0) {
		fprintf(stderr, "testbed-guard: cannot hold a program: %s\n", strerror(errno));
		return 127;
	}
	if (!child) {
		sigprocmask(SIG_SETMASK, &before, NULL);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		return getppid() == here ? -1 : 127;
	}
	status = wait_for(child, &heard);
	/* those of a child that ends become ours, so that there may be more each time */
	while (kill_children()) {
		waitpid(-1, NULL, 0);
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int main(int count, char **words)
{
	bool all = count > 2 && !strcmp(words[1], "--all");
	int status = all ? hold() : -1;

	if (status >= 0)
		return status;
	words += 1 + all;
	if (count < 2 || prctl(PR_SET_PDEATHSIG, SIGKILL)) {
		fprintf(stderr, "usage: testbed-guard [--all] PROGRAM [ARGUMENT ...]\n");
		return 2;
	}
	execvp(words[0], words);
	fprintf(stderr, "testbed-guard: %s: %s\n", words[0], strerror(errno));
	return 127;
}
