"""Time series: packets at the station per second, and the buffer of one playback."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.claims.rajore_gupta_sikka_jain.rgsj_selection import (
    NETWORKS,
    QUIC,
    SERVER,
    TCP,
    THREE,
)
from analysis.figures.plotting import cases, figure_layout, style
from analysis.figures.plotting.named_figure import AnyFigure, NamedFigure
from analysis.figures.plotting.style import SeriesStyle
from analysis.metrics.digest import VIDEO_ERRORS, VIDEO_PACKETS
from analysis.metrics.metric_rows import AXIS
from analysis.results.experiment_results import ExperimentResults
from analysis.trials.video import read_playback

SHOWN = ("wifi-good", "shaped", "wifi-congested")  # the paper has graphs of each
RULES = {"240p": "240p, as the paper", "throughput": "rule: throughput", "buffer": "rule: buffer"}
BEGIN_S = 10.0
WATCHED = ("wifi-congested", "shaped", "wifi-weak")  # one of them, the first that there is
LOOKS = {
    "TCP (cubic)": SeriesStyle(style.BLUE, ""),
    "QUIC (reno)": SeriesStyle(style.VERMILLION, ""),
}
CASES = {"TCP (cubic)": (TCP, "cubic"), "QUIC (reno)": (QUIC, "reno")}


def draw(results: ExperimentResults) -> Iterator[AnyFigure]:
    """The paper's I/O graphs, and a playback."""
    yield from _graphs(results)
    yield from _playback(results)


def first(rows: pd.DataFrame, **axes: str) -> pd.Series | None:
    """The flow with these values that has the least seed."""
    for name, value in axes.items():
        rows = rows[rows[AXIS + name] == value]
    return None if rows.empty else rows.sort_values("seed").iloc[0]


def _course(results: ExperimentResults, trial: str, what: str) -> pd.DataFrame:
    digest = results.digest
    own = digest[(digest["trial"] == trial) & (digest["what"] == what)]
    return own[["x", "value"]].rename(columns={"x": "time_s", "value": what})


def _graphs(results: ExperimentResults) -> Iterator[AnyFigure]:
    """Packets per second: one row per variant, one column per network."""
    rows = results.good
    if f"{AXIS}setting" not in rows or results.digest.empty:
        return
    chosen = {
        (variant, network): first(
            rows, network=network, variant=variant, transport=TCP, setting=SERVER, rule="240p"
        )
        for variant in THREE
        for network in SHOWN
    }
    there = [name for name in SHOWN if any(chosen[each, name] is not None for each in THREE)]
    if not there:
        return
    figure, grid = figure_layout.grid(len(THREE), len(there), panel=1.0)
    known = style.series_styles(list(THREE))
    tables = []
    for variant, line in zip(THREE, grid, strict=True):
        for network, axes in zip(there, line, strict=True):
            flow = chosen[variant, network]
            if flow is not None:
                own = _graph(axes, results, str(flow["trial"]), known[variant])
                tables.append(own.assign(network=network, variant=variant))
            if variant == THREE[-1]:
                axes.set_xlabel("seconds since the first packet")
            if variant == THREE[0]:
                axes.set_title(NETWORKS[network], loc="left", fontweight="bold", fontsize=7)
        line[0].set_ylabel(f"{variant}\npackets/s")
    _same_scale(grid)
    figure_layout.legend(figure, known)
    numbers = sorted(int(flow["number"]) for flow in chosen.values() if flow is not None)
    foot = (
        f"one trial each (the page's numbers {', '.join(map(str, numbers))}) · engine "
        f"{results.engine} · both ways, in bins of 1 s · black: packets with one of Wireshark's "
        "TCP errors"
    )
    title = "Packets at the station, as in the paper's I/O graphs; variants set on the server"
    figure_layout.title_and_foot(figure, title, foot)
    data = pd.concat(tables, ignore_index=True)
    yield NamedFigure(cases.stem(results.key, "packets"), _graph_caption(data), figure, data)


def _graph(axes: Axes, results: ExperimentResults, trial: str, look: SeriesStyle) -> pd.DataFrame:
    packets = _course(results, trial, VIDEO_PACKETS)
    errors = _course(results, trial, VIDEO_ERRORS)
    table = packets.merge(errors, how="left", on="time_s").fillna(0.0)
    axes.plot(table["time_s"], table[VIDEO_PACKETS], color=look.colour, linewidth=0.7)
    bad = table[table[VIDEO_ERRORS] > 0]
    axes.vlines(bad["time_s"], 0, bad[VIDEO_ERRORS], color="black", linewidth=0.7)
    axes.set_xlim(left=0)
    return table


def _same_scale(grid: list[list[Axes]]) -> None:
    """Down a column, so that variants can be compared: as high as what comes after the first
    seconds, in which a fast network fills the player's buffer; their peak is written."""
    for column in zip(*grid, strict=True):
        curves = [line.get_xydata() for axes in column for line in axes.lines]
        points = np.concatenate([np.asarray(curve, dtype=float) for curve in curves])
        right, settled = points[:, 0].max(), points[points[:, 0] > BEGIN_S]
        top = 1.15 * (settled if len(settled) else points)[:, 1].max()
        for axes in column:
            axes.set(ylim=(0, top), xlim=(0, right))
            peak = max((line.get_ydata().max() for line in axes.lines), default=0)
            if peak > top:
                words = f"first seconds: up to {peak:.0f}"
                look = {"fontsize": 5.5, "color": style.GREY, "ha": "right", "va": "top"}
                axes.text(0.99, 0.97, words, transform=axes.transAxes, **look)


