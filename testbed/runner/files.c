/* Settings and counters, which are files; and the offloads of interfaces, which are not. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "calls.h"
#include "runner.h"

#define FILES_AT_ONCE 16
#define FILE_BYTES 4096
#define CALLS_A_FILE 4 /* open, read, be told that there is no more, close */

static const struct {
	uint32_t get, set;
} offload_commands[] = {
	{ ETHTOOL_GTSO, ETHTOOL_STSO },
	{ ETHTOOL_GGSO, ETHTOOL_SGSO },
	{ ETHTOOL_GGRO, ETHTOOL_SGRO },
};

char *with_pids(const char *text)
{
	static const char mark[] = "{pid:";
	char *all = strdup(text), *at;

	while (all && (at = strstr(all, mark))) {
		char *end = strchr(at, '}'), *longer;

		if (!end)
			break;
		*at = *end = '\0';
		if (asprintf(&longer, "%s%d%s", all, pid_of(at + strlen(mark)), end + 1) < 0)
			longer = NULL;
		free(all);
		all = longer;
	}
	if (!all)
		fail("out of memory");
	return all;
}

/* The number of the next descriptor that is opened. */
static int next_descriptor(void)
{
	int fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);

	close(fd);
	return fd;
}

/* write NODE FILE TEXT */
void write_file(struct words words)
{
	long size = (long)strlen(words.at[3]), fd;
	size_t made;

	enter(words.at[1]);
	fd = next_descriptor();
	struct batched_call calls[] = {
		{ SYS_open, { (long)words.at[2], O_WRONLY | O_CLOEXEC }, fd, fd, 0 },
		{ SYS_write, { fd, (long)words.at[3], size }, size, size, 0 },
		{ SYS_close, { fd }, 0, 0, 0 },
	};

	made = make_calls(calls, LENGTH(calls));
	if (made < LENGTH(calls))
		fail("%s", strerror(calls[made].result < 0 ? (int)-calls[made].result : EIO));
}

static struct swapped { /* a setting that is to be what it was */
	const char *node, *file;
	char text[FILE_BYTES];
	size_t size;
} *all_swapped;
static size_t swapped_count;

/* The content of a setting in the node that the runner is in; its size. */
static size_t content_of(const char *file, char *text)
{
	int fd = open(file, O_RDONLY | O_CLOEXEC);
	ssize_t size = fd < 0 ? -1 : read(fd, text, FILE_BYTES);

	if (size < 0)
		fail("%s", errno == ENOENT ? "this network namespace has no such setting" :
					     strerror(errno));
	close(fd);
	return (size_t)size;
}

