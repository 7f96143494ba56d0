"""Transfers by size: three classes, as papers on completion times have them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

SHORT_BYTES = 10_000  # and more is not short
MEDIUM_BYTES = 1_000_000  # and less is not long
CLASSES = {
    "short": "less than 10 kB",
    "medium": "10 kB to 1 MB",
    "long": "more than 1 MB",
}


def size_class(size: npt.NDArray[np.int64]) -> npt.NDArray[np.str_]:
    """Return the class of each size."""
    larger = np.where(size <= MEDIUM_BYTES, "medium", "long")
    return np.where(size < SHORT_BYTES, "short", larger)


def by_class(rows: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """Return the classes that occur, by size, with their transfers."""
    in_class = ((name, rows[rows["size_class"] == name]) for name in CLASSES)
    return [(name, of_class) for name, of_class in in_class if len(of_class)]
