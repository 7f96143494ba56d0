/*
 * testbed-runner PROGRAMME ANSWERS: obeys a programme, which the host has made of a trial's plan.
 *
 * A programme is a list of instructions, one a line: words between tabs, in which \t, \n and \\
 * stand for a tab, a newline and a backslash.  They are obeyed in their order; `at` waits for its
 * time.  There are no loops: the host knows in advance what is to happen when, but for flows that
 * end early, for which `ended` skips what lies before the end.
 *
 * What an instruction brings (the kernel's answers as they are, a program's output, a time) is
 * written to ANSWERS under the number of its line; reading it is the host's.  The first failure
 * ends the programme, all programs that it has started, and the runner, with status 1.
 *
 * In the guest this is all of the testbed that runs beside what is measured.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runner.h"

static char **lines;
static int line_count, current;

static void skip_if_ended(struct words words);
static void mark_file(struct words words);

static const struct {
	const char *name;
	int least; /* words after the name */
	void (*obey)(struct words words);
} instructions[] = {
	{ "node", 1, make_node },
	{ "environment", 0, set_environment },
	{ "run", 4, run_program },
	{ "start", 9, start_program },
	{ "template", 3, start_template },
	{ "copy", 7, copy_template },
	{ "await", 4, await_program },
	{ "signal", 2, signal_program },
	{ "end", 4, end_program },
	{ "write", 3, write_file },
	{ "read", 2, read_files },
	{ "swap", 3, swap_file },
	{ "unswap", 0, unswap_files },
	{ "control", 4, set_control },
	{ "touch", 1, mark_file },
	{ "offloads", 3, offloads },
	{ "send", 4, send_request },
	{ "dump", 4, dump_objects },
	{ "ask", 3, ask_object },
	{ "keep", 4, keep_object },
	{ "change", 2, change_object },
	{ "array", 4, make_array },
	{ "program", 2, load_bpf_program },
	{ "counters", 1, read_array },
	{ "echo", 5, echo },
	{ "capture", 5, begin_capture },
	{ "captured", 1, end_capture },
	{ "samples", 1, open_samples },
	{ "probe", 3, add_probe },
	{ "rehearse", 0, rehearse },
	{ "interval", 1, set_interval },
	{ "sample", 0, sample },
	{ "begin", 2, begin_clock },
	{ "zero", 2, set_zero },
	{ "at", 1, wait_until },
	{ "ended", 3, skip_if_ended },
};

void fail(const char *format, ...)
{
	char text[1024];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	kill_programs();
	answer_failure(current, text);
	write_answers();
	fprintf(stderr, "runner: instruction %d: %s\n", current, text);
	exit(1);
}

static void interrupted(int number)
{
	(void)number;
	kill_programs();
	_exit(130);
}

void *grown(void *array, size_t count, size_t size)
{
	if (count & (count - 1)) /* full at the powers of two */
		return array;
	array = realloc(array, (count ? 2 * count : 1) * size);
	if (!array)
		fail("out of memory");
	return array;
}

int64_t integer(const char *word)
{
	char *end;
	int64_t value;

	errno = 0;
	value = strtoll(word, &end, 0);
	if (errno || end == word || *end)
		fail("%s is no number", word);
	return value;
}

unsigned char *bytes_of(const char *hex, size_t *size)
{
	static const char digits[] = "0123456789abcdef";
	size_t length = strlen(hex) / 2;
	unsigned char *bytes = malloc(length + 1);

	if (!bytes)
		fail("out of memory");
	for (size_t i = 0; i < length; i++) {
		const char *high = strchr(digits, hex[2 * i]), *low = strchr(digits, hex[2 * i + 1]);

		if (!high || !low)
			fail("%.20s is not hexadecimal", hex);
		bytes[i] = (unsigned char)((high - digits) << 4 | (low - digits));
	}
	*size = length;
	return bytes;
}

/* Skip to a line if all these programs have ended: what was planned for a time is then due now. */
static void skip_if_ended(struct words words)
{
	int line = (int)integer(words.at[1]);

	if (line <= current || line > line_count)
		fail("ended: there is no line %d behind this one", line);
	if (!have_ended(words.at + 3, words.count - 3))
		return;
	shift_clock(integer(words.at[2]));
	current = line - 1;
}

/* A file whose time, on the host's clock, says how far the programme has come. */
static void mark_file(struct words words)
{
	int fd = open(words.at[1], O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	if (fd < 0)
		fail("%s: %s", words.at[1], strerror(errno));
	close(fd);
}

static void unescape(char *word)
{
	char *to = word;

	for (; *word; word++, to++) {
		*to = *word;
		if (*word == '\\' && word[1]) {
			word++;
			*to = *word == 't' ? '\t' : *word == 'n' ? '\n' : *word;
		}
	}
	*to = '\0';
}

static struct words split(char *line)
{
	struct words words = { NULL, 0 };

	while (line) {
		words.at = grown(words.at, (size_t)words.count, sizeof(char *));
		words.at[words.count++] = strsep(&line, "\t");
	}
	for (int i = 0; i < words.count; i++)
		unescape(words.at[i]);
	return words;
}

static void obey(char *line)
{
	struct words words = split(line);

	for (size_t i = 0; i < LENGTH(instructions); i++)
		if (!strcmp(words.at[0], instructions[i].name)) {
			if (words.count <= instructions[i].least)
				fail("%s: too few words", words.at[0]);
			begin_answer(current);
			instructions[i].obey(words);
			free(words.at);
			return;
		}
	fail("there is no instruction %s", words.at[0]);
}

static void read_programme(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat about;
	char *text, *line;
	size_t size = 0;
	ssize_t part;

	if (fd < 0 || fstat(fd, &about))
		fail("%s: %s", path, strerror(errno));
	text = malloc((size_t)about.st_size + 1);
	if (!text)
		fail("out of memory");
	while ((part = read(fd, text + size, (size_t)about.st_size - size)) > 0)
		size += (size_t)part;
	text[size] = '\0';
	close(fd);
	while (text && *text) {
		line = strsep(&text, "\n");
		lines = grown(lines, (size_t)line_count, sizeof(*lines));
		lines[line_count++] = line;
	}
}

int main(int count, char **words)
{
	struct sigaction action = { .sa_handler = interrupted };

	if (count != 3) {
		fprintf(stderr, "usage: testbed-runner PROGRAMME ANSWERS\n");
		return 2;
	}
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
	watch_children();
	open_answers(words[2]);
	read_programme(words[1]);
	for (; current < line_count; current++) {
		rest();
		obey(lines[current]);
	}
	kill_programs();
	write_samples();
	write_answers();
	return 0;
}
