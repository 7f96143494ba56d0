"""The one error that users see: what went wrong and what to do next."""

from __future__ import annotations

from collections.abc import Iterable


class TestbedError(Exception):
    """Something the user can act on: one line of what and where, one of what to do next."""

    __test__ = False  # pytest would collect the class for its name

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(TestbedError):
    """The request itself is wrong (exit status 2), as opposed to its execution (1)."""


def nearest(name: str, known: Iterable[str]) -> str:
    """A phrase that names the closest known spelling, or all of them when none is close."""
    import difflib  # only for who mistypes

    names = sorted(known)
    close = difflib.get_close_matches(name.lower(), names, n=1, cutoff=0.6)
    return f"did you mean {close[0]!r}?" if close else f"known: {', '.join(names)}"
