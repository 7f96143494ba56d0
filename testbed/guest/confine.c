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
 *   processes  no other process can be seen, traced or signalled; all end when the first one does,
 *              and it ends when we do, so that SIGKILL leaves neither a process nor memory behind
 *   network    no interfaces, no sockets
 *   users      an ordinary user needs a user namespace for all this; root drops its capabilities
 *
 * It cannot gain privileges by any program, and system calls that could undo this, or that reach
 * parts of the host's kernel that no guest needs, are refused.
 *
 * Exit status: the command's, 128 + N after signal N, and 125 where the host forbids one of these.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/mount.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
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
#define NEW_NAMESPACE (0x7e020000U | CLONE_NEWTIME) /* any of clone's flags for one */

/* Those that give and take nothing, and the maker of terminals, from an instance of our own. */
static const char *const devices[][2] = {
	{ "/dev/null", "/dev/null" },	  { "/dev/zero", "/dev/zero" },
	{ "/dev/full", "/dev/full" },	  { "/dev/random", "/dev/random" },
	{ "/dev/urandom", "/dev/urandom" }, { "/dev/pts/ptmx", "/dev/ptmx" },
};
#define DEVICES (sizeof(devices) / sizeof(*devices))

__attribute__((noreturn, format(printf, 1, 2))) static void fail(const char *format, ...)
{
	int why = errno;
	va_list args;

	fputs("testbed-confine: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr, ": %s\n", strerror(why));
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
	char *here = getcwd(NULL, 0);
	size_t device;

	if (!here)
		fail("the current directory");
	attach(NULL, "/", NULL, RECURSIVE | PRIVATE, NULL);
	attach(here, here, NULL, BIND, NULL);
	if (chdir(here)) /* into what has just been mounted there */
		fail("%s", here);
	attach("tmpfs", memory, "tmpfs", 0, NULL);
	attach("devpts", "/dev/pts", "devpts", 0, "newinstance,ptmxmode=0666");
	for (device = 0; device < DEVICES; device++)
		attach(devices[device][0], devices[device][1], NULL, BIND, NULL);
	set_flags("/", MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, 0, AT_RECURSIVE);
	set_flags(here, 0, MOUNT_ATTR_RDONLY, 0);
	set_flags(memory, 0, MOUNT_ATTR_RDONLY, 0);
	for (device = 0; device < DEVICES; device++)
		set_flags(devices[device][1], 0, MOUNT_ATTR_NODEV, 0);
	free(here);
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

static const int refused[] = {
	SYS_mount,	     SYS_umount2,	SYS_pivot_root,	       SYS_chroot,
	SYS_move_mount,	     SYS_open_tree,	SYS_fsopen,	       SYS_fsmount,
	SYS_fsconfig,	     SYS_fspick,	SYS_mount_setattr,     SYS_setns,
	SYS_unshare,	     SYS_clone3,	SYS_open_by_handle_at, SYS_socket,
	SYS_connect,	     SYS_bpf,		SYS_perf_event_open,   SYS_userfaultfd,
	SYS_add_key,	     SYS_request_key,	SYS_keyctl,	       SYS_io_uring_setup,
	SYS_io_uring_enter,  SYS_init_module,	SYS_finit_module,      SYS_delete_module,
	SYS_kexec_load,	     SYS_kexec_file_load, SYS_reboot,	       SYS_swapon,
	SYS_swapoff,	     SYS_acct,		SYS_quotactl,	       SYS_syslog,
	SYS_process_vm_readv, SYS_process_vm_writev, SYS_pidfd_getfd,  SYS_settimeofday,
	SYS_clock_settime,   SYS_adjtimex,	SYS_clock_adjtime,     SYS_iopl,
	SYS_ioperm,	     SYS_sethostname,	SYS_setdomainname,
};
#define REFUSED (sizeof(refused) / sizeof(*refused))

#define FIELD(name) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, name))
#define ANSWER(value) BPF_STMT(BPF_RET | BPF_K, value)
#define NO (SECCOMP_RET_ERRNO | EPERM)

/* Every refused call is one comparison; what is always allowed the kernel remembers as such. */
static void limit_calls(void)
{
	struct sock_filter program[REFUSED * 2 + 16];
	struct sock_filter head[] = {
		FIELD(arch),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0),
		ANSWER(NO),
		FIELD(nr),
		BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 0, 1), /* x32 */
		ANSWER(NO),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 4),
		FIELD(args[0]),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, NEW_NAMESPACE, 0, 1),
		ANSWER(NO),
		ANSWER(SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = { .filter = program };
	size_t each, length = sizeof(head) / sizeof(*head);

	memcpy(program, head, sizeof(head));
	for (each = 0; each < REFUSED; each++) {
		program[length++] = (struct sock_filter)BPF_JUMP(
			BPF_JMP | BPF_JEQ | BPF_K, (unsigned int)refused[each], 0, 1);
		program[length++] = (struct sock_filter)ANSWER(NO);
	}
	program[length++] = (struct sock_filter)ANSWER(SECCOMP_RET_ALLOW);
	filter.len = (unsigned short)length;
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW, &filter))
		fail("seccomp");
}

/* The first process of the namespace: with it all others end. */
static void run(char **command, int alive)
{
	char byte;

	attach("proc", "/proc", "proc", READ_ONLY | HARMLESS, NULL);
	drop_capabilities();
	/* after the last change of privileges, which would reset it */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0))
		fail("the parent-death signal");
	if (read(alive, &byte, 1) != 1) /* the parent died before it could be heard */
		_exit(CANNOT);
	close(alive);
	limit_calls();
	execvp(command[0], command);
	fail("%s", command[0]);
}

static pid_t first; /* process of the namespace */

static void end_first(int signal)
{
	(void)signal;
	kill(first, SIGKILL);
}

/* Told to end, we end it and wait, so that whoever waits for us knows that nothing runs any more. */
static int wait_for_first(void)
{
	struct sigaction action = { .sa_handler = end_first };
	int status;

	sigaction(SIGTERM, &action, NULL);
	while (waitpid(first, &status, 0) < 0)
		if (errno != EINTR)
			fail("lost the command");
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int main(int count, char **words)
{
	int alive[2];

	if (count < 3) {
		fputs("usage: testbed-confine MEMORY COMMAND ARGUMENT...\n", stderr);
		return CANNOT;
	}
	enter_namespaces();
	limit_files(words[1]);
	if (pipe2(alive, O_CLOEXEC))
		fail("a pipe");
	first = fork();
	if (first < 0)
		fail("cannot fork");
	if (first == 0) {
		close(alive[1]);
		run(words + 2, alive[0]);
	}
	close(alive[0]);
	if (write(alive[1], "", 1) != 1)
		fail("the command is gone");
	return wait_for_first();
}
