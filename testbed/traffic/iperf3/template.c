/*
 * Preloaded into iperf3: a template, which is loaded once and copied for each client and server.
 *
 * To load iperf3 with its libraries costs most of a flow's start in the guest, and some 400 KB of
 * addresses that the loader writes, libcrypto's above all.  A template has all that behind it: with
 * TEMPLATE_SOCKET in its environment iperf3 does not begin, but waits there for requests, whose form
 * is in template.h.  For each it makes a copy of itself, which is the
 * runner's child and begins with the request's arguments, environment, files and namespace.
 *
 * Copies share what they write and nobody looks at: the block of random bytes that all clients
 * send, and the one to which all servers receive.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "template.h"

#define SPARE_BYTES 8192   /* of a heap: the guest's kernel fills what lies ahead of a fault */
#define BLOCK_BYTES 131072 /* of iperf3's streams over TCP, if not told otherwise */

typedef int (*main_function)(int, char **, char **);

static main_function begin; /* iperf3's own */
static void *blocks[2];	    /* of clients, of servers; shared by all copies */
static void *block;	    /* this copy's */

static char text[TEMPLATE_BYTES];
static char *words[TEMPLATE_BYTES + 1]; /* the arguments, the environment, each and NULL */

static void *shared_block(void)
{
	void *made = mmap(NULL, BLOCK_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			  -1, 0);

	return made == MAP_FAILED ? NULL : made;
}

/* A stream's block, which iperf3 maps from a file that it has just made. */
void *mmap(void *address, size_t size, int protection, int flags, int fd, off_t offset)
{
	static void *(*real)(void *, size_t, int, int, int, off_t);

	if (block && size == BLOCK_BYTES && fd >= 0 && flags == MAP_PRIVATE)
		return block;
	if (!real)
		real = (void *(*)(void *, size_t, int, int, int, off_t))dlsym(RTLD_NEXT, "mmap");
	return real(address, size, protection, flags, fd, offset);
}

int munmap(void *address, size_t size)
{
	static int (*real)(void *, size_t);

	if (block && address == block)
		return 0; /* other streams have it, too */
	if (!real)
		real = (int (*)(void *, size_t))dlsym(RTLD_NEXT, "munmap");
	return real(address, size);
}

/* The size of a request and the descriptors that came with it; 0 at the end. */
static ssize_t receive(int from, int files[TEMPLATE_FILES])
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(TEMPLATE_FILES * sizeof(int))];
	} control;
	struct iovec part = { text, sizeof(text) - 1 };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control,
				  .msg_controllen = sizeof(control) };
	ssize_t size;

	while ((size = recvmsg(from, &message, MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR)
		;
	if (size <= 0)
		return 0;
	if (message.msg_controllen < CMSG_LEN(TEMPLATE_FILES * sizeof(int)))
		return 0;
	memcpy(files, CMSG_DATA(&control.head), TEMPLATE_FILES * sizeof(int));
	return size;
}

/* Split the request into words; the number of the arguments. */
static int split(const char *end, char ***environment)
{
	int count = 0, arguments = -1;

	for (char *at = text; at < end; at += strlen(at) + 1) {
		if (*at) {
			words[count++] = at;
			continue;
		}
		words[count++] = NULL; /* an empty word ends the arguments */
		if (arguments < 0) {
			arguments = count - 1;
			*environment = words + count;
		}
	}
	words[count] = NULL;
	return arguments;
}

__attribute__((noreturn)) static void become(int from, const int *files, ssize_t size, pid_t runner)
{
	char **environment = NULL;
	int arguments = split(text + size, &environment);

	if (setns(files[3], CLONE_NEWNET) || setsid() < 0 || dup2(files[0], 0) < 0 ||
	    dup2(files[1], 1) < 0 || dup2(files[2], 2) < 0)
		_exit(126);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != runner || arguments < 1)
		_exit(126);
	for (int i = 0; i < TEMPLATE_FILES; i++)
		close(files[i]);
	close(from);
	block = blocks[!strcmp(words[1], "--server")];
	environ = environment;
	exit(begin(arguments, words, environment));
}

static int serve(int from)
{
	pid_t runner = getppid();
	int files[TEMPLATE_FILES];
	ssize_t size;

	for (size_t i = 0; i < 2; i++)
		blocks[i] = shared_block();
	malloc_trim(SPARE_BYTES);
	mallopt(M_TOP_PAD, SPARE_BYTES);
	while ((size = receive(from, files))) {
		int32_t pid = (int32_t)syscall(SYS_clone, (long)CLONE_PARENT, 0L, 0L, 0L, 0L);

		if (!pid)
			become(from, files, size, runner);
		pid = pid < 0 ? -errno : pid;
		for (int i = 0; i < TEMPLATE_FILES; i++)
			close(files[i]);
		if (write(from, &pid, sizeof(pid)) != sizeof(pid))
			break;
	}
	return 0;
}

static int begin_or_serve(int count, char **arguments, char **environment)
{
	const char *from = getenv("TEMPLATE_SOCKET");

	return from ? serve(atoi(from)) : begin(count, arguments, environment);
}

int __libc_start_main(main_function main, int count, char **arguments, void (*init)(void),
		      void (*fini)(void), void (*rtld_fini)(void), void *stack_end)
{
	int (*real)(main_function, int, char **, void (*)(void), void (*)(void), void (*)(void),
		    void *);

	real = (int (*)(main_function, int, char **, void (*)(void), void (*)(void), void (*)(void),
			void *))dlsym(RTLD_NEXT, "__libc_start_main");
	begin = main;
	return real(begin_or_serve, count, arguments, init, fini, rtld_fini, stack_end);
}
