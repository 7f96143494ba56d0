/*
 * Runs one command in the guest as on a machine of its own, as root: any file can be changed, and
 * every change but those in its folder is gone when the guest ends.
 *
 *     testbed-machine FOLDER PROGRAMS BEGIN_NS LIMIT_S PROCESSES SAMPLES_MS [terminal|unobserved]
 *
 *   FOLDER     the command's working folder
 *   PROGRAMS   a folder of programs that come before the machine's own: sudo, service, …; the one
 *              called `prepare` runs first
 *   BEGIN_NS   the instant of the wall clock at which the command starts
 *   LIMIT_S    the time after which it is ended
 *   PROCESSES  how many processes and threads it may have at once: with one more it is ended
 *   SAMPLES_MS how often queues and sockets are sampled; 0: never
 *   terminal   the command is at the guest's console
 *   unobserved what it sets up is not written down
 *
 * Its own working directory is the trial's.  There it reads
 *
 *   guest.program      the command, each word followed by a NUL
 *   guest.environment  its environment, likewise
 *   guest.stdin        its input; without this file it is empty
 *   guest.judge        a command, with the path of its program, that judges what is observed
 *                      (judge.c): the run ends at a finding; without this file nothing does
 *   guest.root         the folder that is its root, in place of the host's; without this file it is that
 *   guest.paths        folders below /tmp, /run or /dev/shm that the command has to see (init.c)
 *
 * and writes
 *
 *   files/             what the command wrote or changed in its folder, as far as it is plain files
 *   guest.report       how it went: lines of a name and a number
 *   guest.notes        lines for whoever started it
 *   guest.observed     what the command set up (observer.c); not at a terminal
 *   guest.sampled      samples of queues and sockets (sampler.c), with SAMPLES_MS
 *
 * The root is an overlay of the host's files and a tmpfs; the folder is another one, so that what was
 * written there is known.
 */
#define _GNU_SOURCE
#include "judge.h"
#include "namespaces.h"
#include "observer.h"
#include "sampler.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <linux/capability.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CANNOT 125
#define OVER "/run/machine" /* what makes up the new root */
#define ROOT OVER "/root"
#define CONTROLLERS "/sys/fs/cgroup"
#define GROUP CONTROLLERS "/pids/program" /* the command's, which limits its processes */
#define MAX_THREADS "3500" /* of the guest: more than PROCESSES, the kernel's and ours */
#define PROGRAMS "/run/programs" /* the first folder of the command's PATH */
#define NOTES "/run/notes"	 /* lines that they leave for whoever started the guest */
#define MAX_NOTES 65536
#define BEGIN 4097 /* the guest's system call, of kernel/patches: clock, timers and dice begin */
#define GRACE_S 1  /* for what the command has left running, from SIGTERM to SIGKILL */
#define NS 1000000000LL
#define MAX_FILE (1LL << 30)

/* Why a command is ended that has not ended by itself. */
enum { TIME_IS_UP = -1, TOO_MANY_PROCESSES = -2, FAULT_FOUND = -3 };

static int trial;	 /* the trial's folder */
static int refused = -1; /* has POLLPRI from when the command was first refused a process */
static int observer = -1; /* of what the command executes */

#define REMEMBERED 256 /* files that are brought back before the kernel forgets them */

struct brought {
	long long files, bytes, skipped;
};

__attribute__((noreturn, format(printf, 1, 2))) static void fail(const char *format, ...)
{
	int why = errno;
	va_list args;

	fputs("testbed-machine: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr, ": %s\n", strerror(why));
	exit(CANNOT);
}

static void attach(const char *source, const char *target, const char *type, unsigned long flags,
		   const char *options)
{
	if (mount(source, target, type, flags, options))
		fail("cannot mount %s", target);
}

/* Makes a folder and those above it. */
static void make_folder(const char *path)
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
		fail("cannot make %s", path);
}

