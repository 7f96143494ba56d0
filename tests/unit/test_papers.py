"""A paper is one folder and one line; what its answers print comes from the trials."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest

from analysis.claims.comparisons import RATE, spread, within
from analysis.claims.judgement import ClaimPart, ClaimVerdict, Finding, NumberRow
from analysis.claims.ledger import Claim, Paper
from analysis.claims.samples import Group, sample
from tests import papers
from tests.claims_tables import fairness_metrics


def half_of_the_link(group: Group) -> Finding:
    rate = sample(group.where(flow="bbr").rows, "throughput_mbps")
    return Finding((within("BBR", RATE, rate, low=0.5),), (NumberRow("BBR", spread(RATE, rate)),))


def test_a_paper_is_one_line_of_the_table() -> None:
    claim = Claim("X1", "BBR has half of it.", "At least 0.5.", "router-fairness", half_of_the_link)
    paper = Paper("X", "Someone", "docs/papers/someone.md", (claim,))
    found = papers.answers({"router-fairness": fairness_metrics()}, papers=(paper,))
    assert [(each.id, each.paper, each.verdict) for each in found] == [
        ("X1", "X", ClaimVerdict.SUPPORTED)
    ]
    less = fairness_metrics(lambda place: {"bbr": {"throughput_mbps": 0.2}})
    (refuted,) = papers.answers({"router-fairness": less}, papers=(paper,))
    assert refuted.verdict is ClaimVerdict.CONTRADICTED and paper.page in refuted.why


@pytest.mark.parametrize("paper", papers.PAPERS, ids=lambda paper: str(paper.id))
def test_every_paper_has_its_page(root: Path, paper: Paper) -> None:
    page = (root / paper.page).read_text()
    for claim in paper.claims:
        assert re.search(rf"\b{re.escape(claim.id)}\b(?!\.\d)", page), claim.id


def test_a_judge_has_no_place_for_prose() -> None:
    """Its findings are comparisons and numbers: an explanation would be a constant."""
    assert [field.name for field in fields(Finding)] == ["parts", "rows", "beside"]
    assert "cause" not in {field.name for field in fields(ClaimPart)}


PAPERS_WORDS = (
    r"\b(Guo|Kapre|Saxena|Joshi|Hattikar|Parvez|Mahanti|Rajore|Sikka)\b",
    r"\b(GYS|KS|JH|PMW|RGSJ)\b",
    r"dumbbell-(load|pairs|queues)|newreno-(models|background)|fall-floyd|router-fairness",
)
# examples of commands in the help, whose experiments a user can run
EXAMPLES = "testbed/cli/parser.py"


def words_of_papers(root: Path) -> Iterator[str]:
    """Yield each line of analysis and testbed that knows a paper."""
    for folder in ("analysis", "testbed"):
        for path in sorted((root / folder).rglob("*")):
            name = path.relative_to(root).as_posix()
            if path.suffix in (".py", ".c", ".h", ".js", ".css", ".html") and name != EXAMPLES:
                for line in path.read_text(encoding="utf-8").splitlines():
                    if any(re.search(words, line) for words in PAPERS_WORDS):
                        yield f"{name}: {line.strip()}"


def test_no_paper_is_known_outside_its_folder(root: Path) -> None:
    assert not list(words_of_papers(root))


def test_a_papers_word_is_found(tmp_path: Path) -> None:
    for folder in ("analysis", "testbed"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "x.py").write_text('"""As in KS1.4."""\nx = "GYS"\n')
    assert [each.partition(":")[0] for each in words_of_papers(tmp_path)] == [
        "analysis/x.py",
        "testbed/x.py",
    ]
