// SPDX-License-Identifier: GPL-2.0
/*
 * The guest's first process.  It is the whole of the guest's initramfs, so the
 * kernel's command line never has to say what to run: the command line is mixed
 * into the guest's random pool and must be the same for the same seed.
 *
 * It makes the host's file tree the guest's root (read-only), puts tmpfs where
 * programs write, mounts the directory in which the guest was started at
 * /run/trial, runs the command that stands there in guest.argv, writes its exit
 * status to guest.status and powers off.  See README.md for the files.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define TRIAL "/run/trial"
#define DESCRIPTORS 1024	/* see limit_descriptors() */

static char *const environment[] = {
	"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
	"HOME=/run/home",
	"LANG=C.UTF-8",
	"TZ=UTC",
	"PYTHONHASHSEED=0",		/* the order of sets is part of a trial */
	"PYTHONDONTWRITEBYTECODE=1",	/* the root is read-only */
	"SETUPTOOLS_USE_DISTUTILS=stdlib", /* its own is slow, and Mininet asks for it */
	NULL,
};

static int kmsg = -1;

static void power_off(void)
{
	sync();
	reboot(RB_POWER_OFF);
	_exit(1);
}

/* One line on the stderr of the UML process (the kernel's console is there),
 * and an exit status that is not zero. */
__attribute__((noreturn, format(printf, 1, 2)))
static void fail(const char *format, ...)
{
	char line[512] = "<3>guest: ";
	int start = strlen(line), exitcode;
	va_list args;

	va_start(args, format);
	vsnprintf(line + start, sizeof(line) - start, format, args);
	va_end(args);
	if (write(kmsg, line, strlen(line)) < 0)
		perror(line + 3);

	exitcode = open("/proc/exitcode", O_WRONLY);
	if (exitcode < 0 || write(exitcode, "1\n", 2) < 0)
		_exit(1);	/* no /proc yet: let the kernel panic */
	power_off();
	_exit(1);
}

static void mount_or_fail(const char *type, const char *target,
			  unsigned long flags, const char *options)
{
	if (mount(type, target, type, flags, options))
		fail("cannot mount %s on %s: %s", type, target, strerror(errno));
}

/* Make a directory and those above it; what exists is fine. */
static void make_directory(const char *path)
{
	char part[4096];
	char *slash = part;

	snprintf(part, sizeof(part), "%s", path);
	while ((slash = strchr(slash + 1, '/'))) {
		*slash = '\0';
		mkdir(part, 0755);
		*slash = '/';
	}
	if (mkdir(part, 0755) && errno != EEXIST)
		fail("cannot make the directory %s: %s", path, strerror(errno));
}

/* The host's tree becomes the root, as switch_root does it. */
static void enter_host_tree(void)
{
	mount_or_fail("hostfs", "/host", MS_RDONLY, "/");
	if (chdir("/host") || mount(".", "/", NULL, MS_MOVE, NULL) ||
	    chroot(".") || chdir("/"))
		fail("cannot make the host's files the root: %s", strerror(errno));
}

static void mount_system(void)
{
	mount_or_fail("proc", "/proc", 0, NULL);
	mount_or_fail("sysfs", "/sys", 0, NULL);
	mount_or_fail("devtmpfs", "/dev", 0, "mode=755");
	make_directory("/dev/pts");
	make_directory("/dev/shm");
	/* Mininet's shells run on pseudo terminals. */
	mount_or_fail("devpts", "/dev/pts", 0, "gid=5,mode=620,ptmxmode=666");
	mount_or_fail("tmpfs", "/dev/shm", 0, "mode=1777");
	mount_or_fail("tmpfs", "/tmp", 0, "mode=1777");
	mount_or_fail("tmpfs", "/run", 0, "mode=755");
	make_directory("/run/home");
	make_directory("/run/lock");
	symlink("/proc/self/fd", "/dev/fd");
	symlink("/proc/self/fd/0", "/dev/stdin");
	symlink("/proc/self/fd/1", "/dev/stdout");
	symlink("/proc/self/fd/2", "/dev/stderr");
}

/* The host resolves /proc/self/cwd for the UML process, so the path of the
 * directory is not needed here.  The dot makes it a directory, not a link. */
