/*
 * Capture files: pcap and pcapng, of either byte order, fed in pieces.
 *
 * A piece begins with a whole record; what it does not hold whole is left for the next.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core.h"

#define PCAP_HEADER	24
#define RECORD_HEADER	16
#define MAX_PACKET	262144u		/* bytes, as in Wireshark */
#define MAX_BLOCK	(16u << 20)
#define MAX_INTERFACES	65536
#define MIN_BLOCK	12

#define PCAP_US		0xa1b2c3d4u
#define PCAP_NS		0xa1b23c4du
#define ORDER_MAGIC	0x1a2b3c4du

enum { SECTION = 0x0a0d0d0a, INTERFACE = 1, OLD_PACKET = 2, SIMPLE_PACKET = 3, PACKET = 6,
       JOURNAL = 9, SYSDIG = 0x204, SYSDIG_2 = 0x216, SYSDIG_2_LARGE = 0x221, CUSTOM = 0xbad,
       CUSTOM_KEPT_LOCAL = 0x40000bad };
enum { OPTION_END = 0, OPTION_RESOLUTION = 9, OPTION_OFFSET = 14 };

struct interface {
	u64 units_per_s;	/* 0: finer than can be told */
	s64 offset_s;
	u32 link, snaplen;
};

struct file {
	struct interface *interfaces;
	u32 count, capacity;
	bool begun, is_pcapng, swapped;
	u32 link, ns_per_unit;		/* of pcap */
};

static u16 get16(const struct file *file, const u8 *at)
{
	u16 value;

	memcpy(&value, at, 2);
	return file->swapped ? __builtin_bswap16(value) : value;
}

u16 file_u16(const struct core *core, const u8 *at)
{
	return get16(core->file, at);
}

static u32 get32(const struct file *file, const u8 *at)
{
	u32 value;

	memcpy(&value, at, 4);
	return file->swapped ? __builtin_bswap32(value) : value;
}

static u64 get64(const struct file *file, const u8 *at)
{
	u64 value;

	memcpy(&value, at, 8);
	return file->swapped ? __builtin_bswap64(value) : value;
}

/* The format is for one number, of 64 bits. */
static s64 corrupt(struct core *core, const char *format, u64 number)
{
	core->state.stop = CORRUPT;
	snprintf(core->state.reason, sizeof(core->state.reason), format, number);
	return -1;
}

/* The next packet's headers are on their way while this one is dissected. */
static void prefetch(const u8 *at)
{
	__builtin_prefetch(at);
	__builtin_prefetch(at + 64);
}

/* pcap */

static s64 begin_pcap(struct core *core, const u8 *at, u64 size, u32 magic)
{
	struct file *file = core->file;
	u32 link;

	if (size < PCAP_HEADER)
		return 0;
	file->swapped = magic != PCAP_US && magic != PCAP_NS;
	magic = get32(file, at);
	file->ns_per_unit = magic == PCAP_NS ? 1 : 1000;
	if (get16(file, at + 4) != 2)
		return corrupt(core, "pcap of version %" PRIu64 ", which nobody writes",
			       get16(file, at + 4));
	link = get32(file, at + 20);
	file->link = link & 0xffff;	/* above it, the length of the checksum */
	file->begun = true;
	return PCAP_HEADER;
}

static s64 read_record(struct core *core, const u8 *at, u64 size)
{
	const struct file *file = core->file;
	struct slice frame;
	s64 time;

	if (size < RECORD_HEADER)
		return 0;
	frame = (struct slice){ at + RECORD_HEADER, get32(file, at + 8), get32(file, at + 12) };
	if (frame.have > MAX_PACKET)
		return corrupt(core, "a packet of %" PRIu64 " bytes", frame.have);
	if (size - RECORD_HEADER < frame.have)
		return 0;
	time = (s64)get32(file, at) * NS_PER_S + (s64)get32(file, at + 4) * file->ns_per_unit;
	prefetch(at + RECORD_HEADER + frame.have);
	dissect(core, file->link, time, frame);
	return RECORD_HEADER + (s64)frame.have;
}

/* pcapng */

static s64 read_section(struct core *core, const u8 *at, u64 size, u32 *length)
{
	struct file *file = core->file;
	u32 order;

	if (size < 28)
		return 0;
	memcpy(&order, at + 8, 4);
	if (order != ORDER_MAGIC && __builtin_bswap32(order) != ORDER_MAGIC)
		return corrupt(core, "a section of no known byte order (%#" PRIx64 ")", order);
	file->swapped = order != ORDER_MAGIC;
	*length = get32(file, at + 4);
	if (*length < 28 || *length > MAX_BLOCK)
		return corrupt(core, "a section header of %" PRIu64 " bytes", *length);
	if (get16(file, at + 12) != 1)
		return corrupt(core, "pcapng of version %" PRIu64 ", which is not known",
			       get16(file, at + 12));
	file->count = 0;
	file->is_pcapng = file->begun = true;
	return 1;
}

