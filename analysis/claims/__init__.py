"""The papers' claims, answered from metrics: `ledger.py`, over a room per paper."""
