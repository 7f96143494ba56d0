"""A connection as tcptrace and xplot draw it: sequence numbers over time, at its sender."""
