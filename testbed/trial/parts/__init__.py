"""The parts of a trial: a feature each, with the same few methods."""
