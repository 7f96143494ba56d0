/* Samples the guest's queues and TCP sockets while a command runs. */
#ifndef SAMPLER_H
#define SAMPLER_H

/* Begin a file of samples in the trial's folder. */
void begin_samples(int trial);

/* Write the queues and sending sockets of all namespaces, those that changed since their last line. */
void take_sample(void);

void end_samples(void);

#endif
