/*
 * Observes what a command's processes set up, without a change to what they see: a seccomp filter
 * stops each execution and each exit until the observer has written down what matters of it.  No
 * process is added, and no virtual time passes meanwhile.
 *
 * The lines of `guest.observed`, times in ns, network namespaces by inode, words with %XX for what
 * is no visible character:
 *
 *   command TIME PID NAMESPACE CONTROL WORD …     CONTROL: the namespace's congestion control
 *   exit TIME PID STATUS
 *   began TIME CLOCK                               the command's begin, on the wall clock too
 *   controls NAME …                                what the kernel has of them
 *   unconnected                                    connections cannot be observed on this kernel
 *   namespace TIME NAMESPACE LABEL CONTROL         the next lines are about it, at that time
 *   device INDEX NAME PEER RX_BYTES TX_BYTES TX_PACKETS TSO     PEER: of a veth; 0 for others
 *   address INDEX ADDRESS
 *   qdisc INDEX KIND BYTES PACKETS DROPS LIMIT RATE_BYTES WAITING DELAY ROOT     LIMIT: in packets,
 *                                                  -1 if none; WAITING: bytes; ROOT: 1, others 0
 *   line TIME PLACE TEXT                           of a Python script (programs/script_lines.py)
 *
 * and those of the kernel's tracepoint inet_sock_set_state.  The network is written down before a
 * command that removes or replaces something, before iperf, and at the end; where it is judged
 * meanwhile, also when what sends has ended; of the machine's own namespace also at the beginning.
 */
#define _GNU_SOURCE
#include "judge.h"
#include "namespaces.h"
#include "observer.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/filter.h>
#include <linux/pkt_sched.h>
#include <linux/seccomp.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MAX_BYTES (16L << 20) /* of the lines: what comes later is not written down */
#define END_BYTES (2L << 20)   /* of them, for what is written at the end */
#define MAX_WORDS 64
#define MAX_LENGTH 1024 /* of a word */
#define MAX_PROCESSES 32768
#define PAUSE_NS 1000000 /* between two looks at the network */
#define TRACE "/sys/kernel/tracing/instances/laboratory/"
#define SCRIPT_LINES "/run/laboratory"
#define OWN "/proc/self/ns/net" /* the machine's own namespace */

static FILE *lines;
static long most_bytes = MAX_BYTES - END_BYTES;
/* What a process whose exit is written down executed. */
enum { NOTHING, SETTING, TRAFFIC };
static char executed[MAX_PROCESSES]; /* by process */

static int has_room(void)
{
	return lines && ftell(lines) < most_bytes;
}

int filter_executions(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_execve, 3, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_execveat, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
	};
	struct sock_fprog program = { sizeof(code) / sizeof(*code), code };

	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
		       SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV,
		       &program);
}

/* Returns whether it could. */
static int set(const char *path, const char *value)
{
	int file = open(path, O_WRONLY | O_CLOEXEC);
	int done = file >= 0 && write(file, value, strlen(value)) >= 0;

	close(file);
	return done;
}

/* Reads the beginning of a small file, without its last line break. */
static const char *read_text(const char *path, char *text, size_t size)
{
	int file = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	ssize_t length = file < 0 ? -1 : read(file, text, size - 1);

	close(file);
	text[length > 0 ? length : 0] = '\0';
	text[strcspn(text, "\n")] = '\0';
	return text;
}

static const char *congestion_control(void)
{
	static char name[64];

	read_text("/proc/sys/net/ipv4/tcp_congestion_control", name, sizeof(name));
	return *name ? name : "-";
}

/* ---- the network, as it is --------------------------------------------------------------------- */

/* Whether a device hands its network segments larger than a packet. */
static int segments_later(const char *name)
{
	struct ethtool_value value = { ETHTOOL_GTSO, 0 };
	struct ifreq request = { .ifr_data = (char *)&value };
	int call = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	snprintf(request.ifr_name, IFNAMSIZ, "%s", name);
	if (ioctl(call, SIOCETHTOOL, &request))
		value.data = 0;
	close(call);
	return value.data;
}

/* The index of a veth's other end. What is above another device, as a VLAN is, has none. */
static unsigned peer_of(const struct rtattr *first, int length)
{
	const struct rtattr *link = attribute(first, length, IFLA_LINKINFO), *kind = NULL;

	if (link)
		kind = attribute(RTA_DATA(link), RTA_PAYLOAD(link), IFLA_INFO_KIND);
	return kind && !strcmp(RTA_DATA(kind), "veth") ? number_of(first, length, IFLA_LINK) : 0;
}

static void write_device(const struct nlmsghdr *message)
{
	const struct ifinfomsg *about = NLMSG_DATA(message);
	const struct rtattr *first = IFLA_RTA(about);
	int length = IFLA_PAYLOAD(message);
	const struct rtattr *name = attribute(first, length, IFLA_IFNAME);
	const struct rtattr *counts = attribute(first, length, IFLA_STATS64);
	const struct rtnl_link_stats64 *passed = counts ? RTA_DATA(counts) : NULL;

	if (!name || !passed || (about->ifi_flags & (IFF_UP | IFF_LOOPBACK)) != IFF_UP)
		return;
	fprintf(lines, "device %d", about->ifi_index);
	write_word(lines, RTA_DATA(name));
	fprintf(lines, " %u %llu %llu %llu %d\n", peer_of(first, length),
		(unsigned long long)passed->rx_bytes, (unsigned long long)passed->tx_bytes,
		(unsigned long long)passed->tx_packets, segments_later(RTA_DATA(name)));
}

