"""The JSON files of a trial, each with its shape: what a reader needs of it, and of which types.

Whoever wrote them, a reader gets a document of that shape, nothing, or one line that names the file
and the field. Fields that no reader needs may be anything.
"""

from __future__ import annotations

import functools
from typing import Annotated, Any, Literal, NotRequired, TypeVar

from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    with_config,
)
from pydantic_core import PydanticCustomError
from typing_extensions import TypedDict

from testbed.errors import TestbedError, short
from testbed.faults import field_name
from testbed.machine import json_files, safe_files
from testbed.scenario.reading import words_of
from testbed.scenario.trace import trace_fault
from testbed.store.reading import Trial, again
from testbed.store.records import MAX_COUNT, MAX_NUMBER, ProgramRecord

_T = TypeVar("_T")

STRICTLY = ConfigDict(strict=True, allow_inf_nan=False)
NOT_JSON = "json_invalid"  # pydantic's name of this fault
MAX_NS = 1 << 61  # two of them can be added

Integer = Annotated[int, Field(gt=-MAX_COUNT, lt=MAX_COUNT)]
Number = Annotated[float, Field(gt=-MAX_NUMBER, lt=MAX_NUMBER)]
Nanoseconds = Annotated[int, Field(gt=-MAX_NS, lt=MAX_NS)]
Bitrate = Annotated[float, Field(ge=0, lt=1e15)]


def _sound_trace(content: str) -> str:
    """Return a trace's content; raise pydantic's error if it has a fault."""
    if trace_fault(content):
        raise PydanticCustomError("not_a_trace", "Input should be a trace")
    return content


Counters = dict[str, dict[str, Integer]]
"""Of COUNTERS_FILE: node, counter, value."""
ProgramRecords = dict[Literal["client", "server"], ProgramRecord]
"""Of `programs_file`."""
FileSizes = dict[str, Integer]
"""Of `sizes_file`: bytes by path."""


@with_config(STRICTLY)
class Configuration(TypedDict):
    """The settings read back before and after the flows, from CONFIGURATION_FILE."""

    begin: dict[str, str]
    end: dict[str, str]


@with_config(STRICTLY)
class LinkCapacity(TypedDict):
    """An interface's trace, or its rates and their times, from CAPACITY_FILE."""

    trace: NotRequired[Annotated[str, AfterValidator(_sound_trace)]]
    rates: NotRequired[Annotated[list[tuple[Number, Bitrate]], Field(min_length=1)]]


Capacities = dict[str, LinkCapacity]


@with_config(STRICTLY)
class DropperCounts(TypedDict):
    """The counts of one flow's dropper, from DROPS_FILE."""

    dropped: Integer
    interface: NotRequired[str]
    undecided: NotRequired[Integer]


Droppers = dict[str, DropperCounts]


@with_config(STRICTLY)
class Reordering(TypedDict):
    """A netem's option of that name."""

    reorder: Number


@with_config(ConfigDict(**STRICTLY, extra="allow"))
class DisciplineOptions(TypedDict):
    """What tc says about a queue discipline's settings."""

    reorder: NotRequired[Reordering]


@with_config(STRICTLY)
class CakeTin(TypedDict):
    """One of a cake's queues."""

    ecn_mark: Integer


@with_config(STRICTLY)
class ShownDiscipline(TypedDict):
    """A queue discipline as tc shows it, from QDISCS_FILE."""

    kind: str
    handle: str
    dev: str
    packets: Integer
    drops: Integer
    requeues: Integer
    options: NotRequired[DisciplineOptions]
    tins: NotRequired[list[CakeTin]]
    pdrop: NotRequired[Integer]


ShownDisciplines = dict[str, list[ShownDiscipline]]


@with_config(STRICTLY)
class RadioCounts(TypedDict):
    """What the medium counted of one radio."""

    lost: Integer


@with_config(STRICTLY)
class OtherStations(TypedDict):
    """What the medium counted of the stations that are not in the scenario."""

    air_s: Number


@with_config(STRICTLY)
class Medium(TypedDict):
    """The radio medium's report, from RADIO_FILE."""

    signal_dbm: Integer
    joined: bool
    seconds: Annotated[Number, Field(gt=0)]
    others: OtherStations
    radios: list[RadioCounts]


@with_config(STRICTLY)
class Iperf3Sum(TypedDict):
    """The sum of an interval over all connections."""

    start: Number
    end: Number
    bytes: Integer
    retransmits: NotRequired[Integer]