def _graph_caption(data: pd.DataFrame) -> str:
    peaks = data.groupby(["network", "variant"])[VIDEO_PACKETS].max()
    errors = data.groupby(["network", "variant"])[VIDEO_ERRORS].max()
    said = [
        f"{NETWORKS[network]}: up to {peaks[network].max():.0f} packets/s, and up to "
        f"{errors[network].max():.0f} with errors"
        for network in SHOWN
        if network in peaks.index.get_level_values(0)
    ]
    return "; ".join(said) + "." if said else ""


def _playback(results: ExperimentResults) -> Iterator[AnyFigure]:
    """Buffer and bitrate of one trial each, by rule; TCP and QUIC."""
    rows = results.good
    if f"{AXIS}rule" not in rows:
        return
    for network in WATCHED:
        seen = {
            (rule, name): (flow, course)
            for rule in RULES
            for name, (transport, variant) in CASES.items()
            for flow in [
                first(
                    rows,
                    network=network,
                    variant=variant,
                    transport=transport,
                    setting=SERVER,
                    rule=rule,
                )
            ]
            if flow is not None and (course := _watched(results, flow)) is not None
        }
        if seen:
            yield _playback_figure(results, network, seen)
            return


Course = tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]  # levels, stalls, bitrates


def _watched(results: ExperimentResults, flow: pd.Series) -> Course | None:
    """The buffer's level, the stalls, and the bitrate of each segment at its arrival."""
    trial = next(each for each in results.trials if each.path.name == flow["trial"])
    playback = read_playback(trial, str(flow["flow"]))
    if playback is None:
        return None
    levels = pd.DataFrame(playback["levels"], columns=["time_s", "value"])
    stalls = pd.DataFrame(playback["stalls"], columns=["time_s", "value"])
    came = [
        (each["load"]["last_byte_s"], each["bit_per_s"] / 1e6)
        for each in playback["segments"]
        if each["load"]["last_byte_s"] is not None
    ]
    return levels, stalls, pd.DataFrame(came, columns=["time_s", "value"])


def _playback_figure(
    results: ExperimentResults, network: str, seen: dict[tuple[str, str], tuple[pd.Series, Course]]
) -> NamedFigure:
    rules = [rule for rule in RULES if any(rule == each for each, _ in seen)]
    figure, (upper, lower) = figure_layout.grid(2, len(rules), panel=1.5)
    tables, said, numbers = [], [], []
    for rule, above, below in zip(rules, upper, lower, strict=True):
        for name, look in LOOKS.items():
            if (rule, name) not in seen:
                continue
            flow, course = seen[rule, name]
            _one_playback(above, below, course, look, list(LOOKS).index(name))
            for what, part in zip(
                ("buffer_s", "stall_until_s", "bitrate_mbps"), course, strict=True
            ):
                tables.append(part.assign(what=what, rule=rule, over=name))
            numbers.append(int(flow["number"]))
            said.append(_playback_words(rule, name, flow))
        above.set_title(RULES[rule], loc="left", fontweight="bold", fontsize=7)
        below.set_xlabel("seconds since the click")
        below.set_ylim(bottom=0)
        above.set_ylim(bottom=-0.14 * max(20.0, above.get_ylim()[1]))
        below.set_xlim(above.get_xlim())
    upper[0].set_ylabel("video in the buffer (s)")
    lower[0].set_ylabel("bitrate of segments (Mbit/s)")
    _finish(results, figure, network, sorted(numbers))
    data = pd.concat(tables, ignore_index=True)
    caption = "; ".join(said)
    return NamedFigure(cases.stem(results.key, "playback"), f"{caption}.", figure, data)


def _one_playback(above: Axes, below: Axes, course: Course, look: SeriesStyle, line: int) -> None:
    """The buffer's level with the stalls below zero, and each segment's bitrate on its arrival."""
    levels, stalls, bitrates = course
    above.plot(levels["time_s"], levels["value"], color=look.colour, linewidth=0.8)
    height = 0.025 + 0.045 * line
    for begin, end in stalls.itertuples(index=False):
        above.plot(
            [begin, end],
            [height, height],
            color=look.colour,
            linewidth=2.5,
            solid_capstyle="butt",
            transform=above.get_xaxis_transform(),
        )
    below.step(
        bitrates["time_s"], bitrates["value"], where="post", color=look.colour, linewidth=0.9
    )


def _playback_words(rule: str, name: str, flow: pd.Series) -> str:
    return (
        f"{rule} over {name}: playback starts after {flow['startup_s']:.0f} s, "
        f"{flow['stall_s']:.0f} s stalled, {flow['video_mbps']:.2f} Mbit/s"
    )


def _finish(results: ExperimentResults, figure: Figure, network: str, numbers: list[int]) -> None:
    figure_layout.legend(figure, LOOKS)
    where = NETWORKS[network]
    foot = (
        f"one trial each (the page's numbers {', '.join(map(str, numbers))}) · engine "
        f"{results.engine} · bars below zero: the video stalls"
    )
    figure_layout.title_and_foot(figure, f"One playback over time: {where}", foot)
