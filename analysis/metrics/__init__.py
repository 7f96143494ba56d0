"""One row per flow: the columns with their definitions, and how each is computed."""
