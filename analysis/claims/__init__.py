"""The papers' claims, answered from metrics: `ledger.py`, and one room per paper."""
