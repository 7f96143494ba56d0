"""The contract on disk: every file of a trial and of a results folder, its name and its shape.

A trial is one directory, written under a name that begins with a dot and renamed when it is
complete. Names are relative to the trial's directory; whoever writes a file and whoever reads
it take its name, and a table's columns, from here.
"""

from __future__ import annotations

import csv
import dataclasses
import enum
import functools
import hashlib
import io
import itertools
import math
import os
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from testbed.errors import TestbedError, UsageError, printable_lines, quoted, short
from testbed.indented import indented
from testbed.machine import json_files
from testbed.machine.file_hashes import hash_of
from testbed.machine.safe_files import LARGEST_DOCUMENT_BYTES, plain_file, read_bytes
from testbed.scenario.model import Scenario
from testbed.scenario.names import checked_name, is_name
from testbed.scenario.reading import read_scenario

if TYPE_CHECKING:
    import pandas as pd  # most who read trials need no table

_T = TypeVar("_T")

CAPTURES_FOLDER = "captures"
FLOWS_FOLDER = "flows"
SAMPLES_FOLDER = "samples"
COVERAGE_FOLDER = "coverage"  # what GCOV counted, of kernels that look for their own errors …

SCENARIO = "scenario.json"
RECORD = "trial.json"
COMMANDS = "commands.log"
KERNEL_LOG = "kernel.log"  # … and what such a kernel said
VERDICT_FILE = "verdict.json"
REDUCED = "reduced.json.gz"
TRIAL_PAGE = "trial.html"
QDISCS_FILE = f"{SAMPLES_FOLDER}/qdiscs.json"
COUNTERS_FILE = f"{SAMPLES_FOLDER}/counters.json"
CONFIGURATION_FILE = f"{SAMPLES_FOLDER}/configuration.json"
DROPS_FILE = f"{SAMPLES_FOLDER}/drops.json"
RECEIVERS_FILE = f"{SAMPLES_FOLDER}/receivers.json"
CAPACITY_FILE = f"{SAMPLES_FOLDER}/capacity.json"
RADIO_FILE = f"{SAMPLES_FOLDER}/radio.json"
# The guest engine's, gone when the guest has ended (kernel/README.md)
GUEST_FILES = "guest.*"
GUEST_COMMAND = "guest.argv"
GUEST_PATHS = "guest.paths"
GUEST_STATUS = "guest.status"
GUEST_CONSOLE = "guest.console"
GUEST_SCRIPT = "guest.script"  # that runs the command
GUEST_OUTPUT = "guest.out"
GUEST_ERRORS = "guest.err"
GUEST_PROGRAM = "guest.program"  # a whole program's command, environment and input …
GUEST_ENVIRONMENT = "guest.environment"
GUEST_INPUT = "guest.stdin"
GUEST_JUDGE = "guest.judge"  # the command that judges what it sets up
GUEST_REPORT = "guest.report"  # … how it went, and what our programs beside it have to say
GUEST_NOTES = "guest.notes"
GUEST_OBSERVED = "guest.observed"
GUEST_SAMPLED = "guest.sampled"
GUEST_MEMORY = "guest.memory"  # a directory that only the guest sees filled: its memory
PROGRAMME = "guest.programme"  # what the runner obeys
ANSWERS = "guest.answers"  # what it brings
RAW_SAMPLES = "guest.samples"  # the kernel's answers, which become the tables of samples
HOST_ERRORS = "trial.err"  # what a trial on the host engine prints
NETWORK_UP = "network-up"  # its time, as the host sees it, is when the network was up

