"""The figures of a video at home: what the paper ranks the variants by, and the crowded hall."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pandas as pd

from analysis.figures import cases, means, style
from analysis.figures.figure import (
    Axis,
    Figure,
    LegendEntry,
    Mark,
    Panel,
    PointSeries,
    ShadedRange,
    legend_entries,
    share_limits,
)
from analysis.figures.means import Measure
from analysis.figures.style import SeriesStyle
from analysis.metrics.metric_rows import AXIS
from analysis.results.experiment_results import ExperimentResults
from analysis.trials.labels import variant_key
from experiments.rajore_gupta_sikka_jain.printed import (
    RGSJ_LOAD_S,
    RGSJ_SHAPED_BYTES,
    RGSJ_SHAPED_DUPLICATES,
    RGSJ_STARTUP_S,
)
from experiments.rajore_gupta_sikka_jain.video_access import HALLS

NETWORK, VARIANT, TRANSPORT, SETTING = (
    AXIS + name for name in ("network", "variant", "transport", "setting")
)
SHOWN_AXES = ("network", "variant", "transport", "setting")
NETWORK_NAMES = {
    "ethernet": "Ethernet",
    "shaped": "shaped Ethernet",
    "wifi-good": "good WiFi",
    "wifi-weak": "weak WiFi",
    "netem-congested": "hall, 0.01 Mbit/s up",
    "wifi-congested": "hall, 802.11",
}
SET_ON = {
    "receiver": ("set on the laptop, as in the paper", SeriesStyle(style.BLUE, "o")),
    "sender": ("set on the server", SeriesStyle(style.VERMILLION, "D")),
}
OVER_TRANSPORT = {
    "https": ("TCP", SeriesStyle(style.BLUE, "o")),
    "quic": ("QUIC", SeriesStyle(style.GREEN, "s")),
}
PRINTED = LegendEntry("the paper", style.BLACK, "x", kind="points")
PRINTED_START = LegendEntry("the paper's 1 to 2 min, over TCP", ShadedRange.colour, kind="area")


@dataclass(frozen=True)
class Ranking:
    """A measure on one network, and what the paper prints of it by variant."""

    network: str
    measure: Measure
    printed: Mapping[str, float] = field(default_factory=dict)


TIME_TO_LOAD = Measure("loaded_s", "until it is loaded (s)")
RANKED = (
    Ranking("wifi-good", TIME_TO_LOAD, RGSJ_LOAD_S["wifi-good"]),
    Ranking("ethernet", TIME_TO_LOAD, RGSJ_LOAD_S["ethernet"]),
    Ranking(
        "shaped", Measure("retransmitted_bytes", "retransmitted (kB)", 1e-3), RGSJ_SHAPED_BYTES
    ),
    Ranking("shaped", Measure("duplicate_acks", "duplicate ACKs"), RGSJ_SHAPED_DUPLICATES),
)
WAITS = (
    Measure("page_s", "until the page is there (s)"),
    Measure("startup_s", "until playback starts (s)"),
    Measure("stall_s", "time stalled (s)"),
)


def draw(results: ExperimentResults) -> Iterator[Figure]:
    """Yield what the variants are ranked by, set on either end, and TCP and QUIC in the hall."""
    rows = results.good
    if SETTING not in rows:
        return
    for case, case_rows in cases.split(rows[rows["kind"] == "video"], (), SHOWN_AXES):
        yield from _ranked(results, case, case_rows[case_rows[TRANSPORT] == "https"])
        yield from _hall(results, case, case_rows[case_rows[SETTING] == "sender"])


def _ranked(
    results: ExperimentResults, case: dict[str, str], rows: pd.DataFrame
) -> Iterator[Figure]:
    """Yield the paper's numbers beside ours, set on the laptop and set on the server."""
    there = [each for each in RANKED if (rows[NETWORK] == each.network).any()]
    if not there:
        return
    variants = sorted(set(rows[VARIANT]), key=variant_key)
    panels, tables = [], []
    for place, each in enumerate(there):
        of_network = rows[rows[NETWORK] == each.network]
        table = means.summary(of_network, [VARIANT, SETTING], each.measure)
        tables.append(table.assign(network=each.network, measure=each.measure.label))
        marks = _points(table, variants)
        theirs = {name: value for name, value in each.printed.items() if name in variants}
        marks.append(
            PointSeries(
                [value * each.measure.scale for value in theirs.values()],
                [variants.index(name) for name in theirs],
                *(style.BLACK, "x", 5),
                edge_width=1.1,
                series=PRINTED.name,
            )
        )
        x = Axis(
            each.measure.label,
            limits=(None if each.measure is TIME_TO_LOAD else 0, None),
            widen=True,
        )
        y = Axis(names=variants, names_shown=place == 0)
        panels.append(Panel(marks, x, y, title=NETWORK_NAMES[each.network]))
    yield Figure(
        stem=cases.stem(results.key, "setting", *case.values()),
        title=cases.titled("Whose congestion control governs the download?", case),
        panels=(panels,),
        caption=_caption(rows),
        foot=cases.foot(results, rows),
        legend=(*legend_entries(dict(SET_ON.values())), PRINTED),
        row_inches=1.5,
        data=pd.concat(tables, ignore_index=True),
    )


