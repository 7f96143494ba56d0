"""Many trials: sweeps, clusters, estimates, what identifies a trial, what this machine can run."""
