/*
 * What Wireshark's tcp.analysis.* says of a segment, in the order in which Wireshark asks.
 *
 * `fwd` is the side that sent the segment, `rev` the other.  Sequence numbers are compared
 * modulo 2^32 throughout.  A number that is still 0 counts as not known, as it does there.
 */
#include <stdlib.h>
#include <string.h>

#include "core.h"

#define HEADER_BYTES		20
#define MAX_SEGMENTS		10000	/* as many as Wireshark remembers */
#define FAST_RETRANSMISSION_NS	20000000
#define OUT_OF_ORDER_NS		3000000	/* without a handshake to take the RTT from */
#define SANE_IN_FLIGHT		2000000000
#define NEAR			(1 << 30)	/* within it, comparisons are transitive */

enum { END_OF_OPTIONS, NO_OPERATION, MSS, WINDOW_SCALE, SACK_PERMITTED, SACK };

/* Of an option that must have a length and has another, only that length is read. */
static const u8 fixed_sizes[] = {
	[MSS] = 4, [WINDOW_SCALE] = 3, [SACK_PERMITTED] = 2, [6] = 6, [7] = 6, [8] = 10,
	[11] = 6, [12] = 6, [13] = 6, [19] = 18, [27] = 8, [28] = 4,
};

enum { SYN_SENT = 1, SYN_ACK = 2, ACKED = 4, DATA = 8, FIN_SEEN = 16, RST_SEEN = 32 };

struct segment {	/* the one in work */
	s64 time;
	s32 frame;
	u32 seq, ack, size, window;
	u16 flags;
	bool told;	/* something is said of it, be it only its initial RTT */
	u32 marks;
};

static bool before(u32 a, u32 b) { return (s32)(a - b) < 0; }
static bool after(u32 a, u32 b) { return (s32)(b - a) < 0; }
static bool until(u32 a, u32 b) { return (s32)(a - b) <= 0; }

static void mark(struct segment *segment, u32 mark)
{
	segment->marks |= mark;
	segment->told = true;
}

void tcp_clear(struct tcp *tcp)
{
	free(tcp->sides[0].segments.items);
	free(tcp->sides[1].segments.items);
}

/* The list of unacknowledged segments. */

static bool remember(struct segments *list, struct unacked item)
{
	struct unacked *items = list->items;

	if (list->first > list->capacity / 2 && list->first + list->count == list->capacity) {
		memmove(items, items + list->first, list->count * sizeof(*items));
		list->first = 0;
	}
	items = grow(items, &list->capacity, list->first + list->count + 1, sizeof(*items));
	if (!items)
		return false;
	list->items = items;
	items += list->first;
	if (!list->count)
		list->ordered = true;
	else if (before(item.seq, items[list->count - 1].next_seq))
		list->ordered = false;
	if (item.next_seq - item.seq >= NEAR ||
	    (list->count && item.next_seq - items[0].seq >= NEAR))
		list->ordered = false;
	items[list->count++] = item;
	if (list->range_known) {
		u32 low = item.seq - list->base, high = item.next_seq - list->base;

		list->low = low < list->low ? low : list->low;
		list->high = high > list->high ? high : list->high;
	}
	return true;
}

static bool is_ordered(const struct segments *list)
{
	const struct unacked *items = list->items + list->first;

	for (u32 i = 0; i < list->count; i++) {
		if (items[i].next_seq - items[0].seq >= NEAR ||
		    items[i].next_seq - items[i].seq >= NEAR)
			return false;
		if (i && before(items[i].seq, items[i - 1].next_seq))
			return false;
	}
	return true;
}

/* Karn's rule (RFC 6298, section 3): nobody knows which of two transmissions was acknowledged, so
 * that an acknowledgement of bytes that were sent twice tells no round trip.  They are marked
 * here; true if the new segment carries such bytes, too. */
static bool mark_again(struct segments *list, u32 seq, u32 next_seq)
{
	struct unacked *items = list->items + list->first;
	bool again = false;

	for (u32 i = 0; i < list->count; i++) {
		if (before(items[i].seq, next_seq) && before(seq, items[i].next_seq))
			items[i].again = again = true;
		else if (list->ordered && !before(items[i].seq, next_seq))
			break;
	}
	return again;
}

/* Whether an acknowledgement tells of bytes that were sent twice, or only of old ones. */
static bool is_ambiguous(const struct unacked *item, u32 ack)
{
	if (item->needless)
		return ack == item->next_seq;
	return item->again && after(ack, item->seq);
}

