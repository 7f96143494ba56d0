/* Several system calls by one, where the guest's kernel takes them (kernel/patches/0022). */
#define BATCH 4096 /* the system call: of struct batched_call[], how many; returns how many were made */

struct batched_call {
	long number;
	long arguments[6];
	long least, most; /* after another result than these, and any between, no more are made */
	long result;
};
