"""The figures of a video at home: times to load, starts and stalls, throughput over time."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from analysis.figures import cases, style
from analysis.figures.plotting import error_bars, figure_layout
from analysis.figures.plotting.error_bars import Measure
from analysis.figures.plotting.named_figure import AnyFigure, NamedFigure
from analysis.figures.style import SeriesStyle
from analysis.metrics.digest import VIDEO_ERRORS, VIDEO_PACKETS
from analysis.metrics.metric_rows import AXIS
from analysis.results.experiment_results import ExperimentResults
from analysis.trials.labels import variant_key
from analysis.trials.video import read_playback
from experiments.rajore_gupta_sikka_jain.printed import RGSJ_LOAD_S, RGSJ_STARTUP_S
from experiments.rajore_gupta_sikka_jain.selection import LAPTOP, NETWORKS, QUIC, SERVER, TCP, THREE

NETWORKS_OVER_TIME = ("wifi-good", "shaped", "wifi-congested")  # the paper has graphs of each
RULES = {"240p": "240p, as the paper", "throughput": "rule: throughput", "buffer": "rule: buffer"}
BEGIN_S = 10.0
WATCHED = ("wifi-congested", "shaped", "wifi-weak")  # one of them, the first that there is
TIME_LOOKS = {
    "TCP (cubic)": SeriesStyle(style.BLUE, ""),
    "QUIC (reno)": SeriesStyle(style.VERMILLION, ""),
}
CASES = {"TCP (cubic)": (TCP, "cubic"), "QUIC (reno)": (QUIC, "reno")}


def over_time(results: ExperimentResults) -> Iterator[AnyFigure]:
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
        for network in NETWORKS_OVER_TIME
    }
    there = [
        name for name in NETWORKS_OVER_TIME if any(chosen[each, name] is not None for each in THREE)
    ]
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
    seconds, in which a fast network fills the player's buffer; their peak is written.
    """
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
        for network in NETWORKS_OVER_TIME
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
        for name, look in TIME_LOOKS.items():
            if (rule, name) not in seen:
                continue
            flow, course = seen[rule, name]
            _one_playback(above, below, course, look, list(TIME_LOOKS).index(name))
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
    figure_layout.legend(figure, TIME_LOOKS)
    where = NETWORKS[network]
    foot = (
        f"one trial each (the page's numbers {', '.join(map(str, numbers))}) · engine "
        f"{results.engine} · bars below zero: the video stalls"
    )
    figure_layout.title_and_foot(figure, f"One playback over time: {where}", foot)


LEAST_S = 0.01  # below it, the scale of differences is linear
SLOW = ("shaped", "wifi-congested", "netem-congested")  # where a video may stall
LOAD = Measure("loaded_s", "time to load (s)", zero=False)
START = Measure("startup_s", "until playback starts (s)")
STALL = Measure("stall_s", "time stalled (s)")
LOOKS = {"TCP": SeriesStyle(style.BLUE, "o"), "QUIC": SeriesStyle(style.VERMILLION, "D")}
SHOWN = ("network", "variant", "transport", "setting", "rule")
MEANS = "means with 95 % intervals (Student's t)"


def draw(results: ExperimentResults) -> Iterator[AnyFigure]:
    """Load times, starts and stalls, whose setting governs; then the figures over time."""
    every = videos(results)
    if every.empty:
        return
    for case, rows in cases.split(every, (), SHOWN):
        set_there = rows[rows[f"{AXIS}setting"] == SERVER]
        if not set_there.empty:
            yield _loads(results, case, set_there)
            yield from _waits(results, case, set_there)
        yield from _governing(results, case, rows)
    yield from over_time(results)


def videos(results: ExperimentResults) -> pd.DataFrame:
    """The flows at the paper's bitrate, with the name of each one's line."""
    rows = results.good
    if f"{AXIS}setting" not in rows:
        return rows.iloc[:0]
    rows = rows[(rows["kind"] == "video") & (rows[f"{AXIS}rule"] == "240p")]
    over = rows[f"{AXIS}transport"].map({TCP: "TCP", QUIC: "QUIC"})
    return rows.assign(over=over, line=over + " " + rows[f"{AXIS}variant"])


def _networks(rows: pd.DataFrame, among: Sequence[str] = tuple(NETWORKS)) -> list[str]:
    return [name for name in among if (rows[f"{AXIS}network"] == name).any()]


def _lines(rows: pd.DataFrame) -> list[str]:
    """TCP's variants, then QUIC's."""
    return sorted(
        set(rows["line"]), key=lambda name: (name[0] == "Q", variant_key(name.split()[1]))
    )


