"""A little of what `python -m tests.fuzz` does at length, and that it sees every kind of fault."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from testbed.errors import TestbedError
from tests.fuzz import attempts
from tests.fuzz.attempts import CORPUS, attempt, corpus, damaged_input
from tests.fuzz.formats import FORMATS, Format

FEW, MANY = 5, 2000


@pytest.mark.parametrize("name", FORMATS)
def test_a_reader_refuses_or_reads(name: str, full: bool) -> None:
    """What once broke it, and new inputs, in a line or not at all."""
    bases = FORMATS[name].bases()
    sound = attempt(FORMATS[name], bases)
    assert sound.faults == {} and sound.refused < len(bases)  # else all would be refused at once
    new = [damaged_input(name, number, bases) for number in range(MANY if full else FEW)]
    done = attempt(FORMATS[name], [*corpus(name), *new])
    assert done.faults == {}
    assert done.inputs == len(corpus(name)) + len(new)


def test_each_folder_of_the_corpus_is_of_a_format() -> None:
    assert {path.name for path in CORPUS.iterdir()} <= {*FORMATS, "captures"}


def hang(_data: bytes, _folder: Path) -> None:
    while True:
        pass


def refuse(_data: bytes, _folder: Path) -> None:
    raise TestbedError("one line")


def refuse_in_lines(_data: bytes, _folder: Path) -> None:
    raise TestbedError("two\nlines")


FAULTY: dict[str, Callable[[bytes, Path], object]] = {
    "KeyError at test_fuzz.py": lambda data, _folder: dict[bytes, int]()[data],
    "MemoryError at test_fuzz.py": lambda _data, _folder: bytearray(8 << 30),
    "_Hang at test_fuzz.py": hang,
    "a message that is no line": refuse_in_lines,
    "status -9": lambda _data, _folder: os.kill(os.getpid(), signal.SIGKILL),
}


@pytest.mark.parametrize("fault", FAULTY)
def test_a_fault_is_seen(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """And the inputs after it are read all the same."""
    monkeypatch.setattr(attempts, "MAX_S", 0.1)
    done = attempt(Format(tuple, FAULTY[fault], lambda _dice, data: data), [b"1", b"2", b"3"])
    assert done.inputs == 3
    (only,) = done.faults
    assert fault in only


def test_a_refusal_is_no_fault() -> None:
    done = attempt(Format(tuple, refuse, lambda _dice, data: data), [b"1", b"2"])
    assert (done.inputs, done.refused, done.faults) == (2, 2, {})
