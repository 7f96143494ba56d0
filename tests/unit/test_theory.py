"""The page of laws: its verdicts, its tables, and a sentence for each difference."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

import pandas as pd
import pytest

from benchmarks import theory
from benchmarks.harness import with_tables
from benchmarks.laws import BUFFERS_BDP, LAWS, LawRow, Run, TheoryLaw, ware_share


def no_rows(_run: Run) -> Iterator[LawRow]:
    """Say nothing."""
    yield from ()


LAW = TheoryLaw("a law", no_rows, 0.05, "so it is")
TOLD = re.compile(r"^- \*\*(?P<law>[^*]+)\*\*:", re.MULTILINE)


def of_kernels(*measured: float) -> pd.DataFrame:
    kernels = ("6.1", "7.3")[: len(measured)]
    return pd.DataFrame({"kernel": kernels, "predicted": 10.0, "measured": measured})


@pytest.mark.parametrize(
    ("measured", "expected"),
    [
        ((10.4, 9.6), "agrees"),
        ((10.6, 9.4), "**differs**"),
        ((10.4, 10.6), "**differs** on 7.3"),
        ((math.nan,), "**differs**"),  # nothing measured is no agreement
    ],
)
def test_a_false_prediction_is_marked(measured: tuple[float, ...], expected: str) -> None:
    assert theory.verdict(LAW, of_kernels(*measured)) == expected


def test_the_page_has_the_tables_of_its_numbers() -> None:
    page = theory.THEORY_PAGE.read_text()
    tables = theory.theory_tables(theory.read_theory_numbers())
    assert with_tables(page, theory.THEORY_BENCHMARK, tables) == page
    assert all(f"| {law.name} |" in page for law in LAWS)


def test_each_difference_has_a_sentence() -> None:
    numbers = theory.read_theory_numbers()
    differing = {
        law.name
        for law in LAWS
        for _, group in numbers[numbers["law"] == law.name].groupby("what")
        if theory.verdict(law, group) != "agrees"
    }
    told = {each["law"] for each in TOLD.finditer(theory.THEORY_PAGE.read_text())}
    assert differing and differing == told


def test_wares_numbers_are_those_of_her_equations() -> None:
    shares = [round(ware_share(bdp), 2) for bdp in BUFFERS_BDP]
    assert shares == [0.97, 0.78, 0.63, 0.55, 0.49, 0.44]
    assert f"| {' | '.join(f'{share:.2f}' for share in shares)} |" in theory.THEORY_PAGE.read_text()
