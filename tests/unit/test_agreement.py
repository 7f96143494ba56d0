"""The page of guest, host, simulators and theory: its tables, and a sentence for each failure."""

from __future__ import annotations

import re

import pytest

from analysis.statistics.intervals import compare
from benchmarks import agreement
from benchmarks.agreement import AGREEMENT_NUMBERS, AGREEMENT_VARIANTS, CellAnswer
from benchmarks.harness import with_tables

GOODPUT, _QUEUE, DROPS = AGREEMENT_NUMBERS
TOLD = re.compile(r"^- \*\*(?P<cells>[^*]+)\*\*:", re.MULTILINE)


@pytest.mark.parametrize(
    ("others", "expected"),
    [
        ((10.1, 10.2, 10.0), CellAnswer.EQUAL),
        ((11.1, 11.2, 11.0), CellAnswer.DIFFERENT),
        ((8.9, 8.8, 9.0), CellAnswer.DIFFERENT),
        ((10.2, 10.9, 9.5), CellAnswer.OPEN),  # too wide an interval
        ((10.4, 10.5, 10.6), CellAnswer.OPEN),  # across the margin
        ((10.0,), CellAnswer.OPEN),
        ((10.0, 10.0, 10.0), CellAnswer.EQUAL),
    ],
)
def test_an_interval_within_the_margin_is_equal(
    others: tuple[float, ...], expected: CellAnswer
) -> None:
    ours = (10.0, 10.05, 9.95)
    assert agreement.answer(GOODPUT, compare(others, ours), 10.0) is expected


def test_few_losses_are_compared_in_points() -> None:
    none = (0.0, 0.0, 0.0)
    for more, expected in ((0.0004, CellAnswer.EQUAL), (0.0006, CellAnswer.DIFFERENT)):
        found = compare([more] * 3, none)
        assert agreement.answer(DROPS, found, 0.0) is expected


def test_the_page_has_the_tables_of_its_numbers() -> None:
    page = agreement.PAGE_FILE.read_text()
    tables = agreement.tables(agreement.read_numbers())
    assert with_tables(page, agreement.AGREEMENT_BENCHMARK, tables) == page


def test_each_failing_cell_has_a_sentence() -> None:
    """A line begins with the side, variants and networks that it is about."""
    explained = {
        (side, variant, network)
        for told in TOLD.finditer(agreement.PAGE_FILE.read_text())
        for side, variants, networks in [told["cells"].split(", ")]
        for variant in variants.split()
        for network in networks.split()
    }
    failing = {
        (each.side, AGREEMENT_VARIANTS[each.variant], each.network)
        for each in agreement.cells(agreement.read_numbers())
        if each.fails
    }
    assert failing and failing == explained
