"""Accurate ECN (RFC 9768) in TCP's flags: whether two hosts have agreed on it, and what it counts.

Three flags of an acknowledgement are a counter of the marked packets that have arrived, modulo
eight. It begins at 5, so that single flags say nothing.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from analysis.captures.tcp import SYN

AE, CWR, ECE, RESET = 0x100, 0x80, 0x40, 0x04
COUNTER = 8

Flags = npt.NDArray[np.integer]


def is_agreed(flags: Flags) -> bool:
    """Return whether a SYN/ACK among the answers has AE or CWR, which that of RFC 3168 has not."""
    answers = flags[(flags & SYN) > 0]
    return bool(((answers & (AE | CWR)) > 0).any())


def reported_marks(flags: Flags) -> int:
    """Return how many marks the acknowledgements count from the first to the last."""
    acks = flags[(flags & (SYN | RESET)) == 0]  # which count nothing
    counts = sum(((acks & bit) > 0) * weight for bit, weight in ((AE, 4), (CWR, 2), (ECE, 1)))
    return int((np.diff(counts) % COUNTER).sum())
