/* Observes what a command's processes set up, in lines that analysis/laboratory reads. */
#ifndef OBSERVER_H
#define OBSERVER_H

#include <sys/types.h>

/* Make every execution and exit of the calling process and its children wait for an observer, whose
 * descriptor is returned; -1 without such a kernel. */
int filter_executions(void);

/* Begin to observe a process whose filter has this descriptor there; return the observer's. */
int observe(pid_t pid, int filter, int trial);

/* Write down what waits, and let it go on; return whether the judge finds something wrong by now. */
int observe_next(int observer);

/* Write down how the network is, and which TCP connections there were. */
void observe_end(void);

#endif
