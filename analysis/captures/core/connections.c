/* Which packets belong together, and the table of addresses. */
#include <endian.h>
#include <stdlib.h>

#include "core.h"

struct key {
	u64 a[2], b[2];		/* addresses; a is the greater end */
	u16 a_port, b_port;
	u8 a_family, b_family, protocol, zero;
};

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

static s32 connection_new(struct connections *all, const struct key *key)
{
	const struct address a = { { key->a[0], key->a[1] }, key->a_family };
	const struct address b = { { key->b[0], key->b[1] }, key->b_family };
	struct connection *larger, *made;

	larger = grow(all->items, &all->capacity, all->count + 1, sizeof(*larger));
	if (!larger)
		return -1;
	all->items = larger;
	made = &all->items[all->count];
	*made = (struct connection){ .protocol = key->protocol };
	made->ends[0] = address_number(all, &a);
	made->ends[1] = address_number(all, &b);
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
	const struct address *src = &packet->src, *dst = &packet->dst;

	if (src->family != dst->family)
		return src->family > dst->family;
	for (int i = 0; i < 2; i++)
		if (src->words[i] != dst->words[i])
			return be64toh(src->words[i]) > be64toh(dst->words[i]);
	return src_port > dst_port;
}

struct connection *connect_packet(struct core *core, struct packet *packet, int protocol,
				  u16 src_port, u16 dst_port, bool again, bool *is_new)
{
	struct connections *all = &core->connections;
	bool greater = src_is_greater(packet, src_port, dst_port);
	const struct address *a = greater ? &packet->src : &packet->dst;
	const struct address *b = greater ? &packet->dst : &packet->src;
	const struct key key = {
		{ a->words[0], a->words[1] }, { b->words[0], b->words[1] },
		greater ? src_port : dst_port, greater ? dst_port : src_port,
		(u8)a->family, (u8)b->family, (u8)protocol, 0,
	};
	s32 *number;

	packet->row->side = !greater;
	number = table_at(all->index, (const u64 *)&key);
	*is_new = number && *number < 0;
	if (number && (again || *is_new))
		*number = connection_new(all, &key);
	if (!number || *number < 0) {
		core->no_memory = true;
		return NULL;
	}
	packet->row->connection = (u32)*number;
	return &all->items[*number];
}
