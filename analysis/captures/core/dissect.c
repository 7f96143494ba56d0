/*
 * A frame becomes a row: its headers are dissected, from the link layer down to TCP or UDP.
 *
 * Where a header is not whole, the dissection ends, as Wireshark's does; what was learnt
 * before stays.
 */
#include <string.h>

#include "dissect.h"

#define MIX	0x9e3779b97f4a7c15ULL	/* of 2^64, the golden ratio's part */

u64 content_of(struct slice at)
{
	u64 found = at.have, word;

	for (u32 i = 0; i < at.have; i += sizeof(word)) {
		u32 left = at.have - i;

		word = 0;
		memcpy(&word, at.at + i, left < sizeof(word) ? left : sizeof(word));
		found = (found ^ word) * MIX;
		found ^= found >> 32;
	}
	return found;
}

/* Not the addresses: they are set by the headers before anything asks for them. */
static void begin(struct packet *packet, struct row *row)
{
	packet->row = row;
	packet->next_hop.family = 0;
	packet->skipped = (struct skip){ BROKEN, 0 };
	packet->is_row = packet->icmp = packet->quoted = packet->fragment = false;
	packet->vlan = 0;
	packet->depth = 0;
}

void dissect(struct core *core, u32 link_type, s64 time_ns, struct slice frame)
{
	struct row *row = rows_next(core->rows);
	struct connection *connection;
	struct packet packet;

	begin(&packet, row);
	if (!core->state.frames++)
		core->state.start_ns = time_ns;
	row->frame = core->state.frames;
	row->time_ns = time_ns;
	row->length = (s32)(frame.size < INT32_MAX ? frame.size : INT32_MAX);
	dissect_link(core, &packet, link_type, frame);
	if (packet.icmp)
		return;
	if (packet.skipped.reason != READ && (!packet.is_row || packet.skipped.reason == TUNNEL) &&
	    !skipped_add(core->skipped, packet.skipped, 1))
		core->no_memory = true;
	if (!packet.is_row || core->no_memory)
		return;
	connection = &core->connections.items[row->connection];
	row->src = connection->ends[row->side];
	row->dst = connection->ends[!row->side];
	if (packet.next_hop.family)
		row->dst = address_number(&core->connections, &packet.next_hop);
	core->state.rows++;
	rows_keep(core);
}
