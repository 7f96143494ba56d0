"""System access: processes, namespaces, netlink, eBPF, and the journal of a run's changes."""
