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
#include <unistd.h>

#include "runner.h"

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

/* write NODE FILE TEXT */
void write_file(struct words words)
{
	size_t size = strlen(words.at[3]);
	int fd;

	enter(words.at[1]);
	fd = open(words.at[2], O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, words.at[3], size) != (ssize_t)size)
		fail("%s", strerror(errno));
	close(fd);
}

/* read NODE PATTERN...: answers each file's path and content, both ended by a zero byte. */
void read_files(struct words words)
{
	enter(words.at[1]);
	for (int i = 2; i < words.count; i++) {
		char *pattern = with_pids(words.at[i]);
		glob_t all;

		if (!glob(pattern, GLOB_NOCHECK, NULL, &all)) {
			for (size_t n = 0; n < all.gl_pathc; n++) {
				int fd = open(all.gl_pathv[n], O_RDONLY | O_CLOEXEC);

				if (fd < 0)
					continue; /* such as a setting that may only be written */
				answer(all.gl_pathv[n], strlen(all.gl_pathv[n]) + 1);
				answer_file(fd);
				answer("", 1);
				close(fd);
			}
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

/*
 * offloads NODE off|read INTERFACE...: answers for each which are on: TSO is 1, GSO 2, GRO 4.
 * Those that are off already are not touched: a radio has none and rejects the command.
 */
void offloads(struct words words)
{
	bool off = !strcmp(words.at[2], "off");
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
		if (!off)
			answer(&on, 1);
	}
	close(fd);
}
