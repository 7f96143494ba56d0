"""The handles of the disciplines and classes that the plan sets up."""

from __future__ import annotations

from dataclasses import dataclass

from testbed import store


@dataclass(frozen=True)
class Handle:
    """tc's name for a discipline or class on an interface: two numbers in hexadecimal."""

    major: int
    minor: int = 0

    def __str__(self) -> str:
        return f"{self.major:x}:{self.minor:x}" if self.minor else f"{self.major:x}:"

    @property
    def number(self) -> int:
        """The kernel's own form."""
        return self.major << 16 | self.minor


SHAPER = Handle(1)  # htb at the root
SHAPER_CLASS = Handle(1, 3)  # its only class
LEAF = Handle(store.LEAF)  # the queue below it
DELAY = Handle(2)  # what lets packets wait on a link with a delay
