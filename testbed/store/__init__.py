"""The format on disk, for writer and reader."""
