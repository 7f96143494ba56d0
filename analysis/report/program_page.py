"""The page of a whole program's run: verdict, network, flows over time, commands, output, files."""

from __future__ import annotations

import dataclasses
import math
import shlex
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import shorten

import pandas as pd

from analysis.captures.flow_tables import HEADINGS
from analysis.figures.figure import Figure
from analysis.figures.program_figure import program_figure
from analysis.figures.sheet import Cell, Head, Sheet, as_sheet
from analysis.figures.static_renderer import save
from analysis.laboratory.observed_network import BuiltNetwork, LinkEnd, built_networks
from analysis.laboratory.program_results import MachineRecord, ProgramResults, open_program_run
from analysis.laboratory.rules import LaboratoryFinding
from analysis.laboratory.settings import SETTERS, is_client
from analysis.report import page
from analysis.report.network_drawing import Edge, network_svg
from analysis.report.trial_page import Download, downloads
from testbed.machine import safe_files
from testbed.machine.atomic import replace, workplace
from testbed.machine.safe_files import make_folder
from testbed.store.names import MACHINE_ERRORS, MACHINE_OUTPUT

MAX_DRAWN_NODES = 40  # nodes of a network: more do not fit
MAX_NETWORKS = 6  # that the page shows
MAX_TABLE = 500  # of a table in the page; the files have all
MAX_OUTPUT = 100_000  # letters in the page; the file has all
FEW_LINKS = 3  # of more, what all have alike is said once
MAX_SETTING = 48  # letters at a link of the drawing


@dataclass(frozen=True)
class ShownNetwork:
    """A network as the page shows it."""

    drawing: str  # empty: it is too large
    note: str
    links: Sheet


@dataclass(frozen=True)
class ProgramPage:
    """Everything on the page."""

    name: str
    command: str
    status: int
    facts: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]
    findings: Sheet | None
    networks: tuple[ShownNetwork, ...]
    figure: page.Shown
    flows: Sheet | None
    commands: Sheet
    cut: str  # what the tables leave out
    output: str
    errors: str
    downloads: tuple[Download, ...]


def write_program_page(folder: Path, out: Path) -> Path:
    """Write the page about a folder of results, as one file."""
    run = open_program_run(folder)
    networks = built_networks(run.observation)
    program_page = ProgramPage(
        name=folder.resolve().name,
        command=shlex.join(run.command),
        status=run.record.status,
        facts=tuple(_facts(run.record)),
        notes=tuple(run.record.notes),
        findings=_findings(run.findings),
        networks=tuple(_networks(run, networks)),
        figure=_figure(program_figure(run)),
        flows=_flows(run.flows),
        commands=_commands(run),
        cut=_cut(run, networks),
        output=_text(folder / MACHINE_OUTPUT),
        errors=_text(folder / MACHINE_ERRORS),
        downloads=tuple(downloads(folder, out)),
    )
    make_folder(out.parent)
    text = page.fill(
        "program_page.html", (*page.SHARED, "figures.js", "program.js"), run=program_page
    )
    replace(out, lambda path: path.write_text(text, encoding="utf-8"))
    return out


def _facts(record: MachineRecord) -> Iterator[tuple[str, str]]:
    times = f"{record.took_s:.6g} s of virtual time, {record.wall_s:.3g} s of wall time"
    yield "took", times
    yield "seed", str(record.seed)
    yield "kernel", record.kernel
    yield "folder", record.folder
    yield "repeatable", "the same seed gives the same bytes" if record.deterministic else "no"


def _findings(findings: Sequence[LaboratoryFinding]) -> Sheet | None:
    if not findings:
        return None
    heads = ("where", "what is wrong", "what happened", "write instead", "times")
    rows = (
        map(str, (each.place, each.rule, each.happened, each.instead, each.times))
        for each in findings
    )
    return as_sheet(heads, rows, numbers=("times",))


def _networks(run: ProgramResults, networks: Sequence[BuiltNetwork]) -> Iterator[ShownNetwork]:
    commands = [each for each in run.observation.commands if each.program not in SETTERS]
    begins = [*filter(is_client, commands), *commands]
    clients = [run.observation.label(each.namespace) for each in begins]
    for network in networks[:MAX_NETWORKS]:
        first = next((name for name in clients if name in network.nodes), next(iter(network.nodes)))
        edges = [_edge(*link) for link in network.links]
        note = f"{len(network.nodes)} nodes, {len(network.links)} links"
        edge_labels = {", ".join(filter(None, (edge.above, edge.below))) for edge in edges}
        if len(edge_labels) == 1 and len(edges) > FEW_LINKS:
            note = f"{note}, each {edge_labels.pop() or 'without a rate, a delay and a queue'}"
            edges = [dataclasses.replace(edge, above="", below="") for edge in edges]
        is_small = len(network.nodes) <= MAX_DRAWN_NODES
        drawing = _drawing(network, edges, first) if is_small else ""
        yield ShownNetwork(drawing, note, _links(network))


