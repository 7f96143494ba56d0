/*
 * The medium without a kernel: who has something to send always has more of it.
 *
 *   medium SEED SIGNAL_DBM BUSY SECONDS SENDERS BYTES AGGREGATES
 *
 * Data frames at MCS 7, four tries each; prints, for each sender, frames that came, frames lost,
 * exchanges and collisions, and then the share of the time that the others had.
 */
#include "medium.h"

static uint64_t came[RADIOS];
static int frame_bytes;

void die(const char *what)
{
	perror(what);
	exit(1);
}

static struct frame *another(void)
{
	struct frame *frame = calloc(1, sizeof(*frame));

	frame->bytes = frame_bytes;
	frame->data[0] = 0x88;		/* QoS data, to one */
	frame->rates[0] = (struct rate){ .index = 7, .ht = 1 };
	frame->rates[1].index = -1;
	frame->allowed[0] = 4;
	return frame;
}

void deliver(struct radio *from, struct frame *frame)
{
	(void)frame;
	came[from - radios]++;
}

void report(struct radio *from, struct frame *frame, int acknowledged)
{
	(void)from, (void)frame, (void)acknowledged;
}

int main(int count, char **words)
{
	int64_t end, now = 0;

	if (count != 8)
		return 2;
	start_access(strtoull(words[1], NULL, 10), atof(words[2]), atof(words[3]));
	end = (int64_t)(atof(words[4]) * NS_PER_S);
	frame_bytes = atoi(words[6]);
	for (int i = 0; i < atoi(words[5]); i++)
		radios[i].sessions = atoi(words[7]);
	while (now < end) {
		for (int i = 0; i < atoi(words[5]); i++)
			while (radios[i].queued < 32)
				offer(&radios[i], another(), now);
		now = proceed(now);
	}
	for (int i = 0; i < atoi(words[5]); i++)
		printf("%llu %llu %llu %llu\n", (unsigned long long)came[i],
		       (unsigned long long)radios[i].counts.lost,
		       (unsigned long long)radios[i].counts.exchanges,
		       (unsigned long long)radios[i].counts.collisions);
	printf("%.6f\n", (double)foreign_air_ns / (double)end);
	return 0;
}