/* A power of ten, or of two if the highest bit is set. */
static u64 units_per_s(u8 resolution)
{
	u64 units = 1;

	if (resolution & 0x80)
		return (resolution & 0x7f) < 64 ? 1ULL << (resolution & 0x7f) : 0;
	if (resolution > 19)
		return 0;
	while (resolution--)
		units *= 10;
	return units;
}

static void read_interface_options(const struct file *file, struct interface *interface,
				   const u8 *at, const u8 *end)
{
	while (end - at >= 4) {
		u16 kind = get16(file, at), size = get16(file, at + 2);

		at += 4;
		if (kind == OPTION_END || size > end - at)
			return;
		if (kind == OPTION_RESOLUTION && size == 1)
			interface->units_per_s = units_per_s(*at);
		if (kind == OPTION_OFFSET && size == 8)
			interface->offset_s = (s64)get64(file, at);
		if ((size + 3) / 4 * 4 > end - at)
			return;
		at += (size + 3) / 4 * 4;
	}
}

static s64 read_interface(struct core *core, const u8 *at, u32 length)
{
	struct file *file = core->file;
	struct interface *larger;

	if (length < 20)
		return corrupt(core, "an interface description of %" PRIu64 " bytes", length);
	if (file->count == MAX_INTERFACES)
		return corrupt(core, "more than %" PRIu64 " interfaces", MAX_INTERFACES);
	larger = grow(file->interfaces, &file->capacity, file->count + 1, sizeof(*larger));
	if (!larger) {
		core->no_memory = true;
		return -1;
	}
	file->interfaces = larger;
	larger += file->count++;
	*larger = (struct interface){ 1000000, 0, get16(file, at + 8), get32(file, at + 12) };
	read_interface_options(file, larger, at + 16, at + length - 4);
	return length;
}

static s64 time_of(const struct interface *interface, u32 high, u32 low)
{
	u64 units = (u64)high << 32 | low;
	unsigned __int128 part;

	if (!interface->units_per_s)
		return 0;
	part = (unsigned __int128)(units % interface->units_per_s) * (u64)NS_PER_S;
	/* unsigned: absurd times wrap around */
	return (s64)((units / interface->units_per_s + (u64)interface->offset_s) *
		     (u64)NS_PER_S + (u64)(part / interface->units_per_s));
}

static s64 read_packet(struct core *core, const u8 *at, u32 length, bool old)
{
	const struct file *file = core->file;
	struct interface *interface;
	struct slice frame;
	u32 number;

	if (length < 32)
		return corrupt(core, "a packet block of %" PRIu64 " bytes", length);
	number = old ? get16(file, at + 8) : get32(file, at + 8);
	frame = (struct slice){ at + 28, get32(file, at + 20), get32(file, at + 24) };
	if (frame.have > length - 32)
		return corrupt(core, "a packet of %" PRIu64 " bytes in a shorter block",
			       frame.have);
	if (frame.have > MAX_PACKET)
		return corrupt(core, "a packet of %" PRIu64 " bytes", frame.have);
	if (number >= file->count)
		return corrupt(core, "a packet of interface %" PRIu64 ", which is not described",
			       number);
	prefetch(at + length);
	interface = &file->interfaces[number];
	dissect(core, interface->link,
		time_of(interface, get32(file, at + 12), get32(file, at + 16)), frame);
	return length;
}

static s64 read_simple_packet(struct core *core, const u8 *at, u32 length)
{
	const struct file *file = core->file;
	const struct interface *interface = file->interfaces;
	struct slice frame;

	if (length < 16)
		return corrupt(core, "a packet block of %" PRIu64 " bytes", length);
	if (!file->count)
		return corrupt(core, "a packet before any interface (block of %" PRIu64 " bytes)",
			       length);
	frame = (struct slice){ at + 12, get32(file, at + 8), get32(file, at + 8) };
	if (interface->snaplen && frame.have > interface->snaplen)
		frame.have = interface->snaplen;
	if (frame.have > length - 16)
		return corrupt(core, "a packet of %" PRIu64 " bytes in a shorter block",
			       frame.have);
	if (frame.have > MAX_PACKET)
		return corrupt(core, "a packet of %" PRIu64 " bytes", frame.have);
	dissect(core, interface->link, 0, frame);
	return length;
}

/* Wireshark counts some blocks as frames that are no packets. */
static s64 read_other(struct core *core, u32 type, u32 length, u32 least)
{
	if (length < least)
		return corrupt(core, "a block of %" PRIu64 " bytes, too short for its type",
			       length);
	core->state.frames++;
	if (!skipped_add(core->skipped, (struct skip){ OTHER_BLOCK, type }, 1)) {
		core->no_memory = true;
		return -1;
	}
	return length;
}

