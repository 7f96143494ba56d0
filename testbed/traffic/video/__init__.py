"""A segmented video: servers, the player with its buffer, Chromium in its place."""
