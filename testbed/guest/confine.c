/*
 * Runs a command that may write only below the current directory: what the guest is confined by.
 *
 *     testbed-confine MEMORY COMMAND ARGUMENT...
 *
 * The guest's kernel is a program on the host, and "read-only" is only what the guest's own mount
 * table says.  So the host holds it, by namespaces of its own:
 *
 *   mounts     everything read-only, without devices and set-uid programs, but for the current
 *              directory, and an empty tmpfs on its subdirectory MEMORY, for the guest's memory
 *   Landlock   the same for named pipes, which a read-only mount lets everybody write; no signals
 *              to processes outside, where the host has that (Linux 6.12)
 *   processes  no other process can be seen, traced or signalled; all end when the first one does,
 *              and it ends when we do, so that SIGKILL leaves neither a process nor memory behind
 *   network    no interfaces, no sockets but pairs of streams
 *   users      an ordinary user needs a user namespace for all this; root drops its capabilities
 *
 * It cannot gain privileges by any program, and system calls that no guest's kernel needs are
 * refused, each with a line that names it, and so are others with arguments that reach the host
 * (docs/security.md has a table of all).  A set-uid or set-gid mode is such an argument: other
 * users of the host, for whom none of this holds, could run the file while the guest runs.
 * It stays on the processors that it was started on, and leaves no core dumps.  Its standard error
 * is a pipe to ours, a file that it could otherwise cut: the lines that name calls come last.
 *
 * Exit status: the command's, 128 + N after signal N, and 125 where the host forbids one of these.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/mount.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* <sys/mount.h> and <linux/mount.h> exclude each other in glibc 2.36 */
int mount(const char *source, const char *target, const char *type, unsigned long flags,
	  const void *data);
#define PRIVATE (1 << 18)
#define RECURSIVE 0x4000
#define BIND 0x1000
#define READ_ONLY 1
#define HARMLESS 14 /* nosuid, nodev, noexec */

#define CANNOT 125
#define NAMESPACES (CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC)
#define PROCESSES 4096
#define FCHMODAT2 452	     /* Debian 12's headers lack it */
#define NEW_NAMESPACE (0x7e020000U | CLONE_NEWTIME) /* any of clone's flags for one */

/* Those that give and take nothing, and the maker of terminals, from an instance of our own. */
static const char *const devices[][2] = {
	{ "/dev/null", "/dev/null" },	  { "/dev/zero", "/dev/zero" },
	{ "/dev/full", "/dev/full" },	  { "/dev/random", "/dev/random" },
	{ "/dev/urandom", "/dev/urandom" }, { "/dev/pts/ptmx", "/dev/ptmx" },
};
#define DEVICES (sizeof(devices) / sizeof(*devices))

static int errors = STDERR_FILENO; /* ours, when the command has got a pipe in its place */

__attribute__((noreturn, format(printf, 1, 2))) static void fail(const char *format, ...)
{
	int why = errno;
	va_list args;

	dprintf(errors, "testbed-confine: ");
	va_start(args, format);
	vdprintf(errors, format, args);
	va_end(args);
	dprintf(errors, ": %s\n", strerror(why));
	_exit(CANNOT);
}

static void write_file(const char *path, const char *text)
{
	int file = open(path, O_WRONLY | O_CLOEXEC);

	if (file < 0 || write(file, text, strlen(text)) < 0)
		fail("%s", path);
	close(file);
}

/* The same user inside as outside, and nobody else. */
static void map_user(uid_t uid, gid_t gid)
{
	char line[64];

	write_file("/proc/self/setgroups", "deny");
	snprintf(line, sizeof(line), "%u %u 1", uid, uid);
	write_file("/proc/self/uid_map", line);
	snprintf(line, sizeof(line), "%u %u 1", gid, gid);
	write_file("/proc/self/gid_map", line);
}

static void enter_namespaces(void)
{
	uid_t uid = geteuid();
	gid_t gid = getegid();

	if (uid == 0 && unshare(NAMESPACES) == 0)
		return;
	if (unshare(NAMESPACES | CLONE_NEWUSER))
		fail("the host allows no user namespaces");
	map_user(uid, gid);
}

static void attach(const char *source, const char *target, const char *type, unsigned long flags,
		   const char *options)
{
	if (mount(source, target, type, flags, options))
		fail("cannot mount %s", target);
}

