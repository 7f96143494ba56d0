"""Results on disk: one directory a trial, written aside and renamed when whole."""

from __future__ import annotations

import dataclasses
import enum
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from testbed.errors import TestbedError
from testbed.scenario.model import Scenario

_T = TypeVar("_T")

RECORD = "trial.json"
SCENARIO = "scenario.json"
CAPTURES = "captures"
FLOWS = "flows"
SAMPLES = "samples"
NETWORK_UP = "network-up"  # a file; its time, as the host sees it, is when the network was up


class Status(enum.StrEnum):
    """How a trial ended; the three stay apart everywhere."""

    OK = "ok"
    FAILED = "failed"
    UNSUPPORTED = "unsupported"


@dataclass(frozen=True)
class FlowRecord:
    """A flow as it ran: its addresses, ports, and times in seconds of the trial's clock."""

    name: str
    protocol: str  # "tcp" or "udp"
    src_address: str
    dst_address: str
    src_ports: tuple[int, ...]
    dst_port: int
    started_s: float
    stopped_s: float
    planned_start_s: float = math.nan
    planned_stop_s: float = math.nan
    control: str = ""  # the congestion control that was asked for, and what the socket ran
    variant_seen: str = ""
    options: tuple[str, ...] = ()  # of TCP's, that it was to agree on, and what it agreed on
    options_seen: tuple[str, ...] = ()


@dataclass(frozen=True)
class QueueRecord:
    """A shaped interface: its rate, and the queue before it, as asked and as set up."""

    node: str
    interface: str
    rate_mbit: float
    burst_bytes: int  # of htb's bucket: what may leave at once
    discipline: str
    limit: int
    unit: str  # "bytes" or "packets"
    ecn: bool
    sampled: bool


@dataclass(frozen=True)
class CaptureRecord:
    """One capture file: one interface of one node.

    `roles` says what it is good for: `sender:FLOW`, `receiver:FLOW` (the flow's own
    hosts), `bottleneck-in:FLOW` (before the queue that the flow crosses; none where the
    flow starts at that node) and `bottleneck-out:FLOW` (after it).
    """

    file: str  # relative to the trial's directory; empty if it was dropped
    node: str
    interface: str
    roles: tuple[str, ...]
    snaplen_bytes: int
    packets: int
    dropped: int  # by tcpdump's kernel buffer
    sha256: str = ""  # of the whole file, whatever became of it


@dataclass(frozen=True)
class Record:
    """trial.json: what ran, where, with what, and how it ended."""

    status: Status
    reason: str = ""
    hint: str = ""
    engine: str = ""
    virtual_time: bool | None = None  # of the engine; None where an older record does not say
    engine_reason: str = ""
    seed: int = 0
    identity: str = ""  # of everything that determines the result
    epoch_s: float = 0.0  # captures' clock at second 0 of the trial
    kernel: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    sysctls: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # node → name → value
    flows: tuple[FlowRecord, ...] = ()
    background: FlowRecord | None = None  # all its sessions as one flow, which has no ports
    queues: tuple[QueueRecord, ...] = ()
    captures: tuple[CaptureRecord, ...] = ()
    warnings: tuple[str, ...] = ()
    network_up_s: float = 0.0  # wall time from the start, boot included
    wall_s: float = 0.0  # of the whole trial
    peak_memory_mb: float = 0.0

    def to_json(self) -> str:
        """The record as JSON."""
        return json.dumps(dataclasses.asdict(self), indent=2) + "\n"

    @staticmethod
    def from_json(text: str) -> Record:
        """Read a record; unknown fields of a later version are left aside."""
        data = json.loads(text)
        data["status"] = Status(data["status"])
        data["flows"] = tuple(_known(FlowRecord, each) for each in data.get("flows", ()))
        if data.get("background"):
            data["background"] = _known(FlowRecord, data["background"])
        data["queues"] = tuple(_known(QueueRecord, each) for each in data.get("queues", ()))
        data["captures"] = tuple(_known(CaptureRecord, each) for each in data.get("captures", ()))
        return _known(Record, data)


def _known(kind: type[_T], data: Mapping[str, Any]) -> _T:
    names = {f.name for f in dataclasses.fields(kind)}  # type: ignore[arg-type]
    values = {k: tuple(v) if isinstance(v, list) else v for k, v in data.items() if k in names}
    return kind(**values)


@dataclass(frozen=True)
class Trial:
    """A whole trial on disk."""

    path: Path
    scenario: Scenario
    record: Record

    def capture(self, role: str) -> Path | None:
        """The capture that has this role, if it was taken."""
        for capture in self.record.captures:
            if role in capture.roles and capture.file:
                return self.path / capture.file
        return None


def open_trial(path: Path) -> Trial:
    """Read one trial's directory."""
    try:
        scenario = Scenario.from_json((path / SCENARIO).read_text())
        record = Record.from_json((path / RECORD).read_text())
    except FileNotFoundError as error:
        raise TestbedError(
            f"{path}: not a trial: {Path(error.filename).name} is missing",
            "name a trial's directory, or the folder that holds trials",
        ) from error
    except (ValueError, KeyError, TypeError) as error:
        raise TestbedError(f"{path / RECORD}: damaged: {error}", "run the trial again") from error
    return Trial(path, scenario, record)


def is_trial(path: Path) -> bool:
    """Whether a directory is a whole trial (names that begin with a dot are being written)."""
    return not path.name.startswith(".") and (path / RECORD).is_file()


def trials_in(results: Path) -> Iterator[Trial]:
    """All whole trials of a results folder, by name."""
    if not results.is_dir():
        raise TestbedError(f"{results}: no such folder", "`testbed run` makes one")
    for path in sorted(results.iterdir()):
        if is_trial(path):
            yield open_trial(path)