def _panel(axes: Axes, rows: pd.DataFrame, measure: Measure, lines: list[str]) -> pd.DataFrame:
    """One dot per line, with its interval."""
    table = error_bars.summary(rows, ["line", "over"], measure)
    for _, cell in table.iterrows():
        error_bars.point(axes, lines.index(cell["line"]), cell, LOOKS[cell["over"]])
    axes.set_yticks(range(len(lines)), lines)
    axes.set_ylim(len(lines) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel(measure.label)
    return table


def _loads(results: ExperimentResults, case: dict[str, str], rows: pd.DataFrame) -> NamedFigure:
    """One panel per network."""
    there, lines = _networks(rows), _lines(rows)
    across = min(3, len(there))
    down = -(-len(there) // across)
    figure, grid = figure_layout.grid(down, across, panel=0.17 * len(lines) + 0.6)
    tables = []
    panels = [axes for line in grid for axes in line]
    for axes, network in zip(panels, there, strict=False):
        own = rows[rows[f"{AXIS}network"] == network]
        tables.append(_panel(axes, own, LOAD, lines).assign(network=network, measure=LOAD.label))
        for variant, value in RGSJ_LOAD_S.get(network, {}).items():
            place = lines.index(f"TCP {variant}") if f"TCP {variant}" in lines else None
            if place is not None:
                axes.plot(value, place, "x", color="black", markersize=4, markeredgewidth=0.9)
        axes.set_title(NETWORKS[network], loc="left", fontweight="bold", fontsize=7)
        if axes not in [line[0] for line in grid]:
            axes.set_yticklabels([])
        figure_layout.widen_flat_axes(axes, "x")
    for axes in panels[len(there) :]:
        axes.set_visible(False)
    figure_layout.legend(figure, LOOKS)
    title = cases.titled(
        "Time until a video of 4:30 min is loaded, by the server's congestion control", case
    )
    figure_layout.title_and_foot(
        figure, title, cases.foot(results, rows, f"{MEANS}; crosses: the paper's, one run each")
    )
    stem = cases.stem(results.key, "load", *case.values())
    return NamedFigure(
        stem, _load_caption(rows, there), figure, pd.concat(tables, ignore_index=True)
    )


def _load_caption(rows: pd.DataFrame, there: list[str]) -> str:
    said = []
    for network in there:
        own = rows[rows[f"{AXIS}network"] == network]
        medians = own.groupby("line")["loaded_s"].median().dropna()
        if len(medians) > 1:
            low, high = medians.min(), medians.max()
            where = NETWORKS[network]
            said.append(
                f"{where}: {low:.0f} s ({medians.idxmin()}) to {high:.0f} s ({medians.idxmax()})"
                if round(high) > round(low)
                else f"{where}: {low:.0f} s with all"
            )
    return f"Medians: {'; '.join(said)}." if said else ""


def _waits(
    results: ExperimentResults, case: dict[str, str], rows: pd.DataFrame
) -> Iterator[AnyFigure]:
    """Start-up delay and time stalled on the slow networks."""
    there, lines = _networks(rows, SLOW), _lines(rows)
    if not there:
        return
    figure, grid = figure_layout.grid(len(there), 2, panel=0.17 * len(lines) + 0.6)
    tables = []
    for line, network in zip(grid, there, strict=True):
        own = rows[rows[f"{AXIS}network"] == network]
        if network.endswith("congested"):
            line[0].axvspan(*RGSJ_STARTUP_S, color=style.GREY, alpha=0.12, linewidth=0)
        for axes, measure in zip(line, (START, STALL), strict=True):
            table = _panel(axes, own, measure, lines)
            tables.append(table.assign(network=network, measure=measure.label))
            most = axes.get_xlim()[1] if np.nanmax(table["mean"], initial=0) else 1.0
            axes.set_xlim(-0.02 * most, 1.02 * most)  # a point at zero is not cut off
        line[0].set_title(NETWORKS[network], loc="left", fontweight="bold", fontsize=7)
        line[1].set_yticklabels([])
    figure_layout.legend(figure, LOOKS)
    reading = f"{MEANS}; grey: the paper's 1 to 2 min, over TCP"
    figure_layout.title_and_foot(
        figure,
        cases.titled("Start-up delay and time stalled", case),
        cases.foot(results, rows, reading),
    )
    stem = cases.stem(results.key, "waits", *case.values())
    yield NamedFigure(
        stem, _wait_caption(rows, there), figure, pd.concat(tables, ignore_index=True)
    )


def _wait_caption(rows: pd.DataFrame, there: list[str]) -> str:
    said = []
    for network in there:
        own = rows[rows[f"{AXIS}network"] == network]
        stalls = own.groupby("line")["stall_s"].median().dropna()
        if stalls.empty:
            continue
        if stalls.max() == 0:
            said.append(f"{NETWORKS[network]}: no stall in most playbacks")
        else:
            said.append(
                f"{NETWORKS[network]}: stalled for {stalls.min():.1f} s ({stalls.idxmin()}) to "
                f"{stalls.max():.1f} s ({stalls.idxmax()})"
            )
    return f"Medians: {'; '.join(said)}." if said else ""


def _governing(
    results: ExperimentResults, case: dict[str, str], rows: pd.DataFrame
) -> Iterator[AnyFigure]:
    """The differences between the three variants, set on the laptop and set on the server."""
    own = rows[(rows["over"] == "TCP") & rows[f"{AXIS}variant"].isin(THREE)]
    both = own.groupby(f"{AXIS}network")[f"{AXIS}setting"].transform("nunique") == 2
    own = own[both]
    if own.empty:
        return
    relative = _beside_the_middle(own)
    if relative.empty:
        return
    there, known = _networks(relative), style.series_styles(list(THREE))
    measure = Measure("beside_s", "time to load, minus the mean of the three (s)")
    figure, [line] = figure_layout.grid(1, 2, panel=0.3 * len(there) + 0.6, share=True)
    tables = []
    for axes, setting, words in zip(
        line,
        (LAPTOP, SERVER),
        ("set on the laptop, as in the paper", "set on the server"),
        strict=True,
    ):
        table = error_bars.summary(
            relative[relative[f"{AXIS}setting"] == setting],
            [f"{AXIS}network", f"{AXIS}variant"],
            measure,
        )
        tables.append(table.assign(setting=setting, measure=measure.label))
        for number, (variant, look) in enumerate(known.items()):
            for _, cell in table[table[f"{AXIS}variant"] == variant].iterrows():
                place = there.index(cell[f"{AXIS}network"]) + 0.22 * (number - 1)
                error_bars.point(axes, place, cell, look)
        axes.axvline(0, color=style.GREY, linewidth=0.6, zorder=1)
        axes.set_title(words, loc="left", fontweight="bold", fontsize=7)
        axes.set_yticks(range(len(there)), [NETWORKS[name] for name in there])
        axes.set_ylim(len(there) - 0.5, -0.5)
        axes.tick_params(axis="y", length=0)
        axes.set_xlabel(measure.label)
        # from milliseconds to minutes, and exactly zero
        axes.set_xscale("symlog", linthresh=LEAST_S)
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    _room(line)
    figure_layout.legend(figure, known)
    figure_layout.title_and_foot(
        figure,
        cases.titled("Whose congestion control governs the download?", case),
        cases.foot(results, own, MEANS),
    )
    stem = cases.stem(results.key, "setting", *case.values())
    yield NamedFigure(stem, _set_caption(own, there), figure, pd.concat(tables, ignore_index=True))


def _room(line: Sequence[Axes]) -> None:
    """The same power of ten to both sides, with a tick at every second one."""
    for axes in line[:1]:
        most = max(abs(end) for end in axes.get_xlim())
        powers = max(2, math.ceil(math.log10(most / LEAST_S)))
        ends = [LEAST_S * 10.0**power for power in range(powers % 2, powers + 1, 2)]
        axes.set_xlim(-LEAST_S * 10.0**powers, LEAST_S * 10.0**powers)
        axes.set_xticks([*(-each for each in reversed(ends)), 0, *ends])


def _beside_the_middle(rows: pd.DataFrame) -> pd.DataFrame:
    """Each time minus the mean of the three of its network, setting and seed; those that are
    whole.
    """
    by = [f"{AXIS}network", f"{AXIS}setting", "seed"]
    groups = rows.groupby(by)["loaded_s"]
    whole = rows[groups.transform("count") == len(THREE)]
    return whole.assign(beside_s=whole["loaded_s"] - groups.transform("mean")[whole.index])


def _set_caption(rows: pd.DataFrame, there: list[str]) -> str:
    by = [f"{AXIS}setting", f"{AXIS}network", "seed"]
    groups = rows[rows[f"{AXIS}network"].isin(there)].groupby(by)["loaded_s"]
    spread = (groups.max() - groups.min()).groupby(level=0).max()
    laptop, server = (float(spread.get(each, np.nan)) for each in (LAPTOP, SERVER))
    at_laptop = "not at all, to the microsecond" if laptop < 1e-6 else f"by up to {laptop:.2g} s"
    return (
        f"Set on the laptop, Veno, Cubic and Vegas differ {at_laptop}; set on the server, by up to "
        f"{server:.3g} s of one seed."
    )
