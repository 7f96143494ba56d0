/*
 * Where rows go: into columns, and into the sums over flows.
 *
 * They are handed on in blocks. Those of a large capture are stored by a thread of their own,
 * beside the one that dissects: a third of the work, and more where the columns' memory is
 * touched for the first time.  Where it falls behind, the one that dissects stores as well.
 */
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#include "core.h"

#define BLOCK_ROWS	1024
#define BLOCKS		8
#define STORED_ROWS	64	/* at a time */
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

/* Column after column of so few rows that these stay in the nearest cache. */
static void store(const struct columns *to, u64 at, const struct row *rows, u32 count)
{
#define COLUMN(name, value) \
	for (u32 i = 0; i < count; i++) \
		to->name[at + i] = value

	COLUMN(frame, rows[i].frame);
	COLUMN(time_ns, rows[i].time_ns);
	COLUMN(length, rows[i].length);
	COLUMN(protocol, rows[i].protocol);
	COLUMN(stream, rows[i].stream);
	COLUMN(src, rows[i].src);
	COLUMN(dst, rows[i].dst);
	COLUMN(src_port, rows[i].src_port);
	COLUMN(dst_port, rows[i].dst_port);
	COLUMN(ip_id, rows[i].ip_id);
	COLUMN(seq, rows[i].seq);
	COLUMN(ack, rows[i].ack);
	COLUMN(payload, rows[i].payload);
	COLUMN(flags, rows[i].flags);
	COLUMN(marks, rows[i].marks);
	COLUMN(ack_rtt_ms, milliseconds(rows[i].ack_rtt_ns));
	COLUMN(acked_frame, rows[i].acked_frame);
	COLUMN(initial_rtt_ms, milliseconds(rows[i].initial_rtt_ns));
	COLUMN(dup_ack_number, rows[i].dup_ack_number);
	COLUMN(dup_ack_frame, rows[i].dup_ack_frame);
	COLUMN(bytes_in_flight, rows[i].bytes_in_flight);
	COLUMN(push_bytes_sent, rows[i].push_bytes_sent);
	COLUMN(relative_seq, rows[i].relative_seq);
	COLUMN(relative_ack, rows[i].relative_ack);
	COLUMN(window, rows[i].window);
	COLUMN(window_scale, rows[i].window_scale);
	COLUMN(ecn, rows[i].ecn);
	COLUMN(completeness, rows[i].completeness);
	COLUMN(acked_data, rows[i].acked_data);
	COLUMN(timed, rows[i].timed);
	COLUMN(content, rows[i].content);
#undef COLUMN
}

static bool store_block(const struct block *block, struct flows *flows)
{
	bool kept = true;

	for (u32 i = 0; block->columns && i < block->count; i += STORED_ROWS) {
		u32 left = block->count - i;

		store(block->columns, block->at + i, &block->items[i],
		      left < STORED_ROWS ? left : STORED_ROWS);
	}
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

	clear_row(row);
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

/* Columns may be stored in any order, flows only one row after the other. */
static bool is_full(struct rows *rows)
{
	bool full;

	pthread_mutex_lock(&rows->lock);
	full = rows->filled - rows->stored == BLOCKS - 1;
	pthread_mutex_unlock(&rows->lock);
	return full;
}

static void hand_over(struct core *core)
{
	struct rows *rows = core->rows;
	struct block *block = current(rows);

	if (!rows->has_thread && core->state.rows >= MANY_ROWS)
		start_thread(rows);
	if (!rows->has_thread || (!rows->flows && is_full(rows))) {
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
