"""A table of one TCP flow against CBR, ours beside ns-2's."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from analysis.claims.samples import Reference
from analysis.figures import cases
from analysis.figures.sheet import Cell, Head, Sheet, mean_cell
from analysis.metrics.metric_rows import AXIS, with_axes
from analysis.results.experiment_results import ExperimentResults
from experiments.kapre_saxena_joshi_hattikar.phase_figure import ORACLE
from experiments.kapre_saxena_joshi_hattikar.simulated import ns2_metrics
from testbed.scenario.model import BASE_KERNEL
from testbed.scenario.variations import KERNEL_AXIS

TABLED_LOADS = (2.0, 5.0, 8.0, 9.0, 10.0)
PLACE_AXES = ("variant", "window", "cbr_mbit")
PLACE = tuple(f"{AXIS}{name}" for name in PLACE_AXES)
AS_IN_NS2 = {f"{AXIS}profile": "ns2", f"{AXIS}order": "cbr-first"}
KERNEL = f"{AXIS}{KERNEL_AXIS}"
TABLED = (  # metric, heading, unit, what a value is multiplied by
    ("throughput_mbps", "throughput", "Mbit/s", 1),
    ("drop_rate", "dropped", "%", 100),
    ("srtt_mean_ms", "RTT", "ms", 1),
)


def load_tables(
    results: ExperimentResults, reference: Reference = ORACLE
) -> Iterator[tuple[str, Sheet]]:
    """Tabulate throughput, drops and round trip of Linux, in profile ns2, and of ns-2."""
    found = ns2_metrics(reference).get("dumbbell-load")
    ours = results.tcp
    if found is None or not {*PLACE, *AS_IN_NS2} <= {*ours}:
        return
    for column, value in AS_IN_NS2.items():
        ours = ours[ours[column] == value]
    if KERNEL in ours:
        ours = ours[ours[KERNEL] == BASE_KERNEL]
    theirs = with_axes(found[found["variant"] != ""])
    for case, own in cases.split(ours, (), PLACE_AXES):
        if lines := tuple(_lines(own, theirs)):
            title = cases.titled("One flow beside CBR, Linux and ns-2", case)
            yield title, Sheet(tuple(_heads()), lines)


def _heads() -> Iterator[Head]:
    yield from (Head("variant"), Head("window"), Head("CBR", "Mbit/s", number=True))
    yield from (Head("n", number=True), Head("n, ns-2", number=True))
    for _, words, unit, _ in TABLED:
        yield from (Head(words, unit, number=True), Head(f"{words}, ns-2", unit, number=True))


def _lines(ours: pd.DataFrame, theirs: pd.DataFrame) -> Iterator[tuple[Cell, ...]]:
    own, other = (dict(list(each.groupby(list(PLACE)))) for each in (ours, theirs))
    for place in (place for place in own if place in other and place[2] in TABLED_LOADS):
        pair = own[place], other[place]
        variant, window, load = place
        yield (
            *(Cell(str(word), str(word)) for word in (variant, window)),
            Cell(f"{load:g}", f"{load:09.3f}", True),
            *(Cell(str(len(each)), str(len(each)), True) for each in pair),
            *(mean_cell(factor * each[metric]) for metric, *_, factor in TABLED for each in pair),
        )
