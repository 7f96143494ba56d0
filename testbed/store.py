"""The contract on disk: every file of a trial and of a results folder, its name and its shape.

A trial is one directory, written under a name that begins with a dot and renamed when it is
complete. Names are relative to the trial's directory; whoever writes a file and whoever reads
it take its name, and a table's columns, from here.
"""

from __future__ import annotations

import csv
import dataclasses
import enum
import io
import json
import math
import os
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from testbed.errors import TestbedError, UsageError, quoted
from testbed.scenario.model import Scenario
from testbed.scenario.names import checked, is_name, scenario_faults

_T = TypeVar("_T")

CAPTURES = "captures"
FLOWS = "flows"
SAMPLES = "samples"

# What a trial was, how it went, and every command that it took
SCENARIO = "scenario.json"
RECORD = "trial.json"
COMMANDS = "commands.log"
# What analysis keeps with the trial
VERDICT_FILE = "verdict.json"
REDUCED = "reduced.parquet"  # its tables of flows, links, transfers and series
TRIAL_PAGE = "trial.html"  # in FIGURES
# JSON documents
QDISCS = f"{SAMPLES}/qdiscs.json"  # node → `tc -json -s qdisc show` at the end
COUNTERS = f"{SAMPLES}/counters.json"  # node → name → the kernel's counter at the end
CONFIGURATION = f"{SAMPLES}/configuration.json"  # "begin", "end" → setting → value
DROPS = f"{SAMPLES}/drops.json"  # flow → what its dropper counted
CAPACITY = f"{SAMPLES}/capacity.json"  # interface → its trace, or its rates and from when on
RADIO = f"{SAMPLES}/radio.json"  # what the medium counted, beside what was asked of it
# The guest engine's, gone when the guest has ended (kernel/README.md)
GUEST_FILES = "guest.*"
GUEST_COMMAND = "guest.argv"
GUEST_PATHS = "guest.paths"
GUEST_STATUS = "guest.status"
GUEST_CONSOLE = "guest.console"
GUEST_ERRORS = "guest.err"
GUEST_MEMORY = "guest.memory"  # a directory that only the guest sees filled: its memory
HOST_ERRORS = "trial.err"  # what a trial on the host engine prints
NETWORK_UP = "network-up"  # its time, as the host sees it, is when the network was up

# Of a results folder, beside its trials
RUNS = "runs"  # of these trials, each with its table and figures in a folder of its own
LATEST = "latest"  # a link to the newest
# Of a run's folder, and of a results folder that several of them are reported from
RUN_FILE = "run.json"
METRICS_CSV = "metrics.csv"
METRICS_FILE = "metrics.parquet"
LINKS_CSV = "links.csv"  # of trials with several observed queues
TRANSFERS_CSV = "transfers.csv"  # of workloads
REPORT = "report.html"
FIGURES = "figures"
_BESIDE_TRIALS = (".", "metrics.", FIGURES, "report", RUNS, LATEST)

RAW_CAPTURE = ".pcap"  # the suffix of what tcpdump writes, before it becomes pcapng
TCPDUMP_ERRORS = ".tcpdump"
COMPRESSED = ".zst"  # added to the name of a capture that was compressed

WIRES = "wires"  # the node that holds links with a delay
QUEUE_ROLE = "queue"  # of captures at one of several queues, which are numbered
LEAF = 0x30  # the handle of the queue under a shaper, as a major number: "30:" to tc
LEAF_HANDLE = f"{LEAF:x}:"
TAIL_S = 2.0  # after the last flow, at least: queues drain, and tcpdump's blocks retire
RETIRE_S = 1.0  # between the hosts' counters and the end, while tcpdump writes what it has seen


@dataclass(frozen=True)
class Table:
    """A CSV file and its columns."""

    file: str
    columns: tuple[str, ...]


SOCKETS = Table(
    f"{SAMPLES}/sockets.csv",
    (
        *("time_s", "flow", "state", "ca_state", "cwnd", "ssthresh", "srtt_ms", "rttvar_ms"),
        *("rto_ms", "backoff", "min_rtt_ms", "retrans", "total_retrans", "lost"),
        *("pacing_mbps", "delivery_mbps", "unacked", "bytes_acked"),
    ),
)
QUEUE_COUNTERS = ("drops", "marks", "overlimits", "sent_bytes", "sent_packets")
QUEUES = Table(
    f"{SAMPLES}/queues.csv",
    ("time_s", "node", "interface", "backlog_bytes", "backlog_packets", *QUEUE_COUNTERS),
)
EVENTS = Table(
    f"{SAMPLES}/events.csv",
    ("time_s", "flow", "event", "cwnd", "ssthresh", "srtt_ms", "detail"),
)
IDLE = Table(
    f"{SAMPLES}/idle.csv",
    ("flow", "src", "dst", "rtt_ms", "expected_ms", "jitter_ms", "lossy"),
)
CHANGES = Table(f"{SAMPLES}/changes.csv", ("time_s", "planned_s", "interface", "change"))
LOAD = Table(f"{SAMPLES}/load.csv", ("time_s", "busiest", "softirq", "steal"))
PROCESSES = Table(f"{SAMPLES}/processes.csv", ("name", "node", "run_s", "wait_s", "slices"))


