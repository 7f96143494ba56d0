"""The contract on disk: every file of a trial and of a results folder, and the columns of tables.

A trial is one directory, written under a name that begins with a dot and renamed when it is
complete. Names are relative to the trial's directory; whoever writes a file and whoever reads
it take its name, and a table's columns, from here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from testbed.scenario.model import Scenario
from testbed.scenario.names import checked_name

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
WATCH_PAGE = "watch.html"
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
GUEST_ROOT = "guest.root"  # the name of the folder that is its root
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

RAW_CAPTURE = ".pcap"  # the suffix of what tcpdump writes, before it becomes pcapng
TCPDUMP_ERRORS = ".tcpdump"
ZSTD_SUFFIX = ".zst"  # added to the name of a capture that was compressed

DELAY_NODE = "wires"  # the node that holds links with a delay
QUEUE_ROLE = "queue"  # of captures at one of several queues, which are numbered
LEAF_MAJOR = 0x30  # the handle of the queue under a shaper, as a major number: "30:" to tc
LEAF_HANDLE = f"{LEAF_MAJOR:x}:"
TAIL_S = 2.0  # after the last flow, at least: queues drain, and the host's tcpdump catches up
RETIRE_S = 1.0  # between the hosts' counters and the end, while the host's tcpdump writes


_PART_OF_NAME = r"(?!\.)[A-Za-z0-9._-]{1,200}"
_FILE_NAME = re.compile(rf"{_PART_OF_NAME}(/{_PART_OF_NAME})*")


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
    FIGURES: "figures of `testbed report TRIAL`, and the page of `testbed watch TRIAL`",
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


def is_file_name(name: str) -> bool:
    """Return whether a path can be that of a trial's file, in its directory or below it."""
    return _FILE_NAME.fullmatch(name) is not None
