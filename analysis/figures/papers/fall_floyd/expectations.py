"""The outcome that each variant's definition predicts for one to four losses in a window."""

from __future__ import annotations

from collections.abc import Mapping

from analysis.figures.papers.fall_floyd.outcome import Expected

LOSSES = (1, 2, 3, 4)
TIMEOUT = (3.0, 12.0)  # round trips: one of 0.2 s at least twice, and a timer of some 0.5 s

# per variant with one loss, with two, …
EXPECTED: Mapping[str, tuple[Expected, ...]] = {
    # the hole, then all behind it that no ACK has covered, in slow start
    "tahoe": tuple(Expected(0, 1, True, False, (1, lost)) for lost in LOSSES),
    # a recovery a loss, until too few duplicate ACKs come
    "reno": (
        Expected(0, 1, False, True, (1, 1)),
        Expected(0, 2, False, True, (2, 3)),
        Expected(1, 3, True, True, TIMEOUT),
        Expected(1, 3, True, False, TIMEOUT),
    ),
    # a loss a round trip, one recovery
    "newreno": tuple(Expected(0, 1, False, True, (lost, lost)) for lost in LOSSES),
    # the same as long as the timer, set at the first partial ACK, does not fire: two
    # round trips and a half
    "newreno-impatient": (
        *(Expected(0, 1, False, True, (lost, lost)) for lost in (1, 2, 3)),
        Expected(1, 2, True, False, (3, 5)),
    ),
    # all losses in one go, each known by three segments above it that arrived
    "sack": tuple(Expected(0, 1, False, True, (1, min(lost, 2))) for lost in LOSSES),
}