def _drawing(network: BuiltNetwork, edges: Sequence[Edge], first: str) -> str:
    """Draw a network from one of its nodes on; there is no room for words between neighbours."""
    columns = _columns(network, first)
    place = {name: number for number, names in enumerate(columns) for name in names}
    shown = [
        edge if place[edge.one] != place[edge.other] else Edge(edge.one, edge.other)
        for edge in edges
    ]
    routers = [name for name, is_router in network.nodes.items() if is_router]
    return network_svg("as built", columns, shown, routers, {})


def _columns(network: BuiltNetwork, first: str) -> list[list[str]]:
    """Return the nodes by their distance from one; those that it does not reach come first."""
    neighbours: dict[str, list[str]] = {name: [] for name in network.nodes}
    for one, other in network.links:
        neighbours[one.node].append(other.node)
        neighbours[other.node].append(one.node)
    distance, waiting = {first: 0}, deque([first])
    while waiting:
        here = waiting.popleft()
        for there in neighbours[here]:
            if there not in distance:
                distance[there] = distance[here] + 1
                waiting.append(there)
    columns: list[list[str]] = [[] for _ in range(max(distance.values()) + 1)]
    for name in network.nodes:
        columns[distance.get(name, 0)].append(name)
    return columns


def _edge(one: LinkEnd, other: LinkEnd) -> Edge:
    """Return a link with its rate and delay above, and what tc says of its queues below."""
    rates = sorted({end.rate_mbit for end in (one, other) if end.rate_mbit})
    delays = [end.delay_ms for end in (one, other) if end.delay_ms]
    above = [f"{' and '.join(f'{rate:g}' for rate in rates)} Mbit/s"] if rates else []
    if delays:
        ways = "each way" if len(delays) == 2 and len(set(delays)) == 1 else "one way"
        above.append(f"{' + '.join(f'{each:g}' for each in dict.fromkeys(delays))} ms {ways}")
    queues = dict.fromkeys(
        shorten(end.queue, MAX_SETTING, placeholder=" …") for end in (one, other) if end.queue
    )
    return Edge(one.node, other.node, ", ".join(above), ", ".join(queues), neck=bool(rates))


def _links(network: BuiltNetwork) -> Sheet:
    heads = ("node", "interface", "addresses", "to", "set by tc", "TSO", "packets sent", "dropped")
    rows = []
    for link in network.links[: MAX_TABLE // 2]:
        for here, there in (link, link[::-1]):
            places = (here.node, here.interface, ", ".join(here.addresses), there.node)
            settings = ("; ".join(here.settings), "on" if here.has_tso else "off")
            rows.append((*places, *settings, str(here.sent_packets), str(here.drops)))
    return as_sheet(heads, rows, numbers=("packets sent", "dropped"))


def _figure(figure: Figure) -> page.Shown:
    with workplace("report") as folder:
        save(figure, folder)
        return page.shown(figure, folder, {})


def _flows(flows: pd.DataFrame) -> Sheet | None:
    """Return the rows of `testbed reduce`, without the columns that are empty in all."""
    if flows.empty:
        return None
    shown = flows.head(MAX_TABLE).dropna(axis="columns", how="all")
    numbers = [name for name in shown.columns if shown[name].dtype.kind in "iuf"]
    heads = tuple(
        Head(HEADINGS.get(name, name) or name, number=name in numbers) for name in shown.columns
    )
    rows = tuple(tuple(map(_cell, row)) for row in shown.itertuples(index=False))
    return Sheet(heads, rows)


def _cell(value: object) -> Cell:
    if isinstance(value, float):
        return Cell("", "", True) if math.isnan(value) else Cell(f"{value:.5g}", f"{value!r}", True)
    return Cell(str(value), str(value), not isinstance(value, str))


def _commands(run: ProgramResults) -> Sheet:
    observation = run.observation
    heads = ("at, s", "took, s", "node", "command", "status", "line")
    rows = []
    for each in observation.commands[:MAX_TABLE]:
        took = "" if each.ended_ns is None else f"{(each.ended_ns - each.time_ns) / 1e9:.6f}"
        status = "" if each.status is None else str(each.status)
        node, place = observation.label(each.namespace), observation.place(each)
        rows.append((f"{run.seconds(each.time_ns):.6f}", took, node, str(each), status, place))
    return as_sheet(heads, rows, numbers=("at, s", "took, s", "status"))


def _cut(run: ProgramResults, networks: Sequence[BuiltNetwork]) -> str:
    """Say what the page leaves out of tables that are too long for it."""
    totals = {
        "flows": (len(run.flows), MAX_TABLE),
        "commands": (len(run.observation.commands), MAX_TABLE),
        "networks": (len(networks), MAX_NETWORKS),
    }
    cut = [f"{most} of {count} {name}" for name, (count, most) in totals.items() if count > most]
    return f"The page shows the first {', '.join(cut)}." if cut else ""


def _text(path: Path) -> str:
    try:
        return safe_files.head(path, MAX_OUTPUT)
    except OSError:
        return ""
