"""The figures of a video at home: times to load, starts and stalls, packets and playbacks."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
import pandas as pd

from analysis.figures import cases, style
from analysis.figures.figure import (
    Annotation,
    Axis,
    Curve,
    Figure,
    LegendEntry,
    Mark,
    Panel,
    PointSeries,
    ReferenceLine,
    SegmentSet,
    ShadedRange,
    in_rows,
    legend_entries,
    share_limits,
)
from analysis.figures.means import Measure, mean_point, summary
from analysis.figures.style import SeriesStyle
from analysis.metrics.digest import VIDEO_ERRORS, VIDEO_PACKETS
from analysis.metrics.metric_rows import AXIS
from analysis.results.experiment_results import ExperimentResults
from analysis.trials.labels import variant_key
from analysis.trials.video import read_playback
from experiments.rajore_gupta_sikka_jain.printed import RGSJ_LOAD_S, RGSJ_STARTUP_S
from experiments.rajore_gupta_sikka_jain.selection import (
    HTTPS,
    LAPTOP,
    NETWORK_NAMES,
    QUIC,
    SERVER,
    THREE,
)

NETWORK_COLUMN, VARIANT_COLUMN, SETTING_COLUMN, RULE_COLUMN = (
    AXIS + name for name in ("network", "variant", "setting", "rule")
)
SHOWN_VIDEO_AXES = ("network", "variant", "transport", "setting", "rule")
SLOW_NETWORKS = ("shaped", "wifi-congested", "netem-congested")  # where a video may stall
LOAD_TIME = Measure("loaded_s", "time to load (s)")
START_DELAY = Measure("startup_s", "until playback starts (s)")
STALL_TIME = Measure("stall_s", "time stalled (s)")
LOAD_DIFFERENCE = Measure("difference_s", "time to load, minus the mean of the three (s)")
TRANSPORT_STYLES = {"TCP": SeriesStyle(style.BLUE, "o"), "QUIC": SeriesStyle(style.VERMILLION, "D")}
MEANS_READING = "means with 95 % intervals (Student's t)"
PRINTED_LOAD = LegendEntry("the paper's, one run each", style.BLACK, "x", kind="points")
PRINTED_START = LegendEntry("the paper's 1 to 2 min, over TCP", ShadedRange.colour, kind="area")


def draw(results: ExperimentResults) -> Iterator[Figure]:
    """Yield the load times, starts and stalls, whose setting governs, and one trial over time."""
    rows = results.good
    if SETTING_COLUMN not in rows:
        return
    rows = rows[(rows["kind"] == "video") & (rows[RULE_COLUMN] == "240p")]
    if rows.empty:
        return
    over = rows[f"{AXIS}transport"].map({HTTPS: "TCP", QUIC: "QUIC"})
    rows = rows.assign(over=over, line=over + " " + rows[VARIANT_COLUMN])
    for case, own in cases.split(rows, (), SHOWN_VIDEO_AXES):
        of_server = own[own[SETTING_COLUMN] == SERVER]
        if not of_server.empty:
            yield _loads(results, case, of_server)
            yield from _waits(results, case, of_server)
        yield from _governing(results, case, own)
    yield from _packets(results)
    yield from _playbacks(results)


# ---- means by network and variant


def _networks(rows: pd.DataFrame, among: Sequence[str] = tuple(NETWORK_NAMES)) -> list[str]:
    return [name for name in among if (rows[NETWORK_COLUMN] == name).any()]


def _line_names(rows: pd.DataFrame) -> list[str]:
    """Return the names of TCP's variants, then those of QUIC's."""
    return sorted(
        set(rows["line"]), key=lambda name: (name[0] == "Q", variant_key(name.split()[1]))
    )


def _mean_points(table: pd.DataFrame, lines: list[str]) -> list[Mark]:
    return [
        mean_point(lines.index(cell["line"]), cell, TRANSPORT_STYLES[cell["over"]], cell["over"])
        for _, cell in table.iterrows()
    ]


def _loads(results: ExperimentResults, case: dict[str, str], rows: pd.DataFrame) -> Figure:
    """Return the times to load, one panel per network."""
    networks, lines = _networks(rows), _line_names(rows)
    across = min(3, len(networks))
    panels, tables = [], []
    for place, network in enumerate(networks):
        table = summary(rows[rows[NETWORK_COLUMN] == network], ["line", "over"], LOAD_TIME)
        tables.append(table.assign(network=network, measure=LOAD_TIME.label))
        marks = _mean_points(table, lines)
        for variant, value in RGSJ_LOAD_S.get(network, {}).items():
            if f"TCP {variant}" in lines:
                at = ([value], [lines.index(f"TCP {variant}")])
                marks.append(
                    PointSeries(*at, style.BLACK, "x", 4, edge_width=0.9, series=PRINTED_LOAD.name)
                )
        y = Axis(names=lines, names_shown=place % across == 0)
        panels.append(
            Panel(marks, Axis(LOAD_TIME.label, widen=True), y, title=NETWORK_NAMES[network])
        )
    title = "Time until a video of 4:30 min is loaded, by the server's congestion control"
    return Figure(
        stem=cases.stem(results.key, "load", *case.values()),
        title=cases.titled(title, case),
        panels=in_rows(panels, across),
        caption=_medians_caption(rows, networks, LOAD_TIME, _load_words),
        foot=cases.foot(results, rows, MEANS_READING),
        legend=_legend(panels, PRINTED_LOAD),
        row_inches=0.17 * len(lines) + 0.6,
        data=pd.concat(tables, ignore_index=True),
    )


def _waits(
    results: ExperimentResults, case: dict[str, str], rows: pd.DataFrame
) -> Iterator[Figure]:
    """Yield the start-up delay and the time stalled on the slow networks."""
    networks, lines = _networks(rows, SLOW_NETWORKS), _line_names(rows)
    if not networks:
        return
    panels, tables = [], []
    for network, measure in itertools.product(networks, (START_DELAY, STALL_TIME)):
        table = summary(rows[rows[NETWORK_COLUMN] == network], ["line", "over"], measure)
        tables.append(table.assign(network=network, measure=measure.label))
        marks = _mean_points(table, lines)
        most = float(np.nanmax(table[["mean", "high"]], initial=0))
        if measure is START_DELAY and network.endswith("congested"):
            marks.insert(0, ShadedRange("x", *RGSJ_STARTUP_S, series=PRINTED_START.name))
            most = max(most, RGSJ_STARTUP_S[1])
        # a point at zero is not cut off
        x = Axis(measure.label, limits=(-0.02 * (most or 1.0), 1.05 * (most or 1.0)))
        y = Axis(names=lines, names_shown=measure is START_DELAY)
        panels.append(Panel(marks, x, y, title=NETWORK_NAMES[network]))
    yield Figure(
        stem=cases.stem(results.key, "waits", *case.values()),
        title=cases.titled("Start-up delay and time stalled", case),
        panels=in_rows(panels, 2),
        caption=_medians_caption(rows, networks, STALL_TIME, _stall_words),
        foot=cases.foot(results, rows, MEANS_READING),
        legend=_legend(panels, PRINTED_START),
        row_inches=0.17 * len(lines) + 0.6,
        data=pd.concat(tables, ignore_index=True),
    )


def _legend(panels: Sequence[Panel], printed: LegendEntry) -> tuple[LegendEntry, ...]:
    """Return the transports, and the paper's numbers where a panel shows them."""
    shown = any(mark.series == printed.name for panel in panels for mark in panel.marks)
    return legend_entries(TRANSPORT_STYLES) + (printed,) * shown


