/* Captures that the guest's kernel writes by itself (kernel/patches/0030). */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runner.h"

static struct capture {
	const char *file;
	int fd;
} *captures;
static size_t capture_count;

/* capture NODE INTERFACE SNAPLEN FILE HEX: the packets of an interface; HEX begins the file. */
void begin_capture(struct words words)
{
	struct capture capture = { .file = words.at[4] };
	size_t size;
	int length;
	unsigned char *beginning = bytes_of(words.at[5], &size);
	char *text;

	enter(words.at[1]);
	capture.fd = open("/proc/capture", O_RDWR | O_CLOEXEC);
	if (capture.fd < 0)
		fail("/proc/capture: %s", strerror(errno));
	length = asprintf(&text, "%s %s %s\n", words.at[2], words.at[3], words.at[4]);
	if (length < 0 || !(text = realloc(text, (size_t)length + size)))
		fail("out of memory");
	memcpy(text + length, beginning, size);
	if (write(capture.fd, text, (size_t)length + size) != length + (ssize_t)size)
		fail("%s: %s", capture.file, strerror(errno));
	free(text);
	free(beginning);
	captures = grown(captures, capture_count, sizeof(*captures));
	captures[capture_count++] = capture;
}

/* captured FILE: ends a capture and answers how many packets were written and lost, and why. */
void end_capture(struct words words)
{
	for (size_t i = 0; i < capture_count; i++)
		if (!strcmp(captures[i].file, words.at[1])) {
			answer_file(captures[i].fd);
			close(captures[i].fd);
			return;
		}
	fail("there is no capture %s", words.at[1]);
}
