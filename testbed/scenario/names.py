"""The rule for names: whatever becomes part of a path, or stands in tables and figures.

It is checked when a scenario is read or planned (`limits.py`), and again where a path is made
(`testbed/store/names.py`).
"""

from __future__ import annotations

from testbed.errors import TestbedError, quoted
from testbed.scenario.limits import NAME_RULE, SAFE_NAME


def is_name(value: object) -> bool:
    """Return whether a value is a valid name."""
    return isinstance(value, str) and not SAFE_NAME.wrong(value)


def checked_name(text: str) -> str:
    """Return a name that a path can be made of; raise if it is not valid."""
    if not is_name(text):
        raise TestbedError(f"{quoted(text)}: not a name for a file", f"names are {NAME_RULE}")
    return text
