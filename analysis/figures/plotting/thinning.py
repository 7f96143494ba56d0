"""Thins curves of very many points to those that can be seen in each column of pixels."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

COLUMNS = 1500  # more pixels than an A4-wide figure has at 200 dpi


def seen(time_s: Floats, value: Floats, columns: int = COLUMNS) -> npt.NDArray[np.int64]:
    """The points to draw, in their order: the first, lowest, highest and last of each column.

    `time_s` ascends. A line through them covers the same pixels as one through all.
    """
    if len(time_s) <= 4 * columns:
        return np.arange(len(time_s))
    edges = np.linspace(time_s[0], time_s[-1], columns + 1)[:-1]
    first = np.unique(np.searchsorted(time_s, edges))
    column = np.repeat(np.arange(len(first)), np.diff(first, append=len(time_s)))
    order = np.lexsort((value, column))  # NaN is last
    last = np.append(first[1:], len(time_s)) - 1
    return np.unique(np.concatenate((first, order[first], order[last], last)))
