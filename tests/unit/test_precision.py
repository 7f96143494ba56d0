"""When there are seeds enough."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from analysis.metrics.columns import METRIC_COLUMNS
from analysis.statistics.intervals import parse_target, seeds_needed, widest
from testbed.errors import UsageError


def rows(**cells: list[float]) -> pd.DataFrame:
    """A row a seed for each variant."""
    alike = dict.fromkeys(("experiment", "topology", "queue", "engine", "flow", "setting"), "x")
    made = [
        {**alike, "kind": "tcp", "status": "ok", "variant": name, "seed": seed, "goodput_mbps": v}
        for name, values in cells.items()
        for seed, v in enumerate(values)
    ]
    return pd.DataFrame(made, columns=list(METRIC_COLUMNS))


def test_the_worst_known_cell_counts() -> None:
    found = widest(rows(calm=[10, 10, 10], wild=[8, 10, 12]), "goodput_mbps")
    # Student's t for two degrees of freedom, times 2 / √3, over the mean
    assert found.variant == "wild"
    assert found.relative == pytest.approx(4.3027 * 2 / 3**0.5 / 10, rel=1e-4)


def test_repeats_that_agree_are_known_exactly() -> None:
    assert widest(rows(a=[1.5, 1.5, 1.5]), "goodput_mbps").relative == 0
    assert widest(rows(a=[0.0, 0.0, 0.0]), "goodput_mbps").relative == 0


@pytest.mark.parametrize("values", [[1.0], [math.nan, math.nan, 1.0]])
def test_one_value_says_nothing(values: list[float]) -> None:
    assert widest(rows(a=values), "goodput_mbps").relative == math.inf


def test_other_flows_and_failures_do_not_count() -> None:
    table = rows(a=[1, 1, 1], b=[1, 2, 3], c=[1, 2, 3])
    table.loc[table["variant"] == "b", "kind"] = "cbr"
    table.loc[table["variant"] == "c", "status"] = "failed"
    assert widest(table, "goodput_mbps").relative == 0
    assert widest(table.iloc[:0], "goodput_mbps").relative == math.inf


@pytest.mark.parametrize(
    ("seeds", "relative", "target", "most", "next_seeds"),
    [
        (3, 0.04, 0.02, 30, 6),  # four times as many, but at most twice
        (10, 0.022, 0.02, 30, 13),
        (10, 0.0201, 0.02, 30, 11),
        (20, 0.1, 0.02, 30, 30),
        (3, math.inf, 0.02, 30, 6),
    ],
)
def test_how_many_more(
    seeds: int, relative: float, target: float, most: int, next_seeds: int
) -> None:
    assert seeds_needed(seeds, relative, target, most) == next_seeds


def test_targets() -> None:
    assert parse_target("ci=2%") == pytest.approx(0.02)
    assert parse_target("ci=0.5%") == pytest.approx(0.005)
    for text in ("2%", "ci=2", "ci=0%", "ci=%", "sd=2%"):
        with pytest.raises(UsageError, match="not ci=N%"):
            parse_target(text)


@pytest.mark.parametrize(("kind", "known"), [("video", True), ("cbr", False)])
def test_videos_count_and_a_steady_stream_does_not(kind: str, known: bool) -> None:
    found = widest(rows(a=[9, 10, 11]).assign(kind=kind), "goodput_mbps")
    assert math.isfinite(found.relative) == known
