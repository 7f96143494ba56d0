"""Fall, Floyd: one to four segments of a window are lost."""
