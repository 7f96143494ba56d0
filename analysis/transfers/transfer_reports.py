"""What a workload's programs were told, and what they report."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from testbed.store import DAMAGED, Trial, planned_file, read_json, report_file

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Planned:
    """The list of a flow's transfers, as written before it started."""

    at_ns: Integers  # after the flow's start
    size: Integers


@dataclass(frozen=True)
class Reported:
    """The client's own log, a transfer each; -1 for a time that did not come."""

    zero_ns: int  # its start, on the captures' clock
    port: Integers  # of the connection; 0 for a transfer that was not begun
    begun_ns: Integers
    ended_ns: Integers
    received: Integers  # bytes


def read_planned(trial: Trial, flow: str) -> Planned | None:
    """The list; None if it is missing or damaged."""
    try:
        words = (trial.path / planned_file(flow)).read_text().split()
        numbers = np.array(words, dtype=np.int64)
    except (OSError, *DAMAGED):
        return None
    return None if len(numbers) % 2 else Planned(numbers[::2], numbers[1::2])


def read_reported(trial: Trial, flow: str) -> Reported | None:
    """The log; None if it is missing or damaged."""
    data = read_json(trial.path, report_file(flow, "client"))
    try:
        zero_ns = int(data["real_zero_ns"])
        rows = np.array(data["transfers"], dtype=np.int64).reshape(-1, 4)
    except DAMAGED:
        return None
    port, begun, ended, received = (np.asarray(column) for column in rows.T)
    return Reported(
        zero_ns,
        port,
        begun_ns=np.where(begun < 0, -1, begun + zero_ns),
        ended_ns=np.where(ended < 0, -1, ended + zero_ns),
        received=received,
    )


def server_retransmissions(trial: Trial, flow: str) -> int | None:
    """The sum of TCP_INFO's count over the server's connections; None if it was not reported."""
    data = read_json(trial.path, report_file(flow, "server"))
    try:
        return int(data["retransmissions"])
    except DAMAGED:
        return None