def _points(table: pd.DataFrame, variants: Sequence[str]) -> list[Mark]:
    """Return a mean for each variant and end, the server's below the laptop's."""
    marks: list[Mark] = []
    for _, cell in table.iterrows():
        name, look = SET_ON[cell[SETTING]]
        place = variants.index(cell[VARIANT]) + 0.3 * (list(SET_ON).index(cell[SETTING]) - 0.5)
        marks.append(means.mean_point(place, cell, look, name))
    return marks


def _caption(rows: pd.DataFrame) -> str:
    """Say by how much load times differ between the variants."""
    times = rows.groupby([SETTING, NETWORK, "seed"])["loaded_s"]
    spread = (times.max() - times.min()).groupby(level=0).max()
    texts = [f"{SET_ON[str(key)][0]}, by at most {most:.3g} s" for key, most in spread.items()]
    return f"The variants' times to load differ: {'; '.join(texts)}." if texts else ""


def _place_of_line(name: str) -> tuple[object, ...]:
    """Return a sort key of `TCP veno`: TCP before QUIC, and each in the usual order."""
    over, variant = name.split()
    return over == "QUIC", variant_key(variant)


def _hall(results: ExperimentResults, case: dict[str, str], rows: pd.DataFrame) -> Iterator[Figure]:
    """Yield how long one waits in the crowded hall, over TCP and over QUIC."""
    over = rows[TRANSPORT].map({key: name for key, (name, _) in OVER_TRANSPORT.items()})
    rows = rows.assign(line=over + " " + rows[VARIANT])
    halls = [name for name in HALLS if (rows[NETWORK] == name).any()]
    if not halls:
        return
    inside = rows[rows[NETWORK].isin(halls)]
    lines = sorted(set(inside["line"]), key=_place_of_line)
    columns, tables = [], []
    for measure in WAITS:
        column = []
        for network in halls:
            of_network = inside[inside[NETWORK] == network]
            table = means.summary(of_network, ["line", TRANSPORT], measure)
            tables.append(table.assign(network=network, measure=measure.label))
            marks: list[Mark] = [
                means.mean_point(lines.index(cell["line"]), cell, look, name)
                for _, cell in table.iterrows()
                for name, look in [OVER_TRANSPORT[cell[TRANSPORT]]]
            ]
            marks += [
                means.single_trials(flows[measure.metric], lines.index(str(line)), look, name)
                for (line, over), flows in of_network.groupby(["line", TRANSPORT])
                for name, look in [OVER_TRANSPORT[str(over)]]
            ]
            if measure.metric == "startup_s":
                marks.insert(0, ShadedRange("x", *RGSJ_STARTUP_S, series=PRINTED_START.name))
            x = Axis(measure.label if network == halls[-1] else "", limits=(0, None))
            y = Axis(names=lines, names_shown=measure is WAITS[0])
            title = NETWORK_NAMES[network] if measure is WAITS[0] else ""
            column.append(Panel(marks, x, y, title=title))
        columns.append(share_limits(column, "x"))
    yield Figure(
        stem=cases.stem(results.key, "hall", *case.values()),
        title=cases.titled("In the crowded hall, by the server's congestion control", case),
        panels=tuple(zip(*columns, strict=True)),
        foot=cases.foot(results, inside, f"{means.READING}; rings: single networks"),
        legend=(*legend_entries(dict(OVER_TRANSPORT.values())), PRINTED_START),
        row_inches=1.3,
        data=pd.concat(tables, ignore_index=True),
    )