# Of a whole program's run (docs/mininet.md)
MACHINE_FILES = "files"  # what it wrote in its folder
MACHINE_OUTPUT = "stdout.txt"
MACHINE_ERRORS = "stderr.txt"
MACHINE_RECORD = "machine.json"
MACHINE_FLOWS = "flows.csv"  # those in its captures, as of `testbed reduce`
GRADE_RECORD = "grade.json"  # beside the runs of a script that was graded
NETWORK_SHELL = "testbed-network"  # the name of the shell that makes a network for a command
MACHINE_OBSERVED = "observed.txt"  # the commands that it executed and the network that they made
LABORATORY_FINDINGS = "findings.json"  # what is wrong with that network or its measurements

RUNS = "runs"
LATEST = "latest"
RUN_FILE = "run.json"
METRICS_CSV = "metrics.csv"
METRICS_FILE = "metrics.parquet"
LINKS_CSV = "links.csv"
TRANSFERS_CSV = "transfers.csv"
REPORT = "report.html"
EVALUATION_JSON = "evaluation.json"
FIGURES = "figures"
_BESIDE_TRIALS = (".", "metrics.", FIGURES, "report", RUNS, LATEST)

RAW_CAPTURE = ".pcap"  # the suffix of what tcpdump writes, before it becomes pcapng
TCPDUMP_ERRORS = ".tcpdump"
ZSTD_SUFFIX = ".zst"  # added to the name of a capture that was compressed

WIRES = "wires"  # the node that holds links with a delay
QUEUE_ROLE = "queue"  # of captures at one of several queues, which are numbered
LEAF_MAJOR = 0x30  # the handle of the queue under a shaper, as a major number: "30:" to tc
LEAF_HANDLE = f"{LEAF_MAJOR:x}:"
TAIL_S = 2.0  # after the last flow, at least: queues drain, and the host's tcpdump catches up
RETIRE_S = 1.0  # between the hosts' counters and the end, while the host's tcpdump writes


_PART_OF_NAME = r"(?!\.)[A-Za-z0-9._-]{1,200}"
_FILE_NAME = re.compile(rf"{_PART_OF_NAME}(/{_PART_OF_NAME})*")
CHANGED = "damaged: it is not what the trial recorded"
FORMULA_STARTS = ("=", "+", "-", "@", "\t")  # of a cell, to spreadsheets


@dataclass(frozen=True)
class Table:
    """A CSV file and its columns."""

    file: str
    columns: tuple[str, ...]


SOCKET_SAMPLES = Table(
    f"{SAMPLES_FOLDER}/sockets.csv",
    (
        *("time_s", "flow", "state", "ca_state", "cwnd", "ssthresh", "srtt_ms", "rttvar_ms"),
        *("rto_ms", "backoff", "min_rtt_ms", "retrans", "total_retrans", "lost"),
        *("pacing_mbps", "delivery_mbps", "unacked", "bytes_acked"),
        *("busy_ms", "rwnd_limited_ms", "sndbuf_limited_ms", "starved_by"),
    ),
)
QUEUE_COUNTERS = ("drops", "marks", "overlimits", "sent_bytes", "sent_packets")
QUEUE_SAMPLES = Table(
    f"{SAMPLES_FOLDER}/queues.csv",
    ("time_s", "node", "interface", "backlog_bytes", "backlog_packets", *QUEUE_COUNTERS),
)
TCP_EVENTS = Table(
    f"{SAMPLES_FOLDER}/events.csv",
    ("time_s", "flow", "event", "cwnd", "ssthresh", "srtt_ms", "detail"),
)
IDLE_RTTS = Table(
    f"{SAMPLES_FOLDER}/idle.csv",
    ("flow", "src", "dst", "rtt_ms", "expected_ms", "jitter_ms", "lossy"),
)
LINK_CHANGES = Table(
    f"{SAMPLES_FOLDER}/changes.csv", ("time_s", "planned_s", "interface", "change")
)
CPU_LOAD = Table(f"{SAMPLES_FOLDER}/load.csv", ("time_s", "busiest", "softirq", "steal"))
PROCESS_TIMES = Table(
    f"{SAMPLES_FOLDER}/processes.csv", ("name", "node", "run_s", "wait_s", "slices")
)
# Samples of a whole program, in which a queue or socket has a row whenever it has changed
MACHINE_QUEUES = Table(
    QUEUE_SAMPLES.file,
    (
        *("time_s", "node", "interface", "handle", "discipline", "backlog_bytes"),
        *("backlog_packets", "drops", "sent_bytes", "sent_packets"),
    ),
)
MACHINE_SOCKETS = Table(
    SOCKET_SAMPLES.file,
    (
        *("time_s", "node", "src", "dst", "cwnd", "ssthresh", "srtt_ms", "unacked"),
        *("total_retrans", "bytes_acked"),
    ),
)
SAMPLED_TEXTS = {  # columns of these tables; the others have numbers
    *("flow", "state", "ca_state", "starved_by", "node", "interface", "event", "detail"),
    *("src", "dst", "change", "name", "lossy", "handle", "discipline"),
}


