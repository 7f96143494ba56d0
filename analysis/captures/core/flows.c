/* Sums over each connection, by direction: what a table of flows is made of. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core.h"

#define MAX_HOLES	16384	/* more: the capture is not of the connection's bytes */
#define MAX_SAMPLES	16384	/* more go into a histogram */
#define FINENESS	9	/* a histogram's bucket is 2^-9 of its value wide */
#define BUCKETS		((64 - FINENESS) << FINENESS)

struct interval { s64 begin, end; };

/* TCP's bytes in order, each once: how far they are contiguous. */
struct delivery {
	struct interval *beyond;	/* behind a hole, in order, apart from each other */
	u32 count, capacity;
	s64 start, edge, last;
	u32 last_seq;
	bool known, from_syn, lost, unlimited;
};

struct samples {
	s64 *values;
	u32 *buckets;	/* null up to MAX_SAMPLES */
	u32 capacity;
	u64 count;
	double sum;
	s64 low;
};

/* As Python reads it. */
struct side {
	u64 bytes, payload;
	s64 delivered;		/* -1: not known */
	/* of data from this side, by Karn's rule; NaN: none */
	double rtt_low_ms, rtt_mean_ms, rtt_p95_ms;
	double ack_rtt_mean_ms;	/* with what that rule leaves out */
	u32 packets, data_packets;
	u32 retransmissions, fast_retransmissions, spurious_retransmissions, out_of_order;
	u32 duplicate_acks, ce;
	s32 address;
	s32 port;
};

struct flow {
	s64 first_ns, last_ns;
	s32 stream;
	u8 protocol, began;
	struct side sides[2];
};

struct detail {
	struct delivery delivery[2];
	struct samples *rtts[2];	/* null: none */
	double ack_rtt_sums[2];	/* of data from this side */
	u64 ack_rtts[2];
};

struct flows {
	struct flow *items;
	struct detail *details;
	s32 *of_connection;	/* -1: none of its packets was one of the result */
	u32 count, capacity, detail_capacity, connections, connection_capacity;
};

struct flows *flows_new(void)
{
	return calloc(1, sizeof(struct flows));
}

static void samples_free(struct samples *samples)
{
	if (!samples)
		return;
	free(samples->values);
	free(samples->buckets);
	free(samples);
}

void flows_free(struct flows *all)
{
	if (!all)
		return;
	for (u32 i = 0; i < all->count; i++) {
		for (int side = 0; side < 2; side++) {
			free(all->details[i].delivery[side].beyond);
			samples_free(all->details[i].rtts[side]);
		}
	}
	free(all->items);
	free(all->details);
	free(all->of_connection);
	free(all);
}

u32 flows_count(const struct flows *all)
{
	return all->count;
}

/* Bytes behind a hole wait for it to be filled. */
static bool set_aside(struct delivery *to, s64 begin, s64 end)
{
	struct interval *items = to->beyond;
	u32 at = to->count, stop;

	while (at && items[at - 1].end >= begin)
		at--;
	for (stop = at; stop < to->count && items[stop].begin <= end; stop++) {
		begin = items[stop].begin < begin ? items[stop].begin : begin;
		end = items[stop].end > end ? items[stop].end : end;
	}
	if (stop == at) {
		if (to->count == MAX_HOLES && !to->unlimited) {
			to->lost = true;
			return true;
		}
		items = grow(items, &to->capacity, to->count + 1, sizeof(*items));
		if (!items)
			return false;
		to->beyond = items;
		stop = at + 1;
		memmove(&items[stop], &items[at], (to->count - at) * sizeof(*items));
		to->count++;
	}
	items[at] = (struct interval){ begin, end };
	memmove(&items[at + 1], &items[stop], (to->count - stop) * sizeof(*items));
	to->count -= stop - at - 1;
	return true;
}

static void take_filled(struct delivery *to)
{
	u32 filled = 0;

	while (filled < to->count && to->beyond[filled].begin <= to->edge) {
		if (to->beyond[filled].end > to->edge)
			to->edge = to->beyond[filled].end;
		filled++;
	}
	if (filled) {
		memmove(to->beyond, to->beyond + filled,
			(to->count - filled) * sizeof(*to->beyond));
		to->count -= filled;
	}
}