def trial_folder(scenario: Scenario, engine: str) -> str:
    """The name of a trial's directory in its results folder: one for each engine."""
    if scenario.label:
        checked(scenario.label)
    return f"{scenario.name}-{checked(engine)}"


def results_folder(experiment: str) -> Path:
    """Where an experiment's results go unless the user names a folder."""
    return Path("results") / checked(experiment)


def report_file(flow: str, role: str) -> str:
    """The report of a flow's `client` or `server`: from iperf3, a workload, or QUIC."""
    return f"{FLOWS}/{checked(flow)}.{role}.json"


def errors_file(flow: str, role: str) -> str:
    """The stderr of a flow's program."""
    return f"{FLOWS}/{checked(flow)}.{role}.err"


def output_file(flow: str, role: str) -> str:
    """What a command flow's `client` or `server` printed."""
    return f"{FLOWS}/{checked(flow)}.{role}.out"


def programs_file(flow: str) -> str:
    """How a command flow's programs ended: a ProgramRecord by role."""
    return f"{FLOWS}/{checked(flow)}.programs.json"


def program_folder(flow: str, role: str) -> str:
    """Where a command flow's program runs; gone when the trial has ended."""
    return f"{FLOWS}/{checked(flow)}.{role}.files"


def playback_file(flow: str) -> str:
    """A video player's report."""
    return f"{FLOWS}/{checked(flow)}.json"


def sizes_file(flow: str) -> str:
    """The size of every file that a video player requested."""
    return f"{FLOWS}/{checked(flow)}.sizes.json"


def planned_file(flow: str) -> str:
    """Return the file of a workload's transfers, written before it starts.

    A line is a transfer: its session (0 without any), ns, bytes. The time counts from the flow's
    start or, in a session, from the end of the transfer before; -1 bytes have no end.
    """
    return f"{FLOWS}/{checked(flow)}.transfers"


def capture_file(interface: str) -> str:
    """The capture taken at an interface."""
    return f"{CAPTURES}/{checked(interface)}.pcapng"


def write_table(folder: Path, table: Table, rows: Iterable[Sequence[object]]) -> None:
    """Write a table of the trial in this folder."""
    path = folder / table.file
    path.parent.mkdir(exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(table.columns)
        writer.writerows(rows)


def csv_text(values: Sequence[object]) -> str:
    """These values as `write_table` writes them: a whole line, or its end."""
    line = io.StringIO()
    csv.writer(line).writerow(values)
    return line.getvalue()


def write_text(folder: Path, table: Table, rows: bytes) -> None:
    """Write a table whose rows are text already."""
    write_table(folder, table, ())
    with (folder / table.file).open("ab") as file:
        file.write(rows)


def write_json(folder: Path, name: str, content: object) -> None:
    """Write a JSON document of the trial in this folder."""
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(content, indent=1) + "\n")


def read_json(folder: Path, name: str) -> Any:
    """A JSON document of the trial in this folder; None if it is missing or damaged."""
    try:
        return json.loads((folder / name).read_text())
    except (OSError, ValueError):
        return None


class Status(enum.StrEnum):
    """How a trial ended; the three are never mixed."""

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
    src_ports: tuple[int, ...]  # none: its connections have any
    dst_port: int  # 0: its connections have one each
    started_s: float
    stopped_s: float
    planned_start_s: float = math.nan
    planned_stop_s: float = math.nan
    control: str = ""  # the congestion control that was asked for, and what the socket ran
    variant_seen: str = ""
    options: tuple[str, ...] = ()  # of TCP's, that it was to agree on, and what it agreed on
    options_seen: tuple[str, ...] = ()

    @property
    def has_many_connections(self) -> bool:
        """Whether its connections come and go, from or to ports of their own."""
        return not self.src_ports or self.dst_port == 0


@dataclass(frozen=True)
class ProgramRecord:
    """How one of a command flow's programs ended."""

    status: int  # of its exit; below 0, the number of the signal
    was_ended: bool  # by the trial, at the end of its time
    early: bool = False  # a server that had ended before

    def as_json(self) -> dict[str, int | bool]:
        """The record as JSON's types."""
        return dataclasses.asdict(self)

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> ProgramRecord:
        """The inverse of `as_json`."""
        return _known(ProgramRecord, data)


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
    hosts), `bottleneck-in:FLOW` (before the slowest observed queue that the flow crosses; none
    where the flow starts at that node) and `bottleneck-out:FLOW` (after it). Of a flow that
    crosses several, all have `queueN-in:FLOW` and `queueN-out:FLOW`, in the path's order.
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
    def from_json(text: str | bytes) -> Record:
        """Read a record; unknown fields of a later version are left aside."""
        data = json.loads(text)
        data["status"] = Status(data["status"])
        data["flows"] = tuple(_known(FlowRecord, each) for each in data.get("flows", ()))
        data["queues"] = tuple(_known(QueueRecord, each) for each in data.get("queues", ()))
        data["captures"] = tuple(_known(CaptureRecord, each) for each in data.get("captures", ()))
        return _known(Record, data)