static s64 read_block(struct core *core, const u8 *at, u64 size)
{
	struct file *file = core->file;
	u32 type, length;

	if (size < MIN_BLOCK)
		return 0;
	memcpy(&type, at, 4);
	if (type == SECTION) {
		s64 known = read_section(core, at, size, &length);

		if (known <= 0)
			return known;
	} else {
		length = get32(file, at + 4);
		if (length > MAX_BLOCK)
			return corrupt(core, "a block of %" PRIu64 " bytes", length);
		if (length < MIN_BLOCK)
			return corrupt(core, "a block of %" PRIu64 " bytes", length);
	}
	length = (length + 3) / 4 * 4;
	if (size < length)
		return 0;
	/* some writers leave the padding out of the length */
	if ((get32(file, at + length - 4) + 3) / 4 * 4 != length)
		return corrupt(core, "a block whose two lengths differ (%" PRIu64 " bytes)",
			       length);
	switch (type == SECTION ? SECTION : get32(file, at)) {
	case INTERFACE:
		return read_interface(core, at, length);
	case PACKET:
		return read_packet(core, at, length, false);
	case OLD_PACKET:
		return read_packet(core, at, length, true);
	case SIMPLE_PACKET:
		return read_simple_packet(core, at, length);
	case JOURNAL:
		return read_other(core, JOURNAL, length, MIN_BLOCK);
	case CUSTOM:
	case CUSTOM_KEPT_LOCAL:
		return read_other(core, get32(file, at), length, MIN_BLOCK + 4);
	case SYSDIG:
	case SYSDIG_2:
	case SYSDIG_2_LARGE:
		return read_other(core, get32(file, at), length, MIN_BLOCK + 32);
	}
	return length;
}

static s64 read_first(struct core *core, const u8 *at, u64 size)
{
	u32 magic, swapped;

	if (size < 4)
		return 0;
	memcpy(&magic, at, 4);
	swapped = __builtin_bswap32(magic);
	if (magic == SECTION)
		return read_block(core, at, size);
	if (magic == PCAP_US || magic == PCAP_NS || swapped == PCAP_US || swapped == PCAP_NS)
		return begin_pcap(core, at, size, magic);
	return corrupt(core, "no capture: it begins with %#" PRIx64, swapped);
}

/* For Python. */

struct core *core_new(bool with_flows, bool tunnels)
{
	struct core *core = calloc(1, sizeof(*core));

	if (!core)
		return NULL;
	core->file = calloc(1, sizeof(*core->file));
	core->fragments = fragments_new();
	core->sacks = sacks_new();
	core->skipped = skipped_new();
	core->tunnels = tunnels;
	core->flows = with_flows ? flows_new() : NULL;
	core->rows = rows_new(core->flows);
	core->no_memory = !connections_init(&core->connections) || !core->file ||
			  !core->fragments || !core->sacks || !core->skipped || !core->rows ||
			  (with_flows && !core->flows);
	return core;
}

void core_free(struct core *core)
{
	if (!core)
		return;
	rows_free(core->rows);
	if (core->file)
		free(core->file->interfaces);
	free(core->file);
	connections_clear(&core->connections);
	fragments_free(core->fragments);
	sacks_free(core->sacks);
	skipped_free(core->skipped);
	flows_free(core->flows);
	free(core);
}

struct state *core_state(struct core *core)
{
	core->state.addresses = core->connections.address_count;
	core->state.sacks = sacks_count(core->sacks);
	core->state.waiting = fragments_waiting(core->fragments);
	core->state.skipped = skipped_count(core->skipped);
	return &core->state;
}

const struct address *core_addresses(struct core *core)
{
	return core->connections.addresses;
}

/* Reads whole records from a piece of the file, and says how many bytes they were; why it
 * stopped is in the state.  `last`: nothing follows the piece.  All rows are in the
 * columns when those are full, when it stopped for anything but the next piece, and after the
 * last. */
u64 core_feed(struct core *core, const u8 *at, u64 size, bool last, struct columns *columns)
{
	u64 done = 0;
	bool full;

	core->columns = columns;
	core->state.stop = HUNGRY;
	while (!core->no_memory && done < size) {
		s64 step;

		if (columns && columns->used == columns->capacity) {
			core->state.stop = FULL;
			break;
		}
		if (!core->file->begun)
			step = read_first(core, at + done, size - done);
		else if (core->file->is_pcapng)
			step = read_block(core, at + done, size - done);
		else
			step = read_record(core, at + done, size - done);
		if (step <= 0)
			break;
		done += (u64)step;
	}
	full = columns && columns->used == columns->capacity;
	if (!core->no_memory && (last || full || core->state.stop != HUNGRY)) {
		rows_flush(core);
		core->state.flows = core->flows ? flows_count(core->flows) : 0;
	}
	if (core->no_memory)
		core->state.stop = NO_MEMORY;
	else if (core->state.stop == HUNGRY && last && (done < size || !core->file->begun))
		core->state.stop = CUT_SHORT;
	core->state.offset += done;
	return done;
}
