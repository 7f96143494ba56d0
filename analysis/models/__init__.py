"""Models of TCP's throughput: what equations expect of a flow, and where they hold.

`predict(name, conditions)` of `table.py` is the way in; `regions.py` is the map of which NewReno is
better where.
"""
