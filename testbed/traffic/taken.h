/* Whether nothing was read or written since the last select(): fewer_calls.c asks. */
extern int none_taken;
