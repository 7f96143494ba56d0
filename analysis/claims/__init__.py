"""The ledger: each claim of a paper with its answer, and the numbers that the answer rests on."""