static void mount_trial(void)
{
	make_directory(TRIAL);
	mount_or_fail("hostfs", TRIAL, 0, "/proc/self/cwd/.");
	if (chdir(TRIAL))
		fail("cannot enter " TRIAL ": %s", strerror(errno));
}

/* guest.paths names host directories under /tmp, /run or /dev/shm that the
 * trial has to see although a tmpfs lies there, one path a line. */
static void show_hidden_paths(void)
{
	FILE *list = fopen("guest.paths", "r");
	char line[4096];

	if (!list)
		return;
	while (fgets(line, sizeof(line), list)) {
		line[strcspn(line, "\n")] = '\0';
		if (!*line)
			continue;
		make_directory(line);
		mount_or_fail("hostfs", line, MS_RDONLY, line);
	}
	fclose(list);
}

static void loopback_up(void)
{
	struct ifreq request = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &request))
		fail("cannot bring lo up: %s", strerror(errno));
	close(fd);
}

/* mnexec and many daemons close every descriptor that could be open: with the
 * usual limit of a million that takes longer than a trial. */
static void limit_descriptors(void)
{
	struct rlimit limit = { DESCRIPTORS, DESCRIPTORS };

	if (setrlimit(RLIMIT_NOFILE, &limit))
		fail("cannot limit descriptors: %s", strerror(errno));
}

static void redirect(int fd, const char *path, int flags)
{
	int file = open(path, flags, 0644);

	if (file < 0 || dup2(file, fd) < 0)
		fail("cannot open %s: %s", path, strerror(errno));
	if (file != fd)
		close(file);
}

/* guest.argv: one argument a line. */
static char **read_argv(void)
{
	static char text[65536];
	static char *argv[1024];
	int fd = open("guest.argv", O_RDONLY);
	ssize_t length;
	size_t count = 0;

	if (fd < 0)
		fail("cannot open guest.argv: %s", strerror(errno));
	length = read(fd, text, sizeof(text));
	close(fd);
	if (length <= 0 || length == sizeof(text))
		fail("guest.argv is empty or longer than 64 KB");
	text[length - (text[length - 1] == '\n')] = '\0';
	for (char *line = text; line; count++) {
		if (count == sizeof(argv) / sizeof(*argv) - 1)
			fail("guest.argv has more than 1023 lines");
		argv[count] = strsep(&line, "\n");
	}
	return argv;
}

static pid_t start(char **argv)
{
	pid_t pid = fork();

	if (pid < 0)
		fail("cannot fork: %s", strerror(errno));
	if (pid)
		return pid;
	setsid();
	environ = (char **)environment;
	execvp(argv[0], argv);
	fprintf(stderr, "guest: cannot run %s: %s\n", argv[0], strerror(errno));
	_exit(127);
}

/* The child's status as a shell has it; orphans are reaped on the way. */
static int wait_for(pid_t child)
{
	int status;
	pid_t pid;

	while ((pid = wait(&status)) != child)
		if (pid < 0 && errno != EINTR)
			fail("lost the trial's process: %s", strerror(errno));
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void write_status(int status)
{
	FILE *file = fopen("guest.status", "w");

	if (!file || fprintf(file, "%d\n", status) < 0 || fclose(file))
		fail("cannot write guest.status: %s", strerror(errno));
}

int main(void)
{
	int status;

	kmsg = open("/dev/kmsg", O_WRONLY | O_CLOEXEC);
	umask(022);
	enter_host_tree();
	mount_system();
	mount_trial();
	show_hidden_paths();
	loopback_up();
	sethostname("guest", 5);
	limit_descriptors();
	redirect(0, "/dev/null", O_RDONLY);
	redirect(1, "guest.out", O_WRONLY | O_CREAT | O_TRUNC);
	redirect(2, "guest.err", O_WRONLY | O_CREAT | O_TRUNC);

	status = wait_for(start(read_argv()));

	/* What still runs writes its last data before the status says "done". */
	kill(-1, SIGKILL);
	while (wait(NULL) > 0 || errno == EINTR)
		;
	sync();
	write_status(status);
	power_off();
}
