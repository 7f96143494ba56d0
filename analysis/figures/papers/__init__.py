"""The papers' figures and tables, one room per paper."""