def _medians_caption(
    rows: pd.DataFrame,
    networks: list[str],
    measure: Measure,
    words: Callable[[pd.Series[float]], str],
) -> str:
    """Write the range of the lines' medians on each network."""
    parts = []
    for name in networks:
        medians = rows[rows[NETWORK_COLUMN] == name].groupby("line")[measure.metric].median()
        if text := words(medians.dropna()):
            parts.append(f"{NETWORK_NAMES[name]}: {text}")
    return f"Medians: {'; '.join(parts)}." if parts else ""


def _load_words(medians: pd.Series[float]) -> str:
    if len(medians) < 2:
        return ""
    low, high = medians.min(), medians.max()
    if round(high) == round(low):
        return f"{low:.0f} s with all"
    return f"{low:.0f} s ({medians.idxmin()}) to {high:.0f} s ({medians.idxmax()})"


def _stall_words(medians: pd.Series[float]) -> str:
    if medians.empty:
        return ""
    low, high = medians.min(), medians.max()
    if high == 0:
        return "no stall in most playbacks"
    return f"stalled for {low:.1f} s ({medians.idxmin()}) to {high:.1f} s ({medians.idxmax()})"


# ---- whose setting governs

LINEAR_BELOW_S = 0.01  # differences are from milliseconds to minutes, and exactly zero
SETTING_TITLES = {LAPTOP: "set on the laptop, as in the paper", SERVER: "set on the server"}


