"""The page of a run that is still under way, served to a browser on this machine."""
