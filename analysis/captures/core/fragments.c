/*
 * IP fragments become datagrams, when the last missing one arrives.
 *
 * Of a datagram only the beginning is kept, where the headers are, and which parts of it
 * have come: that is all that the reduction needs, and it bounds the memory.
 */
#include <stdlib.h>
#include <string.h>

#include "core.h"

#define KEPT 256	/* bytes; enough for IPv4 in IPv4 with all options, and TCP with all */

struct part {
	u32 offset, end;	/* the end of the longest fragment with this offset */
	u8 *bytes;		/* of the beginning; null beyond it */
};

struct datagram {
	struct part *parts;	/* by offset, each offset once: at most 8192 */
	u32 count, capacity;
	u32 reached;		/* so many parts begin in what is whole from the beginning … */
	u32 whole;		/* … which are so many bytes */
	u32 fragments;
	u32 size;		/* known once the last fragment came */
	bool size_known;
	s32 next_free;
};

struct fragments {
	struct table *index;
	struct datagram *items;
	u32 count, capacity;
	u64 waiting;
	s32 free;		/* the first unused one, -1 without */
	u8 whole[KEPT];
};

struct fragments *fragments_new(void)
{
	struct fragments *all = calloc(1, sizeof(*all));

	if (!all)
		return NULL;
	all->free = -1;
	all->index = table_new(sizeof(struct fragment_key) / sizeof(u64));
	if (!all->index) {
		free(all);
		return NULL;
	}
	return all;
}

static void clear(struct datagram *datagram)
{
	for (u32 i = 0; i < datagram->count; i++)
		free(datagram->parts[i].bytes);
	free(datagram->parts);
	*datagram = (struct datagram){ .next_free = -1 };
}

void fragments_free(struct fragments *all)
{
	if (!all)
		return;
	for (u32 i = 0; i < all->count; i++)
		clear(&all->items[i]);
	free(all->items);
	table_free(all->index);
	free(all);
}

u64 fragments_waiting(const struct fragments *all)
{
	return all->waiting;
}

static struct datagram *open_datagram(struct fragments *all, const struct fragment_key *key)
{
	s32 *number = table_at(all->index, (const u64 *)key);
	struct datagram *larger;

	if (!number)
		return NULL;
	if (*number >= 0)
		return &all->items[*number];
	if (all->free >= 0) {
		*number = all->free;
		all->free = all->items[*number].next_free;
		return &all->items[*number];
	}
	larger = grow(all->items, &all->capacity, all->count + 1, sizeof(*larger));
	if (!larger)
		return NULL;
	all->items = larger;
	*number = (s32)all->count++;
	all->items[*number] = (struct datagram){ .next_free = -1 };
	return &all->items[*number];
}

/* The place of the first part that begins no earlier. */
static u32 place(const struct datagram *datagram, u32 offset)
{
	u32 low = 0, high = datagram->count;

	while (low < high) {
		u32 middle = low + (high - low) / 2;

		if (datagram->parts[middle].offset < offset)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static u32 kept(u32 end)
{
	return end < KEPT ? end : KEPT;
}

/* What came first stays; a longer fragment adds what is behind it. */
static bool extend(struct part *part, struct slice data)
{
	u32 known = kept(part->end), end = kept(part->offset + data.size);
	u8 *bytes;

	if (end > known) {
		bytes = realloc(part->bytes, end - part->offset);
		if (!bytes)
			return false;
		known -= part->offset;
		memcpy(bytes + known, data.at + known, end - part->offset - known);
		part->bytes = bytes;
	}
	part->end = part->offset + data.size;
	return true;
}

static bool insert(struct datagram *datagram, u32 at, u32 offset, struct slice data)
{
	struct part *larger, part = { offset, offset, NULL };

	larger = grow(datagram->parts, &datagram->capacity, datagram->count + 1, sizeof(*larger));
	if (!larger)
		return false;
	datagram->parts = larger;
	if (!extend(&part, data))
		return false;
	memmove(&larger[at + 1], &larger[at], (datagram->count - at) * sizeof(*larger));
	larger[at] = part;
	datagram->count++;
	datagram->reached += at < datagram->reached;
	return true;
}

static bool add(struct datagram *datagram, u32 offset, struct slice data)
{
	u32 at = place(datagram, offset);
	struct part *part;

	if (at == datagram->count || datagram->parts[at].offset != offset) {
		if (!insert(datagram, at, offset, data))
			return false;
	} else if (offset + data.size > datagram->parts[at].end) {
		if (!extend(&datagram->parts[at], data))
			return false;
	}
	part = &datagram->parts[at];
	if (at < datagram->reached && part->end > datagram->whole)
		datagram->whole = part->end;
	while (datagram->reached < datagram->count &&
	       datagram->parts[datagram->reached].offset <= datagram->whole) {
		part = &datagram->parts[datagram->reached++];
		if (part->end > datagram->whole)
			datagram->whole = part->end;
	}
	return true;
}

/* Of bytes that came twice, those of the part that begins first are taken. */
static void assemble(struct fragments *all, const struct datagram *datagram)
{
	u32 end = 0;

	for (u32 i = 0; i < datagram->count && end < KEPT; i++) {
		const struct part *part = &datagram->parts[i];
		u32 stop = kept(part->end);

		if (!part->bytes || part->offset > end || stop <= end)
			continue;
		memcpy(all->whole + end, part->bytes + (end - part->offset), stop - end);
		end = stop;
	}
}

bool fragments_add(struct fragments *all, const struct fragment_key *key, u32 offset,
		   struct slice data, bool more, struct slice *whole)
{
	struct datagram *datagram = open_datagram(all, key);
	s32 number;

	if (!datagram)
		return false;
	if (!more && !datagram->size_known) {
		datagram->size = offset + data.size;
		datagram->size_known = true;
	}
	if (!add(datagram, offset, data))
		return false;
	datagram->fragments++;
	all->waiting++;
	if (!datagram->size_known || datagram->whole < datagram->size)
		return false;
	assemble(all, datagram);
	*whole = (struct slice){ all->whole, datagram->size < KEPT ? datagram->size : KEPT,
				 datagram->size };
	all->waiting -= datagram->fragments;
	number = (s32)(datagram - all->items);
	table_remove(all->index, (const u64 *)key);
	clear(datagram);
	datagram->next_free = all->free;
	all->free = number;
	return true;
}
