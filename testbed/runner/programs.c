/* Programs: started in their nodes, watched, ended. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <net/if.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "runner.h"

#define RUNNER "runner" /* itself, where a program is named */
#define LOOK_NS 1000000 /* between two looks whether a program is ready */

static struct program {
	const char *id;
	pid_t pid;
	volatile sig_atomic_t ended;
	int status;
	int64_t ended_ns;
	bool was_ended; /* by the programme */
} *programs;
static size_t program_count;

static char **environment;
static int environment_count;

static void reap(int number)
{
	int status, saved = errno;
	pid_t pid;

	(void)number;
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		for (size_t i = 0; i < program_count; i++)
			if (programs[i].pid == pid && !programs[i].ended) {
				programs[i].status = status;
				programs[i].ended_ns = now_ns();
				programs[i].ended = 1;
			}
	errno = saved;
}

void watch_children(void)
{
	struct sigaction action = { .sa_handler = reap };

	sigaction(SIGCHLD, &action, NULL);
}

void hold_children(bool hold)
{
	sigset_t children;

	sigemptyset(&children);
	sigaddset(&children, SIGCHLD);
	sigprocmask(hold ? SIG_BLOCK : SIG_UNBLOCK, &children, NULL);
}

static struct program *program_of(const char *id)
{
	for (size_t i = program_count; i--;)
		if (!strcmp(programs[i].id, id))
			return &programs[i];
	fail("no program %s was started", id);
}

pid_t pid_of(const char *id)
{
	if (!strcmp(id, RUNNER))
		return getpid();
	return program_of(id)->pid;
}

/* environment [NAME=VALUE]...: of all programs that are started from now on. */
void set_environment(struct words words)
{
	environment_count = 0;
	for (int i = 1; i < words.count; i++) {
		environment = grown(environment, (size_t)environment_count, sizeof(char *));
		environment[environment_count++] = words.at[i];
	}
}

/* The environment and more; the words live as long as the runner. */
char **environment_with(char **more, int count)
{
	char **all = calloc((size_t)(environment_count + count + 1), sizeof(char *));
	int used = count;

	if (!all)
		fail("out of memory");
	if (count)
		memcpy(all, more, (size_t)count * sizeof(char *));
	for (int i = 0; i < environment_count; i++) {
		size_t name = strcspn(environment[i], "=") + 1;
		int n = 0;

		/* a name once: of two values some programs take the first, some the last */
		while (n < count && strncmp(more[n], environment[i], name))
			n++;
		if (n == count)
			all[used++] = environment[i];
	}
	return all;
}

int opened(const char *path, int flags)
{
	int fd = open(path, flags | O_CLOEXEC, 0644);

	if (fd < 0)
		fail("%s: %s", path, strerror(errno));
	return fd;
}

struct launch {
	char **argv, **environment;
	int input, output, errors;
	const char *folder; /* NULL: the runner's */
	uid_t user;	    /* 0: the runner's */
	const char *groups; /* of the user, between commas, the main one first */
};

static bool has_become(const struct launch *launch)
{
	gid_t groups[64];
	size_t count = 0;
	char *end = (char *)launch->groups;

	do
		groups[count++] = (gid_t)strtoul(end, &end, 10);
	while (*end++ == ',' && count < LENGTH(groups));
	return !setgroups(count, groups) && !setgid(groups[0]) && !setuid(launch->user);
}

