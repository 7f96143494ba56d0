"""What is said to somebody who waits."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from testbed.runs import progress


def test_what_takes_long_is_named_and_what_does_not_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    said, printed = list[str](), threading.Event()

    class Errors:
        def print(self, words: str) -> None:
            said.append(words)
            printed.set()

    monkeypatch.setattr(progress, "errors", Errors())
    assert [*progress.after_a_while("counting", [1, 2])] == [1, 2]
    assert said == []

    def slow() -> Iterator[int]:
        assert printed.wait(30)
        yield 3

    monkeypatch.setattr(progress, "LONGEST_SILENCE_S", 0.0)
    assert [*progress.after_a_while("drawing", slow())] == [3]
    assert said == ["drawing …"]


def test_a_long_warning_stays_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    """Pages take a table from what is printed, without warnings, by their first words."""
    progress.SweepProgress(1)._once("long " * 100, "name: warning: ")
    assert len(capsys.readouterr().out.splitlines()) == 1
