#define _GNU_SOURCE
#include "namespaces.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MAX_NAMESPACES 4096

static int home = -1; /* our network namespace */

long long monotonic_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000LL + time.tv_nsec;
}

void write_word(FILE *lines, const char *word)
{
	fputc(' ', lines);
	if (!*word)
		fputs("%00", lines);
	for (; *word; word++)
		fprintf(lines, *word > ' ' && *word < 127 && *word != '%' ? "%c" : "%%%02X",
			(unsigned char)*word);
}

int enter_namespace(const char *path)
{
	int file, failed;

	if (home < 0)
		home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	file = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	failed = file < 0 || setns(file, CLONE_NEWNET);
	close(file);
	return !failed;
}

void leave_namespace(void)
{
	setns(home, CLONE_NEWNET);
}

/* The name of a process's node: Mininet's shells have it as their last word. */
static void read_label(const char *process, char *label, size_t size)
{
	char path[300], words[256];
	int file, place;
	ssize_t length;

	snprintf(path, sizeof(path), "/proc/%s/cmdline", process);
	file = open(path, O_RDONLY | O_CLOEXEC);
	length = file < 0 ? 0 : read(file, words, sizeof(words) - 1);
	close(file);
	words[length > 0 ? length : 0] = '\0';
	for (place = 0; place < length; place += strlen(words + place) + 1)
		if (!strncmp(words + place, "mininet:", 8))
			snprintf(label, size, "%s", words + place + 8);
}

void visit_namespaces(visit *visit)
{
	static unsigned long seen[MAX_NAMESPACES];
	static const char *const folders[] = { "/run/netns", "/proc" };
	size_t count = 0, place, processes;
	struct dirent *entry;
	struct stat about;
	char path[300];

	for (processes = 0; processes < 2; processes++) {
		DIR *entries = opendir(folders[processes]);

		while (entries && (entry = readdir(entries))) {
			char label[256] = "-";

			if (processes && (*entry->d_name < '0' || *entry->d_name > '9'))
				continue;
			snprintf(path, sizeof(path), processes ? "%s/%s/ns/net" : "%s/%s",
				 folders[processes], entry->d_name);
			if (*entry->d_name == '.' || stat(path, &about))
				continue;
			for (place = 0; place < count && seen[place] != about.st_ino; place++)
				;
			if (place < count || count == MAX_NAMESPACES)
				continue;
			seen[count++] = about.st_ino;
			if (processes)
				read_label(entry->d_name, label, sizeof(label));
			else
				snprintf(label, sizeof(label), "%s", entry->d_name);
			visit(path, about.st_ino, label);
		}
		if (entries)
			closedir(entries);
	}
}

const struct rtattr *attribute(const struct rtattr *first, int length, int type)
{
	for (; RTA_OK(first, length); first = RTA_NEXT(first, length))
		if ((first->rta_type & NLA_TYPE_MASK) == type)
			return first;
	return NULL;
}

unsigned number_of(const struct rtattr *first, int length, int type)
{
	const struct rtattr *found = attribute(first, length, type);

	return found ? *(const unsigned *)RTA_DATA(found) : 0;
}

int read_queue(const struct nlmsghdr *message, struct queue *queue)
{
	const struct tcmsg *about = NLMSG_DATA(message);
	int length = TCA_PAYLOAD(message);
	const struct rtattr *kind = attribute(TCA_RTA(about), length, TCA_KIND);
	const struct rtattr *counts = attribute(TCA_RTA(about), length, TCA_STATS2);
	const struct rtattr *passed, *waiting;

	if (!kind || !counts)
		return 0;
	*queue = (struct queue){ .kind = RTA_DATA(kind) };
	length = RTA_PAYLOAD(counts);
	if ((passed = attribute(RTA_DATA(counts), length, TCA_STATS_BASIC)))
		memcpy(&queue->passed, RTA_DATA(passed),
		       sizeof(queue->passed.bytes) + sizeof(queue->passed.packets));
	if ((waiting = attribute(RTA_DATA(counts), length, TCA_STATS_QUEUE)))
		memcpy(&queue->waiting, RTA_DATA(waiting), sizeof(queue->waiting));
	return 1;
}

void dump(int protocol, const void *request, size_t size, write_answer *write_one)
{
	static char answer[1 << 16];
	int asked = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol), done = 0;

	if (asked < 0 || send(asked, request, size, 0) < 0)
		done = 1;
	while (!done) {
		ssize_t got = recv(asked, answer, sizeof(answer), 0);
		struct nlmsghdr *message = (struct nlmsghdr *)answer;
		int length = got;

		done = got <= 0;
		for (; NLMSG_OK(message, (unsigned)length); message = NLMSG_NEXT(message, length)) {
			if (message->nlmsg_type == NLMSG_DONE || message->nlmsg_type == NLMSG_ERROR)
				done = 1;
			else
				write_one(message);
		}
	}
	close(asked);
}

void dump_routing(int type, write_answer *write_one)
{
	struct {
		struct nlmsghdr head;
		struct tcmsg about; /* the largest of those of links, addresses and queues */
	} request = { { sizeof(request), type, NLM_F_REQUEST | NLM_F_DUMP, 1, 0 }, { 0 } };

	dump(NETLINK_ROUTE, &request, sizeof(request), write_one);
}
