"""A trial's directory, read: packets, samples, series, and the evidence that checks look at."""
