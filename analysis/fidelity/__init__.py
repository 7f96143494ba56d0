"""Is the number true? A verdict on every trial, read from the trial's directory alone."""
