/*
 * A function of a library that is not loaded (stand_in in setup.sh).  No trial calls one; what does
 * after all says so and ends.
 */
#include <stdio.h>
#include <stdlib.h>

#define STAND_IN(name)                                                                            \
	void name(void)                                                                           \
	{                                                                                         \
		fputs("testbed: " #name " is only a stand-in (setup.sh)\n", stderr);              \
		abort();                                                                          \
	}
