"""A flow's trial in the formats of other viewers: qlog, Perfetto, xplot."""
