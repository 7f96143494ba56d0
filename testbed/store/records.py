"""What is recorded of a trial (trial.json), and what its values may be."""

from __future__ import annotations

import dataclasses
import enum
import functools
import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from testbed.errors import quoted
from testbed.indented import indented
from testbed.machine.file_hashes import hash_of

_T = TypeVar("_T")


class Status(enum.StrEnum):
    """How a trial ended; the three are never mixed."""

    OK = "ok"
    FAILED = "failed"
    UNSUPPORTED = "unsupported"


@dataclass(frozen=True)
class FlowRecord:
    """A flow as it ran; times are seconds of the trial's clock."""

    name: str
    """The flow's name in the scenario."""
    protocol: str
    """The transport: tcp or udp."""
    src_address: str
    """The address that sends the data."""
    dst_address: str
    """The address that receives the data."""
    src_ports: tuple[int, ...]
    """The sender's ports; empty if its connections have arbitrary ones."""
    dst_port: int
    """The receiver's port; 0 if each connection has another one."""
    started_s: float
    """When the flow started."""
    stopped_s: float
    """When the flow stopped."""
    planned_start_s: float = math.nan
    """When the flow was to start."""
    planned_stop_s: float = math.nan
    """When the flow was to stop."""
    control: str = ""
    """The congestion control that the scenario asks for."""
    variant_seen: str = ""
    """The congestion control that the sender's socket reported."""
    options: tuple[str, ...] = ()
    """The TCP options that the connection was to negotiate."""
    options_seen: tuple[str, ...] = ()
    """The TCP options that the connection negotiated."""

    @property
    def has_many_connections(self) -> bool:
        """Whether the flow consists of many connections, each with its own port."""
        return not self.src_ports or self.dst_port == 0


@dataclass(frozen=True)
class ProgramRecord:
    """How one of a command flow's programs ended."""

    status: int
    """Its exit status; below 0, the number of the signal that ended it."""
    was_ended: bool
    """Whether the trial ended it, when the flow's time was over."""
    early: bool = False
    """Whether a server ended before its client did."""


@dataclass(frozen=True)
class QueueRecord:
    """A shaped interface: its rate, and the queue before it, as the kernel reports them."""

    node: str
    """The node."""
    interface: str
    """Its interface."""
    rate_mbit: float
    """The rate, in Mbit/s."""
    burst_bytes: int
    """The size of htb's bucket, which may leave at once; 0 if the link sends packets one after the
    other."""
    discipline: str
    """The queue discipline."""
    limit: int
    """The queue's limit, in `unit`."""
    unit: str
    """The unit of the limit: bytes or packets."""
    ecn: bool
    """Whether it marks packets instead of dropping them."""
    sampled: bool
    """Whether it is in the samples of queues."""

    most_at_once: int = 1
    """How many packets the link may send as one."""

    @property
    def is_exact(self) -> bool:
        """Whether the link sends packets one after the other, each for its size over the rate."""
        return self.burst_bytes == 0


@dataclass(frozen=True)
class CaptureRecord:
    """One capture file: one interface of one node.

    `roles` says what it shows: `sender:FLOW`, `receiver:FLOW` (at the flow's hosts),
    `bottleneck-in:FLOW` (before the slowest observed queue that the flow crosses; none where the
    flow starts at that node) and `bottleneck-out:FLOW` (after it). For a flow that crosses several
    observed queues, all have `queueN-in:FLOW` and `queueN-out:FLOW`, in the path's order.
    """

    file: str
    """Its path in the trial's directory; empty if it was dropped."""
    node: str
    """The node."""
    interface: str
    """Its interface."""
    roles: tuple[str, ...]
    """What the capture shows."""
    snaplen_bytes: int
    """How much of each packet was captured."""
    packets: int
    """How many packets were written."""
    dropped: int
    """How many packets were seen but not written."""
    sha256: str = ""
    """The hash of the file as captured, even if it was compressed or dropped since."""


@dataclass(frozen=True)
class FileRecord:
    """A file of the trial's directory, as the trial left it."""

    bytes: int
    """Its size."""
    sha256: str
    """Its hash."""


def file_record(path: Path, before_piece: Callable[[], None] = lambda: None) -> FileRecord:
    """Return the size and hash of a file as it is now."""
    return FileRecord(path.stat().st_size, hash_of(path, before_piece))


