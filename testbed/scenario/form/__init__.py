"""JSON and the dataclasses that declare its form: checked, trusted, described."""