__attribute__((noreturn)) static void become(const struct launch *launch, pid_t runner)
{
	sigset_t none;

	setsid();
	if (dup2(launch->input, 0) < 0 || dup2(launch->output, 1) < 0 ||
	    dup2(launch->errors, 2) < 0)
		_exit(126);
	if (launch->folder && chdir(launch->folder)) {
		dprintf(2, "%s: %s\n", launch->folder, strerror(errno));
		_exit(126);
	}
	if (launch->user && !has_become(launch)) {
		dprintf(2, "cannot become user %u: %s\n", launch->user, strerror(errno));
		_exit(126);
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* behind setuid(), which would undo it */
	if (getppid() != runner)
		_exit(126);
	signal(SIGTERM, SIG_DFL);
	signal(SIGINT, SIG_DFL);
	signal(SIGCHLD, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	execvpe(launch->argv[0], launch->argv, launch->environment);
	dprintf(2, "%s: %s\n", launch->argv[0], strerror(errno));
	_exit(127);
}

void add_program(const char *id, pid_t pid)
{
	programs = grown(programs, program_count, sizeof(*programs));
	programs[program_count++] = (struct program){ .id = id, .pid = pid };
}

static struct program *launched(const char *id, const char *node, const struct launch *launch)
{
	pid_t runner = getpid(), pid;

	enter(node);
	hold_children(true); /* it is to be known before it can have ended */
	pid = fork();
	if (!pid)
		become(launch, runner);
	if (pid < 0)
		fail("cannot fork: %s", strerror(errno));
	add_program(id, pid);
	hold_children(false);
	return &programs[program_count - 1];
}

static char **terminated(char **words, int count)
{
	char **all = calloc((size_t)count + 1, sizeof(char *));

	if (!all)
		fail("out of memory");
	for (int i = 0; i < count; i++)
		all[i] = with_pids(words[i]);
	return all;
}

/* Wait for its end; false if that takes longer than this. */
static bool ends_within(struct program *program, int64_t patience_ns)
{
	int64_t until = now_ns() + patience_ns;
	sigset_t children;

	hold_children(true);
	sigemptyset(&children);
	sigaddset(&children, SIGCHLD);
	while (!program->ended) {
		int64_t left = until - now_ns();
		struct timespec wait = { left / NS_PER_S, left % NS_PER_S };

		if (left <= 0)
			break;
		if (sigtimedwait(&children, NULL, &wait) == SIGCHLD)
			reap(SIGCHLD);
	}
	hold_children(false);
	return program->ended;
}

static int exit_status(const struct program *program)
{
	return WIFEXITED(program->status) ? WEXITSTATUS(program->status) :
					    -WTERMSIG(program->status);
}

/*
 * start ID NODE STDOUT STDERR FOLDER UID GROUPS NUMBER [NAME=VALUE]... ARGV...: NUMBER counts what is
 * added to the environment; an empty FOLDER is the runner's; UID 0 its user.
 */
void start_program(struct words words)
{
	int more = (int)integer(words.at[8]);
	struct launch launch = {
		.argv = terminated(words.at + 9 + more, words.count - 9 - more),
		.environment = environment_with(words.at + 9, more),
		.input = opened("/dev/null", O_RDONLY),
		.output = opened(words.at[3], O_WRONLY | O_CREAT | O_TRUNC),
		.errors = opened(words.at[4], O_WRONLY | O_CREAT | O_TRUNC),
		.folder = *words.at[5] ? words.at[5] : NULL,
		.user = (uid_t)integer(words.at[6]),
		.groups = words.at[7],
	};

	launched(words.at[1], words.at[2], &launch);
	close(launch.input);
	close(launch.output);
	close(launch.errors);
}

/* Start a program in the runner's own node, without input and output. */
void start_silently(const char *id, char **argv, int count, char **variables, int number)
{
	int nothing = opened("/dev/null", O_RDWR);
	struct launch launch = {
		.argv = terminated(argv, count),
		.environment = environment_with(variables, number),
		.input = nothing,
		.output = nothing,
		.errors = nothing,
	};

	launched(id, HOME, &launch);
	close(nothing);
}

static int memory(const char *name, const char *text)
{
	int fd = memfd_create(name, MFD_CLOEXEC);
	size_t size = strlen(text);

	if (fd < 0 || write(fd, text, size) != (ssize_t)size || lseek(fd, 0, SEEK_SET))
		fail("memory for a program's output: %s", strerror(errno));
	return fd;
}

/*
 * run NODE TRIES STDIN ARGV...: run a program to its end, again if it fails, so many times at most.
 * Answers its status, the size of its output, its output and its errors; it is a failure if all
 * tries fail, but for TRIES of 0: one, which may fail.
 */
void run_program(struct words words)
{
	int tries = (int)integer(words.at[2]);
	char *input = with_pids(words.at[3]);
	struct launch launch = {
		.argv = terminated(words.at + 4, words.count - 4),
		.environment = environment_with(NULL, 0),
		.input = memory("input", input),
		.output = memory("output", ""),
		.errors = memory("errors", ""),
	};
	int32_t head[2];

	for (int left = tries; ; left--) {
		struct program *program = launched("", words.at[1], &launch);

		while (!ends_within(program, NS_PER_S))
			;
		head[0] = exit_status(program);
		program_count--; /* it is the last one */
		if (!head[0] || left <= 1)
			break;
		lseek(launch.input, 0, SEEK_SET);
	}
	head[1] = (int32_t)lseek(launch.output, 0, SEEK_END);
	answer(head, sizeof(head));
	lseek(launch.output, 0, SEEK_SET);
	answer_file(launch.output);
	lseek(launch.errors, 0, SEEK_SET);
	answer_file(launch.errors);
	close(launch.input);
	close(launch.output);
	close(launch.errors);
	free(launch.environment);
	free(launch.argv);
	free(input);
	if (head[0] && tries)
		fail("exit status %d", head[0]);
}

static bool says(const char *path, const char *text)
{
	char content[65536];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t size = fd < 0 ? 0 : read(fd, content, sizeof(content) - 1);

	if (fd >= 0)
		close(fd);
	content[size > 0 ? size : 0] = '\0';
	return strstr(content, text);
}

static bool is_ready(struct words words)
{
	const char *what = words.at[3];

	if (!strcmp(what, "listens"))
		return listens(words.at[4], (int)integer(words.at[5]));
	if (!strcmp(what, "says"))
		return says(words.at[4], words.at[5]);
	if (!strcmp(what, "exists"))
		return !access(words.at[4], F_OK);
	if (!strcmp(what, "interface")) {
		enter("-");
		return if_nametoindex(words.at[4]);
	}
	fail("await: %s what?", what);
}

/*
 * await ID PATIENCE listens NODE PORT | says FILE TEXT | exists FILE | interface NAME: look every
 * millisecond until that is so; it is a failure if the program ends before, or it takes too long.
 */
void await_program(struct words words)
{
	struct program *program = program_of(words.at[1]);
	int64_t until = now_ns() + integer(words.at[2]);

	while (!is_ready(words)) {
		if (program->ended)
			fail("ended with status %d", exit_status(program));
		if (now_ns() > until)
			fail("is not ready");
		sleep_until(now_ns() + LOOK_NS);
	}
}

/* signal ID NUMBER: if it still runs; 0 only looks. Answers whether it did, and when that was. */
void signal_program(struct words words)
{
	struct program *program = program_of(words.at[1]);
	int64_t said[2] = { !program->ended, trial_ns(now_ns()) };

	if (!program->ended && integer(words.at[2])) {
		program->was_ended = integer(words.at[2]) != SIGUSR1; /* which says: begin */
		kill(program->pid, (int)integer(words.at[2]));
	}
	answer(said, sizeof(said));
}

/*
 * end ID SIGNAL PATIENCE alone|group: signal it if it still runs, wait, kill it if that takes too
 * long, and with it what it has started, if so said.  Answers its status, whether it was ended,
 * when it ended.
 */
void end_program(struct words words)
{
	struct program *program = program_of(words.at[1]);
	int64_t said[3];

	if (!program->ended) {
		if (integer(words.at[2])) {
			program->was_ended = true;
			kill(program->pid, (int)integer(words.at[2]));
		}
		if (!ends_within(program, integer(words.at[3]))) {
			program->was_ended = true;
			kill(-program->pid, SIGKILL);
			while (!ends_within(program, NS_PER_S))
				;
		}
	}
	if (!strcmp(words.at[4], "group"))
		kill(-program->pid, SIGKILL);
	said[0] = exit_status(program);
	said[1] = program->was_ended;
	said[2] = trial_ns(program->ended_ns);
	answer(said, sizeof(said));
}

bool have_ended(char **ids, int count)
{
	for (int i = 0; i < count; i++)
		if (!program_of(ids[i])->ended)
			return false;
	return true;
}

/* All programs end with the programme, and what they have started, be it left by one that ended. */
void kill_programs(void)
{
	for (size_t i = 0; i < program_count; i++)
		kill(-programs[i].pid, SIGKILL);
}