static void write_address(const struct nlmsghdr *message)
{
	const struct ifaddrmsg *about = NLMSG_DATA(message);
	const struct rtattr *found = attribute(IFA_RTA(about), IFA_PAYLOAD(message), IFA_ADDRESS);
	char text[INET6_ADDRSTRLEN];

	if (found && inet_ntop(about->ifa_family, RTA_DATA(found), text, sizeof(text)))
		fprintf(lines, "address %d %s\n", about->ifa_index, text);
}

/* The limit of a queue in packets, -1 if it has none, and the rate and the delay in ns that it adds. */
struct options {
	long long limit, rate, delay;
};

static struct options read_options(const char *kind, const struct rtattr *found)
{
	struct options options = { -1, 0, 0 };
	const struct rtattr *inner;
	int length, head = NLMSG_ALIGN(sizeof(struct tc_netem_qopt));

	if (!found)
		return options;
	length = RTA_PAYLOAD(found);
	if (!strcmp(kind, "pfifo") && length >= (int)sizeof(struct tc_fifo_qopt))
		options.limit = ((struct tc_fifo_qopt *)RTA_DATA(found))->limit;
	if (!strcmp(kind, "netem") && length >= head) {
		const struct rtattr *first = (const void *)((const char *)RTA_DATA(found) + head);
		const struct rtattr *delay = attribute(first, length - head, TCA_NETEM_LATENCY64);

		options.limit = ((struct tc_netem_qopt *)RTA_DATA(found))->limit;
		options.rate = number_of(first, length - head, TCA_NETEM_RATE);
		if (delay)
			memcpy(&options.delay, RTA_DATA(delay), sizeof(options.delay));
	}
	if (!strcmp(kind, "tbf") && (inner = attribute(RTA_DATA(found), length, TCA_TBF_PARMS)))
		options.rate = ((struct tc_tbf_qopt *)RTA_DATA(inner))->rate.rate;
	return options;
}

static void write_qdisc(const struct nlmsghdr *message)
{
	const struct tcmsg *about = NLMSG_DATA(message);
	struct options options;
	struct queue queue;

	if (!read_queue(message, &queue))
		return;
	options = read_options(queue.kind, attribute(TCA_RTA(about), TCA_PAYLOAD(message),
						     TCA_OPTIONS));
	fprintf(lines, "qdisc %d %s %llu %u %u %lld %lld %u %lld %d\n", about->tcm_ifindex, queue.kind,
		(unsigned long long)queue.passed.bytes, queue.passed.packets, queue.waiting.drops,
		options.limit, options.rate, queue.waiting.backlog, options.delay,
		about->tcm_parent == TC_H_ROOT);
}

static void write_namespace(const char *path, unsigned long inode, const char *label)
{
	if (!has_room() || !enter_namespace(path))
		return;
	fprintf(lines, "namespace %lld %lu", monotonic_ns(), inode);
	write_word(lines, label);
	fprintf(lines, " %s\n", congestion_control());
	dump_routing(RTM_GETLINK, write_device);
	dump_routing(RTM_GETADDR, write_address);
	dump_routing(RTM_GETQDISC, write_qdisc);
	leave_namespace();
}

/* Writes down each namespace that a process is in or that has a name. */
static void write_network(void)
{
	static long long written_ns = -PAUSE_NS;

	if (!has_room() || monotonic_ns() - written_ns < PAUSE_NS)
		return;
	written_ns = monotonic_ns();
	visit_namespaces(write_namespace);
}

int observe(pid_t pid, int filter, int trial)
{
	char controls[1024];
	struct timespec clock;
	struct stat about;
	int process = syscall(SYS_pidfd_open, pid, 0);
	int observer = syscall(SYS_pidfd_getfd, process, filter, 0), watched;

	close(process);
	if (observer < 0)
		return -1;
	lines = fdopen(openat(trial, "guest.observed", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644),
		       "w");
	mkdir(TRACE, 0755);
	watched = set(TRACE "buffer_size_kb", "1024") && set(TRACE "trace_clock", "mono") &&
		  set(TRACE "events/sock/inet_sock_set_state/enable", "1");
	read_text("/proc/sys/net/ipv4/tcp_available_congestion_control", controls, sizeof(controls));
	clock_gettime(CLOCK_REALTIME, &clock);
	if (lines)
		fprintf(lines, "began %lld %lld\ncontrols %s\n%s", monotonic_ns(),
			clock.tv_sec * 1000000000LL + clock.tv_nsec, controls,
			watched ? "" : "unconnected\n");
	if (!stat(OWN, &about))
		write_namespace(OWN, about.st_ino, "-");
	return observer;
}

