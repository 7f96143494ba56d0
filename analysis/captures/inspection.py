"""A flow of a trial as Wireshark shows it: which capture, which packets, in which profile."""

from __future__ import annotations

import contextlib
import csv
import enum
import io
import itertools
import os
import shlex
import shutil
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from analysis.captures.pcap import check_file
from analysis.captures.tshark import CUT_SHORT, complaints
from testbed.errors import TestbedError, UsageError, nearest
from testbed.machine import safe_files
from testbed.machine.atomic import workplace
from testbed.machine.process import end, start, stream, sudo_user
from testbed.store.reading import Trial
from testbed.store.records import FlowRecord

if TYPE_CHECKING:
    from pyshark.packet.packet import Packet

# A configuration folder of Wireshark's with our profile in it, and nothing of the user's.
CONFIGURATION = Path(__file__).parent / "wireshark_profile"
PROFILE = "TCP-testbed"
PROFILE_FOLDER = CONFIGURATION / "profiles" / PROFILE
# Wireshark and tshark look for all their settings below this folder
VARIABLE = "WIRESHARK_CONFIG_DIR"
DISPLAYS = ("DISPLAY", "WAYLAND_DISPLAY")
IO_GRAPHS = "io_graphs"
FILTER_COLUMN = 2  # of io_graphs: enabled, name, filter, colour, …


class Point(enum.StrEnum):
    """The point of its path where a flow was captured (the roles of `CaptureRecord`)."""

    SENDER = "sender"
    RECEIVER = "receiver"
    BOTTLENECK_IN = "bottleneck-in"
    BOTTLENECK_OUT = "bottleneck-out"


@dataclass(frozen=True)
class View:
    """Packets to look at: a capture, and the display filter that lets them through."""

    capture: Path
    display_filter: str = ""
    about: str = ""  # the flow and the point, for people

    def narrowed(self, display_filter: str) -> View:
        """Keep the packets that a second filter lets through, too."""
        both = conjunction(self.display_filter, display_filter)
        return View(self.capture, both, self.about)

    @property
    def command(self) -> tuple[str, ...]:
        """The command line that opens the view, where the profile is installed."""
        return ("wireshark", "-C", PROFILE, *self.options)

    @property
    def options(self) -> tuple[str, ...]:
        """The capture and the filter, for Wireshark and tshark alike."""
        chosen = ("-Y", self.display_filter) if self.display_filter else ()
        return ("-r", os.fspath(self.capture), *chosen)


def conjunction(one: str, other: str) -> str:
    """Return a display filter that both filters agree to; an empty one lets everything through."""
    return f"({one}) && ({other})" if one and other else one or other


def view_of(trial: Trial, flow: str = "", point: str = Point.SENDER) -> View:
    """Return the view of a flow, the first unless named, as captured at a point of its path."""
    ran = flow_record(trial, flow)
    capture = trial.capture(f"{point}:{ran.name}")
    if capture is None:
        taken = [str(each) for each in Point if trial.capture(f"{each}:{ran.name}")]
        if point not in list(Point):
            raise UsageError(f"unknown point {point!r}", nearest(point, taken or map(str, Point)))
        raise TestbedError(
            f"{trial.path}: flow {ran.name} was not captured at {point}",
            f"captured: {', '.join(taken)}" if taken else "the trial has no capture of this flow",
        )
    trial.file(os.fspath(capture.relative_to(trial.path)))
    check_file(capture)
    return View(capture, flow_filter(ran), f"flow {ran.name} at {point}")


def flow_record(trial: Trial, name: str = "") -> FlowRecord:
    """Return a flow that ran, by its name; the first one, if none is named."""
    flows = {flow.name: flow for flow in trial.record.flows}
    if not flows:
        reason = trial.record.reason or "none is recorded"
        raise TestbedError(
            f"{trial.path}: no flow ran ({trial.record.status}: {reason})",
            trial.record.hint or "name a trial that ended well",
        )
    if name and name not in flows:
        raise UsageError(f"{trial.path}: no flow {name!r}", nearest(name, flows))
    return flows[name] if name else trial.record.flows[0]


def flow_filter(flow: FlowRecord) -> str:
    """Return the display filter of a flow's packets: both directions, all its connections."""
    family = "ipv6" if ":" in flow.src_address else "ip"
    parts = [f"{family}.addr == {address}" for address in (flow.src_address, flow.dst_address)]
    if flow.dst_port or not flow.src_ports:
        parts.append(f"{flow.protocol}.port == {flow.dst_port}" if flow.dst_port else flow.protocol)
    if len(flow.src_ports) == 1:
        parts.append(f"{flow.protocol}.port == {flow.src_ports[0]}")
    elif flow.src_ports:
        ports = ", ".join(map(str, flow.src_ports))
        parts.append(f"{flow.protocol}.port in {{{ports}}}")
    return " && ".join(parts)


def description(view: View) -> tuple[str, ...]:
    """Describe the view and the command that opens it, line by line."""
    return (
        f"view: {view.about}",
        f"display filter: {view.display_filter}",
        f"command: {shlex.join(view.command)}",
    )


def instructions(obstacle: str) -> tuple[str, ...]:
    """Return the steps that make the command work when typed by hand."""
    here = (f"not opened here: {obstacle}",) if obstacle else ()
    return (
        *here,
        f"profile: copy {PROFILE_FOLDER} into Wireshark's profiles folder"
        " (~/.config/wireshark/profiles)",
    )


