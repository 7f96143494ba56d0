/* What the parts of the medium share; main.c tells what it is. */
#pragma once
#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S	1000000000LL
#define US		1000LL
#define SIFS		(10 * US)	/* 2.4 GHz, OFDM, short slots */
#define SLOT		(9 * US)
#define AIFS		(SIFS + 3 * SLOT)	/* best effort's */
#define CW_LEAST	15
#define CW_MOST		1023
#define NEVER		INT64_MAX

#define CHAIN		4		/* rates that a frame may be tried at, one after the other */
#define FRAME_BYTES	2400
#define QUEUE		256		/* a radio's frames: the kernel stops at 32, but for beacons */
#define RADIOS		2

/* A rate as the kernel names it: an MCS, or an index of 1, 2, 5.5, 11, 6, 9 … 54 Mbit/s. */
struct rate {
	int8_t index;		/* -1: none */
	uint8_t ht, short_guard, rts;
};

struct frame {
	uint64_t cookie;
	uint32_t flags, freq;
	int bytes;
	struct rate rates[CHAIN];
	uint8_t allowed[CHAIN], tried[CHAIN];
	int stage;		/* which of the rates is next */
	uint8_t data[FRAME_BYTES];
};

struct counts {
	uint64_t frames, bytes, attempts, failed, lost, exchanges, collisions, overflows;
	int64_t air_ns;
	uint64_t by_mcs[8];	/* attempts at each */
};

struct radio {
	uint8_t address[6];
	struct frame *queue[QUEUE];
	int queued, sending;	/* the first `sending` are in the air … */
	int collided;		/* … and hit others */
	uint16_t sessions;	/* a bit for each TID that may aggregate */
	struct contender {
		int64_t since_ns;
		int slots, window;
		int64_t length_ns;
	} turn;
	int contends;
	struct counts counts;
};

extern struct radio radios[RADIOS];
extern uint64_t foreign_frames, foreign_collisions, foreign_lost;
extern int64_t foreign_air_ns;

/* phy.c: how long frames are in the air, and with what chance they are understood */
int64_t air_ns(struct rate rate, int bytes);
int64_t exchange_ns(struct rate rate, int bytes, int answer_bytes);
double chance(struct rate rate, double signal_dbm, int bytes);

/* access.c: who may send when */
extern int64_t zero_ns;
void start_access(uint64_t seed, double signal_dbm, double busy);
void offer(struct radio *radio, struct frame *frame, int64_t now);
int64_t proceed(int64_t now);

/* kernel.c: the radios' frames, and what became of them */
extern int netlink;			/* readable when there are frames */
extern int32_t signal_dbm;
extern uint64_t refused;		/* by the kernel, of what it was told */
void open_radios(char **words);
void take(int64_t now);
void deliver(struct radio *from, struct frame *frame);
void report(struct radio *from, struct frame *frame, int acknowledged);
void flush(void);

/* main.c */
void die(const char *what) __attribute__((noreturn));
