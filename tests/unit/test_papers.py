"""A paper is one folder and one line; what its answers print comes from the trials."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import fields
from pathlib import Path

import pandas as pd
import pytest

from analysis.claims.engine.answers import Answer, Claim, Finding, Paper, Part, Row, Verdict
from analysis.claims.engine.contrasts import spread, within
from analysis.claims.engine.quantities import RATE
from analysis.claims.engine.selection import Group, sample
from tests import papers
from tests.claims_tables import fairness_metrics
from tests.unit.test_claims import on_disk, tables

NO_NUMBER = {*Verdict, "not known", "the model does not hold"}


def half_of_the_link(group: Group) -> Finding:
    rate = sample(group.where(flow="bbr").rows, "throughput_mbps")
    return Finding((within("BBR", RATE, rate, low=0.5),), (Row("BBR", spread(RATE, rate)),))


def test_a_paper_is_one_line_of_the_table() -> None:
    claim = Claim("X1", "BBR has half of it.", "At least 0.5.", "router-fairness", half_of_the_link)
    paper = Paper("X", "Someone", "docs/papers/someone.md", (claim,))
    found = papers.answers({"router-fairness": fairness_metrics()}, papers=(paper,))
    assert [(each.id, each.paper, each.verdict) for each in found] == [
        ("X1", "X", Verdict.SUPPORTED)
    ]
    less = fairness_metrics(lambda place: {"bbr": {"throughput_mbps": 0.2}})
    (refuted,) = papers.answers({"router-fairness": less}, papers=(paper,))
    assert refuted.verdict is Verdict.CONTRADICTED and paper.page in refuted.why


@pytest.mark.parametrize("paper", papers.PAPERS, ids=lambda paper: str(paper.id))
def test_every_paper_has_its_page(root: Path, paper: Paper) -> None:
    page = (root / paper.page).read_text()
    for claim in paper.claims:
        assert re.search(rf"\b{re.escape(claim.id)}\b(?!\.\d)", page), claim.id


def test_a_judge_has_no_place_for_prose() -> None:
    """Its findings are comparisons and numbers: an explanation would be a constant."""
    assert [field.name for field in fields(Finding)] == ["parts", "rows"]
    assert "cause" not in {field.name for field in fields(Part)}


@pytest.fixture(scope="module")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> Sequence[Answer]:
    """Every claim where all is as the papers say, and where all is reversed."""
    return tuple(_worlds(tmp_path_factory.mktemp("worlds")))


def _worlds(folder: Path) -> Iterator[Answer]:
    for claimed in (True, False):
        found: dict[str, pd.DataFrame] = tables(2, claimed)
        yield from papers.answers(found, on_disk(folder / str(claimed), found, claimed))


def test_what_an_answer_prints_is_numbers(worlds: Sequence[Answer]) -> None:
    for answer in worlds:
        assert re.search(r"\d", answer.statement), answer.statement
        for row in answer.rows:
            said = row.ours in NO_NUMBER or re.search(r"\d", row.ours)
            assert said or row.what.startswith("settings of"), (answer.id, row)


def test_what_an_answer_says_of_its_reasons_is_the_engines(worlds: Sequence[Answer]) -> None:
    """The same few sentences for every claim: none of them knows what a trial showed."""
    known = ("What earlier runs showed", "The paper does not define", "The interval reaches")
    for answer in worlds:
        assert not answer.why or answer.why.startswith(known), (answer.id, answer.why)