def obstacle(environment: Mapping[str, str] = os.environ) -> str:
    """Return the reason why no window can be opened here; empty if one can."""
    if not any(environment.get(name) for name in DISPLAYS):
        return f"no display ({' and '.join(DISPLAYS)} are not set)"
    if shutil.which("wireshark") is None:
        return "wireshark is not installed (apt install wireshark)"
    return ""


def open_window(view: View) -> None:
    """Open Wireshark on the view, in our profile; return when it is closed.

    It has a configuration folder of its own for as long as it runs: it writes the sizes of
    windows and the files last opened there, not into the user's settings. Under sudo it
    runs as the user, whose screen it is.
    """
    user = sudo_user()
    with configuration(view.display_filter) as folder:
        notes_folder = folder / "said"
        environment = {**os.environ, VARIABLE: os.fspath(folder), **(user.home if user else {})}
        process = start(view.command, stderr=notes_folder, env=environment, user=user)
        try:
            status = process.wait()
        finally:
            end(process)
        if status:
            reason = _reason(safe_files.tail(notes_folder))
            raise TestbedError(
                f"wireshark ended with status {status}: {reason}",
                "`testbed inspect … --print` gives the command and the display filter",
            )


def _reason(stderr: str) -> str:
    """Return the line that says why; Qt says more, before and after."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()] or [
        "it does not say why"
    ]
    return next((line for line in lines if "could not" in line), lines[-1])


@contextlib.contextmanager
def configuration(display_filter: str) -> Iterator[Path]:
    """Make a temporary configuration folder whose I/O graphs count the view only."""
    with workplace("wireshark") as folder:
        shutil.copytree(CONFIGURATION, folder, dirs_exist_ok=True)
        user = sudo_user()
        for path in (folder, *folder.rglob("*")):
            path.chmod(0o700 if path.is_dir() else 0o600)  # the package may be read-only
            if user:
                os.chown(path, user.uid, user.gid)
        graphs = folder / "profiles" / PROFILE / IO_GRAPHS
        graphs.write_text(narrow_graphs(graphs.read_text(), display_filter))
        yield folder


def narrow_graphs(text: str, display_filter: str) -> str:
    """Add the display filter to the condition of each graph of an io_graphs file."""
    out = io.StringIO()
    writer = csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\n")
    for row in csv.reader(text.splitlines()):
        row[FILTER_COLUMN] = conjunction(display_filter, row[FILTER_COLUMN])
        writer.writerow(row)
    return out.getvalue()


@contextlib.contextmanager
def dissected(view: View, form: str) -> Iterator[Iterator[str]]:
    """Yield the lines that tshark prints of a view with our profile; it ends with the block.

    `form` is what `-T` takes.
    """
    check_file(view.capture)
    argv = ("tshark", "-n", "-C", PROFILE, *view.options, "-T", form)
    environment = {**os.environ, VARIABLE: os.fspath(CONFIGURATION)}
    with stream(argv, env=environment) as process:

        def lines() -> Iterator[str]:
            assert process.stdout is not None and process.stderr is not None
            yield from process.stdout
            complaint = "; ".join(complaints(process.stderr.read()))
            # of a capture that ends in the middle, what is whole has been shown
            if process.wait() and CUT_SHORT not in complaint:
                raise TestbedError(
                    f"{view.capture}: {complaint or 'tshark failed'}",
                    "man wireshark-filter explains display filters",
                )

        yield lines()


@contextlib.contextmanager
def pyshark_packets(view: View) -> Iterator[Iterator[Packet]]:
    """Dissect a view's packets one by one, as pyshark's objects; tshark ends with the block.

    pyshark's parser is used without its FileCapture: that needs an event loop, which a notebook
    already runs, and leaves its tshark to be collected.
    """
    try:
        from pyshark.tshark.output_parser.tshark_xml import packet_from_xml_packet
    except ModuleNotFoundError as error:
        hint = "pip install 'tcp-testbed[inspect]'"
        raise TestbedError("pyshark is not installed", hint) from error

    def packets(lines: Iterator[str]) -> Iterator[Packet]:
        for line in lines:
            if line.startswith("<packet>"):
                rest = itertools.takewhile(lambda text: not text.startswith("</packet>"), lines)
                yield packet_from_xml_packet("".join((line, *rest, "</packet>")).encode())

    with dissected(view, "pdml") as lines:
        yield packets(lines)


def packet_table(view: View, count: int) -> list[tuple[str, ...]]:
    """Return the profile's column titles, then the cells of the view's first packets."""
    with dissected(view, "psml") as lines:
        return list(itertools.islice(_rows(lines), count + 1))


def _rows(lines: Iterator[str]) -> Iterator[tuple[str, ...]]:
    """PSML's rows: the titles, then the packets, a line a cell."""
    for line in lines:
        if line.startswith(("<structure>", "<packet>")):
            cells = itertools.takewhile(lambda text: not text.startswith("</"), lines)
            yield tuple(ET.fromstring(cell).text or "" for cell in cells)


def aligned(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Align a table as lines of text for a fixed-width font; numbers are flush right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    numbers = [_numeric(column[1:]) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if number else cell.ljust(width)
            for cell, width, number in zip(row, widths, numbers, strict=True)
        ).rstrip()
        for row in rows
    ]


def _numeric(cells: Sequence[str]) -> bool:
    return all(cell.replace(".", "", 1).isdigit() for cell in cells if cell)