def _governing(
    results: ExperimentResults, case: dict[str, str], rows: pd.DataFrame
) -> Iterator[Figure]:
    """Yield how the three variants differ, set on the laptop and set on the server."""
    own = rows[(rows["over"] == "TCP") & rows[VARIANT_COLUMN].isin(THREE)]
    own = own[own.groupby(NETWORK_COLUMN)[SETTING_COLUMN].transform("nunique") == 2]
    relative = _minus_mean(own)
    if relative.empty:
        return
    networks, looks = _networks(relative), style.series_styles(list(THREE))
    tables = [
        summary(
            relative[relative[SETTING_COLUMN] == setting],
            [NETWORK_COLUMN, VARIANT_COLUMN],
            LOAD_DIFFERENCE,
        ).assign(setting=setting, measure=LOAD_DIFFERENCE.label)
        for setting in SETTING_TITLES
    ]
    data = pd.concat(tables, ignore_index=True)
    limit, ticks = _symmetric_scale(float(np.nanmax(data[["mean", "low", "high"]].abs())))
    ends = (-limit, limit)
    x = Axis(LOAD_DIFFERENCE.label, "symlog", ends, ticks, linear_below=LINEAR_BELOW_S)
    panels = []
    for (setting, title), table in zip(SETTING_TITLES.items(), tables, strict=True):
        marks: list[Mark] = [ReferenceLine("x", 0, width=0.6, dash=())]
        for _, cell in table.iterrows():
            variant = cell[VARIANT_COLUMN]
            place = networks.index(cell[NETWORK_COLUMN]) + 0.22 * (list(looks).index(variant) - 1)
            marks.append(mean_point(place, cell, looks[variant], variant))
        y = Axis(names=[NETWORK_NAMES[name] for name in networks], names_shown=setting == LAPTOP)
        panels.append(Panel(marks, x, y, title=title))
    reading = f"{MEANS_READING}; scale: linear within ±{LINEAR_BELOW_S:g} s"
    yield Figure(
        stem=cases.stem(results.key, "setting", *case.values()),
        title=cases.titled("Whose congestion control governs the download?", case),
        panels=(panels,),
        caption=_setting_caption(own, networks),
        foot=cases.foot(results, own, reading),
        legend=legend_entries(looks),
        row_inches=0.3 * len(networks) + 0.6,
        data=data,
    )


