"""The parts of a trial: each does one thing beside the others, with the same few methods."""
