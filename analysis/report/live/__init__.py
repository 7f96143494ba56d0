"""The page of a run that is still under way: what has happened, served to a browser on this
machine."""
