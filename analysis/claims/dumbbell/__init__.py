"""Tests that the two dumbbell papers share: load, pairs, phases, queues."""
