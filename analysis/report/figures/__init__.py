"""The report's figures, a file a kind; `catalogue.py` says which experiment gets which."""
