/* Samples what fills up while a command runs: its queues and its TCP sockets. */
#ifndef SAMPLER_H
#define SAMPLER_H

/* Begin a file of samples in the trial's folder. */
void begin_samples(int trial);

/* Write down the queues and the sending sockets of all namespaces, as far as they have changed. */
void take_sample(void);

void end_samples(void);

#endif
