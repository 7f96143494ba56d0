/* What pace.c and fewer_calls.c, both preloaded into iperf3, know of each other. */
extern int none_taken; /* nothing was read or written since the last select() */