def _symmetric_scale(most: float) -> tuple[float, list[float]]:
    """Return a power of ten that bounds the axis on both sides, and ticks at every second one."""
    powers = max(2, math.ceil(math.log10(max(most, LINEAR_BELOW_S) / LINEAR_BELOW_S)))
    ends = [LINEAR_BELOW_S * 10.0**power for power in range(2 - powers % 2, powers + 1, 2)]
    return LINEAR_BELOW_S * 10.0**powers, [*(-end for end in reversed(ends)), 0, *ends]


def _minus_mean(rows: pd.DataFrame) -> pd.DataFrame:
    """Subtract from each time the mean of the three variants, where all three have loaded."""
    groups = rows.groupby([NETWORK_COLUMN, SETTING_COLUMN, "seed"])["loaded_s"]
    complete = rows[groups.transform("count") == len(THREE)]
    mean = groups.transform("mean")[complete.index]
    return complete.assign(difference_s=complete["loaded_s"] - mean)


def _setting_caption(rows: pd.DataFrame, networks: list[str]) -> str:
    groups = rows[rows[NETWORK_COLUMN].isin(networks)].groupby(
        [SETTING_COLUMN, NETWORK_COLUMN, "seed"]
    )["loaded_s"]
    spread = (groups.max() - groups.min()).groupby(level=0).max()
    laptop, server = (float(spread.get(setting, np.nan)) for setting in (LAPTOP, SERVER))
    at_laptop = "not at all, to the microsecond" if laptop < 1e-6 else f"by up to {laptop:.2g} s"
    return (
        f"Set on the laptop, Veno, Cubic and Vegas differ {at_laptop}; set on the server, by up to "
        f"{server:.3g} s of one seed."
    )


# ---- packets over time

NETWORKS_OVER_TIME = ("wifi-good", "shaped", "wifi-congested")  # the paper has graphs of each
FILLING_S = 10.0  # in the first seconds, a fast network fills the player's buffer
ERROR_ENTRY = LegendEntry("packets with one of Wireshark's TCP errors", style.BLACK, width=0.7)


def _first_flow(rows: pd.DataFrame, **axes: str) -> pd.Series | None:
    """Return the flow that has these values and the lowest seed, with the server's setting."""
    for name, value in {**axes, "setting": SERVER}.items():
        rows = rows[rows[AXIS + name] == value]
    return None if rows.empty else rows.sort_values("seed").iloc[0]


def _one_trial_foot(results: ExperimentResults, flows: Iterable[pd.Series], reading: str) -> str:
    numbers = ", ".join(map(str, sorted(int(flow["number"]) for flow in flows)))
    return f"one trial each (the page's numbers {numbers}) · engine {results.engine} · {reading}"


def _packets(results: ExperimentResults) -> Iterator[Figure]:
    """Yield the paper's I/O graphs: one row per variant, one column per network."""
    flows, tables = [], []
    for variant, network in itertools.product(THREE, NETWORKS_OVER_TIME):
        axes = {"network": network, "variant": variant, "transport": HTTPS, "rule": "240p"}
        if (flow := _first_flow(results.good, **axes)) is not None:
            flows.append(flow)
            table = _packets_by_second(results.digest, str(flow["trial"]))
            tables.append(table.assign(network=network, variant=variant))
    data = pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()
    if data.empty:
        return
    networks = [name for name in NETWORKS_OVER_TIME if (data["network"] == name).any()]
    looks = style.series_styles(list(THREE))
    columns = [
        _packet_column(data[data["network"] == network], looks, first=network == networks[0])
        for network in networks
    ]
    most = data.groupby("network")[[VIDEO_PACKETS, VIDEO_ERRORS]].max()
    sentences = [
        f"{NETWORK_NAMES[name]}: up to {most[VIDEO_PACKETS][name]:.0f} packets/s, and up to "
        f"{most[VIDEO_ERRORS][name]:.0f} with errors"
        for name in networks
    ]
    yield Figure(
        stem=cases.stem(results.key, "packets"),
        title="Packets at the station, as in the paper's I/O graphs; variants set on the server",
        panels=list(zip(*columns, strict=True)),
        caption=f"{'; '.join(sentences)}.",
        foot=_one_trial_foot(results, flows, "both directions, in bins of 1 s"),
        legend=(*(LegendEntry(name, look.colour) for name, look in looks.items()), ERROR_ENTRY),
        row_inches=1.0,
        data=data,
    )