/* What one acknowledgement does to one segment: true if it is done with. */
static bool is_acked(struct unacked *item, u32 ack)
{
	if (ack == item->next_seq)
		return true;
	if (after(ack, item->seq) && before(ack, item->next_seq)) {
		item->seq = ack;
		return false;
	}
	return !after(item->next_seq, ack);
}

static void tell_acked(struct row *row, struct segment *segment, const struct unacked *item)
{
	segment->told = true;
	row->acked_frame = item->frame;
	row->ack_rtt_ns = elapsed(item->time_ns, segment->time);
	row->acked_data = item->data;
}

/* Wireshark goes from the newest to the oldest: of several that end here, the oldest counts. */
static void forget_any(struct segments *list, struct row *row, struct segment *segment)
{
	struct unacked *items = list->items + list->first;
	bool found = false, ambiguous = false;
	u32 kept = 0;

	for (u32 i = 0; i < list->count; i++) {
		ambiguous |= is_ambiguous(&items[i], segment->ack);
		if (segment->ack == items[i].next_seq && !found) {
			tell_acked(row, segment, &items[i]);
			found = true;
		}
		if (!is_acked(&items[i], segment->ack))
			items[kept++] = items[i];
	}
	list->count = kept;
	row->timed = row->acked_data && !ambiguous;
	list->range_known = false;
	list->ordered = is_ordered(list);
}

/* In an ordered list what is acknowledged is its beginning. */
static void forget_first(struct segments *list, struct row *row, struct segment *segment)
{
	bool found = false, ambiguous = false;

	while (list->count) {
		struct unacked *item = &list->items[list->first];

		ambiguous |= is_ambiguous(item, segment->ack);
		if (segment->ack == item->next_seq && !found) {
			tell_acked(row, segment, item);
			found = true;
		}
		list->range_known &= !after(segment->ack, item->seq);
		if (!is_acked(item, segment->ack))
			break;
		list->first++;
		list->count--;
	}
	row->timed = row->acked_data && !ambiguous;
}

static void forget_acked(struct segments *list, struct row *row, struct segment *segment)
{
	s32 distance;

	if (!list->count) {
		list->first = 0;
		return;
	}
	distance = (s32)(segment->ack - list->items[list->first].seq);
	if (list->ordered && distance > -NEAR && distance < NEAR)
		forget_first(list, row, segment);
	else
		forget_any(list, row, segment);
}

static u32 range(struct segments *list, u32 base)
{
	const struct unacked *items = list->items + list->first;

	if (list->range_known && list->base == base)
		return list->high - list->low;
	list->base = base;
	list->low = items[0].seq - base;
	list->high = items[list->count - 1].next_seq - base;
	list->range_known = true;
	if (list->ordered && list->low <= list->high)
		return list->high - list->low;
	for (u32 i = 0; i < list->count; i++) {
		u32 low = items[i].seq - base, high = items[i].next_seq - base;

		list->low = low < list->low ? low : list->low;
		list->high = high > list->high ? high : list->high;
	}
	return list->high - list->low;
}

/* The analysis, part by part. */

static bool repeats_ack(const struct direction *fwd, const struct segment *segment)
{
	return !segment->size && segment->window == fwd->window &&
	       segment->seq == fwd->next_seq && segment->ack == fwd->last_ack &&
	       !(segment->flags & (SYN | FIN | RST));
}

static bool fills_window(const struct direction *rev, const struct segment *segment)
{
	u32 scale = rev->before_first_ack || rev->scale < 0 ? 0 : (u32)rev->scale;

	return segment->size && rev->scale != -1 &&
	       segment->seq + segment->size == rev->last_ack + (rev->window << scale) &&
	       !(segment->flags & (SYN | FIN | RST));
}

static void mark_window(struct direction *fwd, const struct direction *rev,
			struct segment *segment)
{
	if (!segment->window && !(segment->flags & (RST | FIN | SYN)))
		mark(segment, ZERO_WINDOW);
	if (fwd->next_seq && after(segment->seq, fwd->next_seq) && !(segment->flags & RST)) {
		mark(segment, LOST_SEGMENT);
		fwd->in_flight_valid = false;
	}
	if (segment->size <= 1 && segment->seq == fwd->next_seq - 1 &&
	    !(segment->flags & (SYN | FIN | RST)))
		mark(segment, KEEP_ALIVE);
	if (!segment->size && segment->window && segment->window != fwd->window &&
	    segment->seq == fwd->next_seq && segment->ack == fwd->last_ack &&
	    !(segment->flags & (SYN | FIN | RST)))
		mark(segment, WINDOW_UPDATE);
	if (fills_window(rev, segment))
		mark(segment, WINDOW_FULL);
}