@dataclass(frozen=True)
class Record:
    """trial.json: what ran, where, with what, and how it ended."""

    status: Status
    """How it ended: ok, failed or unsupported."""
    reason: str = ""
    """Why it failed or is unsupported."""
    hint: str = ""
    """What to do about that."""
    engine: str = ""
    """The engine that ran it: guest or host."""
    virtual_time: bool = False
    """Whether the engine's time is virtual."""
    engine_reason: str = ""
    """Why this engine ran it."""
    seed: int = 0
    """The scenario's seed."""
    identity: str = ""
    """A hash of everything that determines the result."""
    epoch_s: float = 0.0
    """The captures' clock at second 0 of the trial."""
    kernel: str = ""
    """The kernel's version."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """Versions of the programs: name → version."""
    sysctls: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """The settings of each node: node → name → value."""
    flows: tuple[FlowRecord, ...] = ()
    """The flows as they ran."""
    queues: tuple[QueueRecord, ...] = ()
    """The shaped interfaces."""
    captures: tuple[CaptureRecord, ...] = ()
    """The captures."""
    files: Mapping[str, FileRecord] = field(default_factory=dict)
    """All files of the trial, trial.json excepted: path → size and hash."""
    warnings: tuple[str, ...] = ()
    """What may disturb the numbers."""
    network_up_s: float = 0.0
    """Wall time until the network was up, boot included."""
    wall_s: float = 0.0
    """Wall time of the whole trial."""
    peak_memory_mb: float = 0.0
    """The most memory that the engine used."""

    def to_json(self) -> str:
        """Return the record as JSON."""
        return indented(self, 2) + "\n"

    @staticmethod
    def from_json(data: Any) -> Record:
        """Return the record that JSON has; raise one of DAMAGED if it has none."""
        data["status"] = Status(data["status"])
        for name, kind in _RECORDS_IN_LISTS.items():
            data[name] = tuple(_record(kind, each) for each in data.get(name, ()))
        files = data.get("files", {}).items()
        data["files"] = {sys.intern(name): FileRecord(**each) for name, each in files}
        if any(
            type(f.bytes) is not int or type(f.sha256) is not str for f in data["files"].values()
        ):
            raise ValueError("files: sizes and hashes are something else")
        record = _record(Record, data)
        same = {node: _shared(tuple(settings.items())) for node, settings in record.sysctls.items()}
        return dataclasses.replace(record, sysctls=same)


def _in_memory_once(value: Any) -> Any:
    """Return a record's value, whose texts most records of a results folder have, too."""
    if type(value) is str:  # a status is one, too
        return sys.intern(value)
    return tuple(map(_in_memory_once, value)) if isinstance(value, list) else value


@functools.lru_cache(maxsize=1024)
def _shared(settings: tuple[tuple[str, str], ...]) -> Mapping[str, str]:
    """Return one mapping for equal settings, which fill most of the memory of many records."""
    return dict(settings)


_RECORDS_IN_LISTS = {"flows": FlowRecord, "queues": QueueRecord, "captures": CaptureRecord}
# what reading a file as JSON, and then as a record, can raise
DAMAGED = (ValueError, LookupError, TypeError, AttributeError, RecursionError)


def _record(kind: Callable[..., _T], data: Mapping[str, Any]) -> _T:
    record = kind(**{name: _in_memory_once(value) for name, value in data.items()})
    for name, fits in _rules(kind):
        if not fits(value := getattr(record, name)):
            raise ValueError(f"{name}: {quoted(value)} cannot stand there")
    return record


@functools.cache
def _rules(kind: Any) -> list[tuple[str, Callable[[Any], bool]]]:
    """Return what the values of a record's fields must be, by their annotations."""
    fields = [each for each in dataclasses.fields(kind) if str(each.type) in _FITS]
    unknown = {each.name for each in fields if each.default != each.default}  # NaN
    return [
        (each.name, _is_number_or_nan if each.name in unknown else _FITS[str(each.type)])
        for each in fields
    ]


def _is_number(value: Any) -> bool:
    """Say whether a number is one that counts nanoseconds, or less, in 64 bits."""
    return type(value) in (int, float) and abs(value) < MAX_NUMBER


def _is_number_or_nan(value: Any) -> bool:
    return _is_number(value) or (isinstance(value, float) and math.isnan(value))


def _is_count(value: Any) -> bool:
    return type(value) is int and abs(value) < MAX_COUNT


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _are_texts(value: Any) -> bool:
    return isinstance(value, tuple) and {*map(type, value)} <= {str}


def _are_ports(value: Any) -> bool:
    return isinstance(value, tuple) and all(
        _is_count(each) and 0 <= each < 1 << 16 for each in value
    )


def _name_texts(value: Any) -> bool:
    return isinstance(value, dict) and {*map(type, value.values())} <= {str}


def _name_names(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_name_texts, value.values()))


MAX_NUMBER, MAX_COUNT = 9e9, 1 << 53
_FITS: Mapping[str, Callable[[Any], bool]] = {
    "str": _is_text,
    "int": _is_count,
    "float": _is_number,
    "bool": _is_flag,
    "tuple[str, ...]": _are_texts,
    "tuple[int, ...]": _are_ports,
    "Mapping[str, str]": _name_texts,
    "Mapping[str, Mapping[str, str]]": _name_names,
}
