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
	u32 offset, size;
	u8 *bytes;	/* of the beginning; null beyond it */
};

struct datagram {
	struct part *parts;	/* by offset */
	u32 count, capacity;
	u32 size;		/* known once the last fragment came */
	bool size_known;
	s32 next_free;
};

struct fragments {
	struct table *index;
	struct datagram *items;
	u32 count, capacity;
	s32 free;		/* the first unused one, -1 without */
	u8 whole[KEPT];
};

struct fragments *fragments_new(void)
{
	struct fragments *all = calloc(1, sizeof(*all));

	if (!all)
		return NULL;
	all->free = -1;
	all->index = table_new(sizeof(struct fragment_key));
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

static struct datagram *open_datagram(struct fragments *all, const struct fragment_key *key)
{
	s32 *number = table_at(all->index, key);
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

/* Where a part with this offset belongs: behind those that begin no later. */
static u32 place(const struct datagram *datagram, u32 offset)
{
	u32 at = datagram->count;

	while (at && datagram->parts[at - 1].offset > offset)
		at--;
	return at;
}

/* A fragment that another of the same offset covers changes nothing. */
static bool is_known(const struct datagram *datagram, u32 offset, u32 size)
{
	for (u32 at = place(datagram, offset); at; at--) {
		if (datagram->parts[at - 1].offset != offset)
			return false;
		if (datagram->parts[at - 1].size >= size)
			return true;
	}
	return false;
}

static bool insert(struct datagram *datagram, u32 offset, struct slice data)
{
	u32 at = place(datagram, offset);
	u32 kept = offset >= KEPT ? 0 : data.size < KEPT - offset ? data.size : KEPT - offset;
	struct part *larger;
	u8 *bytes = NULL;

	larger = grow(datagram->parts, &datagram->capacity, datagram->count + 1, sizeof(*larger));
	if (!larger)
		return false;
	datagram->parts = larger;
	if (kept) {
		bytes = malloc(kept);
		if (!bytes)
			return false;
		memcpy(bytes, data.at, kept);
	}
	memmove(&larger[at + 1], &larger[at], (datagram->count - at) * sizeof(*larger));
	larger[at] = (struct part){ offset, data.size, bytes };
	datagram->count++;
	return true;
}

static bool is_whole(const struct datagram *datagram)
{
	u32 end = 0;

	if (!datagram->size_known)
		return false;
	for (u32 i = 0; i < datagram->count; i++) {
		const struct part *part = &datagram->parts[i];

		if (part->offset <= end && part->offset + part->size > end)
			end = part->offset + part->size;
	}
	return end >= datagram->size;
}

/* Of bytes that came twice, those of the part that begins first are taken. */
static void assemble(struct fragments *all, const struct datagram *datagram)
{
	u32 end = 0;

	for (u32 i = 0; i < datagram->count && end < KEPT; i++) {
		const struct part *part = &datagram->parts[i];
		u32 stop = part->offset + part->size;

		if (stop > KEPT)
			stop = KEPT;
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
	if (!is_known(datagram, offset, data.size) && !insert(datagram, offset, data))
		return false;
	if (!is_whole(datagram))
		return false;
	assemble(all, datagram);
	*whole = (struct slice){ all->whole, datagram->size < KEPT ? datagram->size : KEPT,
				 datagram->size };
	number = (s32)(datagram - all->items);
	table_remove(all->index, key);
	clear(datagram);
	datagram->next_free = all->free;
	all->free = number;
	return true;
}