/* ---- commands ------------------------------------------------------------------------------------ */

/* Reads a word of a process's memory, as far as it is there. */
static int read_word(int memory, unsigned long address, char *word)
{
	ssize_t length = pread(memory, word, MAX_LENGTH, address);

	if (length <= 0)
		return 0;
	word[length < MAX_LENGTH ? length : MAX_LENGTH - 1] = '\0';
	return 1;
}

static int is_one_of(const char *word, const char *const *words)
{
	for (; *words; words++)
		if (!strcmp(word, *words))
			return 1;
	return 0;
}

static void observe_execution(const struct seccomp_notif *call)
{
	static const char *const setters[] = { "tc", "ip", "ethtool", "sysctl", NULL };
	static const char *const senders[] = { "iperf", "iperf3", "ping", "ping6", "arping",
					       "traceroute", "tracepath", "curl", "wget", "nc",
					       "netcat", "socat", "netperf", "ab", "tcpdump", NULL };
	static const char *const reading[] = { "show", "ls", "list", "-k", NULL };
	static const char *const removing[] = { "del", "delete", "replace", NULL };
	static const char *const measuring[] = { "iperf", "iperf3", NULL };
	static char words[MAX_WORDS][MAX_LENGTH + 1];
	int in_folder = call->data.nr == SYS_execveat, count = 0, place, reads = 0, removes = 0, sets;
	unsigned long long argv = call->data.args[in_folder ? 2 : 1], pointer;
	const char *name;
	struct stat about;
	char path[64];
	int memory;

	snprintf(path, sizeof(path), "/proc/%u/mem", call->pid);
	memory = open(path, O_RDONLY | O_CLOEXEC);
	while (count < MAX_WORDS && argv && memory >= 0) {
		if (pread(memory, &pointer, sizeof(pointer), argv) != sizeof(pointer) || !pointer ||
		    !read_word(memory, pointer, words[count]))
			break;
		argv += sizeof(pointer);
		count++;
	}
	close(memory);
	name = count ? strrchr(words[0], '/') : NULL;
	name = name ? name + 1 : words[0];
	sets = is_one_of(name, setters);
	if (!count || (!sets && !is_one_of(name, senders)))
		return;
	for (place = 1; place < count; place++) {
		reads |= is_one_of(words[place], reading);
		removes |= is_one_of(words[place], removing);
	}
	if (reads || !has_room())
		return;
	if (removes || is_one_of(name, measuring))
		write_network();
	snprintf(path, sizeof(path), "/proc/%u/ns/net", call->pid);
	if (stat(path, &about) || !enter_namespace(path))
		return;
	fprintf(lines, "command %lld %u %lu %s", monotonic_ns(), call->pid, about.st_ino,
		congestion_control());
	leave_namespace();
	for (place = 0; place < count; place++)
		write_word(lines, words[place]);
	fputc('\n', lines);
	executed[call->pid % MAX_PROCESSES] = sets ? SETTING : TRAFFIC;
}

/* Writes down the exit of a process; returns whether something is wrong by now. */
static int observe_exit(pid_t pid, unsigned long long status)
{
	char *what = executed + pid % MAX_PROCESSES;
	int sent = *what == TRAFFIC;

	if (*what == NOTHING || !has_room())
		return 0;
	*what = NOTHING;
	fprintf(lines, "exit %lld %u %llu\n", monotonic_ns(), pid, status & 255);
	if (!is_judged())
		return 0;
	if (sent)
		write_network();
	fflush(lines);
	return finds_fault();
}

int observe_next(int observer)
{
	int is_faulty = 0;
	struct seccomp_notif call = { 0 };
	struct seccomp_notif_resp answer = { .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE };

	if (ioctl(observer, SECCOMP_IOCTL_NOTIF_RECV, &call))
		return 0; /* it was ended meanwhile */
	answer.id = call.id;
	if (call.data.nr == SYS_exit_group)
		is_faulty = observe_exit(call.pid, call.data.args[0]);
	else
		observe_execution(&call);
	ioctl(observer, SECCOMP_IOCTL_NOTIF_SEND, &answer);
	return is_faulty;
}

/* ---- the end --------------------------------------------------------------------------------------- */

/* Adds the text of a file, up to a NUL. */
static void add_file(const char *path)
{
	static char block[1 << 16];
	int file = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	ssize_t length, text;

	while (file >= 0 && has_room() && (length = read(file, block, sizeof(block))) > 0) {
		text = strnlen(block, length);
		fwrite(block, 1, text, lines);
		if (text < length)
			break;
	}
	close(file);
}

void observe_end(void)
{
	struct dirent *entry;
	char path[300];
	DIR *entries;

	if (!lines)
		return;
	most_bytes = MAX_BYTES;
	write_network();
	entries = opendir(SCRIPT_LINES);
	while (entries && (entry = readdir(entries))) {
		snprintf(path, sizeof(path), SCRIPT_LINES "/%s", entry->d_name);
		if (*entry->d_name != '.')
			add_file(path);
	}
	if (entries)
		closedir(entries);
	add_file(TRACE "trace");
	fclose(lines);
	lines = NULL;
}
