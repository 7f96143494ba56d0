/* A hash table with open addressing: keys of a fixed number of words to numbers. */
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "core.h"

struct table {
	u32 words;		/* of a key */
	u32 count, capacity;	/* a power of two, or 0 */
	u64 secret;		/* so that no capture can be made of keys that collide */
	s32 *values;		/* the key's number */
	u8 *states;
	u64 *keys;
};

enum { FREE, USED, REMOVED };

struct table *table_new(u32 key_words)
{
	struct table *table = calloc(1, sizeof(*table));

	if (!table)
		return NULL;
	table->words = key_words;
	if (getrandom(&table->secret, sizeof(table->secret), GRND_NONBLOCK) < 0)
		table->secret = (u64)(uintptr_t)table;
	return table;
}

void table_free(struct table *table)
{
	if (!table)
		return;
	free(table->values);
	free(table->states);
	free(table->keys);
	free(table);
}

static u64 hash(const struct table *table, const u64 *key)
{
	u64 sum = table->secret;

	for (u32 i = 0; i < table->words; i++) {
		sum = (sum ^ key[i]) * 0xff51afd7ed558ccdULL;
		sum ^= sum >> 32;
	}
	sum *= 0xc4ceb9fe1a85ec53ULL;
	return sum ^ sum >> 29;
}

static u64 *key_at(const struct table *table, u32 at)
{
	return table->keys + (size_t)at * table->words;
}

static void put_key(const struct table *table, u32 at, const u64 *key)
{
	memcpy(key_at(table, at), key, table->words * sizeof(*key));
}

static bool has_key(const struct table *table, u32 at, const u64 *key)
{
	const u64 *there = key_at(table, at);

	for (u32 i = 0; i < table->words; i++)
		if (there[i] != key[i])
			return false;
	return true;
}

/* The key's place, or the first free one on its way. */
static u32 find(const struct table *table, const u64 *key)
{
	u32 mask = table->capacity - 1, at = (u32)hash(table, key) & mask;
	u32 removed = UINT32_MAX;

	for (;; at = (at + 1) & mask) {
		if (table->states[at] == FREE)
			return removed == UINT32_MAX ? at : removed;
		if (table->states[at] == REMOVED)
			removed = removed == UINT32_MAX ? at : removed;
		else if (has_key(table, at, key))
			return at;
	}
}

static bool rehash(struct table *table)
{
	struct table larger = { .words = table->words, .secret = table->secret, .capacity = 16 };

	for (u32 i = 0; i < table->capacity; i++)
		larger.count += table->states[i] == USED;
	while (larger.count >= larger.capacity / 2)
		larger.capacity *= 2;
	larger.values = malloc(larger.capacity * sizeof(*larger.values));
	larger.states = calloc(larger.capacity, 1);
	larger.keys = malloc(larger.capacity * sizeof(*larger.keys) * larger.words);
	if (!larger.values || !larger.states || !larger.keys) {
		free(larger.values);
		free(larger.states);
		free(larger.keys);
		return false;
	}
	for (u32 i = 0; i < table->capacity; i++) {
		u32 at;

		if (table->states[i] != USED)
			continue;
		at = find(&larger, key_at(table, i));
		larger.states[at] = USED;
		larger.values[at] = table->values[i];
		put_key(&larger, at, key_at(table, i));
	}
	free(table->values);
	free(table->states);
	free(table->keys);
	*table = larger;
	return true;
}

s32 *table_at(struct table *table, const u64 *key)
{
	u32 at;

	if (table->count >= table->capacity / 4 * 3 && !rehash(table))
		return NULL;
	at = find(table, key);
	if (table->states[at] != USED) {
		/* a place that was removed is counted until the next rehash */
		table->count += table->states[at] == FREE;
		table->states[at] = USED;
		table->values[at] = -1;
		put_key(table, at, key);
	}
	return &table->values[at];
}

void table_remove(struct table *table, const u64 *key)
{
	u32 at;

	if (!table->capacity)
		return;
	at = find(table, key);
	if (table->states[at] == USED)
		table->states[at] = REMOVED;
}