static void overwrite(const char *file, const char *text, size_t size)
{
	int fd = open(file, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		fail("%s", errno == EACCES ? "it can only be read" : strerror(errno));
	if (write(fd, text, size) != (ssize_t)size)
		fail("the kernel does not take the value %.*s (%s)", (int)size, text, strerror(errno));
	close(fd);
}

/* swap NODE FILE TEXT: write a setting, keep what it was; answers what it is then, as `run` does. */
void swap_file(struct words words)
{
	char now[FILE_BYTES];
	int32_t head[2] = { 0 };
	struct swapped *each;

	all_swapped = grown(all_swapped, swapped_count, sizeof(*all_swapped));
	each = &all_swapped[swapped_count++];
	each->node = words.at[1];
	each->file = words.at[2];
	enter(each->node);
	each->size = content_of(each->file, each->text);
	overwrite(each->file, words.at[3], strlen(words.at[3]));
	head[1] = (int32_t)content_of(each->file, now);
	answer(head, sizeof(head));
	answer(now, (size_t)head[1]);
}

/* unswap: write what settings were before they were swapped, the last first. */
void unswap_files(struct words words)
{
	(void)words;
	while (swapped_count) {
		const struct swapped *each = &all_swapped[--swapped_count];

		enter(each->node);
		overwrite(each->file, each->text, each->size);
	}
}

static void answer_named(const char *path, const void *content, size_t size)
{
	answer(path, strlen(path) + 1);
	answer(content, size);
	answer("", 1);
}

/* A file that is large, or cannot be read to its end. */
static void answer_whole(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return; /* such as a setting that may only be written */
	answer(path, strlen(path) + 1);
	answer_file(fd);
	answer("", 1);
	close(fd);
}

/* Answer some files, and return how many: all up to the first that is not as most are. */
static size_t answer_files(char **paths, size_t count)
{
	static char contents[FILES_AT_ONCE][FILE_BYTES];
	struct batched_call calls[FILES_AT_ONCE * CALLS_A_FILE], *call = calls;
	long fd = next_descriptor();
	size_t made;

	count = count < FILES_AT_ONCE ? count : FILES_AT_ONCE;
	for (size_t i = 0; i < count; i++) {
		char *content = contents[i];

		*call++ = (struct batched_call){
			SYS_open, { (long)paths[i], O_RDONLY | O_CLOEXEC }, fd, fd, 0
		};
		*call++ = (struct batched_call){
			SYS_read, { fd, (long)content, FILE_BYTES - 1 }, 0, FILE_BYTES - 1, 0
		};
		*call++ = (struct batched_call){
			SYS_read, { fd, (long)content + FILE_BYTES - 1, 1 }, 0, 0, 0
		};
		*call++ = (struct batched_call){ SYS_close, { fd }, 0, 0, 0 };
	}
	made = make_calls(calls, count * CALLS_A_FILE);
	for (size_t i = 0; i < made / CALLS_A_FILE; i++)
		answer_named(paths[i], contents[i], (size_t)calls[i * CALLS_A_FILE + 1].result);
	if (made == count * CALLS_A_FILE)
		return count;
	if (made % CALLS_A_FILE)
		close((int)fd);
	answer_whole(paths[made / CALLS_A_FILE]);
	return made / CALLS_A_FILE + 1;
}

/* read NODE PATTERN...: answers each file's path and content, both ended by a zero byte. */
void read_files(struct words words)
{
	enter(words.at[1]);
	for (int i = 2; i < words.count; i++) {
		char *pattern = with_pids(words.at[i]);
		glob_t all;

		if (!glob(pattern, GLOB_NOCHECK, NULL, &all)) {
			for (size_t done = 0; done < all.gl_pathc;)
				done += answer_files(all.gl_pathv + done, all.gl_pathc - done);
			globfree(&all);
		}
		free(pattern);
	}
}

static uint32_t ethtool(int fd, const char *interface, uint32_t command)
{
	struct ethtool_value value = { .cmd = command };
	struct ifreq request = { .ifr_data = (char *)&value };

	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", interface);
	if (ioctl(fd, SIOCETHTOOL, &request))
		fail("%s", strerror(errno));
	return value.data;
}

/* Return which of an interface's features is the segmentation of UDP: -1 if the kernel has none. */
static int udp_segmentation(int fd, struct ifreq *request)
{
	static const char name[] = "tx-udp-segmentation";
	struct {
		struct ethtool_sset_info info;
		uint32_t count;
	} set = { .info = { .cmd = ETHTOOL_GSSET_INFO, .sset_mask = 1 << ETH_SS_FEATURES } };
	struct ethtool_gstrings *names;
	int place = -1;

	request->ifr_data = (char *)&set;
	if (ioctl(fd, SIOCETHTOOL, request))
		fail("%s", strerror(errno));
	names = calloc(1, sizeof(*names) + (size_t)set.count * ETH_GSTRING_LEN);
	if (!names)
		fail("out of memory");
	*names = (struct ethtool_gstrings){ ETHTOOL_GSTRINGS, ETH_SS_FEATURES, set.count };
	request->ifr_data = (char *)names;
	if (ioctl(fd, SIOCETHTOOL, request))
		fail("%s", strerror(errno));
	for (uint32_t n = 0; n < set.count && place < 0; n++)
		if (!strncmp((char *)names->data + n * ETH_GSTRING_LEN, name, ETH_GSTRING_LEN))
			place = (int)n;
	free(names);
	return place;
}

/* Return whether an interface takes several datagrams of UDP as one packet; `off`: end that. */
static bool joins_datagrams(int fd, const char *interface, bool off)
{
	enum { BLOCKS = 8 };
	struct ifreq request = { 0 };
	union {
		struct ethtool_gfeatures get;
		struct ethtool_sfeatures set;
		char room[sizeof(struct ethtool_sfeatures) +
			  BLOCKS * sizeof(struct ethtool_get_features_block)];
	} features = { .get = { .cmd = ETHTOOL_GFEATURES, .size = BLOCKS } };
	uint32_t bit;
	int place;

	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", interface);
	place = udp_segmentation(fd, &request);
	if (place < 0)
		return false;
	bit = 1u << place % 32;
	request.ifr_data = (char *)&features;
	if (ioctl(fd, SIOCETHTOOL, &request))
		fail("%s", strerror(errno));
	if (!(features.get.features[place / 32].active & bit))
		return false;
	if (off) {
		uint32_t blocks = features.get.size;

		memset(&features, 0, sizeof(features));
		features.set.cmd = ETHTOOL_SFEATURES;
		features.set.size = blocks;
		features.set.features[place / 32].valid = bit;
		if (ioctl(fd, SIOCETHTOOL, &request) < 0)
			fail("%s", strerror(errno));
	}
	return true;
}

/*
 * offloads NODE off|read|off-udp|read-udp INTERFACE...: answers for each which are on: TSO is 1,
 * GSO 2, GRO 4, and with -udp, what programs of UDP may use, 8.
 * Those that are off already are not touched: a radio has none and rejects the command.
 */
void offloads(struct words words)
{
	bool off = !strncmp(words.at[2], "off", 3), udp = strchr(words.at[2], '-') != NULL;
	int fd;

	enter(words.at[1]);
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		fail("%s", strerror(errno));
	for (int i = 3; i < words.count; i++) {
		unsigned char on = 0;

		for (size_t n = 0; n < LENGTH(offload_commands); n++)
			if (ethtool(fd, words.at[i], offload_commands[n].get)) {
				if (off)
					ethtool(fd, words.at[i], offload_commands[n].set);
				else
					on |= (unsigned char)(1 << n);
			}
		if (udp && joins_datagrams(fd, words.at[i], off))
			on |= (unsigned char)(1 << LENGTH(offload_commands));
		if (!off)
			answer(&on, 1);
	}
	close(fd);
}