def trial_folder(scenario: Scenario, engine: str) -> str:
    """Return the name of a trial's directory in its results folder: one for each engine."""
    if scenario.label:
        checked_name(scenario.label)
    return f"{scenario.name}-{checked_name(engine)}"


def results_folder(experiment: str) -> Path:
    """Return where an experiment's results go unless the user names a folder."""
    return Path("results") / checked_name(experiment)


def report_file(flow: str, role: str) -> str:
    """Return the name of the report of a flow's `client` or `server`."""
    return f"{FLOWS_FOLDER}/{checked_name(flow)}.{role}.json"


def errors_file(flow: str, role: str) -> str:
    """Return the name of the stderr of a flow's program."""
    return f"{FLOWS_FOLDER}/{checked_name(flow)}.{role}.err"


def output_file(flow: str, role: str) -> str:
    """Return the name of what a command flow's `client` or `server` printed."""
    return f"{FLOWS_FOLDER}/{checked_name(flow)}.{role}.out"


def programs_file(flow: str) -> str:
    """Return the name of how a command flow's programs ended: a ProgramRecord by role."""
    return f"{FLOWS_FOLDER}/{checked_name(flow)}.programs.json"


def program_folder(flow: str, role: str) -> str:
    """Return the folder where a command flow's program runs; it is deleted after the trial."""
    return f"{FLOWS_FOLDER}/{checked_name(flow)}.{role}.files"


def playback_file(flow: str) -> str:
    """Return the name of a video player's report."""
    return f"{FLOWS_FOLDER}/{checked_name(flow)}.json"


def sizes_file(flow: str) -> str:
    """Return the name of the sizes of all files that a video player requested."""
    return f"{FLOWS_FOLDER}/{checked_name(flow)}.sizes.json"


def video_folder(flow: str) -> str:
    """Return the name of the folder in which a video's programs run; it is deleted afterwards."""
    return f"{FLOWS_FOLDER}/{checked_name(flow)}.video"


def datagrams_file(flow: str) -> str:
    """Return the name of a call's datagrams, written before it starts.

    A line is a datagram: ns after the start, bytes, ticks of the media's clock, whether it ends a
    frame.
    """
    return f"{FLOWS_FOLDER}/{checked_name(flow)}.datagrams"


def planned_file(flow: str) -> str:
    """Return the name of a workload's transfers, written before it starts.

    A line is a transfer: its session (0 without any), ns, bytes. The time counts from the flow's
    start or, in a session, from the end of the transfer before; -1 bytes have no end.
    """
    return f"{FLOWS_FOLDER}/{checked_name(flow)}.transfers"


def capture_file(interface: str) -> str:
    """Return the name of the capture taken at an interface."""
    return f"{CAPTURES_FOLDER}/{checked_name(interface)}.pcapng"


