/* eBPF: tables and programs, which the host has assembled. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/bpf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runner.h"

#define LOAD_MAP 0x18 /* the instruction whose constant is a map: here the place in `arrays` */

static struct array {
	const char *id;
	int fd;
	size_t bytes; /* of a value */
} *arrays;
static size_t array_count;

static struct loaded {
	const char *id;
	int fd;
} *loaded;
static size_t loaded_count;

static int bpf(int command, union bpf_attr *attributes, size_t size)
{
	return (int)syscall(SYS_bpf, command, attributes, size);
}

/* array ID BYTES COUNT HEX: COUNT values of BYTES bytes; without HEX they are zero. */
void make_array(struct words words)
{
	size_t bytes = (size_t)integer(words.at[2]), size;
	uint32_t count = (uint32_t)integer(words.at[3]);
	unsigned char *values = bytes_of(words.at[4], &size);
	union bpf_attr create = { .map_type = BPF_MAP_TYPE_ARRAY,
				  .key_size = 4,
				  .value_size = (uint32_t)bytes,
				  .max_entries = count };
	int fd = bpf(BPF_MAP_CREATE, &create, sizeof(create));

	if (fd < 0)
		fail("%s", strerror(errno));
	if (size) {
		uint32_t *keys = calloc(count, sizeof(*keys));
		union bpf_attr fill = { .batch = { .keys = (uintptr_t)keys,
						   .values = (uintptr_t)values,
						   .count = count,
						   .map_fd = (uint32_t)fd } };

		if (!keys)
			fail("out of memory");
		if (size != bytes * count)
			fail("%zu bytes are not %u values", size, count);
		for (uint32_t i = 0; i < count; i++)
			keys[i] = i;
		if (bpf(BPF_MAP_UPDATE_BATCH, &fill, sizeof(fill)))
			fail("%s", strerror(errno));
		free(keys);
	}
	free(values);
	arrays = grown(arrays, array_count, sizeof(*arrays));
	arrays[array_count++] = (struct array){ words.at[1], fd, bytes };
}

/* program ID HEX: its maps are the numbers of arrays, in the order in which they were made. */
void load_bpf_program(struct words words)
{
	static char log[65536];
	size_t size;
	struct bpf_insn *code = (struct bpf_insn *)bytes_of(words.at[2], &size);
	union bpf_attr attributes = { .prog_type = BPF_PROG_TYPE_SCHED_CLS,
				      .insn_cnt = (uint32_t)(size / sizeof(*code)),
				      .insns = (uintptr_t)code,
				      .license = (uintptr_t)"Dual MIT/GPL" };
	int fd;

	for (size_t i = 0; i < size / sizeof(*code); i++)
		if (code[i].code == LOAD_MAP && code[i].src_reg == BPF_PSEUDO_MAP_FD) {
			if ((size_t)code[i].imm >= array_count)
				fail("there is no array %d", code[i].imm);
			code[i].imm = arrays[code[i].imm].fd;
		}
	fd = bpf(BPF_PROG_LOAD, &attributes, sizeof(attributes));
	if (fd < 0) {
		attributes.log_level = 1;
		attributes.log_buf = (uintptr_t)log;
		attributes.log_size = sizeof(log);
		bpf(BPF_PROG_LOAD, &attributes, sizeof(attributes));
		fail("the kernel rejects a program: %s",
		     *log ? log + (strlen(log) > 500 ? strlen(log) - 500 : 0) : strerror(errno));
	}
	free(code);
	loaded = grown(loaded, loaded_count, sizeof(*loaded));
	loaded[loaded_count++] = (struct loaded){ words.at[1], fd };
}

int bpf_descriptor(const char *id)
{
	for (size_t i = 0; i < loaded_count; i++)
		if (!strcmp(loaded[i].id, id))
			return loaded[i].fd;
	fail("there is no eBPF program %s", id);
}

/* counters ID: answers the array's first value. */
void read_array(struct words words)
{
	for (size_t i = 0; i < array_count; i++)
		if (!strcmp(arrays[i].id, words.at[1])) {
			uint32_t key = 0;
			unsigned char *value = calloc(1, arrays[i].bytes);
			union bpf_attr look = { .map_fd = (uint32_t)arrays[i].fd,
						.key = (uintptr_t)&key,
						.value = (uintptr_t)value };

			if (!value || bpf(BPF_MAP_LOOKUP_ELEM, &look, sizeof(look)))
				fail("%s", strerror(errno));
			answer(value, arrays[i].bytes);
			free(value);
			return;
		}
	fail("there is no array %s", words.at[1]);
}
