"""The reports of a workload's programs: its planned list, its client's log, its server's totals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from analysis.trials.documents import ServedPort, ServedPorts, TransferLog, read_trial_document
from testbed.machine import safe_files
from testbed.store.names import planned_file, report_file
from testbed.store.reading import Trial
from testbed.store.records import DAMAGED

Integers = npt.NDArray[np.int64]
Booleans = npt.NDArray[np.bool_]
LOST_NS = -2  # the client's word for the end of a transfer whose connection failed


@dataclass(frozen=True)
class Planned:
    """The list of a flow's transfers, as written before it started."""

    session: Integers  # 0 without any
    after_ns: Integers  # the flow's start; in a session, the end of the transfer before
    size: Integers  # -1: without an end

    @property
    def opens_session(self) -> Booleans:
        """Whether each is the first transfer of its session."""
        return np.asarray(np.diff(self.session, prepend=-1) != 0)


@dataclass(frozen=True)
class Reported:
    """The client's log, a transfer each; -1 for a time that did not come."""

    zero_ns: int  # its start, on the captures' clock
    port: Integers  # of the connection; 0 for a transfer that did not begin
    begun_ns: Integers
    ended_ns: Integers
    received: Integers  # bytes
    lost: Booleans  # the connection failed


def read_planned(trial: Trial, flow: str) -> Planned | None:
    """Read the list; None if the trial left none, or one cut short."""
    path = trial.file(planned_file(flow))
    if path is None:
        return None
    try:
        numbers = (int(word) for line in safe_files.lines(path) for word in line.split())
        columns = np.fromiter(numbers, np.int64).reshape(-1, 3).T
    except (OSError, OverflowError, *DAMAGED):
        return None
    return Planned(*(np.ascontiguousarray(column) for column in columns))


def read_reported(trial: Trial, flow: str) -> Reported | None:
    """Read the log; None if it is missing."""
    log = read_trial_document(trial, report_file(flow, "client"), TransferLog)
    if log is None:
        return None
    zero_ns, rows = log["real_zero_ns"], np.array(log["transfers"], dtype=np.int64).reshape(-1, 4)
    port, begun, ended, received = (np.asarray(column) for column in rows.T)
    return Reported(
        zero_ns,
        port,
        begun_ns=np.where(begun < 0, -1, begun + zero_ns),
        ended_ns=np.where(ended < 0, -1, ended + zero_ns),
        received=received,
        lost=ended == LOST_NS,
    )


def read_served(trial: Trial, flow: str) -> list[ServedPort] | None:
    """Read the server's totals, a port each; None if they are missing."""
    served = read_trial_document(trial, report_file(flow, "server"), ServedPorts)
    return served["ports"] if served else None


def server_retransmissions(trial: Trial, flow: str) -> int | None:
    """Sum TCP_INFO's retransmissions over the server's connections; None if not reported."""
    ports = read_served(trial, flow)
    return None if ports is None else sum(port["retransmissions"] for port in ports)
