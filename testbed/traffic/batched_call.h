/*
 * Several system calls by one, on the guest's kernel (kernel/patches/0022): BATCH takes an array of
 * struct batched_call and its length, and returns how many calls it made.
 */
#define BATCH 4096

struct batched_call {
	long number;
	long arguments[6];
	long least, most; /* the series goes on after results in this range only */
	long result;
};
