"""What is behind the points of a curve: interval, number of trials, and which trials these are.

Noted where a curve is drawn, for who shows it again (the page's own plots).
"""

from __future__ import annotations

from weakref import WeakKeyDictionary

import pandas as pd
from matplotlib.artist import Artist

TRIALS = "trials"  # a column of tuples of trials' names
_NOTED: WeakKeyDictionary[Artist, pd.DataFrame] = WeakKeyDictionary()


def note(artist: Artist, rows: pd.DataFrame) -> None:
    """The rows of a curve's points, in their order: `low`, `high`, `n` and TRIALS if known."""
    _NOTED[artist] = rows


def noted(artist: Artist) -> pd.DataFrame | None:
    """What was noted of it."""
    return _NOTED.get(artist)


def trial_names(rows: pd.DataFrame) -> tuple[str, ...]:
    """The trials of these rows, each once."""
    return tuple(dict.fromkeys(rows["trial"].astype(str))) if "trial" in rows else ()
