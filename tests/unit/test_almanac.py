"""The almanac: its workloads, its rows, and that its page takes them."""

from __future__ import annotations

from analysis.statistics.intervals import Comparison, ComparisonKind
from benchmarks import almanac
from benchmarks.harness import with_tables
from testbed.kernels.kernel_comparison import Effect, KernelComparison, NotCompared


def effect(difference: float, low: float, high: float) -> Effect:
    tested = Comparison(ComparisonKind.TESTED, 5, 5, difference, low, high)
    return Effect("cubic", "throughput", "Mbit/s", 3.14159, tested)


def test_a_hundred_workloads() -> None:
    assert len({each.name for each in almanac.workloads()}) == 100


def test_an_effect_is_bold_if_its_interval_does_not_hold_zero() -> None:
    rows = [
        almanac._row("cubic", [], [effect(*numbers)]) for numbers in ((1, 0.5, 2), (-1e-9, -1, 3))
    ]
    assert rows == [
        ["`cubic`", "0", "–", "3.14, **+1 [+0.5, +2]**", "–", "–"],
        ["`cubic`", "0", "–", "3.14, +0 [-1, +3]", "–", "–"],
    ]


def test_kernels_with_the_same_packets_have_no_table() -> None:
    found = KernelComparison(100, ("red",), (), (NotCompared("red", "no queue"),), ())
    lines = list(almanac.comparison_lines(("6.1", "mine"), found))
    assert lines == [
        "## From 6.1 to mine",
        "",
        "Other packets in 0 of 100 workloads.",
        "",
        "Not compared, red: no queue",
        "",
    ]


def test_the_page_takes_other_tables() -> None:
    page = almanac.ALMANAC.read_text()
    once = with_tables(page, almanac.ALMANAC_BENCHMARK, "## A\n\ntext")
    assert once.count("-->\n\n## A\n\ntext\n\n<!-- end -->\n") == 1
    assert "## From" not in once
    twice = with_tables(once, almanac.ALMANAC_BENCHMARK, "## B")
    assert twice == with_tables(page, almanac.ALMANAC_BENCHMARK, "## B")
