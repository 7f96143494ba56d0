/* The frames that were not read, by what they ended at: a link layer, a protocol, a tunnel. */
#include <stdlib.h>
#include <string.h>

#include "core.h"

struct count {	/* Python reads it so */
	struct skip skip;
	u64 frames;
};

struct skipped {
	struct table *index;
	struct count *items;
	u32 count, capacity;
};

struct skipped *skipped_new(void)
{
	struct skipped *all = calloc(1, sizeof(*all));

	if (!all)
		return NULL;
	all->index = table_new(1);
	if (all->index)
		return all;
	free(all);
	return NULL;
}

void skipped_free(struct skipped *all)
{
	if (!all)
		return;
	table_free(all->index);
	free(all->items);
	free(all);
}

u32 skipped_count(const struct skipped *all)
{
	return all->count;
}

bool skipped_add(struct skipped *all, struct skip skip, u64 frames)
{
	u64 key = (u64)skip.reason << 32 | skip.number;
	s32 *number = table_at(all->index, &key);
	struct count *larger;

	if (!number)
		return false;
	if (*number < 0) {
		larger = grow(all->items, &all->capacity, all->count + 1, sizeof(*larger));
		if (!larger)
			return false;
		all->items = larger;
		*number = (s32)all->count++;
		larger[*number] = (struct count){ skip, 0 };
	}
	all->items[*number].frames += frames;
	return true;
}

/* For Python. */

const struct count *core_skipped(struct core *core)
{
	return core->skipped->items;
}