static void set_flags(const char *path, unsigned long long set, unsigned long long clear,
		      unsigned int recursive)
{
	struct mount_attr change = { .attr_set = set, .attr_clr = clear };

	if (syscall(SYS_mount_setattr, AT_FDCWD, path, recursive, &change, sizeof(change)))
		fail("cannot change the flags of %s", path);
}

/* Read-only but for two places, and without any other device. */
static void limit_files(const char *memory)
{
	size_t device;
	int here;

	attach(NULL, "/", NULL, RECURSIVE | PRIVATE, NULL);
	/* by a descriptor: a folder above may be renamed meanwhile */
	here = (int)syscall(SYS_open_tree, AT_FDCWD, ".", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	if (here < 0 ||
	    syscall(SYS_move_mount, here, "", AT_FDCWD, ".", MOVE_MOUNT_F_EMPTY_PATH) ||
	    fchdir(here))
		fail("cannot mount the current directory");
	attach("tmpfs", memory, "tmpfs", 0, NULL);
	attach("devpts", "/dev/pts", "devpts", 0, "newinstance,ptmxmode=0666");
	for (device = 0; device < DEVICES; device++)
		attach(devices[device][0], devices[device][1], NULL, BIND, NULL);
	set_flags("/", MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, 0, AT_RECURSIVE);
	set_flags(".", 0, MOUNT_ATTR_RDONLY, 0);
	set_flags(memory, 0, MOUNT_ATTR_RDONLY, 0);
	for (device = 0; device < DEVICES; device++)
		set_flags(devices[device][1], 0, MOUNT_ATTR_NODEV, 0);
}

/* Root keeps what it needs to look through directories that are closed to others: it may read what
 * root may read.  Everybody else keeps nothing. */
static void drop_capabilities(void)
{
	struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct sets[2] = { { 0 } };
	int each, kept = geteuid() ? -1 : CAP_DAC_READ_SEARCH;

	for (each = 0; prctl(PR_CAPBSET_READ, each, 0, 0, 0) >= 0; each++)
		if (each != kept && prctl(PR_CAPBSET_DROP, each, 0, 0, 0))
			fail("cannot drop capability %d", each);
	if (kept >= 0)
		sets[0].permitted = sets[0].effective = 1U << kept;
	if (syscall(SYS_capset, &header, sets))
		fail("cannot drop capabilities");
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		fail("no_new_privs");
}

static void limit_resources(void)
{
	struct rlimit none = { 0, 0 }, processes;

	if (setrlimit(RLIMIT_CORE, &none) || getrlimit(RLIMIT_NPROC, &processes))
		fail("cannot limit core dumps");
	if (processes.rlim_max > PROCESSES)
		processes.rlim_max = PROCESSES;
	processes.rlim_cur = processes.rlim_max;
	if (setrlimit(RLIMIT_NPROC, &processes)) /* root is not held by it */
		fail("cannot limit processes");
}

#define WRITE_FILE (LANDLOCK_ACCESS_FS_WRITE_FILE | TRUNCATE)
#define TRUNCATE (1ULL << 14) /* Debian 12's header lacks it */
#define WRITE                                                                                      \
	(WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE |             \
	 LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_SOCK | \
	 LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_SYM | LANDLOCK_ACCESS_FS_REFER)
#define MAKE_DEVICE (LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_BLOCK)

static void allow(int rules, const char *path, unsigned long long access)
{
	struct landlock_path_beneath_attr rule = { .allowed_access = access };

	rule.parent_fd = open(path, O_PATH | O_CLOEXEC);
	if (rule.parent_fd < 0 ||
	    syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &rule, 0))
		fail("Landlock: %s", path);
	close(rule.parent_fd);
}

/* Debian 12's header has only the first; a kernel that does not know the others takes zeros. */
struct handled {
	__u64 files, network, scoped;
};
#define ABSTRACT_SOCKETS_AND_SIGNALS 3

/* Before Linux 5.19 Landlock forbids to rename from one directory to another, and is left out. */
static void limit_writes(void)
{
	long version = syscall(SYS_landlock_create_ruleset, NULL, 0,
			       LANDLOCK_CREATE_RULESET_VERSION);
	unsigned long long known = version < 3 ? ~TRUNCATE : ~0ULL;
	struct handled handled = { (WRITE | MAKE_DEVICE) & known, 0,
				   version < 6 ? 0 : ABSTRACT_SOCKETS_AND_SIGNALS };
	size_t device;
	int rules;

	if (version < 2)
		return;
	rules = (int)syscall(SYS_landlock_create_ruleset, &handled, sizeof(handled), 0);
	if (rules < 0)
		fail("Landlock");
	allow(rules, ".", WRITE & known);
	allow(rules, "/dev/pts", WRITE_FILE & known);
	for (device = 0; device < DEVICES; device++)
		allow(rules, devices[device][1], WRITE_FILE & known);
	if (syscall(SYS_landlock_restrict_self, rules, 0))
		fail("Landlock");
	close(rules);
}

