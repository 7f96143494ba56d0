"""Any program as a flow: its command lines as values, with their faults."""