@with_config(STRICTLY)
class Iperf3Interval(TypedDict):
    """An interval of iperf3's report."""

    sum: Iperf3Sum


@with_config(STRICTLY)
class Iperf3Total(TypedDict, total=False):
    """The sum of all intervals; iperf3 that never connected has none."""

    end: Number
    bytes: Integer
    retransmits: Integer
    bits_per_second: Bitrate


@with_config(STRICTLY)
class Iperf3End(TypedDict, total=False):
    """The totals of iperf3's report."""

    sum_sent: Iperf3Total
    sum_received: Iperf3Total


@with_config(STRICTLY)
class Iperf3Test(TypedDict, total=False):
    """The settings of iperf3's test."""

    blksize: Integer


@with_config(STRICTLY)
class Iperf3Start(TypedDict, total=False):
    """The head of iperf3's report."""

    version: str
    test_start: Iperf3Test


@with_config(STRICTLY)
class Iperf3Report(TypedDict, total=False):
    """The report of iperf3 (`report_file`): whole, or what it wrote until it failed."""

    start: Iperf3Start
    intervals: list[Iperf3Interval]
    end: Iperf3End


@with_config(STRICTLY)
class CallReport(TypedDict):
    """The report of a call's receiver (`report_file`)."""

    bytes: Integer


@with_config(STRICTLY)
class QuicReport(TypedDict):
    """The report of a QUIC video's server (`report_file`)."""

    lost_packets: Integer


@with_config(STRICTLY)
class TransferLog(TypedDict):
    """A workload's client's log (`report_file`): each transfer's port, begin, end and bytes."""

    real_zero_ns: Nanoseconds
    transfers: list[tuple[Nanoseconds, Nanoseconds, Nanoseconds, Nanoseconds]]


@with_config(STRICTLY)
class ServedPort(TypedDict):
    """What a workload's server counted at one of its ports."""

    retransmissions: Integer
    connections: Integer
    control: str
    min_rtt_us: Number
    window_bytes: Integer
    sent_bytes: Integer
    segments: Integer


@with_config(STRICTLY)
class ServedPorts(TypedDict):
    """The report of a workload's server (`report_file`)."""

    ports: list[ServedPort]


@with_config(STRICTLY)
class VideoLoad(TypedDict):
    """A player's request."""

    path: str
    last_byte_s: Number | None
    bytes: Integer


@with_config(STRICTLY)
class VideoSegment(TypedDict):
    """A segment of a video, and the request for it."""

    bit_per_s: Bitrate
    load: VideoLoad


@with_config(STRICTLY)
class PlaybackSums(TypedDict):
    """The totals of a playback."""

    stalls: Integer
    stall_s: Number
    switches: Integer
    mean_bit_per_s: Bitrate | None
    bytes: Integer


@with_config(STRICTLY)
class PlayerReport(TypedDict):
    """The report of a video player (`playback_file`)."""

    transport: str
    rule: str
    why: str
    page_s: Number | None
    startup_s: Number | None
    loaded_s: Number | None
    ended_s: Number | None
    page: list[VideoLoad]
    segments: list[VideoSegment]
    stalls: list[tuple[Number, Number]]
    levels: list[tuple[Number, Number]]
    sums: PlaybackSums


def read_trial_document(trial: Trial, name: str, kind: type[_T]) -> _T | None:
    """Read a JSON file of a trial; None if it left none, or one cut short: its writer was ended.

    Raise an error if it is not what the trial recorded; with the field if it is JSON of another
    shape.
    """
    path = trial.file(name)
    if path is None:
        return None
    try:
        text = json_files.checked(safe_files.read_bytes(path))
    except ValueError as error:
        raise TestbedError(
            f"{path}: damaged: {short(error)}", f"run it again: {again(trial.path)}"
        ) from error
    try:
        document: _T = _adapter(kind).validate_json(text)  # type: ignore[arg-type]  # hashable
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
    else:
        return document
    if fault["type"] == NOT_JSON:
        return None
    where = ": ".join(filter(None, (str(path), "damaged", field_name(fault["loc"]))))
    raise TestbedError(f"{where}: {words_of(fault)}", f"run it again: {again(trial.path)}")


@functools.cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    has_its_own = hasattr(kind, "__pydantic_config__")
    return TypeAdapter(kind, config=None if has_its_own else STRICTLY)