/* An acknowledgement that says the same as the last one may have a reason. */
static void mark_repeated_ack(struct direction *fwd, const struct direction *rev,
			      struct row *row, struct segment *segment)
{
	if (!repeats_ack(fwd, segment))
		return;
	if (segment->window && rev->last_marks & KEEP_ALIVE) {
		mark(segment, KEEP_ALIVE_ACK);
	} else if (!segment->window) {
		if (rev->last_marks & ZERO_WINDOW_PROBE)
			mark(segment, ZERO_WINDOW_PROBE_ACK);
	} else {
		/* UINT32_MAX: an acknowledgement of what was not seen */
		fwd->dup_acks = fwd->dup_acks == UINT32_MAX ? 1 : fwd->dup_acks + 1;
		mark(segment, DUPLICATE_ACK);
		row->dup_ack_number = fwd->dup_acks;
		row->dup_ack_frame = (s32)fwd->last_non_dup_ack;
	}
}

static void mark_unseen_acked(struct direction *rev, struct segment *segment)
{
	if (!rev->max_seq_to_be_acked || !(segment->flags & ACK) ||
	    !after(segment->ack, rev->max_seq_to_be_acked))
		return;
	segment->told = true;
	if (before(rev->max_seq_to_be_acked, rev->next_seq)) {
		rev->max_seq_to_be_acked = rev->next_seq;
		mark(segment, ACK_LOST_SEGMENT);
	} else {
		if (!rev->dup_acks)
			mark(segment, ACK_LOST_SEGMENT);
		rev->dup_acks = UINT32_MAX;
	}
}

static void mark_retransmission(const struct tcp *tcp, const struct direction *fwd,
				const struct direction *rev, struct segment *segment)
{
	u32 virtual = segment->flags & (SYN | FIN) ? 1 : 0;
	bool known = fwd->next_seq && before(segment->seq, fwd->next_seq);
	u64 limit = tcp->initial_rtt ? (u64)tcp->initial_rtt : OUT_OF_ORDER_NS;

	if ((!segment->size && !virtual) || segment->marks & KEEP_ALIVE)
		return;
	if (segment->size > 1 && fwd->next_seq - 1 == segment->seq)
		known = false;	/* behind a probe of a zero window */
	if (segment->size && rev->last_ack &&
	    until(segment->seq + segment->size, rev->last_ack))
		mark(segment, SPURIOUS_RETRANSMISSION);
	else if (known && rev->dup_acks >= 2 && rev->last_ack == segment->seq &&
		 (u64)elapsed(rev->last_ack_time, segment->time) < FAST_RETRANSMISSION_NS)
		mark(segment, FAST_RETRANSMISSION);
	else if (known && (u64)elapsed(fwd->next_seq_time, segment->time) < limit &&
		 fwd->next_seq != segment->seq + segment->size + virtual)
		mark(segment, OUT_OF_ORDER);
	else if (known)
		mark(segment, RETRANSMISSION);
}

/* A segment with bytes below the highest so far, or that a probe of a zero window carried. */
static bool is_again(struct direction *fwd, const struct segment *segment, u32 next_seq)
{
	struct segments *list = &fwd->segments;
	bool below = fwd->next_seq && before(segment->seq, fwd->next_seq);

	if (!below && (!list->count || !before(segment->seq, list->items[list->first +
						list->count - 1].next_seq)))
		return false;	/* new, as nearly all are */
	return mark_again(list, segment->seq, next_seq) || below;
}

