"""Samples of sockets and queues: what is asked, how answers become rows, and both in turn."""
