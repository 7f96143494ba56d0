/*
 * Who may send when: IEEE 802.11's distributed access, with best effort's parameters for all.
 *
 * A station with something to send waits until the medium has been free for AIFS, and then for a
 * number of slots, drawn from its window; slots that it has waited count when another was faster.
 * Two that end in the same slot collide. Who is not answered doubles the window. A frame is tried
 * at the rates, and as often at each, as the kernel's rate control has said; data frames for
 * which the two kernels have agreed on it travel together behind one preamble (A-MPDU), and each
 * is lost or understood by itself. Answers are never lost.
 *
 * Other stations are in the hall too: each has one frame, of 0.2 to 1.8 ms with its answer, and
 * draws its slots as ours do. Their frames come at random (Poisson), so many that they fill the
 * share `busy` of the time. Those that wait collide with ours and not with each other: were all of
 * them followed, a crowd without limit would soon do nothing but collide.
 */
#include "medium.h"
#include <math.h>

#define OTHERS		512
#define SHORTEST	(200 * US)
#define LONGEST		(1800 * US)
#define ACK_BYTES	14
#define BLOCK_ACK_BYTES	32
#define DELIMITER_BYTES	4
#define FCS_BYTES	4
#define AGGREGATE_BYTES	65535
#define AGGREGATE_NS	(4000 * US)	/* as ath9k's: longer ones would keep others waiting */
#define AGGREGATE_MOST	64

#define FLAG_NO_ACK	2		/* HWSIM_TX_CTL_NO_ACK */

struct radio radios[RADIOS];
uint64_t foreign_frames, foreign_collisions, foreign_lost;
int64_t foreign_air_ns;

static struct contender others;		/* the fastest of them */
static int64_t lengths[OTHERS];		/* of their frames, in no order */
static int other_count;
int64_t zero_ns = NEVER;		/* the first frame of ours; then the others begin */
static int64_t next_other = NEVER;
static double others_gap_ns;
static int64_t free_ns;			/* since when the medium is free, or when it will be */
static int flying;			/* something of ours, until then */
static double signal;
static uint64_t state;			/* of the dice */

static double uniform(void)		/* splitmix64, in [0, 1) */
{
	uint64_t z = (state += 0x9e3779b97f4a7c15ULL);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return (double)((z ^ (z >> 31)) >> 11) / (double)(1ULL << 53);
}

static void draw_slots(struct contender *who, int64_t since)
{
	who->since_ns = since;
	who->slots = (int)(uniform() * (who->window + 1));
}

static void draw_next_other(int64_t after)
{
	next_other = after + (int64_t)(-others_gap_ns * log(1 - uniform()));
}

void start_access(uint64_t seed, double signal_dbm, double busy)
{
	state = seed;
	signal = signal_dbm;
	for (int i = 0; i < RADIOS; i++)
		radios[i].turn.window = CW_LEAST;
	if (busy > 0)
		others_gap_ns = (SHORTEST + LONGEST) / 2.0 / busy;
}

/* When we were started depends on the network's set-up, when a radio sends first does not. */
static void begin(int64_t now)
{
	zero_ns = free_ns = now;
	if (others_gap_ns > 0)
		draw_next_other(now);
}

static int64_t starts(const struct contender *who)
{
	int64_t since = who->since_ns > free_ns ? who->since_ns : free_ns;

	return since + AIFS + who->slots * SLOT;
}

static void admit_other(void)
{
	struct contender newest = { .window = CW_LEAST };

	draw_slots(&newest, next_other);
	if (other_count == OTHERS) {
		foreign_lost++;
	} else {
		lengths[other_count] = SHORTEST + (int64_t)(uniform() * (LONGEST - SHORTEST));
		if (!other_count || starts(&newest) < starts(&others))
			others = newest;
		other_count++;
	}
	draw_next_other(next_other);
}

/* All of them draw anew, and the fastest counts. */
static void draw_others(void)
{
	int fastest = CW_LEAST;

	for (int i = 0; i < other_count && fastest; i++) {
		others.window = CW_LEAST;
		draw_slots(&others, free_ns);
		if (others.slots < fastest)
			fastest = others.slots;
	}
	others.slots = fastest;
}

