/* Which packets belong together, and the table of addresses. */
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "core.h"

struct table {
	size_t key_size;
	u64 secret;		/* so that no capture can be made of keys that collide */
	u32 count, capacity;	/* a power of two, or 0 */
	s32 *values;		/* the key's number */
	u8 *states;
	u8 *keys;
};

enum { FREE, USED, REMOVED };

void *grow(void *array, u32 *capacity, u32 needed, size_t item)
{
	u32 wanted = *capacity ? *capacity : 1;
	void *larger;

	while (wanted < needed) {
		if (wanted > UINT32_MAX / 2)
			return NULL;
		wanted *= 2;
	}
	if (wanted == *capacity)
		return array;
	larger = realloc(array, (size_t)wanted * item);
	if (larger)
		*capacity = wanted;
	return larger;
}

struct table *table_new(size_t key_size)
{
	struct table *table = calloc(1, sizeof(*table));

	if (!table)
		return NULL;
	table->key_size = key_size;
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

u32 table_count(const struct table *table)
{
	return table->count;
}

static u64 hash(const struct table *table, const u8 *key)
{
	size_t size = table->key_size;
	u64 sum = table->secret, word;

	for (; size >= 8; size -= 8, key += 8) {
		memcpy(&word, key, 8);
		sum = (sum ^ word) * 0xff51afd7ed558ccdULL;
		sum ^= sum >> 32;
	}
	word = 0;
	memcpy(&word, key, size);
	sum = (sum ^ word) * 0xc4ceb9fe1a85ec53ULL;
	return sum ^ sum >> 29;
}

/* The key's place, or the first free one on its way. */
static u32 find(const struct table *table, const u8 *key)
{
	u32 mask = table->capacity - 1, at = (u32)hash(table, key) & mask;
	u32 removed = UINT32_MAX;

	for (;; at = (at + 1) & mask) {
		if (table->states[at] == FREE)
			return removed == UINT32_MAX ? at : removed;
		if (table->states[at] == REMOVED)
			removed = removed == UINT32_MAX ? at : removed;
		else if (!memcmp(table->keys + at * table->key_size, key, table->key_size))
			return at;
	}
}

static bool rehash(struct table *table)
{
	struct table larger = { .key_size = table->key_size, .secret = table->secret,
				.capacity = 16 };

	for (u32 i = 0; i < table->capacity; i++)
		larger.count += table->states[i] == USED;
	while (larger.count >= larger.capacity / 2)
		larger.capacity *= 2;
	larger.values = malloc(larger.capacity * sizeof(*larger.values));
	larger.states = calloc(larger.capacity, 1);
	larger.keys = malloc(larger.capacity * larger.key_size);
	if (!larger.values || !larger.states || !larger.keys) {
		free(larger.values);
		free(larger.states);
		free(larger.keys);
		return false;
	}
	for (u32 i = 0; i < table->capacity; i++) {
		const u8 *key = table->keys + i * table->key_size;
		u32 at;

		if (table->states[i] != USED)
			continue;
		at = find(&larger, key);
		larger.states[at] = USED;
		larger.values[at] = table->values[i];
		memcpy(larger.keys + at * larger.key_size, key, larger.key_size);
	}
	free(table->values);
	free(table->states);
	free(table->keys);
	*table = larger;
	return true;
}

s32 *table_at(struct table *table, const void *key)
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
		memcpy(table->keys + at * table->key_size, key, table->key_size);
	}
	return &table->values[at];
}

void table_remove(struct table *table, const void *key)
{
	u32 at;

	if (!table->capacity)
		return;
	at = find(table, key);
	if (table->states[at] == USED)
		table->states[at] = REMOVED;
}

bool connections_init(struct connections *all)
{
	all->index = table_new(sizeof(struct key));
	all->address_index = table_new(sizeof(struct address));
	return all->index && all->address_index;
}

void connections_close(struct connections *all)
{
	for (s32 i = 0; all->tcps && i < all->streams[TCP]; i++)
		tcp_clear(&all->tcps[i]);
	free(all->tcps);
	free(all->items);
	table_free(all->index);
	table_free(all->address_index);
	all->tcps = NULL;
	all->items = NULL;
	all->index = all->address_index = NULL;
}

void connections_clear(struct connections *all)
{
	connections_close(all);
	free(all->addresses);
}

s32 address_number(struct connections *all, const struct address *address)
{
	s32 *number = table_at(all->address_index, address);
	struct address *larger;

	if (!number)
		return -1;
	if (*number >= 0)
		return *number;
	larger = grow(all->addresses, &all->address_capacity, all->address_count + 1,
		      sizeof(*larger));
	if (!larger)
		return -1;
	all->addresses = larger;
	all->addresses[all->address_count] = *address;
	return *number = (s32)all->address_count++;
}

static bool tcp_new(struct connections *all, s32 number)
{
	struct tcp *larger = grow(all->tcps, &all->tcp_capacity, (u32)number + 1, sizeof(*larger));

	if (!larger)
		return false;
	all->tcps = larger;
	larger += number;
	*larger = (struct tcp){ 0 };
	for (int i = 0; i < 2; i++) {
		larger->sides[i].window = UINT32_MAX;
		larger->sides[i].scale = -1;
		larger->sides[i].in_flight_valid = true;
		larger->sides[i].segments.ordered = true;
	}
	return true;
}

static s32 connection_new(struct connections *all, const struct key *key)
{
	struct connection *larger, *made;

	larger = grow(all->items, &all->capacity, all->count + 1, sizeof(*larger));
	if (!larger)
		return -1;
	all->items = larger;
	made = &all->items[all->count];
	*made = (struct connection){ .flow = -1, .protocol = key->protocol };
	made->ends[0] = address_number(all, &key->a);
	made->ends[1] = address_number(all, &key->b);
	if (made->ends[0] < 0 || made->ends[1] < 0)
		return -1;
	if (key->protocol == TCP && !tcp_new(all, all->streams[TCP]))
		return -1;
	made->stream = all->streams[key->protocol]++;
	return (s32)all->count++;
}

/* The order in which Wireshark tells a connection's two sides apart. */
static bool src_is_greater(const struct packet *packet, u16 src_port, u16 dst_port)
{
	int order = packet->src.family - packet->dst.family;

	if (!order)
		order = memcmp(packet->src.bytes, packet->dst.bytes, 16);
	return order ? order > 0 : src_port > dst_port;
}

struct connection *connect_packet(struct core *core, struct packet *packet, int protocol,
				  u16 src_port, u16 dst_port, bool again, bool *is_new)
{
	struct connections *all = &core->connections;
	bool greater = src_is_greater(packet, src_port, dst_port);
	struct key key;
	s32 *number;

	memset(&key, 0, sizeof(key));	/* the padding takes part in the comparison */
	key.a = greater ? packet->src : packet->dst;
	key.b = greater ? packet->dst : packet->src;
	key.a_port = greater ? src_port : dst_port;
	key.b_port = greater ? dst_port : src_port;
	key.protocol = (u8)protocol;
	packet->side = !greater;
	number = table_at(all->index, &key);
	*is_new = number && *number < 0;
	if (number && (again || *is_new))
		*number = connection_new(all, &key);
	if (!number || *number < 0) {
		core->no_memory = true;
		return NULL;
	}
	packet->connection = (u32)*number;
	return &all->items[*number];
}