static bool advance(struct direction *fwd, const struct direction *rev,
		    const struct segment *segment)
{
	bool probe = segment->marks & ZERO_WINDOW_PROBE;
	u32 next_seq = segment->seq + segment->size;
	bool kept = true;

	if (segment->size || segment->flags & (SYN | FIN)) {
		u32 end = next_seq + (segment->flags & (SYN | FIN) ? 1 : 0);
		bool needless = rev->last_ack && until(end, rev->last_ack);
		bool again = !needless && is_again(fwd, segment, end);

		if (fwd->segments.count < MAX_SEGMENTS) {
			next_seq = end;
			kept = remember(&fwd->segments,
					(struct unacked){ segment->time, segment->frame,
							  segment->seq, end, segment->size > 0,
							  again, needless });
		}
	}
	if ((after(next_seq, fwd->next_seq) || !fwd->next_seq) && !probe) {
		fwd->next_seq = next_seq;
		fwd->next_seq_time = segment->time;
	}
	if ((segment->seq == fwd->max_seq_to_be_acked || !fwd->max_seq_to_be_acked) && !probe)
		fwd->max_seq_to_be_acked = fwd->next_seq;
	return kept;
}

static void count_in_flight(struct direction *fwd, const struct direction *rev,
			    struct row *row, struct segment *segment)
{
	u32 in_flight;

	if (!segment->size || !fwd->segments.count || !fwd->in_flight_valid)
		return;
	in_flight = range(&fwd->segments, fwd->base_seq) - rev->sack_bytes;
	if (in_flight > 0 && in_flight < SANE_IN_FLIGHT)
		row->bytes_in_flight = in_flight - (segment->flags & (SYN | FIN) ? 1 : 0);
	if (segment->flags & PSH) {
		fwd->push_bytes = (fwd->push_was_last ? 0 : fwd->push_bytes) + segment->size;
		fwd->push_was_last = true;
	} else {
		fwd->push_bytes = (fwd->push_was_last ? 0 : fwd->push_bytes) + segment->size;
		fwd->push_was_last = false;
	}
	segment->told = true;
	row->push_bytes_sent = fwd->push_bytes;
}

static bool analyze(struct tcp *tcp, struct direction *fwd, struct direction *rev,
		    struct row *row, struct segment *segment)
{
	bool kept;

	if (segment->flags & ACK)
		rev->in_flight_valid = true;
	if (segment->size == 1 && segment->seq == fwd->next_seq && !rev->window) {
		mark(segment, ZERO_WINDOW_PROBE);
	} else {
		mark_window(fwd, rev, segment);
		mark_repeated_ack(fwd, rev, row, segment);
	}
	if (segment->ack != fwd->last_ack) {
		fwd->last_non_dup_ack = (u32)segment->frame;
		fwd->dup_acks = 0;
	}
	mark_unseen_acked(rev, segment);
	mark_retransmission(tcp, fwd, rev, segment);
	kept = advance(fwd, rev, segment);
	fwd->window = segment->window;
	fwd->last_ack = segment->ack;
	fwd->last_ack_time = segment->time;
	fwd->last_marks = segment->marks;
	forget_acked(&rev->segments, row, segment);
	count_in_flight(fwd, rev, row, segment);
	return kept;
}

/* The options.  False where they end in the middle of what must be read: Wireshark then
 * says nothing more of the segment. */

/* The table of blocks is kept across a segment's options, so that a second, shorter SACK
 * option is judged by the blocks of the first. */
static bool tells_duplicate(const struct sack *sack, u32 ack)
{
	return until(sack->right[0], ack) ||
	       (sack->count > 1 && before(sack->left[1], sack->right[0]) &&
		until(sack->right[0], sack->right[1]));
}

static bool read_sack(struct slice option, struct direction *fwd, u32 base, u32 ack,
		      struct sack *sack)
{
	u32 blocks = 0;

	fwd->sack_bytes = 0;
	for (u32 at = 2; at + 4 <= option.size; at += 8) {
		u32 left, right;

		if (!has(option, at, 4))
			return false;
		left = be32(option.at + at) - base;
		if (at + 8 > option.size)
			break;
		if (!has(option, at + 4, 4))
			return false;
		right = be32(option.at + at + 4) - base;
		if (++blocks < MAX_SACK_BLOCKS)
			fwd->sack_bytes += right - left;
		if (sack->count < MAX_SACK_BLOCKS) {
			sack->left[sack->count] = left;
			sack->right[sack->count++] = right;
		}
	}
	/* a duplicate is told by its two edges, which must be there then */
	return !tells_duplicate(sack, ack) || has(option, 2, 8);
}