static int64_t first_start(void)
{
	int64_t first = NEVER;

	for (int i = 0; i < RADIOS; i++)
		if (radios[i].contends && starts(&radios[i].turn) < first)
			first = starts(&radios[i].turn);
	if (other_count && starts(&others) < first)
		first = starts(&others);
	return first;
}

/* The slots that a slower one has waited until `start`. */
static void keep_waiting(struct contender *who, int64_t start)
{
	int64_t since = who->since_ns > free_ns ? who->since_ns : free_ns;
	int64_t waited = (start - since - AIFS) / SLOT;

	if (waited > 0)
		who->slots -= waited < who->slots ? (int)waited : who->slots;
}

static int to_many(const struct frame *frame)
{
	return frame->data[4] & 1 || frame->flags & FLAG_NO_ACK;
}

/* The traffic's identifier of a QoS data frame, or -1. */
static int tid_of(const struct frame *frame)
{
	int to_and_from = (frame->data[1] & 3) == 3;

	if ((frame->data[0] & 0xcc) != 0x88 || frame->bytes < 26)
		return -1;
	return frame->data[to_and_from ? 30 : 24] & 15;
}

static int same_rate(struct rate one, struct rate other)
{
	return one.index == other.index && one.ht == other.ht &&
	       one.short_guard == other.short_guard;
}

static int padded(int bytes)
{
	return DELIMITER_BYTES + ((bytes + FCS_BYTES + 3) & ~3);
}

static int may_join(const struct radio *radio, const struct frame *first, const struct frame *frame)
{
	return tid_of(frame) == tid_of(first) && !to_many(frame) &&
	       same_rate(frame->rates[frame->stage], first->rates[first->stage]) &&
	       radio->sessions & 1 << tid_of(first);
}

/* How many of the first frames go together, and how long that takes. */
static void compose(struct radio *radio)
{
	struct frame *first = radio->queue[0];
	struct rate rate = first->rates[first->stage];
	int bytes = padded(first->bytes), count = 1;

	if (rate.ht && tid_of(first) >= 0 && !to_many(first)) {
		while (count < radio->queued && count < AGGREGATE_MOST) {
			struct frame *next = radio->queue[count];

			if (!may_join(radio, first, next) ||
			    bytes + padded(next->bytes) > AGGREGATE_BYTES ||
			    exchange_ns(rate, bytes + padded(next->bytes), 0) > AGGREGATE_NS)
				break;
			bytes += padded(next->bytes);
			count++;
		}
	}
	radio->sending = count;
	if (count > 1)
		radio->turn.length_ns = exchange_ns(rate, bytes, BLOCK_ACK_BYTES);
	else
		radio->turn.length_ns = exchange_ns(rate, first->bytes + FCS_BYTES,
						    to_many(first) ? 0 : ACK_BYTES);
}

/* All who start in the slot of `start` send; the others stop counting. */
static void send_from(int64_t start)
{
	int ours[RADIOS], theirs, winners;
	int64_t length = 0;

	for (int i = 0; i < RADIOS; i++) {
		ours[i] = radios[i].contends && starts(&radios[i].turn) < start + SLOT;
		if (ours[i])
			compose(&radios[i]);
		else if (radios[i].contends)
			keep_waiting(&radios[i].turn, start);
		if (ours[i] && radios[i].turn.length_ns > length)
			length = radios[i].turn.length_ns;
	}
	theirs = other_count && starts(&others) < start + SLOT;
	if (!theirs)
		keep_waiting(&others, start);
	else if (lengths[other_count - 1] > length)
		length = lengths[other_count - 1];
	winners = ours[0] + ours[1] + theirs;
	free_ns = start + length;
	for (int i = 0; i < RADIOS; i++) {
		if (!ours[i])
			continue;
		flying = 1;
		radios[i].contends = 0;
		radios[i].collided = winners > 1;
		radios[i].counts.exchanges++;
		radios[i].counts.collisions += winners > 1;
		radios[i].counts.air_ns += radios[i].turn.length_ns;
	}
	if (!theirs)
		return;
	foreign_frames++;
	foreign_collisions += winners > 1;
	if (winners == 1)
		foreign_air_ns += lengths[--other_count];
	draw_others();
}

