"""The transfers of workloads: where they begin and end on the wire, and one row for each."""
