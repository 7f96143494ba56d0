"""A run that is watched in a browser: the sweep's events on their way to its page."""
