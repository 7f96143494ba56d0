"""The engine that tests claims of papers on metrics and answers them in a ledger."""