/* The bytes of the next packet. */
static bool advance(struct delivery *to, s64 begin, s64 end)
{
	if (begin > to->edge)
		return begin == end || to->lost || set_aside(to, begin, end);
	if (end > to->edge) {
		to->edge = end;
		take_filled(to);
	}
	return true;
}

static bool deliver(struct delivery *to, const struct row *row)
{
	bool syn = row->flags & SYN && !to->from_syn;

	to->last += to->known ? (s32)(row->seq - to->last_seq) : (s64)row->seq;
	to->last_seq = row->seq;
	if (!to->known || syn) {
		to->known = true;
		to->from_syn |= syn;
		to->start = to->edge = to->last + syn;
		to->count = 0;
	}
	return advance(to, to->last, to->last + row->payload);
}

static u32 bucket(s64 value)
{
	u64 positive = value > 0 ? (u64)value : 0;
	int shift;

	if (positive < (1 << FINENESS))
		return (u32)positive;
	shift = 63 - __builtin_clzll(positive) - FINENESS;
	return (u32)(((u64)(shift + 1) << FINENESS) + ((positive >> shift) - (1 << FINENESS)));
}

static double middle(u32 number)
{
	u32 shift = number >> FINENESS;
	u64 low;

	if (!shift)
		return number;
	low = ((u64)(number & ((1 << FINENESS) - 1)) + (1 << FINENESS)) << (shift - 1);
	return (double)low + (double)((1ULL << (shift - 1)) - 1) / 2;
}

static bool to_buckets(struct samples *to)
{
	to->buckets = calloc(BUCKETS, sizeof(*to->buckets));
	if (!to->buckets)
		return false;
	for (u32 i = 0; i < to->count; i++)
		to->buckets[bucket(to->values[i])]++;
	free(to->values);
	to->values = NULL;
	return true;
}

static bool sample(struct samples **samples, s64 value)
{
	struct samples *to = *samples ? *samples : calloc(1, sizeof(*to));
	s64 *values;

	if (!to)
		return false;
	*samples = to;
	if (to->count == MAX_SAMPLES && !to->buckets && !to_buckets(to))
		return false;
	if (to->buckets) {
		to->buckets[bucket(value)]++;
	} else {
		values = grow(to->values, &to->capacity, (u32)to->count + 1, sizeof(*values));
		if (!values)
			return false;
		to->values = values;
		values[to->count] = value;
	}
	to->low = to->count && to->low < value ? to->low : value;
	to->sum += (double)value;
	to->count++;
	return true;
}

static bool count(struct side *side, struct detail *detail, const struct row *row)
{
	int number = row->side;

	side->packets++;
	side->data_packets += row->payload > 0;
	side->bytes += (u64)row->length;
	side->payload += (u64)(row->payload > 0 ? row->payload : 0);
	side->ce += row->ecn == 3;
	side->retransmissions += !!(row->marks & RETRANSMISSION);
	side->fast_retransmissions += !!(row->marks & FAST_RETRANSMISSION);
	side->spurious_retransmissions += !!(row->marks & SPURIOUS_RETRANSMISSION);
	side->out_of_order += !!(row->marks & OUT_OF_ORDER);
	side->duplicate_acks += !!(row->marks & DUPLICATE_ACK);
	if (row->protocol != TCP)
		return true;
	if (row->acked_data && row->ack_rtt_ns) {
		detail->ack_rtt_sums[!number] += (double)row->ack_rtt_ns;
		detail->ack_rtts[!number]++;
		if (row->timed && !sample(&detail->rtts[!number], row->ack_rtt_ns))
			return false;
	}
	return deliver(&detail->delivery[number], row);
}

static bool flow_new(struct flows *all, const struct row *row)
{
	u8 side = row->side;
	struct detail *details;
	struct flow *items;

	items = grow(all->items, &all->capacity, all->count + 1, sizeof(*items));
	if (!items)
		return false;
	all->items = items;
	details = grow(all->details, &all->detail_capacity, all->count + 1, sizeof(*details));
	if (!details)
		return false;
	all->details = details;
	details[all->count] = (struct detail){ 0 };
	items += all->count;
	*items = (struct flow){
		.first_ns = row->time_ns, .last_ns = row->time_ns, .stream = row->stream,
		.protocol = row->protocol, .began = side,
	};
	items->sides[side].address = row->src;
	items->sides[side].port = row->src_port;
	items->sides[!side].address = row->dst;
	items->sides[!side].port = row->dst_port;
	all->of_connection[row->connection] = (s32)all->count++;
	return true;
}

