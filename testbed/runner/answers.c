/*
 * The answers, kept in memory until the programme has ended: records of an instruction's number
 * (the highest bit set if it failed), the number of bytes, and the bytes.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runner.h"

#define FAILED 0x80000000u
#define READ_BYTES 65536

struct head {
	uint32_t instruction, size;
};

static int file = -1;
static char *text;
static size_t used, room, head_at;
static bool has_head; /* of the current instruction */
static uint32_t current;

void open_answers(const char *path)
{
	file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (file < 0) {
		fprintf(stderr, "runner: %s: %s\n", path, strerror(errno));
		exit(1);
	}
}

static void add(const void *data, size_t size)
{
	if (used + size > room) {
		room = 2 * (used + size) + READ_BYTES;
		text = realloc(text, room);
		if (!text) {
			fprintf(stderr, "runner: out of memory\n");
			exit(1);
		}
	}
	memcpy(text + used, data, size);
	used += size;
}

void begin_answer(int instruction)
{
	current = (uint32_t)instruction;
	has_head = false;
}

void answer(const void *data, size_t size)
{
	struct head head = { current, 0 };

	if (!has_head) {
		head_at = used;
		add(&head, sizeof(head));
		has_head = true;
	}
	add(data, size);
	memcpy(&head, text + head_at, sizeof(head));
	head.size += (uint32_t)size;
	memcpy(text + head_at, &head, sizeof(head));
}

void answer_file(int fd)
{
	char part[READ_BYTES];
	ssize_t size;

	answer("", 0);
	while ((size = read(fd, part, sizeof(part))) > 0)
		answer(part, (size_t)size);
}

void answer_failure(int instruction, const char *why)
{
	begin_answer((int)((uint32_t)instruction | FAILED));
	answer(why, strlen(why));
}

void write_answers(void)
{
	size_t done = 0;

	while (done < used) {
		ssize_t part = write(file, text + done, used - done);

		if (part < 0) {
			fprintf(stderr, "runner: the answers: %s\n", strerror(errno));
			exit(1);
		}
		done += (size_t)part;
	}
}