/* Goes where the root's files are. */
static void enter_lower(void)
{
	char lower[4096] = "/";
	int file = openat(trial, "guest.root", O_RDONLY | O_CLOEXEC);
	ssize_t length = file < 0 ? 0 : read(file, lower, sizeof(lower) - 1);

	if (length > 0)
		lower[length] = '\0';
	close(file);
	if (chdir(lower))
		fail("%s", lower);
}

/* The paths of overlays' options are relative or ours: a comma or a colon in one would end it. */
static void make_root(void)
{
	static const char *const parts[] = { "root", "upper", "work", "folder", "folder-work",
					     "programs", "programs-work", "tmp", "run", "shm" };
	size_t part;

	make_folder(OVER);
	attach("tmpfs", OVER, "tmpfs", 0, "mode=755,size=75%");
	if (chdir(OVER))
		fail(OVER);
	for (part = 0; part < sizeof(parts) / sizeof(*parts); part++)
		make_folder(parts[part]);
	enter_lower();
	attach("overlay", ROOT, "overlay", MS_NOSUID,
	       "lowerdir=.,upperdir=" OVER "/upper,workdir=" OVER "/work");
}

/* A fresh folder, open to all if it is for what is temporary. */
static void mount_fresh(const char *source, const char *target, mode_t mode)
{
	if (chmod(source, mode))
		fail("cannot open %s", source);
	attach(source, target, NULL, MS_BIND, NULL);
}

/*
 * The guest's own file systems, which init.c has mounted, and fresh ones.  All that can be filled
 * share one size, which leaves memory for programs: a guest that has none left reads their files
 * again and again and comes to no end.
 */
static void mount_system(void)
{
	attach(NULL, "/dev", NULL, MS_REMOUNT, "mode=755,size=1M");
	attach("/proc", ROOT "/proc", NULL, MS_BIND | MS_REC, NULL);
	attach("/sys", ROOT "/sys", NULL, MS_BIND | MS_REC, NULL);
	attach("/dev", ROOT "/dev", NULL, MS_BIND | MS_REC, NULL);
	mount_fresh(OVER "/shm", ROOT "/dev/shm", 01777);
	mount_fresh(OVER "/tmp", ROOT "/tmp", 01777);
	mount_fresh(OVER "/run", ROOT "/run", 0755);
	make_folder(ROOT "/run/lock");
	mount("debugfs", ROOT "/sys/kernel/debug", "debugfs", 0, NULL);
	mount("tracefs", ROOT "/sys/kernel/tracing", "tracefs", 0, NULL);
}

/* Those of the first version one by one, as Mininet wants them, and the second version beside them. */
static void mount_cgroups(void)
{
	static const char *const controllers[] = { "cpu", "cpuacct", "net_cls", "net_prio",
						   "freezer", "pids", "memory", "devices" };
	char path[256];
	size_t each;

	attach("cgroup", ROOT CONTROLLERS, "tmpfs", 0, "mode=755,size=1M");
	for (each = 0; each < sizeof(controllers) / sizeof(*controllers); each++) {
		snprintf(path, sizeof(path), ROOT CONTROLLERS "/%s", controllers[each]);
		make_folder(path);
		if (mount("cgroup", path, "cgroup", 0, controllers[each]))
			rmdir(path);
	}
	make_folder(ROOT CONTROLLERS "/unified");
	mount("cgroup2", ROOT CONTROLLERS "/unified", "cgroup2", 0, NULL);
}

static void set(const char *path, const char *value)
{
	int file = open(path, O_WRONLY | O_CLOEXEC);

	if (file < 0 || write(file, value, strlen(value)) < 0)
		fail("cannot set %s", path);
	close(file);
}

/* A fork bomb takes no virtual time, so that no limit of time ends it. */
static void limit_processes(const char *most)
{
	char text[256];

	if (mkdir(ROOT GROUP, 0755))
		return; /* a kernel without this controller */
	set(ROOT GROUP "/pids.max", most);
	refused = open(ROOT GROUP "/pids.events", O_RDONLY | O_CLOEXEC);
	if (refused < 0 || read(refused, text, sizeof(text)) < 0) /* news are what comes now */
		fail("cannot watch the number of processes");
}

