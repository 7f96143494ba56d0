"""The ledger's counts by kind and cause, and what is said of each answer that changed."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace

import pytest

from benchmarks.claim_answers import ClaimAnswer
from benchmarks.ledger_changes import (
    KINDS,
    OPEN_ACROSS,
    OPEN_BY_DECLARATION,
    OPEN_NOT_RUN,
    OPEN_TOO_FEW,
    OPEN_WORD,
    cause_of,
    changes,
    kind_of,
    stored_now,
    tables,
)
from benchmarks.papers import PROJECT_ROOT

OPEN = ClaimAnswer("KS9.9", "It is so.", "ns2", "open", "a not clearly different from b.", 20, {})


def test_the_page_counts_the_stored_answers() -> None:
    page = (PROJECT_ROOT / "docs/papers/README.md").read_text(encoding="utf-8")
    now = Counter(map(kind_of, stored_now().values()))
    assert set(now) <= set(KINDS)
    for kind in KINDS:
        assert re.search(rf"^\| {kind} \| \d+ \| {now[kind]} \|$", page, re.MULTILINE), kind
    assert f"| share that are open | 45.3% | {now['open'] / now.total():.1%} |" in page


@pytest.mark.parametrize(
    ("answer", "cause"),
    [
        (replace(OPEN, statement="by the test alone in part: a."), OPEN_BY_DECLARATION),
        (replace(OPEN, n=0, statement="Not measured."), OPEN_NOT_RUN),
        (replace(OPEN, statement="latency: by RTT, open: a; by delay, supported: b."), OPEN_WORD),
        (replace(OPEN, n=5), OPEN_TOO_FEW),
        (replace(OPEN, n=5, needed=44), OPEN_ACROSS),
        (OPEN, OPEN_ACROSS),
    ],
)
def test_an_open_answer_has_one_cause(answer: ClaimAnswer, cause: str) -> None:
    assert cause_of(answer) == cause
    counted = tables({("KS9.9", "ns2"): answer}, {}).splitlines()
    assert f"| open: {cause} | 1 | 0 |" in counted and "| all | 1 | 0 |" in counted


def test_each_answer_that_changed_is_told_with_its_reason() -> None:
    decided = replace(OPEN, answer="supported, the same on each kernel", n=45)
    by_word = replace(
        OPEN, answer="by RTT supported, by delay refuted", n=9, beside=(("c", "", ""),)
    )
    before = {
        ("KS9.9", "ns2"): OPEN,
        ("JH9.9", "ns2, CBR 40–60 s"): replace(decided, n=5),
        ("RGSJ9", "modern, receiver"): OPEN,
        ("GYS9", "modern"): OPEN,
    }
    after = {
        ("KS9.9", "ns2"): decided, ("JH9.9", "ns2"): by_word, ("GYS9", "modern"): OPEN
    }  # fmt: skip
    assert list(changes(before, after)) == [
        "JH9.9, ns2: supported → by reading "
        "(the head alone decides; one interval and one margin; 5 → 9 networks)",
        f"KS9.9, ns2: open → supported (it was {OPEN_ACROSS}; 20 → 45 networks)",
        "RGSJ9, modern, receiver: open → – "
        "(set on the laptop, the variant changes nothing of a download (RGSJ0))",
    ]