static bool read_option(struct slice option, u8 kind, struct direction *fwd, u32 base, u32 ack,
			struct sack *sack)
{
	if (kind == SACK)
		return read_sack(option, fwd, base, ack, sack);
	if (kind < sizeof(fixed_sizes) && fixed_sizes[kind] && fixed_sizes[kind] != option.size)
		return true;
	if (!has(option, 0, option.size))
		return false;
	if (kind == WINDOW_SCALE)
		fwd->scale = option.at[2] > 14 ? 14 : option.at[2];
	return true;
}

/* A timestamp alone, aligned as RFC 7323's appendix A has it: what nearly all segments carry,
 * and nothing that is told here. */
static bool is_timestamp(struct slice options)
{
	return options.size == 12 && has(options, 0, 12) && be32(options.at) == 0x0101080a;
}

static bool read_options(struct slice options, struct direction *fwd, u32 base, u32 ack,
			 struct sack *sack)
{
	bool ended = false;
	u32 size;

	if (is_timestamp(options))
		return true;
	for (u32 at = 0; at < options.size; at += size) {
		u8 kind;

		if (!has(options, at, 1))
			return false;
		kind = options.at[at];
		if (ended && kind != END_OF_OPTIONS)
			return has(options, at, options.size - at);
		ended |= kind == END_OF_OPTIONS;
		size = 1;
		if (kind == END_OF_OPTIONS || kind == NO_OPERATION)
			continue;
		if (at + 1 >= options.size)
			return true;
		if (!has(options, at + 1, 1))
			return false;
		size = options.at[at + 1];
		if (size < 2)
			return true;
		if (size > options.size - at)
			return has(options, at, options.size - at - 2);
		if (!read_option(trimmed(rest(options, at), size), kind, fwd, base, ack, sack))
			return false;
	}
	return true;
}

/* The header. */

/* A SYN may begin a new connection between the same ports. */
static bool begin(struct core *core, struct packet *packet, struct segment *segment,
		  u16 src_port, u16 dst_port, bool *is_new)
{
	struct connection *found;
	struct direction *fwd;
	bool made;

	found = connect_packet(core, packet, TCP, src_port, dst_port, false, is_new);
	if (!found)
		return false;
	fwd = &core->connections.tcps[found->stream].sides[packet->row->side];
	if (!(segment->flags & SYN) || !fwd->base_known)
		return true;
	if (segment->flags & ACK) {
		if (segment->seq == fwd->base_seq)
			return true;
		fwd->base_seq = segment->seq;
		mark(segment, REUSED_PORTS);
	} else if (segment->seq == fwd->base_seq) {
		/* a reset may have moved it */
		fwd->next_seq = fwd->max_seq_to_be_acked;
		segment->told = true;
	} else {
		found = connect_packet(core, packet, TCP, src_port, dst_port, true, &made);
		if (!found)
			return false;
		core->connections.tcps[found->stream].completeness = SYN_SENT;
		mark(segment, REUSED_PORTS);
	}
	return true;
}

static void learn_bases(struct direction *fwd, struct direction *rev,
			const struct segment *segment)
{
	if (!fwd->base_known) {
		fwd->base_seq = segment->flags & SYN ? segment->seq : segment->seq - 1;
		fwd->base_known = true;
	}
	if (!rev->base_known && segment->flags & ACK) {
		rev->base_seq = segment->ack - 1;
		rev->base_known = true;
	}
}

static u8 complete(u8 known, const struct segment *segment, bool is_new)
{
	u16 kind = segment->flags & (SYN | ACK);

	if (is_new)
		return kind != SYN ? 0 : segment->size ? SYN_SENT | DATA : SYN_SENT;
	if (kind == (SYN | ACK))
		known |= SYN_ACK;
	if (kind == ACK)
		known |= segment->size ? DATA : ACKED;
	if ((segment->flags & (FIN | ACK)) == (FIN | ACK))
		known |= FIN_SEEN;
	if (segment->flags & RST)
		known |= RST_SEEN;
	return known;
}

static void time_handshake(struct tcp *tcp, struct direction *fwd,
			   const struct segment *segment)
{
	if (segment->flags & SYN) {
		if (!(segment->flags & ACK))
			tcp->syn_time = segment->time;
		fwd->before_first_ack = true;
	} else if (segment->flags & ACK) {
		if (tcp->syn_time && !tcp->initial_rtt)
			tcp->initial_rtt = elapsed(tcp->syn_time, segment->time);
		fwd->before_first_ack = false;
	}
}