static void show_hidden_paths(void)
{
	FILE *list = fdopen(openat(trial, "guest.paths", O_RDONLY | O_CLOEXEC), "r");
	char line[4000], target[4096];

	if (!list)
		return;
	while (fgets(line, sizeof(line), list)) {
		line[strcspn(line, "\n")] = '\0';
		if (!*line)
			continue;
		snprintf(target, sizeof(target), ROOT "%s", line);
		make_folder(target);
		attach(line, target, NULL, MS_BIND, NULL);
	}
	fclose(list);
}

/* Puts a folder of the host's into the new root; what is changed there is in a folder of ours. */
static void mount_folder(const char *folder, const char *where, const char *options)
{
	char target[4096];

	snprintf(target, sizeof(target), ROOT "%s", where);
	make_folder(target);
	if (chdir(folder))
		fail("%s", folder);
	attach("overlay", target, "overlay", MS_NOSUID, options);
}

/* By pivot_root: in a root that is only changed, no user namespace can be made. */
static void enter_root(void)
{
	if (chdir(ROOT) || syscall(SYS_pivot_root, ".", ".") || umount2(".", MNT_DETACH) ||
	    chdir("/"))
		fail("cannot enter the new root");
}

/* Room for us beside a fork bomb, and output that reaches the host while the command runs. */
static void set_kernel(void)
{
	set("/proc/sys/kernel/threads-max", MAX_THREADS);
	set("/proc/sys/vm/dirty_expire_centisecs", "50");
	set("/proc/sys/vm/dirty_writeback_centisecs", "50");
	set("/proc/self/oom_score_adj", "-1000");
}

/* Returns the text of a file, with a NUL behind it. */
static char *read_all(const char *name, size_t *length)
{
	int file = openat(trial, name, O_RDONLY | O_CLOEXEC);
	struct stat about;
	ssize_t done;
	char *text;

	if (file < 0 || fstat(file, &about))
		fail("cannot open %s", name);
	text = malloc(about.st_size + 1);
	for (*length = 0; (off_t)*length < about.st_size; *length += done) {
		done = read(file, text + *length, about.st_size - *length);
		if (done <= 0)
			fail("cannot read %s", name);
	}
	text[*length] = '\0';
	close(file);
	return text;
}

/* Returns the words of a file, and NULL behind them. */
static char **read_words(const char *name)
{
	size_t length, place, count = 0;
	char *text = read_all(name, &length);
	char **words;

	for (place = 0; place < length; place++)
		count += !text[place];
	words = calloc(count + 1, sizeof(*words));
	for (place = count = 0; place < length; place += strlen(text + place) + 1)
		words[count++] = text + place;
	return words;
}

/* What the programs change of the machine's files, before anything runs. */
static void prepare(void)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		execl(PROGRAMS "/prepare", "prepare", NULL);
		fail(PROGRAMS "/prepare");
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
		fail("the machine cannot be prepared");
}

/* In real time there is no beginning. */
static void begin(long long instant_ns)
{
	if (syscall(BEGIN, instant_ns, 1) && errno != ENOSYS)
		fail("cannot begin");
}

static void open_input(int at_terminal)
{
	int input;

	/* Elsewhere no leader of a session, which would get the first terminal that it opens. */
	if (at_terminal ? setsid() < 0 : setpgid(0, 0))
		fail("cannot start a session");
	if (!at_terminal) {
		input = openat(trial, "guest.stdin", O_RDONLY);
		if (input >= 0 && dup2(input, 0) < 0)
			fail("cannot open the input");
		return;
	}
	input = open("/dev/tty0", O_RDWR);
	if (input < 0 || ioctl(input, TIOCSCTTY, 0) || dup2(input, 0) < 0 || dup2(input, 1) < 0 ||
	    dup2(input, 2) < 0)
		fail("cannot open the terminal");
}

static void block_child_signal(int how)
{
	sigset_t ended;

	sigemptyset(&ended);
	sigaddset(&ended, SIGCHLD);
	sigprocmask(how, &ended, NULL);
}

