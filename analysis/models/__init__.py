"""Models of TCP's throughput: the equations, and where they hold.

Use `predict(name, conditions)` of `all_models.py`; `regions.py` is the map of which form of NewReno
is better where.
"""
