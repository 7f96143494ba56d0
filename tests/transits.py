"""The packets of a queue, made by hand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from analysis.trials.queue_transit import QueueTransit

Numbers = Sequence[int] | npt.NDArray[np.int64]


def sure_transit(
    left_ns: Numbers,
    arrived_ns: Numbers,
    length: Numbers,
    lost_ns: Numbers = (),
    lost_length: Numbers = (),
) -> QueueTransit:
    """All packets of a queue, of which none looks like another."""
    left, arrived, size, lost, lost_size = (
        np.array(each, dtype=np.int64)
        for each in (left_ns, arrived_ns, length, lost_ns, lost_length)
    )
    unsure, lost_unsure = (np.zeros(len(each), dtype=np.bool_) for each in (left, lost))
    return QueueTransit(
        left, arrived, unsure, size, lost, lost_size, lost_unsure, unmatched=0, complete=True
    )