/* The command's first process filters itself, tells us its filter's descriptor, and waits for us. */
static void let_observe(int ours)
{
	int filter = filter_executions();

	if (write(ours, &filter, sizeof(filter)) != sizeof(filter) || read(ours, &filter, 1) != 1)
		fail("cannot be observed");
}

static void begin_to_observe(pid_t pid, int its)
{
	int filter;

	if (read(its, &filter, sizeof(filter)) == sizeof(filter) && filter >= 0)
		observer = observe(pid, filter, trial);
	if (write(its, "", 1) != 1)
		fail("cannot observe");
}

static pid_t start(const char *folder, int at_terminal, int observed)
{
	char **program = read_words("guest.program"), **environment = read_words("guest.environment");
	int ends[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) || (pid = fork()) < 0)
		fail("cannot fork");
	close(ends[pid > 0]);
	if (pid) {
		if (observed)
			begin_to_observe(pid, ends[0]);
		close(ends[0]);
		return pid;
	}
	set("/proc/self/oom_score_adj", "0");
	if (refused >= 0)
		set(GROUP "/cgroup.procs", "0");
	block_child_signal(SIG_UNBLOCK);
	open_input(at_terminal);
	if (chdir(folder))
		fail("%s", folder);
	if (observed)
		let_observe(ends[1]);
	/* after reboot(2) the guest would begin again, and so would the command */
	if (prctl(PR_CAPBSET_DROP, CAP_SYS_BOOT, 0, 0, 0))
		fail("cannot prevent a restart");
	environ = environment;
	execvp(program[0], program);
	fprintf(stderr, "testbed: %s: %s\n", program[0], strerror(errno));
	_exit(errno == ENOENT ? 127 : 126);
}

