/*
 * The packets of a pcap file as pcapng's blocks, for pcapng.py, which reads and writes the files.
 *
 * Both formats here are this machine's own byte order, and times are nanoseconds.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define ENHANCED_PACKET 6
#define NS_PER_S 1000000000ULL

struct record { /* before each packet of a pcap */
	uint32_t seconds, nanoseconds, captured, length;
};

struct block { /* before each packet of a pcapng; after it, padded, stands the size once more */
	uint32_t kind, size, interface, time_high, time_low, captured, length;
};

/*
 * Writes the blocks of all whole records at the beginning of `in` to `out`, which has to have room
 * for three times as much, and returns their size; *used is that of the records.
 */
size_t pcapng_blocks(const unsigned char *in, size_t size, unsigned char *out, size_t *used)
{
	const unsigned char *here = in, *end = in + size;
	unsigned char *to = out;
	struct record record;

	while ((size_t)(end - here) >= sizeof(record)) {
		memcpy(&record, here, sizeof(record));
		if ((size_t)(end - here) - sizeof(record) < record.captured)
			break;
		uint64_t time = record.seconds * NS_PER_S + record.nanoseconds;
		uint32_t padding = -record.captured & 3;
		struct block block = {
			.kind = ENHANCED_PACKET,
			.size = sizeof(block) + record.captured + padding + sizeof(block.size),
			.time_high = time >> 32,
			.time_low = (uint32_t)time,
			.captured = record.captured,
			.length = record.length,
		};

		memcpy(to, &block, sizeof(block));
		to += sizeof(block);
		memcpy(to, here + sizeof(record), record.captured);
		memset(to + record.captured, 0, padding);
		to += record.captured + padding;
		memcpy(to, &block.size, sizeof(block.size));
		to += sizeof(block.size);
		here += sizeof(record) + record.captured;
	}
	*used = here - in;
	return to - out;
}