static void verify_scale(struct direction *fwd, struct direction *rev, u16 flags)
{
	if (fwd->scale == -1)
		fwd->scale = rev->scale = -2;
	else if (flags & ACK && rev->scale == -2)
		fwd->scale = -2;
}

static void tell_header(struct row *row, const struct direction *fwd,
			const struct direction *rev, const struct segment *segment, bool relative)
{
	row->seq = segment->seq;
	row->ack = segment->ack;
	row->relative_seq = relative ? segment->seq - fwd->base_seq : segment->seq;
	row->relative_ack = segment->ack;
	if (relative && segment->flags & ACK)
		row->relative_ack -= rev->base_seq;
	row->flags = segment->flags;
	row->window = segment->window;
	if (segment->flags & SYN)
		return;
	if (relative && fwd->scale >= 0)
		row->window <<= fwd->scale;
	row->window_scale = fwd->scale >= 0 ? (s16)(1 << fwd->scale) : fwd->scale;
}

void dissect_tcp(struct core *core, struct packet *packet, struct slice at)
{
	struct segment segment = { .time = packet->row->time_ns, .frame = packet->row->frame };
	struct row *row = packet->row, told = { 0 };
	struct direction *fwd, *rev;
	struct sack sack = { 0 };
	u32 header_size, relative_ack;
	struct tcp *tcp;
	bool is_new, sized, whole;

	packet->is_row = false;
	packet->skipped.reason = BROKEN;
	if (!has(at, 0, 16))
		return;
	segment.seq = be32(at.at + 4);
	segment.ack = be32(at.at + 8);
	segment.flags = be16(at.at + 12) & 0xfff;
	segment.window = be16(at.at + 14);
	header_size = (at.at[12] >> 4) * 4;
	row->src_port = be16(at.at);
	row->dst_port = be16(at.at + 2);
	row->protocol = TCP;
	if (row->ip_id < 0)	/* without the checksum, which a network card may fill in */
		row->content = content_of(trimmed(at, 16)) ^ content_of(rest(at, 18));
	if (!begin(core, packet, &segment, row->src_port, row->dst_port, &is_new))
		return;
	row->stream = core->connections.items[row->connection].stream;
	tcp = &core->connections.tcps[row->stream];
	fwd = &tcp->sides[row->side];
	rev = &tcp->sides[!row->side];
	row->completeness = tcp->completeness;
	fwd->sack_bytes = 0;
	sized = !packet->fragment && !packet->quoted && at.size >= header_size;
	if (sized) {
		segment.size = at.size - header_size;
		row->payload = (s32)segment.size;
		packet->skipped.reason = READ;
		packet->is_row = true;
		learn_bases(fwd, rev, &segment);
		if (!analyze(tcp, fwd, rev, &told, &segment))
			core->no_memory = true;
	}
	row->seq = segment.seq;
	row->relative_seq = sized ? segment.seq - fwd->base_seq : segment.seq;
	if (header_size < HEADER_BYTES)
		return;
	tcp->completeness = complete(tcp->completeness, &segment, is_new);
	tell_header(row, fwd, rev, &segment, sized);
	relative_ack = row->relative_ack;
	time_handshake(tcp, fwd, &segment);
	/* From here on missing bytes keep the rest unsaid. */
	if (!has(at, 16, 4))
		return;
	whole = read_options(trimmed(rest(at, HEADER_BYTES), header_size - HEADER_BYTES), fwd,
			     rev->base_seq, relative_ack, &sack);
	if (packet->is_row && core->columns)
		sacks_add(core, segment.frame, &sack);
	if (!whole || at.size < header_size)
		return;
	if (segment.told) {
		row->marks = segment.marks;
		/* Wireshark tells each of these as a retransmission too. */
		if (segment.marks & (FAST_RETRANSMISSION | SPURIOUS_RETRANSMISSION))
			row->marks |= RETRANSMISSION;
		row->acked_frame = told.acked_frame;
		row->acked_data = told.acked_data;
		row->timed = told.timed;
		row->ack_rtt_ns = told.ack_rtt_ns;
		row->initial_rtt_ns = tcp->initial_rtt;
		row->dup_ack_number = told.dup_ack_number;
		row->dup_ack_frame = told.dup_ack_frame;
		row->bytes_in_flight = told.bytes_in_flight;
		row->push_bytes_sent = told.bytes_in_flight ? told.push_bytes_sent : 0;
	}
	if (segment.flags & SYN)
		verify_scale(fwd, rev, segment.flags);
}