TRIAL_FILES = {  # path in a trial's directory → what it holds
    SCENARIO: "the scenario as it ran, complete: every default written out",
    RECORD: "what ran, where, with what, and how it ended (below)",
    COMMANDS: "every command of the trial with its output, in order",
    KERNEL_LOG: "what a kernel said that looks for its own errors, and its list of leaks",
    f"{COVERAGE_FOLDER}/FILE.gcda": "what such a kernel's GCOV counted of a file of `net/ipv4`",
    capture_file("INTERFACE"): "the packets at an interface, cut to the scenario's `snaplen_bytes`",
    report_file("FLOW", "client"): "what the client's program reported: iperf3's JSON, for example",
    report_file("FLOW", "server"): "what the server's program reported",
    errors_file("FLOW", "client"): "what a flow's program wrote to stderr; also `server`",
    output_file("FLOW", "client"): "what a command flow's program printed; also `server`",
    programs_file("FLOW"): "how a command flow's programs ended (below)",
    playback_file("FLOW"): "a video player's report",
    sizes_file("FLOW"): "the size of every file that a video player requested",
    planned_file(
        "FLOW"
    ): "a workload's transfers: a line with when (ns) and how many bytes for each",
    datagrams_file("FLOW"): "a call's datagrams: a line with when (ns) and how many bytes for each",
    SOCKET_SAMPLES.file: "samples of the senders' sockets",
    QUEUE_SAMPLES.file: "samples of the queues",
    TCP_EVENTS.file: "changes of congestion state, from the kernel's tracing",
    IDLE_RTTS.file: "round trips of the idle network, before the flows start",
    LINK_CHANGES.file: "changes of links while flows ran, and when they were planned",
    CPU_LOAD.file: "how busy the host's processors were (host engine)",
    PROCESS_TIMES.file: "how long the flows' processes ran and waited (host engine)",
    QDISCS_FILE: "node → `tc -json -s qdisc show` at the end",
    COUNTERS_FILE: "node → name → the kernel's counter at the end",
    CONFIGURATION_FILE: "begin, end → setting → value, as read back",
    DROPS_FILE: "flow → what its dropper counted",
    RECEIVERS_FILE: "flow → what its misbehaving receiver counted",
    CAPACITY_FILE: "interface → its trace, or its rates and since when",
    RADIO_FILE: "what the radio's medium was given, and what it counted",
    VERDICT_FILE: "the verdict: every check with what was measured and expected",
    REDUCED: "the tables of flows, links, transfers and series, as reduced",
    FIGURES: "figures of `testbed report TRIAL`",
}
RESULTS_FILES = {  # path in a results folder → what it holds
    "LABEL-seedN-HASH-ENGINE": "a trial: its label, its seed, its scenario's hash and its engine",
    RUNS: "the runs: a folder for each",
    LATEST: "a link to the newest run",
    f"{RUNS}/NAME/{RUN_FILE}": "a run's command, when it ended, and the names of its trials",
    f"{RUNS}/NAME/{METRICS_CSV}": "a row for each flow; `testbed run --all` prints the columns",
    f"{RUNS}/NAME/{METRICS_FILE}": "the same table",
    f"{RUNS}/NAME/{LINKS_CSV}": "a row for each observed queue, where trials have several",
    f"{RUNS}/NAME/{TRANSFERS_CSV}": "a row for each transfer of workloads",
    f"{RUNS}/NAME/{REPORT}": "the page of `testbed report` and `testbed run --watch`",
    f"{RUNS}/NAME/{FIGURES}": "the experiment's figures, as PNG, SVG and CSV",
}


