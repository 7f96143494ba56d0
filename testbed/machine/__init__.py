"""The edges: processes, namespaces, netlink, eBPF, and the journal of what a run changes."""