/* Always allowed: those that the guest's kernel, shells and the loader were seen to use, and those
 * that other versions of the C library use in their place. */
static const int allowed[] = {
	SYS_read, SYS_write, SYS_pread64, SYS_pwrite64, SYS_readv, SYS_writev, SYS_preadv,
	SYS_pwritev, SYS_close, SYS_lseek, SYS_stat, SYS_fstat, SYS_lstat, SYS_newfstatat,
	SYS_statx, SYS_access, SYS_faccessat, SYS_faccessat2, SYS_readlink, SYS_readlinkat,
	SYS_getdents, SYS_getdents64, SYS_statfs, SYS_fstatfs, SYS_getcwd, SYS_chdir,
	SYS_fchdir, SYS_umask, SYS_mkdir, SYS_mkdirat, SYS_rmdir, SYS_unlink, SYS_unlinkat,
	SYS_rename, SYS_renameat, SYS_renameat2, SYS_link, SYS_linkat, SYS_symlink,
	SYS_symlinkat, SYS_truncate, SYS_ftruncate, SYS_fsync, SYS_fdatasync, SYS_chown,
	SYS_fchown, SYS_lchown, SYS_fchownat, SYS_utime, SYS_utimes, SYS_futimesat,
	SYS_utimensat, SYS_dup, SYS_dup2, SYS_dup3, SYS_pipe, SYS_pipe2, SYS_eventfd2,
	SYS_memfd_create, SYS_close_range, SYS_poll, SYS_ppoll, SYS_select, SYS_pselect6,
	SYS_epoll_create, SYS_epoll_create1, SYS_epoll_ctl, SYS_epoll_wait, SYS_epoll_pwait,
	SYS_epoll_pwait2, SYS_sendmsg, SYS_recvmsg, SYS_mmap, SYS_munmap, SYS_mprotect,
	SYS_mremap, SYS_madvise, SYS_brk, SYS_rt_sigaction, SYS_rt_sigprocmask,
	SYS_rt_sigreturn, SYS_rt_sigpending, SYS_rt_sigsuspend, SYS_rt_sigtimedwait,
	SYS_sigaltstack, SYS_tkill, SYS_tgkill, SYS_pause, SYS_signalfd4, SYS_fork, SYS_vfork,
	SYS_execve, SYS_execveat, SYS_wait4, SYS_waitid, SYS_exit, SYS_exit_group, SYS_ptrace,
	SYS_arch_prctl, SYS_personality, SYS_set_tid_address, SYS_set_robust_list, SYS_rseq,
	SYS_futex, SYS_restart_syscall, SYS_sched_yield, SYS_sched_getaffinity, SYS_nanosleep,
	SYS_clock_nanosleep, SYS_clock_gettime, SYS_clock_getres, SYS_gettimeofday, SYS_time,
	SYS_timer_create, SYS_timer_settime, SYS_timer_gettime, SYS_timer_getoverrun,
	SYS_timer_delete, SYS_setitimer, SYS_getitimer, SYS_timerfd_create, SYS_timerfd_settime,
	SYS_timerfd_gettime, SYS_getpid, SYS_gettid, SYS_getppid, SYS_getuid, SYS_geteuid,
	SYS_getgid, SYS_getegid, SYS_getresuid, SYS_getresgid, SYS_getgroups, SYS_setsid,
	SYS_getsid, SYS_setpgid, SYS_getpgid, SYS_getpgrp, SYS_getrlimit, SYS_setrlimit,
	SYS_prlimit64, SYS_getrusage, SYS_sysinfo, SYS_uname, SYS_getrandom,
};
#define ALLOWED (sizeof(allowed) / sizeof(*allowed))

