/*
 * Where rows go: into columns, and into the sums over flows.
 *
 * They are handed on in blocks. Those of a large capture are stored by a thread of their own,
 * beside the one that dissects: a third of the work, and more where the columns' memory is
 * touched for the first time.
 */
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#include "core.h"

#define BLOCK_ROWS	1024
#define BLOCKS		8
#define MANY_ROWS	65536	/* from here a thread is worth its start */

struct block {
	struct row items[BLOCK_ROWS];
	struct columns *columns;
	u64 at;			/* its first row's place in them */
	u32 count;
};

struct rows {
	struct block blocks[BLOCKS];	/* a ring */
	struct flows *flows;
	u64 filled, stored;		/* blocks since the beginning */
	bool has_thread, ending, no_memory;
	pthread_t thread;
	pthread_mutex_t lock;		/* of what is above, from `filled` on */
	pthread_cond_t more, room;
};

static double milliseconds(s64 ns)
{
	return ns ? (double)ns / 1e6 : NAN;
}

static void store(const struct columns *to, u64 i, const struct row *row)
{
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

static bool store_block(const struct block *block, struct flows *flows)
{
	bool kept = true;

	for (u32 i = 0; block->columns && i < block->count; i++)
		store(block->columns, block->at + i, &block->items[i]);
	for (u32 i = 0; flows && kept && i < block->count; i++)
		kept = flows_add(flows, &block->items[i]);
	return kept;
}

static void *store_blocks(void *argument)
{
	struct rows *rows = argument;

	pthread_mutex_lock(&rows->lock);
	while (!rows->ending) {
		struct block *block = &rows->blocks[rows->stored % BLOCKS];
		bool kept;

		if (rows->stored == rows->filled) {
			pthread_cond_wait(&rows->more, &rows->lock);
			continue;
		}
		pthread_mutex_unlock(&rows->lock);
		kept = store_block(block, rows->flows);
		block->count = 0;
		pthread_mutex_lock(&rows->lock);
		rows->no_memory |= !kept;
		rows->stored++;
		pthread_cond_signal(&rows->room);
	}
	pthread_mutex_unlock(&rows->lock);
	return NULL;
}

/* Python's signals are not for it. Without a thread, rows are stored at once. */
static void start_thread(struct rows *rows)
{
	sigset_t all, before;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rows->has_thread = !pthread_create(&rows->thread, NULL, store_blocks, rows);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

struct rows *rows_new(struct flows *flows)
{
	struct rows *rows = calloc(1, sizeof(*rows));

	if (!rows)
		return NULL;
	rows->flows = flows;
	pthread_mutex_init(&rows->lock, NULL);
	pthread_cond_init(&rows->more, NULL);
	pthread_cond_init(&rows->room, NULL);
	return rows;
}

void rows_free(struct rows *rows)
{
	if (!rows)
		return;
	if (rows->has_thread) {
		pthread_mutex_lock(&rows->lock);
		rows->ending = true;
		pthread_cond_signal(&rows->more);
		pthread_mutex_unlock(&rows->lock);
		pthread_join(rows->thread, NULL);
	}
	pthread_mutex_destroy(&rows->lock);
	pthread_cond_destroy(&rows->more);
	pthread_cond_destroy(&rows->room);
	free(rows);
}

/* The one that is being filled; only the thread that dissects looks at it. */
static struct block *current(struct rows *rows)
{
	return &rows->blocks[rows->filled % BLOCKS];
}

struct row *rows_next(struct rows *rows)
{
	struct block *block = current(rows);
	struct row *row = &block->items[block->count];

	*row = (struct row){ 0 };
	return row;
}

/* Until no more than so many blocks wait; then there is room for the next. */
static void wait_for(struct core *core, u64 most)
{
	struct rows *rows = core->rows;

	while (rows->filled - rows->stored > most)
		pthread_cond_wait(&rows->room, &rows->lock);
	core->no_memory |= rows->no_memory;
}

static void hand_over(struct core *core)
{
	struct rows *rows = core->rows;
	struct block *block = current(rows);

	if (!rows->has_thread && core->state.rows >= MANY_ROWS)
		start_thread(rows);
	if (!rows->has_thread) {
		core->no_memory |= !store_block(block, rows->flows);
		block->count = 0;
		return;
	}
	pthread_mutex_lock(&rows->lock);
	rows->filled++;
	pthread_cond_signal(&rows->more);
	wait_for(core, BLOCKS - 1);
	pthread_mutex_unlock(&rows->lock);
}

void rows_keep(struct core *core)
{
	struct block *block = current(core->rows);

	if (!block->count) {
		block->columns = core->columns;
		block->at = core->columns ? core->columns->used : 0;
	}
	if (core->columns)
		core->columns->used++;
	if (++block->count == BLOCK_ROWS)
		hand_over(core);
}

void rows_flush(struct core *core)
{
	struct rows *rows = core->rows;

	if (current(rows)->count)
		hand_over(core);
	if (!rows->has_thread)
		return;
	pthread_mutex_lock(&rows->lock);
	wait_for(core, 0);
	pthread_mutex_unlock(&rows->lock);
}
