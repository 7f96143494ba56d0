"""A whole program's run over time: throughput, windows, round trips, queues, commands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pandas as pd

from analysis.figures.figure import (
    Axis,
    Boxes,
    Curve,
    Figure,
    LegendEntry,
    Mark,
    Panel,
    PointSeries,
)
from analysis.figures.style import (
    BLUE,
    BROWN,
    GREEN,
    GREY,
    INDIGO,
    MOSS,
    ORANGE,
    PURPLE,
    ROSE,
    SKY,
    TEAL,
    VERMILLION,
    WINE,
)
from analysis.laboratory.observation import ExecutedCommand
from analysis.laboratory.observed_network import CLASSFUL
from analysis.laboratory.program_results import ProgramResults
from analysis.laboratory.settings import SETTERS
from testbed.store.names import DELAY_NODE

FLOW_COLOURS = (BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY, INDIGO, BROWN)
QUEUE_COLOURS = (TEAL, WINE, MOSS, ROSE)
MIN_LANES, MAX_LANES = 2, 16  # of commands: those that have room, and those that are shown
MIN_FLOW = 0.01  # of the largest flow's data: smaller ones are left out
MIN_SHARE = 0.005  # of the run: a shorter command is a point


def program_figure(run: ProgramResults) -> Figure:
    """Return the figure of a run; panels without data are left out."""
    hosts = {
        address: run.observation.label(seen.inode)
        for seen in run.observation.namespaces
        for device in seen.devices.values()
        for address in device.addresses
    }
    flows = _largest_flows(run)
    colours = dict(zip(flows, FLOW_COLOURS, strict=False))
    names = {flow: " → ".join(_end(end, hosts) for end in flow) for flow in flows}
    end_s = max(run.record.took_s, 1e-3)
    curves = [
        ("throughput (Mbit/s)", list(_rates(run, colours, names))),
        ("window (packets)", list(_sockets(run, "cwnd", colours, names))),
        ("smoothed RTT (ms)", list(_sockets(run, "srtt_ms", colours, names))),
        ("queue (packets)", list(_queues(run, end_s))),
    ]
    panels = [
        Panel(marks, Axis(limits=(0, end_s)), Axis(label, limits=(0, None)))
        for label, marks in curves
        if marks
    ]
    lanes = _lanes(run, end_s)
    heights = [1.3] * len(panels) + [0.5 + 0.22 * max(MIN_LANES, len(lanes.y.names))]
    legend = {
        mark.series: LegendEntry(mark.series, mark.colour)
        for panel in panels
        for mark in panel.marks
        if isinstance(mark, Curve)
    }
    return Figure(
        "over-time",
        "",
        [[panel] for panel in (*panels, lanes)],
        caption=f"Seconds of virtual time since the program began. {_sources(run)}",
        legend=tuple(legend.values()),
        data=run.rates,
        row_inches=heights,
    )


def _sources(run: ProgramResults) -> str:
    """Say where the numbers are from."""
    if not run.captures:
        return "Bars and points are commands; --capture adds flows, sockets and queues."
    rates = f"Throughput is from the captures, in bins of {run.bin_s:g} s; "
    return f"{rates}windows, round trips and queues are sampled. Bars and points are commands."


def _largest_flows(run: ProgramResults) -> list[tuple[str, str]]:
    """Return the ends of the flows with most data, in the order in which they begin."""
    if run.rates.empty:
        return []
    totals = run.rates.groupby(["src", "dst"]).agg(
        size=("throughput_mbps", "sum"), time_s=("time_s", "min")
    )
    totals = totals[totals["size"] >= MIN_FLOW * totals["size"].max()]
    largest = totals.nlargest(len(FLOW_COLOURS), "size").sort_values("time_s", kind="stable")
    return [(str(src), str(dst)) for src, dst in largest.index]


def _end(end: str, hosts: Mapping[str, str]) -> str:
    address, _, port = end.rpartition(":")
    return f"{hosts.get(address.strip('[]'), address)}:{port}"


def _of_flow(rows: pd.DataFrame, ends: tuple[str, str]) -> pd.DataFrame:
    src, dst = ends
    return rows[(rows["src"] == src) & (rows["dst"] == dst)]


def _rates(
    run: ProgramResults,
    colours: Mapping[tuple[str, str], str],
    names: Mapping[tuple[str, str], str],
) -> Iterator[Curve]:
    for flow, colour in colours.items():
        rows = _of_flow(run.rates, flow)
        x, y = rows["time_s"].to_numpy(), rows["throughput_mbps"].to_numpy()
        if len(x):
            x, y = np.append(x, x[-1] + run.bin_s), np.append(y, y[-1])
            yield Curve(x, y, colour, steps=True, series=names[flow])


def _sockets(
    run: ProgramResults,
    column: str,
    colours: Mapping[tuple[str, str], str],
    names: Mapping[tuple[str, str], str],
) -> Iterator[Curve]:
    for flow, colour in colours.items():
        rows = _of_flow(run.sockets, flow)
        if len(rows):
            yield Curve(rows["time_s"], rows[column], colour, steps=True, series=names[flow])


def _queues(run: ProgramResults, end_s: float) -> Iterator[Curve]:
    """Yield the queues of the fullest interfaces, without parents that hold the same packets."""
    queues = run.queues[run.queues["node"] != DELAY_NODE]
    places = ["node", "interface"]
    fullest = queues.groupby(places, sort=False)["backlog_packets"].max()
    fullest = fullest[fullest > 1].sort_values(ascending=False, kind="stable")
    for (node, name), colour in zip(fullest.index, QUEUE_COLOURS, strict=False):
        samples = queues[(queues["node"] == node) & (queues["interface"] == name)]
        filled = samples.loc[samples["backlog_packets"] > 1, "discipline"].unique()
        above = sorted(
            (each for each in filled if each in CLASSFUL), key=lambda each: each != "netem"
        )
        kinds = [each for each in filled if each not in CLASSFUL] or above[:1]
        samples = samples[samples["discipline"].isin(kinds)]
        for (_handle, kind), rows in samples.groupby(["handle", "discipline"], sort=False):
            # a queue without further samples is as it was, unless another took its place
            until_s = end_s if rows.index[-1] == samples.index[-1] else rows["time_s"].iloc[-1]
            x = np.append(rows["time_s"].to_numpy(), until_s)
            y = np.append(rows["backlog_packets"].to_numpy(), rows["backlog_packets"].iloc[-1])
            yield Curve(x, y, colour, steps=True, series=f"{name}, {kind}")


def _lanes(run: ProgramResults, end_s: float) -> Panel:
    """Return the commands: a lane for each program of a node, and one for all set-up."""
    commands = run.observation.commands
    labels = [_lane(run, command) for command in commands]
    lanes = list(dict.fromkeys(labels))[:MAX_LANES]
    placed = [
        (lanes.index(label), command)
        for label, command in zip(labels, commands, strict=True)
        if label in lanes
    ]
    bars = [each for each in placed if _is_lasting(run, each[1], end_s)]
    points = [each for each in placed if not _is_lasting(run, each[1], end_s)]
    marks: list[Mark] = [*_bars(run, bars, end_s), *_points(run, points)]
    empty = "" if marks else "no command was observed"
    x = Axis("time (s)", limits=(0, end_s))
    return Panel(marks, x, Axis(names=lanes), title="commands", empty=empty)


def _lane(run: ProgramResults, command: ExecutedCommand) -> str:
    what = "set up" if command.program in SETTERS else command.program
    return f"{run.observation.label(command.namespace)}: {what}"


def _is_lasting(run: ProgramResults, command: ExecutedCommand, end_s: float) -> bool:
    """Return whether a command has a bar; a set-up command may become another program."""
    return command.program not in SETTERS and _took_s(run, command, end_s) >= MIN_SHARE * end_s


def _took_s(run: ProgramResults, command: ExecutedCommand, end_s: float) -> float:
    end = end_s if command.ended_ns is None else run.seconds(command.ended_ns)
    return end - run.seconds(command.time_ns)


def _bars(
    run: ProgramResults, bars: Sequence[tuple[int, ExecutedCommand]], end_s: float
) -> Iterator[Boxes]:
    if not bars:
        return
    left = [run.seconds(command.time_ns) for _place, command in bars]
    took = [_took_s(run, command, end_s) for _place, command in bars]
    yield Boxes(
        left,
        [start + each for start, each in zip(left, took, strict=True)],
        [place - 0.32 for place, _command in bars],
        [place + 0.32 for place, _command in bars],
        BLUE,
        0.45,
    )


def _points(
    run: ProgramResults, points: Sequence[tuple[int, ExecutedCommand]]
) -> Iterator[PointSeries]:
    if points:
        yield PointSeries(
            [run.seconds(command.time_ns) for _place, command in points],
            [place for place, _command in points],
            GREY,
            marker="|",
            size=5,
            labels=[str(command) for _place, command in points],
        )