/* Its next try: at this rate, at the next one, or none. */
static int may_retry(struct frame *frame)
{
	while (frame->tried[frame->stage] >= frame->allowed[frame->stage]) {
		if (frame->stage + 1 == CHAIN || frame->rates[frame->stage + 1].index < 0)
			return 0;
		frame->stage++;
	}
	return 1;
}

static int try_frame(struct radio *radio, struct frame *frame)
{
	struct rate rate = frame->rates[frame->stage];
	int good = uniform() < chance(rate, signal, frame->bytes) && !radio->collided;

	frame->tried[frame->stage]++;
	radio->counts.attempts++;
	radio->counts.failed += !good;
	if (rate.ht)
		radio->counts.by_mcs[rate.index & 7]++;
	return good;
}

/* The agreements on aggregation pass by: an answer that accepts opens a session for its asker. */
static void overhear(struct radio *from, const struct frame *frame)
{
	const uint8_t *body = frame->data + 24;
	struct radio *asker = &radios[from == &radios[0]];

	if ((frame->data[0] & 0xfc) != 0xd0 || frame->bytes < 33 || body[0] != 3)
		return;
	if (body[1] == 1 && !body[3] && !body[4])
		asker->sessions |= 1 << (body[5] >> 2 & 15);
	if (body[1] == 2) {	/* its end, by the asker or by the other one */
		struct radio *whose = body[3] & 8 ? from : asker;

		whose->sessions &= ~(1 << (body[3] >> 4));
	}
}

/* What was in the air has come, or not. */
static void land(struct radio *radio)
{
	int kept = 0, any = 0, given_up = 0;

	for (int i = 0; i < radio->sending; i++) {
		struct frame *frame = radio->queue[i];
		int good = try_frame(radio, frame), many = to_many(frame);

		any |= good;
		if (good) {
			overhear(radio, frame);
			deliver(radio, frame);
		}
		if (!good && !many && may_retry(frame)) {
			radio->queue[kept++] = frame;
			continue;
		}
		given_up |= !good;
		radio->counts.lost += !good;
		report(radio, frame, good && !many);
		free(frame);
	}
	for (int i = radio->sending; i < radio->queued; i++)
		radio->queue[kept++] = radio->queue[i];
	radio->queued = kept;
	radio->sending = 0;
	if (any || given_up)
		radio->turn.window = CW_LEAST;
	else if (radio->turn.window < CW_MOST)
		radio->turn.window = 2 * radio->turn.window + 1;
	radio->contends = kept > 0;
	draw_slots(&radio->turn, free_ns);
}

void offer(struct radio *radio, struct frame *frame, int64_t now)
{
	if (zero_ns == NEVER)
		begin(now);
	if (radio->queued == QUEUE) {
		radio->counts.overflows++;
		report(radio, frame, 0);
		free(frame);
		return;
	}
	radio->counts.frames++;
	radio->counts.bytes += frame->bytes;
	radio->queue[radio->queued++] = frame;
	if (!radio->contends && !radio->sending) {
		radio->contends = 1;
		draw_slots(&radio->turn, now);
	}
}

/* All that happens until now; returns when something of ours may happen next. Others are
 * followed only while somebody waits: what they did before is made up for then. */
int64_t proceed(int64_t now)
{
	for (;;) {
		int64_t start;

		if (flying) {
			if (free_ns > now)
				return free_ns;
			flying = 0;
			for (int i = 0; i < RADIOS; i++)
				if (radios[i].sending)
					land(&radios[i]);
			continue;
		}
		start = first_start();
		if (next_other < start && next_other <= now) {
			admit_other();
			continue;
		}
		if (start > now) {
			if (!radios[0].contends && !radios[1].contends)
				return NEVER;
			return start < next_other ? start : next_other;
		}
		send_from(start);
	}
}