def _packets_by_second(digest: pd.DataFrame, trial: str) -> pd.DataFrame:
    """Return the numbers of packets and of errors in each second."""
    own = digest[(digest["trial"] == trial) & digest["what"].isin((VIDEO_PACKETS, VIDEO_ERRORS))]
    named = own.astype({"what": "str"})
    table = named.pivot_table(index="x", columns="what", values="value", aggfunc="sum")
    table = table.reindex(columns=[VIDEO_PACKETS, VIDEO_ERRORS]).dropna(subset=[VIDEO_PACKETS])
    return table.fillna(0.0).rename_axis(index="time_s", columns=None).reset_index()


def _packet_column(
    rows: pd.DataFrame, looks: dict[str, SeriesStyle], *, first: bool
) -> list[Panel]:
    """Return a network's panels, one per variant, on one scale.

    They are as high as what comes after the first seconds; the peak of these is written.
    """
    settled = rows[rows["time_s"] > FILLING_S]
    top = 1.15 * float((rows if settled.empty else settled)[VIDEO_PACKETS].max())
    end, title = float(rows["time_s"].max()), NETWORK_NAMES[rows["network"].iloc[0]]
    panels = []
    for variant in THREE:
        own = rows[rows["variant"] == variant]
        errors, peak = own[own[VIDEO_ERRORS] > 0], own[VIDEO_PACKETS].max()
        marks: list[Mark] = [
            Curve(own["time_s"], own[VIDEO_PACKETS], looks[variant].colour, 0.7, series=variant),
            SegmentSet(errors["time_s"], np.zeros(len(errors)), errors["time_s"],
                       errors[VIDEO_ERRORS], style.BLACK, 0.7, series=ERROR_ENTRY.name),
        ]  # fmt: skip
        if peak > top:
            words = f"first seconds: up to {peak:.0f}"
            marks.append(Annotation(words, 0.99, 0.97, "panel", "panel", size=5.5,
                                    colour=style.GREY, across="right", up="top"))  # fmt: skip
        x = Axis("seconds since the first packet" if variant == THREE[-1] else "", limits=(0, end))
        y = Axis(f"{variant}\npackets/s" if first else "", limits=(0, top))
        panels.append(Panel(marks, x, y, title=title if variant == THREE[0] else ""))
    return panels


# ---- playbacks over time

RULE_TITLES = {
    "240p": "240p, as the paper",
    "throughput": "rule: throughput",
    "buffer": "rule: buffer",
}
PLAYBACK_NETWORKS = ("wifi-congested", "shaped", "wifi-weak")  # the first that has playbacks
PLAYBACK_FLOWS = {  # transport, congestion control, colour
    "TCP (cubic)": (HTTPS, "cubic", style.BLUE),
    "QUIC (reno)": (QUIC, "reno", style.VERMILLION),
}
BUFFER_LEVEL, STALL_END, SEGMENT_BITRATE = "buffer_s", "stall_until_s", "bitrate_mbps"
STALL_ROOM = 0.14  # below zero, of the buffer's scale


def _playbacks(results: ExperimentResults) -> Iterator[Figure]:
    """Yield the buffer and the bitrate of one trial each, by rule, over TCP and QUIC."""
    for network in PLAYBACK_NETWORKS:
        flows, tables = {}, []
        for rule, name in itertools.product(RULE_TITLES, PLAYBACK_FLOWS):
            transport, variant, _ = PLAYBACK_FLOWS[name]
            axes = {"network": network, "variant": variant, "transport": transport, "rule": rule}
            flow = _first_flow(results.good, **axes)
            if flow is not None and (table := _playback(results, flow)) is not None:
                flows[rule, name] = flow
                tables.append(table.assign(rule=rule, over=name))
        if tables:
            data = pd.concat(tables, ignore_index=True)
            yield _playback_figure(results, network, flows, data)
            return


