/*
 * Feeds the reader with damaged captures and random bytes, in pieces of random sizes, until
 * it has had so many inputs.  Built with the sanitizers by tests/fuzz/run; an input that
 * takes too long, or ends in a crash, is kept as tests/fuzz/found-SEED.
 *
 *	fuzz COUNT SEED CAPTURE…
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../analysis/captures/core/core.h"

#define MAX_INPUT	(1u << 16)
#define LIMIT_S		10
#define ROWS		64

struct core *core_new(bool with_flows, bool tunnels);
void core_free(struct core *);
struct state *core_state(struct core *);
const void *core_flows(struct core *);
u64 core_feed(struct core *, const u8 *at, u64 size, bool last, struct columns *);

static u64 state;
static u8 *input;
static u32 size;
static char found[64];

static u32 draw(u32 below)	/* xorshift64* */
{
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return below ? (u32)((state * 0x2545f4914f6cdd1dULL) >> 33) % below : 0;
}

static void keep(int number)
{
	FILE *file = fopen(found, "wb");

	if (file) {
		fwrite(input, 1, size, file);
		fclose(file);
	}
	signal(number, SIG_DFL);
	raise(number);
}

static u32 interesting(void)
{
	static const u32 values[] = { 0, 1, 2, 4, 8, 12, 16, 20, 28, 32, 60, 0x7f, 0x80, 0xff,
				      0x7fff, 0xffff, 0x10000, 0x40001, 0x1000000, 0x7fffffff,
				      0x80000000, 0xfffffff0, 0xffffffff };

	return values[draw(sizeof(values) / sizeof(*values))];
}

static void mutate(void)
{
	u32 at = draw(size), length, value;

	switch (draw(8)) {
	case 0:
		input[at] ^= (u8)(1 << draw(8));
		break;
	case 1:
		input[at] = (u8)draw(256);
		break;
	case 2:
		value = draw(2) ? interesting() : __builtin_bswap32(interesting());
		if (size >= 4)
			memcpy(input + draw(size - 3), &value, 4);
		break;
	case 3:
		value = draw(2) ? interesting() : __builtin_bswap16((u16)interesting());
		if (size >= 2)
			memcpy(input + draw(size - 1), &value, 2);
		break;
	case 4:		/* cut */
		size = draw(4) ? size : at + 1;
		break;
	case 5:		/* leave something out */
		length = draw(size - at < 64 ? size - at : 64);
		memmove(input + at, input + at + length, size - at - length);
		size -= length;
		break;
	case 6:		/* repeat something */
		length = draw(size - at < 256 ? size - at : 256);
		if (size + length > MAX_INPUT)
			break;
		memmove(input + at + length, input + at, size - at);
		size += length;
		break;
	case 7:		/* put one part over another */
		length = draw(size - at < 64 ? size - at : 64);
		memmove(input + draw(size - length + 1), input + at, length);
		break;
	}
	if (!size)
		size = 1;
}

static void prepare(FILE **seeds, int count)
{
	FILE *seed = count ? seeds[draw((u32)count)] : NULL;
	u32 changes = 1 + draw(12);

	if (!seed || !draw(16)) {
		size = 1 + draw(512);
		for (u32 i = 0; i < size; i++)
			input[i] = (u8)draw(256);
		/* random bytes get nowhere without a beginning */
		if (size > 24 && draw(2))
			memcpy(input, "\xd4\xc3\xb2\xa1\x02\0\x04\0", 8);
		return;
	}
	rewind(seed);
	size = (u32)fread(input, 1, MAX_INPUT / 2, seed);
	while (changes--)
		mutate();
}

static void supply(struct columns *columns, u64 *memory)
{
	struct columns given = { .capacity = ROWS };
	/* the pointers follow the two numbers; the widest item has 8 bytes */
	u64 **pointers = (u64 **)((u8 *)&given + 2 * sizeof(u64));

	for (size_t i = 0; i < (sizeof(given) - 2 * sizeof(u64)) / sizeof(void *); i++)
		pointers[i] = memory + i * ROWS;
	*columns = given;
}

static u64 run(u64 *memory)
{
	struct core *core = core_new(true, draw(2));
	struct columns columns;
	u32 done = 0, piece = 1 + draw(size);
	u64 frames;

	supply(&columns, memory);
	for (;;) {
		bool last = piece >= size - done;
		u32 given = last ? size - done : piece;
		/* a copy of its own, so that the sanitizer sees each byte beyond it */
		u8 *copy = malloc(given ? given : 1);
		u64 used;

		memcpy(copy, input + done, given);
		used = core_feed(core, copy, given, last, &columns);
		free(copy);
		done += (u32)used;
		if (columns.used == columns.capacity)
			columns.used = 0;
		else if (core_state(core)->stop != HUNGRY || last)
			break;
		piece = used ? 1 + draw(size) : piece * 2;
	}
	core_flows(core);
	frames = (u64)core_state(core)->frames;
	core_free(core);
	return frames;
}

int main(int argc, char **argv)
{
	u64 *memory = calloc(64 * ROWS, sizeof(*memory)), frames = 0;
	long count = argc > 2 ? atol(argv[1]) : 0;
	FILE *seeds[256];
	int known = 0;

	if (argc < 3)
		return 2;
	state = 0x9e3779b97f4a7c15ULL ^ (u64)atol(argv[2]);
	snprintf(found, sizeof(found), "tests/fuzz/found-%s", argv[2]);
	input = malloc(MAX_INPUT);
	for (int i = 3; i < argc && known < 256; i++)
		if ((seeds[known] = fopen(argv[i], "rb")))
			known++;
	signal(SIGALRM, keep);
	signal(SIGABRT, keep);
	signal(SIGSEGV, keep);
	for (long i = 0; i < count; i++) {
		prepare(seeds, known);
		alarm(LIMIT_S);
		frames += run(memory);
	}
	for (int i = 0; i < known; i++)
		fclose(seeds[i]);
	free(memory);
	free(input);
	printf("%ld inputs, %llu frames\n", count, (unsigned long long)frames);
	return 0;
}