/* The names of others, to which a program that has taken over a guest would turn. */
#define CALLS 512 /* more than Linux has */
#define NAMED(call) [SYS_##call] = #call
static const char *const names[CALLS + 1] = {
	NAMED(mount), NAMED(umount2), NAMED(pivot_root), NAMED(chroot), NAMED(move_mount),
	NAMED(open_tree), NAMED(fsopen), NAMED(fsmount), NAMED(fsconfig), NAMED(fspick),
	NAMED(mount_setattr), NAMED(setns), NAMED(unshare), NAMED(clone3),
	NAMED(open_by_handle_at), NAMED(socket), NAMED(connect), NAMED(bpf),
	NAMED(perf_event_open), NAMED(userfaultfd), NAMED(add_key), NAMED(request_key),
	NAMED(keyctl), NAMED(io_uring_setup), NAMED(io_uring_enter), NAMED(init_module),
	NAMED(finit_module), NAMED(delete_module), NAMED(kexec_load), NAMED(kexec_file_load),
	NAMED(reboot), NAMED(swapon), NAMED(swapoff), NAMED(acct), NAMED(quotactl),
	NAMED(syslog), NAMED(process_vm_readv), NAMED(process_vm_writev), NAMED(pidfd_getfd),
	NAMED(settimeofday), NAMED(clock_settime), NAMED(adjtimex), NAMED(clock_adjtime),
	NAMED(iopl), NAMED(ioperm), NAMED(sethostname), NAMED(setdomainname),
	NAMED(sched_setaffinity), NAMED(flock), NAMED(sync), NAMED(syncfs), NAMED(openat2),
	NAMED(inotify_init), NAMED(inotify_init1), NAMED(fanotify_init), NAMED(sendto),
	NAMED(recvfrom), NAMED(fcntl), NAMED(ioctl), NAMED(prctl), NAMED(socketpair),
	NAMED(seccomp),
};

/* Calls whose argument is a mode, with that argument's number. */
static const unsigned int modes[][2] = {
	{ SYS_chmod, 1 }, { SYS_fchmod, 1 }, { SYS_fchmodat, 2 }, { FCHMODAT2, 2 },
	{ SYS_creat, 1 }, { SYS_mknod, 1 },  { SYS_mknodat, 2 },
};
#define MODES (sizeof(modes) / sizeof(*modes))

/* Calls that make files only with certain flags: the number of the flags' argument, and then comes
 * the mode. */
static const unsigned int makers[][2] = { { SYS_open, 1 }, { SYS_openat, 2 } };
#define MAKERS (sizeof(makers) / sizeof(*makers))
#define MAKING (O_CREAT | (O_TMPFILE & ~O_DIRECTORY))

/* Calls that are many, by a command: its argument's number and, in a row each, those allowed. */
static const unsigned int commands[][3] = {
	{ SYS_fcntl, 1, F_GETFL }, { SYS_fcntl, 1, F_SETFL },
	{ SYS_fcntl, 1, F_GETFD }, { SYS_fcntl, 1, F_SETFD },
	{ SYS_fcntl, 1, F_DUPFD }, { SYS_fcntl, 1, F_DUPFD_CLOEXEC },
	{ SYS_fcntl, 1, F_ADD_SEALS },
	/* SIGIO: to processes of the namespace */
	{ SYS_fcntl, 1, F_SETOWN }, { SYS_fcntl, 1, F_SETSIG },
	{ SYS_ioctl, 1, TCGETS }, { SYS_ioctl, 1, TCSETS }, { SYS_ioctl, 1, TCSETSW },
	{ SYS_ioctl, 1, TCSETSF }, { SYS_ioctl, 1, TIOCGWINSZ }, { SYS_ioctl, 1, TIOCSPTLCK },
	{ SYS_ioctl, 1, (unsigned int)TIOCGPTN }, { SYS_ioctl, 1, TIOCGPTPEER },
	{ SYS_ioctl, 1, TIOCGPGRP }, { SYS_ioctl, 1, FIOCLEX }, { SYS_ioctl, 1, FIONREAD },
	{ SYS_prctl, 0, PR_SET_DUMPABLE }, { SYS_prctl, 0, PR_SET_NO_NEW_PRIVS },
	{ SYS_prctl, 0, PR_SET_NAME },
	/* filters for its own processes: without a listener */
	{ SYS_seccomp, 1, 0 }, { SYS_seccomp, 1, SECCOMP_FILTER_FLAG_TSYNC },
};
#define COMMANDS (sizeof(commands) / sizeof(*commands))

/* Calls that are allowed with this first and this second argument. */
static const unsigned int pairs[][3] = {
	{ SYS_prctl, PR_SET_PDEATHSIG, SIGKILL }, /* which could else be taken back */
	{ SYS_socketpair, AF_UNIX, SOCK_STREAM }, /* takes no address, as a datagram does */
};
#define PAIRS (sizeof(pairs) / sizeof(*pairs))