def _playback(results: ExperimentResults, flow: pd.Series) -> pd.DataFrame | None:
    """Return the buffer's levels, the stalls, and the bitrate of each segment at its arrival."""
    trial = next(trial for trial in results.trials if trial.path.name == flow["trial"])
    report = read_playback(trial, str(flow["flow"]))
    if report is None:
        return None
    bitrates = [
        (segment["load"]["last_byte_s"], segment["bit_per_s"] / 1e6)
        for segment in report["segments"]
        if segment["load"]["last_byte_s"] is not None
    ]
    points = {
        BUFFER_LEVEL: report["levels"],
        STALL_END: report["stalls"],
        SEGMENT_BITRATE: bitrates,
    }
    return pd.concat(
        pd.DataFrame(own, columns=["time_s", "value"], dtype=float).assign(what=what)
        for what, own in points.items()
    )


def _playback_figure(
    results: ExperimentResults,
    network: str,
    flows: dict[tuple[str, str], pd.Series],
    data: pd.DataFrame,
) -> Figure:
    columns = [
        _playback_column(data[data["rule"] == rule], RULE_TITLES[rule], first=place == 0)
        for place, rule in enumerate(data["rule"].unique())
    ]
    sentences = [
        f"{rule} over {name}: playback starts after {flow['startup_s']:.0f} s, "
        f"{flow['stall_s']:.0f} s stalled, {flow['video_mbps']:.2f} Mbit/s"
        for (rule, name), flow in flows.items()
    ]
    return Figure(
        stem=cases.stem(results.key, "playback"),
        title=f"One playback over time: {NETWORK_NAMES[network]}",
        panels=list(zip(*columns, strict=True)),
        caption=f"{'; '.join(sentences)}.",
        foot=_one_trial_foot(results, flows.values(), "bars below zero: the video stalls"),
        legend=[LegendEntry(name, colour) for name, (*_, colour) in PLAYBACK_FLOWS.items()],
        row_inches=1.5,
        data=data,
    )


def _playback_column(rows: pd.DataFrame, title: str, *, first: bool) -> list[Panel]:
    """Return the buffer's level with the stalls below zero, and the segments' bitrates."""
    buffer: list[Mark] = []
    bitrate: list[Mark] = []
    for line, (name, (*_, colour)) in enumerate(PLAYBACK_FLOWS.items()):
        levels, stalls, rates = (
            rows[(rows["over"] == name) & (rows["what"] == what)]
            for what in (BUFFER_LEVEL, STALL_END, SEGMENT_BITRATE)
        )
        height = [0.025 + 0.045 * line] * len(stalls)
        buffer += [
            Curve(levels["time_s"], levels["value"], colour, 0.8, series=name),
            SegmentSet(
                stalls["time_s"],
                height,
                stalls["value"],
                height,
                colour,
                2.5,
                series=name,
                y_place="panel",
            ),
        ]
        bitrate.append(Curve(rates["time_s"], rates["value"], colour, 0.9, steps=True, series=name))
    top = 1.05 * float(rows.loc[rows["what"] == BUFFER_LEVEL, "value"].max())
    y = Axis(
        "video in the\nbuffer (s)" if first else "", limits=(-STALL_ROOM * max(20.0, top), top)
    )
    label = "bitrate of\nsegments (Mbit/s)" if first else ""
    upper = Panel(buffer, y=y, title=title)
    lower = Panel(bitrate, Axis("seconds since the click"), Axis(label, limits=(0, None)))
    return share_limits([upper, lower], "x")