static bool know_connection(struct flows *all, u32 connection)
{
	s32 *larger = grow(all->of_connection, &all->connection_capacity, connection + 1,
			   sizeof(*larger));

	if (!larger)
		return false;
	all->of_connection = larger;
	while (all->connections <= connection)
		larger[all->connections++] = -1;
	return true;
}

bool flows_add(struct flows *all, const struct row *row)
{
	struct flow *flow;
	s32 number;

	if (row->connection >= all->connections && !know_connection(all, row->connection))
		return false;
	if (all->of_connection[row->connection] < 0 && !flow_new(all, row))
		return false;
	number = all->of_connection[row->connection];
	flow = &all->items[number];
	if (row->time_ns < flow->first_ns)
		flow->first_ns = row->time_ns;
	if (row->time_ns > flow->last_ns)
		flow->last_ns = row->time_ns;
	return count(&flow->sides[row->side], &all->details[number], row);
}

static int compare(const void *a, const void *b)
{
	s64 x = *(const s64 *)a, y = *(const s64 *)b;

	return (x > y) - (x < y);
}

static double ranked(const struct samples *from, u64 rank)
{
	u64 below = 0;

	if (!from->buckets)
		return (double)from->values[rank];
	for (u32 i = 0; i < BUCKETS; i++) {
		below += from->buckets[i];
		if (below > rank)
			return middle(i);
	}
	return NAN;
}

/* A quantile of the RTTs in ms, between ranks as numpy's percentile does it; exact up to
 * MAX_SAMPLES, then to a part in 1024. */
static double quantile_ms(const struct samples *from, double quantile)
{
	double place = quantile * (double)(from->count - 1), low;
	u64 rank = (u64)place;

	if (!from->buckets)
		qsort(from->values, from->count, sizeof(*from->values), compare);
	low = ranked(from, rank);
	if (rank + 1 < from->count)
		low += (ranked(from, rank + 1) - low) * (place - (double)rank);
	return low / 1e6;
}

static void sum_up(struct side *side, const struct detail *detail, int number)
{
	const struct delivery *delivery = &detail->delivery[number];
	const struct samples *rtts = detail->rtts[number];
	u64 count = detail->ack_rtts[number];

	side->delivered = delivery->lost ? -1 : delivery->edge - delivery->start;
	side->rtt_low_ms = rtts ? (double)rtts->low / 1e6 : NAN;
	side->rtt_mean_ms = rtts ? rtts->sum / (double)rtts->count / 1e6 : NAN;
	side->rtt_p95_ms = rtts ? quantile_ms(rtts, 0.95) : NAN;
	side->ack_rtt_mean_ms = count ? detail->ack_rtt_sums[number] / (double)count / 1e6 : NAN;
}

/* For Python. */

/* How far a connection's bytes are contiguous after each of its packets, which carry the bytes
 * from `begin` to `end`. `edge` is where the first byte belongs. */
bool core_contiguous(u64 count, const s64 *begin, const s64 *end, s64 edge, s64 *edges)
{
	struct delivery to = { .edge = edge, .unlimited = true };
	bool enough = true;

	for (u64 i = 0; i < count && enough; i++) {
		enough = advance(&to, begin[i], end[i]);
		edges[i] = to.edge;
	}
	free(to.beyond);
	return enough;
}

/* What Python reads, so that it notices a core of another layout. */
size_t core_layout_size(void)
{
	return sizeof(struct flow) + sizeof(struct columns);
}

/* The flows, with what is only known at the end: nothing can be read afterwards. */
const struct flow *core_flows(struct core *core)
{
	struct flows *all = core->flows;

	connections_close(&core->connections);
	for (u32 i = 0; i < all->count; i++)
		for (int number = 0; number < 2; number++)
			sum_up(&all->items[i].sides[number], &all->details[i], number);
	return all->items;
}
