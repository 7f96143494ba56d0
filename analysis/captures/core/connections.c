/* Which packets belong together, and the table of addresses. */
#include <endian.h>
#include <stdlib.h>

#include "core.h"

#define WORDS(type)	(sizeof(type) / sizeof(u64))

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

bool connections_init(struct connections *all)
{
	all->index = table_new(WORDS(struct key));
	all->address_index = table_new(WORDS(struct address));
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
	s32 *number = table_at(all->address_index, (const u64 *)address);
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

static s32 connection_new(struct connections *all, const struct key *key, int protocol,
			  const struct address *a, const struct address *b)
{
	struct connection *larger, *made;

	larger = grow(all->items, &all->capacity, all->count + 1, sizeof(*larger));
	if (!larger)
		return -1;
	all->items = larger;
	made = &all->items[all->count];
	*made = (struct connection){ .key = *key, .protocol = (u8)protocol };
	made->ends[0] = address_number(all, a);
	made->ends[1] = address_number(all, b);
	if (made->ends[0] < 0 || made->ends[1] < 0)
		return -1;
	if (protocol == TCP && !tcp_new(all, all->streams[TCP]))
		return -1;
	made->stream = all->streams[protocol]++;
	return (s32)all->count++;
}

/* The order in which Wireshark tells a connection's two sides apart. */
static bool src_is_greater(const struct packet *packet, u16 src_port, u16 dst_port)
{
	const struct address *src = &packet->src, *dst = &packet->dst;

	if (src->family != dst->family)
		return src->family > dst->family;
	for (int i = 0; i < 2; i++)
		if (src->words[i] != dst->words[i])
			return be64toh(src->words[i]) > be64toh(dst->words[i]);
	return src_port > dst_port;
}

/* Most packets are of connections that were seen a little before: these are found without the
 * table, whose hash costs more as nobody can foresee it. */
static u32 recent_place(const struct key *key)
{
	u64 sum = key->a[0] ^ key->a[1] ^ key->b[0] ^ key->b[1] ^ key->rest;

	return (u32)(sum * 0x9e3779b97f4a7c15ULL >> 32) % RECENT;
}

static bool is_same(const struct key *one, const struct key *other)
{
	return one->rest == other->rest && one->a[0] == other->a[0] &&
	       one->a[1] == other->a[1] && one->b[0] == other->b[0] && one->b[1] == other->b[1];
}

struct connection *connect_packet(struct core *core, struct packet *packet, int protocol,
				  u16 src_port, u16 dst_port, bool again, bool *is_new)
{
	struct connections *all = &core->connections;
	bool greater = src_is_greater(packet, src_port, dst_port);
	const struct address *a = greater ? &packet->src : &packet->dst;
	const struct address *b = greater ? &packet->dst : &packet->src;
	u64 a_port = greater ? src_port : dst_port, b_port = greater ? dst_port : src_port;
	const struct key key = {
		{ a->words[0], a->words[1] }, { b->words[0], b->words[1] },
		a_port << 48 | b_port << 32 | a->family << 16 | b->family << 8 | (u64)protocol,
	};
	u32 *recent = &all->recent[recent_place(&key)];
	s32 *number;

	packet->row->side = !greater;
	packet->row->connection = *recent;
	*is_new = false;
	if (!again && *recent < all->count && is_same(&key, &all->items[*recent].key))
		return &all->items[*recent];
	number = table_at(all->index, (const u64 *)&key);
	*is_new = number && *number < 0;
	if (number && (again || *is_new))
		*number = connection_new(all, &key, protocol, a, b);
	if (!number || *number < 0) {
		core->no_memory = true;
		return NULL;
	}
	packet->row->connection = *recent = (u32)*number;
	return &all->items[*number];
}