#define FIELD(name) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, name))
#define ARGUMENT(number)                                                                           \
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS,                                                         \
		 offsetof(struct seccomp_data, args) + (number) * sizeof(__u64))
#define ANSWER(value) BPF_STMT(BPF_RET | BPF_K, value)
#define UNLESS(test, value, skipped) BPF_JUMP(BPF_JMP | (test) | BPF_K, value, 0, skipped)
#define NO (SECCOMP_RET_ERRNO | EPERM)

static struct sock_filter program[512];
static size_t length;

#define ADD(...)                                                                                   \
	do {                                                                                       \
		struct sock_filter more[] = { __VA_ARGS__ };                                       \
                                                                                                   \
		if (length + sizeof(more) / sizeof(*more) > sizeof(program) / sizeof(*program))    \
			fail("the filter is too long");                                            \
		memcpy(program + length, more, sizeof(more));                                      \
		length += sizeof(more) / sizeof(*more);                                            \
	} while (0)

/* Frequent calls first.  What is always allowed the kernel remembers as such. */
static void write_program(void)
{
	size_t each;

	ADD(FIELD(arch), UNLESS(BPF_JEQ, AUDIT_ARCH_X86_64, 2), FIELD(nr),
	    BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 0, 1), /* x32 */
	    ANSWER(NO));
	for (each = 0; each < MAKERS; each++)
		ADD(UNLESS(BPF_JEQ, makers[each][0], 6), ARGUMENT(makers[each][1]),
		    UNLESS(BPF_JSET, MAKING, 3), ARGUMENT(makers[each][1] + 1),
		    UNLESS(BPF_JSET, S_ISUID | S_ISGID, 1), ANSWER(NO), ANSWER(SECCOMP_RET_ALLOW));
	for (each = 0; each < MODES; each++)
		ADD(UNLESS(BPF_JEQ, modes[each][0], 4), ARGUMENT(modes[each][1]),
		    UNLESS(BPF_JSET, S_ISUID | S_ISGID, 1), ANSWER(NO), ANSWER(SECCOMP_RET_ALLOW));
	ADD(UNLESS(BPF_JEQ, SYS_clone, 4), ARGUMENT(0), UNLESS(BPF_JSET, NEW_NAMESPACE, 1),
	    ANSWER(NO), ANSWER(SECCOMP_RET_ALLOW));
	for (each = 0; each < COMMANDS; each++)
		ADD(UNLESS(BPF_JEQ, commands[each][0], 4), ARGUMENT(commands[each][1]),
		    UNLESS(BPF_JEQ, commands[each][2], 1), ANSWER(SECCOMP_RET_ALLOW), FIELD(nr));
	for (each = 0; each < PAIRS; each++)
		ADD(UNLESS(BPF_JEQ, pairs[each][0], 6), ARGUMENT(0),
		    UNLESS(BPF_JEQ, pairs[each][1], 3), ARGUMENT(1),
		    UNLESS(BPF_JEQ, pairs[each][2], 1), ANSWER(SECCOMP_RET_ALLOW), FIELD(nr));
	/* The caller's group has processes outside of the namespace.  A kernel that panics sends
	 * itself SIGABRT until it ends, which the first process of a namespace never does of it. */
	ADD(UNLESS(BPF_JEQ, SYS_kill, 7), ARGUMENT(1), UNLESS(BPF_JEQ, SIGABRT, 1),
	    ANSWER(SECCOMP_RET_KILL_PROCESS), ARGUMENT(0), UNLESS(BPF_JEQ, 0, 1), ANSWER(NO),
	    ANSWER(SECCOMP_RET_ALLOW));
	for (each = 0; each < ALLOWED; each++)
		ADD(UNLESS(BPF_JEQ, (unsigned int)allowed[each], 1), ANSWER(SECCOMP_RET_ALLOW));
	ADD(ANSWER(SECCOMP_RET_USER_NOTIF));
}

/* Refused calls are told to the parent, who names them: we share its table of descriptors until
 * `execvp`, so that it has the listener when we have told its number.  Where a container has a
 * listener of its own, which excludes ours, they are only refused. */
static void limit_calls(int tell)
{
	struct sock_fprog filter = { .filter = program };
	int listener;

	write_program();
	filter.len = (unsigned short)length;
	listener = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
				SECCOMP_FILTER_FLAG_SPEC_ALLOW | SECCOMP_FILTER_FLAG_NEW_LISTENER,
				&filter);
	if (listener < 0) {
		program[length - 1].k = NO;
		if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW,
			    &filter))
			fail("seccomp");
	}
	if (write(tell, &listener, sizeof(listener)) != sizeof(listener))
		fail("cannot reach the parent");
}

