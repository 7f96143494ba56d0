"""Workloads: a client and a server of many transfers in C, and the flow that they are."""
