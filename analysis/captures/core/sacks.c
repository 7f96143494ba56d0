/* The blocks of selective acknowledgements: few packets have any, so they are no columns. */
#include <stdlib.h>

#include "core.h"

struct block {	/* Python reads it so */
	s32 frame;
	u32 left, right;
};

struct sacks {
	struct block *items;
	u32 count, capacity;
};

struct sacks *sacks_new(void)
{
	return calloc(1, sizeof(struct sacks));
}

void sacks_free(struct sacks *all)
{
	if (!all)
		return;
	free(all->items);
	free(all);
}

u32 sacks_count(const struct sacks *all)
{
	return all->count;
}

void sacks_add(struct core *core, s32 frame, const struct sack *sack)
{
	struct sacks *all = core->sacks;
	struct block *larger;

	if (!sack->count)
		return;
	larger = grow(all->items, &all->capacity, all->count + sack->count, sizeof(*larger));
	if (!larger) {
		core->no_memory = true;
		return;
	}
	all->items = larger;
	for (u32 i = 0; i < sack->count; i++)
		all->items[all->count++] = (struct block){ frame, sack->left[i], sack->right[i] };
}

/* For Python. */

const struct block *core_sacks(struct core *core)
{
	return core->sacks->items;
}