/* Returns the command's status as a shell has it, or why it has to be ended. */
static int wait_for(pid_t child, long long limit_ns, long long samples_ns)
{
	long long started_ns = monotonic_ns(), end_ns = started_ns + limit_ns;
	long long sample_ns = samples_ns ? started_ns : end_ns; /* the next one's time */
	int status;
	sigset_t ended;
	struct signalfd_siginfo about;
	struct pollfd news[] = { { -1, POLLIN, 0 }, { refused, POLLPRI, 0 }, { observer, POLLIN, 0 } };

	sigemptyset(&ended);
	sigaddset(&ended, SIGCHLD);
	news[0].fd = signalfd(-1, &ended, SFD_CLOEXEC);
	while (waitpid(child, &status, WNOHANG) != child) {
		long long here_ns = monotonic_ns(), left_ns;
		struct timespec left;

		if (here_ns >= end_ns)
			return TIME_IS_UP;
		if (here_ns >= sample_ns) {
			take_sample();
			sample_ns += ((here_ns - sample_ns) / samples_ns + 1) * samples_ns;
		}
		left_ns = (sample_ns < end_ns ? sample_ns : end_ns) - monotonic_ns();
		left_ns = left_ns > 0 ? left_ns : 0;
		left = (struct timespec){ left_ns / NS, left_ns % NS };
		if (ppoll(news, 3, &left, NULL) < 0)
			fail("cannot wait");
		if (news[1].revents)
			return TOO_MANY_PROCESSES;
		if (news[2].revents & POLLIN && observe_next(observer))
			return FAULT_FOUND;
		if (news[0].revents && read(news[0].fd, &about, sizeof(about)) < 0)
			fail("cannot wait");
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Servers, captures and the like write their last data; a fork bomb gets no time for more. */
static void end_others(void)
{
	struct pollfd news[] = { { refused, POLLPRI, 0 }, { observer, POLLIN, 0 } };
	long long end_ns = monotonic_ns() + GRACE_S * NS, left_ns;

	if (kill(-1, SIGTERM))
		return;
	kill(-1, SIGCONT);
	while (!news[0].revents && (left_ns = end_ns - monotonic_ns()) > 0) {
		struct timespec left = { left_ns / NS, left_ns % NS };

		if (ppoll(news, 2, &left, NULL) < 0)
			fail("cannot wait");
		if (news[1].revents & POLLIN)
			observe_next(observer);
		else if (news[1].revents) /* nothing is left to be observed */
			news[1].fd = -1;
	}
	kill(-1, SIGKILL);
}

static void copy(int from, int to, long long size)
{
	static char block[1 << 16];
	off_t place = 0, end;
	ssize_t length, done;

	while ((place = lseek(from, place, SEEK_DATA)) >= 0) { /* holes stay holes */
		end = lseek(from, place, SEEK_HOLE);
		for (; place < end; place += length) {
			length = pread(from, block, sizeof(block), place);
			if (length <= 0)
				return;
			for (done = 0; done < length;) {
				ssize_t more = pwrite(to, block + done, length - done, place + done);

				if (more < 0)
					return;
				done += more;
			}
		}
	}
	ftruncate(to, size);
}

/* The kernel holds a descriptor of the host for each file that it remembers; a new file needs another,
 * and creating one does not make it forget (patches/0018). */
static void forget_files(void)
{
	int file = open("/proc/sys/vm/drop_caches", O_WRONLY | O_CLOEXEC);

	if (file < 0 || write(file, "2", 1) != 1) /* names and inodes */
		perror("testbed-machine: drop_caches");
	close(file);
}

/* One that did not arrive whole still counts: whoever started the guest misses it then. */
static void bring_file(int from, int to, const char *name, const struct stat *about,
		       struct brought *brought)
{
	int old, new;

	if (about->st_size > MAX_FILE) {
		brought->skipped++;
		return;
	}
	if (brought->files % REMEMBERED == 0)
		forget_files();
	old = openat(from, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	new = openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, about->st_mode & 0777 & ~022);
	if (old >= 0 && new >= 0)
		copy(old, new, about->st_size);
	brought->files++;
	brought->bytes += about->st_size;
	close(old);
	close(new);
}

/* What the folder's overlay has above the host's files. What was deleted is a device there. */
static void bring(int from, int to, struct brought *brought)
{
	DIR *entries = fdopendir(from);
	struct dirent *entry;
	struct stat about;

	while (entries && (entry = readdir(entries))) {
		const char *name = entry->d_name;

		if (!strcmp(name, ".") || !strcmp(name, "..") ||
		    fstatat(from, name, &about, AT_SYMLINK_NOFOLLOW))
			continue;
		if (S_ISREG(about.st_mode)) {
			bring_file(from, to, name, &about, brought);
		} else if (S_ISDIR(about.st_mode)) {
			int below = openat(from, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
			int new = mkdirat(to, name, 0755) ? -1 : openat(to, name, O_RDONLY | O_CLOEXEC);

			if (below < 0 || new < 0) /* too deep */
				brought->skipped++;
			else
				bring(below, new, brought);
			unlinkat(to, name, AT_REMOVEDIR); /* if it is empty */
			close(new);
		} else if (!S_ISCHR(about.st_mode) || about.st_rdev) {
			brought->skipped++;
		}
	}
	if (entries)
		closedir(entries);
}

static void bring_files(int from, struct brought *brought)
{
	int to;

	mkdirat(trial, "files", 0755);
	to = openat(trial, "files", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (to < 0)
		fail("cannot make the folder of files");
	bring(from, to, brought);
	close(to);
}

/* Leaves the note of programs/cgcreate for a limit of processor time that was made without it. */
static int note_quota(const char *path, const struct stat *about, int kind, struct FTW *place)
{
	static const char note[] = "limits of processor time mean nothing here: computing takes no time\n";
	const char *name = path + place->base;
	char limit[32] = "";
	int file;

	(void)about, (void)kind;
	if (strcmp(name, "cpu.cfs_quota_us"))
		return 0;
	file = open(path, O_RDONLY | O_CLOEXEC);
	if (file < 0 || read(file, limit, sizeof(limit) - 1) < 0)
		*limit = '\0';
	close(file);
	if (atoll(limit) <= 0) /* -1: none */
		return 0;
	file = open(NOTES, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0644);
	if (file < 0 || write(file, note, sizeof(note) - 1) < 0)
		perror("testbed-machine: " NOTES);
	close(file);
	return 1;
}

/* What is no file, or a long one, is no note of ours. */
static void bring_notes(void)
{
	static char text[MAX_NOTES];
	int from = open(NOTES, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	int to = openat(trial, "guest.notes", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	ssize_t length = from < 0 ? 0 : read(from, text, sizeof(text));

	if (to < 0 || (length > 0 && write(to, text, length) != length))
		fail("cannot write the notes");
	close(from);
	close(to);
}

/* Returns how much time the kernel has charged loops without calls for. */
static long long charged_ms(void)
{
	FILE *file = fopen("/proc/cpuinfo", "r");
	long long charged = 0;
	char line[4096];

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "charged : %lld", &charged) == 1)
			break;
	if (file)
		fclose(file);
	return charged;
}

static void report(long long took_ns, int status, const struct brought *brought)
{
	FILE *file = fdopen(openat(trial, "guest.report", O_WRONLY | O_CREAT | O_TRUNC, 0644), "w");

	if (!file)
		fail("cannot write the report");
	fprintf(file, "took_ns %lld\nat_limit %d\ntoo_many_processes %d\nat_finding %d\n", took_ns,
		status == TIME_IS_UP, status == TOO_MANY_PROCESSES, status == FAULT_FOUND);
	fprintf(file, "charged_ms %lld\n", charged_ms());
	fprintf(file, "files %lld\nbytes %lld\nskipped %lld\n", brought->files, brought->bytes,
		brought->skipped);
	if (fclose(file))
		fail("cannot write the report");
}

int main(int count, char **words)
{
	int at_terminal = count == 8 && !strcmp(words[7], "terminal"), status, folder;
	int unobserved = count == 8 && !strcmp(words[7], "unobserved");
	struct brought brought = { 0, 0, 0 };
	long long started_ns, took_ns, samples_ns;
	pid_t child;

	if (count != 7 && !at_terminal && !unobserved) {
		fputs("usage: testbed-machine FOLDER PROGRAMS BEGIN_NS LIMIT_S PROCESSES SAMPLES_MS "
		      "[terminal|unobserved]\n",
		      stderr);
		return CANNOT;
	}
	trial = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (trial < 0 || unshare(CLONE_NEWNS))
		fail("cannot begin");
	make_root();
	mount_system();
	mount_cgroups();
	limit_processes(words[5]);
	show_hidden_paths();
	mount_folder(words[1], words[1],
		     "lowerdir=.,upperdir=" OVER "/folder,workdir=" OVER "/folder-work");
	mount_folder(words[2], PROGRAMS,
		     "lowerdir=.,upperdir=" OVER "/programs,workdir=" OVER "/programs-work");
	folder = open(OVER "/folder", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	enter_root();
	set_kernel();
	if (!unobserved)
		prepare();
	if (faccessat(trial, "guest.judge", F_OK, 0) == 0)
		start_judge(read_words("guest.judge"), trial);
	block_child_signal(SIG_BLOCK);
	begin(strtoll(words[3], NULL, 10));
	started_ns = monotonic_ns();
	samples_ns = strtoll(words[6], NULL, 10) * (NS / 1000);
	if (samples_ns)
		begin_samples(trial);
	child = start(words[1], at_terminal, !at_terminal && !unobserved);
	status = wait_for(child, strtoll(words[4], NULL, 10) * NS, samples_ns);
	took_ns = monotonic_ns() - started_ns;
	end_samples();
	observe_end();
	nftw(CONTROLLERS "/cpu", note_quota, 16, FTW_PHYS);
	end_others();
	bring_files(folder, &brought);
	bring_notes();
	report(took_ns, status, &brought);
	if (status == FAULT_FOUND)
		return 3; /* as of testbed mininet --check */
	return status < 0 ? 124 : status; /* as of timeout(1) */
}
