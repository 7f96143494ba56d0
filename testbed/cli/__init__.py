"""The command line: one file per verb, above everything else of the testbed."""
