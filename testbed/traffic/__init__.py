"""What sends: one file a kind of tool."""
