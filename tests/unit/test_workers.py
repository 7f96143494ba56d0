"""Work on many trials at once: which process does it, and what it has for itself."""

from __future__ import annotations

import os
from collections.abc import Sequence

import pytest

from analysis.results import workers
from analysis.results.workers import shared_out


def sums(items: Sequence[int], at_once: int) -> tuple[int, int, int]:
    """Return the sum of a few numbers, how many may be added at once, and who added them."""
    return sum(items), at_once, os.getpid()


def test_few_items_stay_in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _pid: {0, 1})
    found = [*shared_out("sums", sums, range(30))]
    here = os.getpid()
    assert found == [(sum(range(25)), 2, here), (sum(range(25, 30)), 2, here)]


def test_many_are_shared_out_and_each_process_has_one_processor(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Otherwise n processes would do n things at once each."""
    monkeypatch.setattr("os.sched_getaffinity", lambda _pid: {0, 1})
    monkeypatch.setattr(workers, "MANY_ITEMS", 30)
    found = [*shared_out("sums", sums, range(60))]
    assert [each[0] for each in found] == [sum(range(n, min(n + 25, 60))) for n in (0, 25, 50)]
    assert {each[1] for each in found} == {1}
    assert os.getpid() not in {each[2] for each in found}