def write_table(folder: Path, table: Table, rows: Iterable[Sequence[object]]) -> None:
    """Write a table of the trial in this folder."""
    path = folder / table.file
    path.parent.mkdir(exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(table.columns)
        writer.writerows(rows)


def csv_text(values: Sequence[object]) -> str:
    """Return values as `write_table` writes them: a whole line, or its end."""
    line = io.StringIO()
    csv.writer(line).writerow(values)
    return line.getvalue()


def spreadsheet_cell(text: str) -> str:
    """Return a text as a CSV's cell that no spreadsheet takes for a formula."""
    text = printable_lines(text)
    if not text.startswith(FORMULA_STARTS):
        return text
    try:
        is_number = all(math.isfinite(float(number)) for number in text.split(" ± "))
    except ValueError:
        is_number = False
    return text if is_number else f"'{text}"


def spreadsheet_frame(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table for `to_csv`, in which no text and no heading is a formula."""
    shown = frame.copy(deep=False)
    for name, column in frame.select_dtypes(exclude="number").items():
        texts = (value for value in column.unique() if isinstance(value, str))
        changed = {text: cell for text in texts if (cell := spreadsheet_cell(text)) != text}
        if changed:
            shown[name] = column.map(lambda value, cells=changed: cells.get(value, value))
    return shown.rename(columns=lambda name: spreadsheet_cell(str(name)))


def write_text(folder: Path, table: Table, rows: bytes) -> None:
    """Write a table whose rows are text already."""
    write_table(folder, table, ())
    with (folder / table.file).open("ab") as file:
        file.write(rows)


def write_json(folder: Path, name: str, content: object) -> None:
    """Write a JSON document of the trial in this folder."""
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(indented(content, 1) + "\n")


def read_json(folder: Path, name: str) -> Any:
    """Return a JSON document of the trial in this folder; None if it is missing or damaged."""
    try:
        return json_files.read(folder / name)
    except (OSError, *DAMAGED):
        return None


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
        same = {node: _shared(tuple(own.items())) for node, own in record.sysctls.items()}
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
    return type(value) in (int, float) and abs(value) < LARGEST_NUMBER


def _is_number_or_nan(value: Any) -> bool:
    return _is_number(value) or (isinstance(value, float) and math.isnan(value))


def _is_count(value: Any) -> bool:
    return type(value) is int and abs(value) < LARGEST_COUNT


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


LARGEST_NUMBER, LARGEST_COUNT = 9e9, 1 << 53
MOST_BESIDE_S = 1000.0  # before and after a scenario's time, if the host is slow
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


@dataclass(frozen=True)
class Trial:
    """A complete trial on disk."""

    path: Path
    scenario: Scenario
    record: Record

    def capture(self, role: str) -> Path | None:
        """Return the capture that has this role, if it was taken."""
        for capture in self.record.captures:
            if role in capture.roles and capture.file:
                return self.path / capture.file
        return None

    def file(self, name: str) -> Path | None:
        """Return the path of a file; None if the trial left none of that name.

        Raise an error if the file is not what the trial recorded: it would give other numbers, or
        none, without a word.
        """
        if name not in self.record.files:
            return None
        if fault := self.file_fault(name):
            raise TestbedError(f"{self.path / name}: {fault}", f"run it again: {again(self.path)}")
        return self.path / name

    def file_fault(self, name: str) -> str:
        """Return what is wrong with a file of the trial; empty if it is what it recorded."""
        recorded = self.record.files.get(name)
        is_capture = name.startswith(f"{CAPTURES_FOLDER}/")
        largest = None if is_capture else LARGEST_DOCUMENT_BYTES
        return file_fault(self.path / name, recorded, largest) if recorded else "not recorded"


def file_fault(path: Path, recorded: FileRecord, most_bytes: int | None = None) -> str:
    """Return what is wrong with a file; empty if it is what a trial recorded."""
    try:
        size = plain_file(path, most_bytes).stat().st_size
        if size != recorded.bytes:
            return f"damaged: {size} bytes, of {recorded.bytes} that the trial recorded"
        return "" if hash_of(path) == recorded.sha256 else CHANGED
    except (FileNotFoundError, NotADirectoryError):
        return "missing: the trial recorded it"
    except OSError as error:
        return f"damaged: {error.strerror}"


def scenario_text(scenario: Scenario, trial: Path) -> str:
    """Return a scenario as it is stored: where its programs' files lie, seen from the trial."""
    folder = trial.resolve()

    def relative(file: str) -> str:
        return os.path.relpath(Path(file).resolve(), folder)

    return scenario.with_programs(lambda programs: programs.with_files(relative)).to_json()


def with_files_from(scenario: Scenario, folder: Path) -> Scenario:
    """Return a scenario whose programs' files were named as a folder sees them."""

    def absolute(file: str) -> str:
        return os.path.normpath(folder.resolve() / file)

    return scenario.with_programs(lambda programs: programs.with_files(absolute))


def open_trial(path: Path) -> Trial:
    """Read a trial's directory, whoever wrote it: it may contain only names that we would give."""
    try:
        content = read_bytes(path / SCENARIO, json_files.MAX_RECORD_BYTES)
        record = Record.from_json(json_files.read_record(path / RECORD))
        _require_recorded(path, record, content)
        scenario = with_files_from(read_scenario(content, str(path / SCENARIO)), path)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise TestbedError(f"{path}: not a trial: {_lacks(path)}", _trial_hint(path)) from error
    except UsageError as error:
        raise TestbedError(
            error.message, "remove the folder, and run its experiment again"
        ) from error
    except DAMAGED as error:
        raise TestbedError(
            f"{path / RECORD}: damaged: {short(error)}", f"run it again: {again(path)}"
        ) from error
    for fault in record_faults(scenario, record):
        raise TestbedError(f"{path}: {fault}", "the testbed did not write this: leave it out")
    return Trial(path, scenario, record)


def _require_recorded(path: Path, record: Record, scenario: bytes) -> None:
    """Raise an error if the scenario is not the one that the record lists."""
    listed = record.files.get(SCENARIO)
    if listed is None and record.status is Status.OK:
        raise TestbedError(
            f"{path / RECORD}: it does not list the trial's files: an earlier version made it",
            f"run it again: {again(path)}",
        )
    if listed and hashlib.sha256(scenario).hexdigest() != listed.sha256:
        raise TestbedError(
            f"{path / SCENARIO}: {CHANGED}", "remove the folder, and run its experiment again"
        )


def again(trial: Path) -> str:
    """Return the command that replaces a trial's directory."""
    scenario, folder = (shlex.quote(str(each)) for each in (trial / SCENARIO, trial.parent))
    return f"testbed run {scenario} --out {folder} --rerun"


def open_named_trial(path: Path) -> Trial:
    """Read a trial that a user named; a folder that is not a trial is a usage error."""
    if not (path / RECORD).exists():
        raise UsageError(f"{path}: not a trial: {_lacks(path)}", _trial_hint(path))
    return open_trial(path)


def _lacks(path: Path) -> str:
    if path.is_dir():
        missing = next((name for name in (SCENARIO, RECORD) if not (path / name).exists()), RECORD)
        return f"{missing} is missing"
    return "a file" if path.exists() else "no such folder"


def _trial_hint(path: Path) -> str:
    inside = trial_paths(path) if path.is_dir() else []
    if inside:
        return f"name one of those in it: {inside[0]}"
    return "name a trial's directory, such as results/variants/reno-seed1-…"


def is_file_name(name: str) -> bool:
    """Return whether a path can be that of a trial's file, in its directory or below it."""
    return _FILE_NAME.fullmatch(name) is not None


def record_faults(scenario: Scenario, record: Record) -> Iterator[str]:
    """Yield a fault for each name that leads out of the trial or nowhere, and each time outside."""
    planned = {flow.name for flow in scenario.flows}
    last_s = scenario.duration_s + MOST_BESIDE_S
    engine = (record.engine,) if record.engine else ()
    queues = (name for each in record.queues for name in (each.node, each.interface))
    captures = (name for each in record.captures for name in (each.node, each.interface))
    for name in (*engine, *queues, *captures):
        if not is_name(name):
            yield f"{RECORD}: {quoted(name)}: not a name"
    for flow in scenario.flows:
        for name in (flow.src, flow.dst, *((flow.variant,) if flow.variant else ())):
            if not is_name(name):
                yield f"{SCENARIO}: {quoted(name)}: not a name"
    for each in record.flows:
        if each.name not in planned:
            yield f"{RECORD}: {quoted(each.name)} is not a flow of its scenario"
        if not -MOST_BESIDE_S <= each.started_s <= each.stopped_s <= last_s:
            yield f"{RECORD}: {each.name} cannot run from {each.started_s} to {each.stopped_s} s"
        if each.variant_seen and not is_name(each.variant_seen):
            yield f"{RECORD}: {quoted(each.variant_seen)}: not a name"
    for capture in record.captures:
        folder, _, name = str(capture.file).rpartition("/")
        if capture.file and not (folder == CAPTURES_FOLDER and is_name(name)):
            yield f"{RECORD}: {quoted(capture.file)} is not one of its capture files"
    for name in itertools.filterfalse(is_file_name, record.files):
        yield f"{RECORD}: {quoted(name)} is not one of its files"


def is_trial(path: Path) -> bool:
    """Return whether this is a trial's directory; one that is being written begins with a dot."""
    return not path.name.startswith(".") and (path / RECORD).is_file()


def is_program_run(path: Path) -> bool:
    """Return whether this is the results folder of a whole program's run."""
    return (path / MACHINE_RECORD).is_file()


def belongs_in_results(path: Path) -> bool:
    """Return whether a results folder may hold this: a trial, or what is made from trials."""
    return path.name.startswith(_BESIDE_TRIALS) or is_trial(path)


def run_command(run: Path) -> str:
    """Return the command that made a run; empty if it is not known."""
    data = read_json(run, RUN_FILE)
    command = data.get("command") if isinstance(data, dict) else None
    return command if isinstance(command, str) else ""


def listed_trials(run: Path) -> tuple[str, ...]:
    """Return the names of a run's trials, which are in the results folder above `runs`."""
    try:
        names = tuple(json_files.read(run / RUN_FILE)["trials"])
    except (OSError, *DAMAGED) as error:
        raise TestbedError(
            f"{run / RUN_FILE}: damaged: {short(error)}", "remove the folder: it holds no trials"
        ) from error
    for name in names:
        if not (isinstance(name, str) and name and name == Path(name).name and name[0] != "."):
            raise TestbedError(
                f"{run / RUN_FILE}: {quoted(name)} is not the name of a trial", "remove the folder"
            )
    return names


def trial_paths(results: Path) -> list[Path]:
    """Return the trials' directories in a results folder, or of a run, by name."""
    if not results.is_dir():
        if results.exists():
            raise UsageError(f"{results}: a file, not a folder", "name a results folder")
        raise UsageError(f"{results}: no such folder", "`testbed run` makes one")
    if (results / RUN_FILE).is_file():
        store = _store_of(results)
        found = [store / name for name in listed_trials(results)]
    else:
        found = list(results.iterdir())
    return sorted(filter(is_trial, found), key=lambda path: path.name)


def _store_of(run: Path) -> Path:
    """Return the results folder of a run or a link to one; relative if `run` is."""
    real = run.resolve().parent.parent
    return real if run.is_absolute() else Path(os.path.relpath(real))


def trials_in(results: Path) -> Iterator[Trial]:
    """Yield the trials of a results folder, or of a run, by name."""
    for path in trial_paths(results):
        yield open_trial(path)


def readable(paths: Iterable[Path]) -> tuple[list[Trial], list[TestbedError]]:
    """Read trials; return those that can be read, and what is wrong with each of the others."""
    trials, errors = list[Trial](), list[TestbedError]()
    for path in paths:
        try:
            trials.append(open_trial(path))
        except TestbedError as error:
            errors.append(error)
    return trials, errors