# what reading a file as JSON, and then as a record, can raise
DAMAGED = (ValueError, LookupError, TypeError, AttributeError, RecursionError)


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
    """Read one trial's directory, whoever wrote it: its names must be ones that we would give."""
    try:
        scenario = Scenario.from_json((path / SCENARIO).read_bytes(), str(path / SCENARIO))
        record = Record.from_json((path / RECORD).read_bytes())
    except (FileNotFoundError, NotADirectoryError) as error:
        raise TestbedError(f"{path}: not a trial: {_lacks(path)}", _trial_hint(path)) from error
    except UsageError as error:
        raise TestbedError(
            error.message, "remove the folder, and run its experiment again"
        ) from error
    except DAMAGED as error:
        raise TestbedError(
            f"{path / RECORD}: damaged: {error}", f"run it again: {again(path)}"
        ) from error
    for fault in (*scenario_faults(scenario), *record_faults(scenario, record)):
        raise TestbedError(f"{path}: {fault}", "the testbed did not write this: leave it out")
    return Trial(path, scenario, record)


def again(trial: Path) -> str:
    """The command that replaces a trial's directory."""
    scenario, folder = (shlex.quote(str(each)) for each in (trial / SCENARIO, trial.parent))
    return f"testbed run {scenario} --out {folder} --rerun"


def _lacks(path: Path) -> str:
    if path.is_dir():
        missing = next((name for name in (SCENARIO, RECORD) if not (path / name).exists()), RECORD)
        return f"{missing} is missing"
    return "a file" if path.exists() else "no such folder"


def _trial_hint(path: Path) -> str:
    inside = trial_paths(path) if path.is_dir() else []
    return f"name one of those in it: {inside[0]}" if inside else "name a trial's directory"


def record_faults(scenario: Scenario, record: Record) -> Iterator[str]:
    """Names in a record that could lead out of the trial's directory, or lead nowhere."""
    planned = {flow.name for flow in scenario.flows}
    engine = (record.engine,) if record.engine else ()
    queues = (name for each in record.queues for name in (each.node, each.interface))
    captures = (name for each in record.captures for name in (each.node, each.interface))
    for name in (*engine, *queues, *captures):
        if not is_name(name):
            yield f"{RECORD}: {quoted(name)} is no name"
    for flow in scenario.flows:
        for name in (flow.src, flow.dst, *((flow.variant,) if flow.variant else ())):
            if not is_name(name):
                yield f"{SCENARIO}: {quoted(name)} is no name"
    for each in record.flows:
        if each.name not in planned:
            yield f"{RECORD}: {quoted(each.name)} is no flow of its scenario"
        if each.variant_seen and not is_name(each.variant_seen):
            yield f"{RECORD}: {quoted(each.variant_seen)} is no name"
    for capture in record.captures:
        folder, _, name = str(capture.file).rpartition("/")
        if capture.file and not (folder == CAPTURES and is_name(name)):
            yield f"{RECORD}: {quoted(capture.file)} is no file of its captures"


def is_trial(path: Path) -> bool:
    """True for the directory of a whole trial; a name with a leading dot is still being written."""
    return not path.name.startswith(".") and (path / RECORD).is_file()


def belongs_in_results(path: Path) -> bool:
    """True for what a results folder may hold: a trial, or what is made of trials."""
    return path.name.startswith(_BESIDE_TRIALS) or is_trial(path)


def listed_trials(run: Path) -> tuple[str, ...]:
    """The names of a run's trials, which are in the results folder above `runs`."""
    try:
        names = tuple(json.loads((run / RUN_FILE).read_bytes())["trials"])
    except (OSError, *DAMAGED) as error:
        raise TestbedError(
            f"{run / RUN_FILE}: damaged: {error}", "remove the folder: it holds no trials"
        ) from error
    for name in names:
        if not (isinstance(name, str) and name and name == Path(name).name and name[0] != "."):
            raise TestbedError(
                f"{run / RUN_FILE}: {quoted(name)} is no trial's name", "remove the folder"
            )
    return names


def trial_paths(results: Path) -> list[Path]:
    """The whole trials of a results folder, or of a run, by name."""
    if not results.is_dir():
        if results.exists():
            raise TestbedError(f"{results}: a file, not a folder", "name a results folder")
        raise TestbedError(f"{results}: no such folder", "`testbed run` makes one")
    if (results / RUN_FILE).is_file():
        store = _store_of(results)
        found = [store / name for name in listed_trials(results)]
    else:
        found = list(results.iterdir())
    return sorted(path for path in found if is_trial(path))


def _store_of(run: Path) -> Path:
    """The results folder of a run, which may be named by a link; relative where the run is."""
    real = run.resolve().parent.parent
    return real if run.is_absolute() else Path(os.path.relpath(real))


def trials_in(results: Path) -> Iterator[Trial]:
    """All whole trials of a results folder, or of a run, by name."""
    for path in trial_paths(results):
        yield open_trial(path)
