#include "judge.h"
#include "namespaces.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define HALT 's' /* analysis/laboratory/judge.py answers this where the run has to stop */

static int judge = -1; /* a socket to the process that judges */

void start_judge(char **words, int trial)
{
	static char *environment[] = { "LANG=C.UTF-8", NULL };
	static const struct timeval patience = { 1, 0 }; /* it takes no time, unless it was stopped */
	int ends[2], lines;

	lines = openat(trial, "guest.observed", O_RDONLY | O_CREAT | O_CLOEXEC, 0644);
	if (lines < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
		return;
	if (fork() == 0) {
		if (dup2(lines, 0) == 0 && dup2(ends[0], 1) == 1)
			execve(words[0], words, environment);
		_exit(127);
	}
	close(lines);
	close(ends[0]);
	judge = ends[1];
	finds_fault(); /* once it has loaded all that it needs */
	setsockopt(judge, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
}

int is_judged(void)
{
	return judge >= 0;
}

int finds_fault(void)
{
	char answer = 0;

	if (send(judge, "", 1, MSG_NOSIGNAL) == 1 && read(judge, &answer, 1) == 1)
		return answer == HALT;
	close(judge); /* the program has ended or stopped it: judged at the end, then */
	judge = -1;
	return 0;
}
