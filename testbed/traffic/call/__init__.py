"""Calls: a sender and a receiver of a codec's datagrams in C, and the flow that they are."""