/* The first process of the namespace: with it all others end. */
static void run(char **command, int parent, int tell)
{
	struct pollfd end = { .fd = parent, .events = POLLIN };

	attach("proc", "/proc", "proc", READ_ONLY | HARMLESS, NULL);
	drop_capabilities();
	limit_resources();
	limit_writes();
	/* after the last change of privileges, which would reset it */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0))
		fail("the parent-death signal");
	if (poll(&end, 1, 0)) /* it died before it could be heard */
		_exit(CANNOT);
	limit_calls(tell);
	execvp(command[0], command);
	fail("%s", command[0]);
}

static pid_t first; /* process of the namespace */

static void end_first(int signal)
{
	(void)signal;
	kill(first, SIGKILL);
}

static unsigned int refused[CALLS + 1]; /* numbers; those that Linux has not count as one */

static void refuse(int listener)
{
	struct seccomp_notif request = { 0 };
	struct seccomp_notif_resp answer = { .error = -EPERM };
	unsigned int number;

	if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &request))
		return; /* the process is gone */
	number = (unsigned int)request.data.nr;
	refused[number < CALLS ? number : CALLS] = number;
	answer.id = request.id;
	ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
}

/* Passes on what there is of the command's errors; returns whether there was any. */
static bool pass_on(int from)
{
	char text[65536];
	ssize_t size = read(from, text, sizeof(text)), passed = 0, now;

	for (; passed < size; passed += now)
		if ((now = write(errors, text + passed, (size_t)(size - passed))) < 0)
			break; /* the disk is full */
	return size > 0;
}

/* Nothing that the command wrote stands before them in a line, or comes after them. */
static void name_refused(void)
{
	size_t each;

	for (each = 0; each <= CALLS; each++)
		if (refused[each])
			dprintf(errors, "\ntestbed-confine: refused system call %u%s%s\n",
				refused[each], names[each] ? " " : "",
				names[each] ? names[each] : "");
}

/* Answer refused calls until the first process has ended: before Linux 6.11 the listener hangs up
 * only after its end has been waited for. */
static void answer_refused(int told, int said, int ended)
{
	struct pollfd events[] = { { .fd = told, .events = POLLIN },
				   { .fd = said, .events = POLLIN },
				   { .fd = ended, .events = POLLIN } };

	while (!events[2].revents) {
		if (poll(events, 3, -1) < 0) {
			if (errno != EINTR)
				fail("cannot wait for system calls");
			continue;
		}
		if (events[1].revents)
			pass_on(said);
		if (events[0].fd == told && events[0].revents) {
			if (read(told, &events[0].fd, sizeof(int)) != sizeof(int))
				fail("the command is gone");
		} else if (events[0].revents & POLLIN) {
			refuse(events[0].fd);
		} else if (events[0].revents) { /* no process is left that could call */
			events[0].fd = -1;
		}
	}
}

static int wait_for_first(void)
{
	int status;

	while (waitpid(first, &status, 0) < 0)
		if (errno != EINTR)
			fail("lost the command");
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int main(int count, char **words)
{
	struct sigaction end = { .sa_handler = end_first };
	int tells[2], says[2], ended, here, status;

	if (count < 3) {
		fputs("usage: testbed-confine MEMORY COMMAND ARGUMENT...\n", stderr);
		return CANNOT;
	}
	enter_namespaces();
	limit_files(words[1]);
	here = (int)syscall(SYS_pidfd_open, getpid(), 0);
	if (here < 0 || pipe2(tells, O_CLOEXEC) || pipe2(says, O_CLOEXEC) ||
	    fcntl(says[0], F_SETFL, O_NONBLOCK))
		fail("a pipe");
	errors = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO);
	if (errors < 0 || dup2(says[1], STDERR_FILENO) < 0)
		fail("standard error");
	first = (pid_t)syscall(SYS_clone, CLONE_FILES | CLONE_PIDFD | SIGCHLD, NULL, &ended, NULL,
			       0);
	if (first < 0)
		fail("cannot fork");
	if (first == 0)
		run(words + 2, here, tells[1]);
	/* told to end, we end it and wait: whoever waits for us knows that nothing runs any more */
	sigaction(SIGTERM, &end, NULL);
	answer_refused(tells[0], says[0], ended);
	status = wait_for_first();
	while (pass_on(says[0]))
		;
	name_refused();
	return status;
}
