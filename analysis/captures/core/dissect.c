/*
 * A frame becomes a row: its headers are dissected, from the link layer down to TCP or UDP.
 *
 * Where a header is not whole, the dissection ends, as Wireshark's does; what was learnt
 * before stays.
 */
#include <math.h>

#include "dissect.h"

static double milliseconds(s64 ns)
{
	return ns ? (double)ns / 1e6 : NAN;
}

static void store(struct columns *to, const struct row *row)
{
	u64 i = to->used++;

	to->frame[i] = row->frame;
	to->time_ns[i] = row->time_ns;
	to->length[i] = row->length;
	to->protocol[i] = row->protocol;
	to->stream[i] = row->stream;
	to->src[i] = row->src;
	to->dst[i] = row->dst;
	to->src_port[i] = row->src_port;
	to->dst_port[i] = row->dst_port;
	to->ip_id[i] = row->ip_id;
	to->seq[i] = row->seq;
	to->ack[i] = row->ack;
	to->payload[i] = row->payload;
	to->flags[i] = row->flags;
	to->marks[i] = row->marks;
	to->ack_rtt_ms[i] = milliseconds(row->ack_rtt_ns);
	to->acked_frame[i] = row->acked_frame;
	to->initial_rtt_ms[i] = milliseconds(row->initial_rtt_ns);
	to->dup_ack_number[i] = row->dup_ack_number;
	to->dup_ack_frame[i] = row->dup_ack_frame;
	to->bytes_in_flight[i] = row->bytes_in_flight;
	to->push_bytes_sent[i] = row->push_bytes_sent;
	to->relative_seq[i] = row->relative_seq;
	to->relative_ack[i] = row->relative_ack;
	to->window[i] = row->window;
	to->window_scale[i] = row->window_scale;
	to->ecn[i] = row->ecn;
	to->completeness[i] = row->completeness;
}

void dissect(struct core *core, u32 link_type, s64 time_ns, struct slice frame)
{
	struct packet packet = { 0 };
	struct connection *connection;

	if (!core->state.frames++)
		core->state.start_ns = time_ns;
	packet.row.frame = core->state.frames;
	packet.row.time_ns = time_ns;
	packet.row.length = (s32)(frame.size < INT32_MAX ? frame.size : INT32_MAX);
	packet.unread.why = BROKEN;	/* until a header says otherwise */
	dissect_link(core, &packet, link_type, frame);
	if (packet.icmp)
		return;
	if (packet.unread.why != READ && (!packet.is_row || packet.unread.why == TUNNEL) &&
	    !unread_add(core->unread, packet.unread, 1))
		core->no_memory = true;
	if (!packet.is_row || core->no_memory)
		return;
	connection = &core->connections.items[packet.connection];
	packet.row.src = connection->ends[packet.side];
	packet.row.dst = connection->ends[!packet.side];
	if (packet.next_hop.family)
		packet.row.dst = address_number(&core->connections, &packet.next_hop);
	core->state.rows++;
	if (core->columns)
		store(core->columns, &packet.row);
	if (core->flows && !flows_add(core->flows, connection, &packet.row, packet.side))
		core->no_memory = true;
}
