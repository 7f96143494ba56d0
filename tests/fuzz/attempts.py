"""Attempts to break a reader: each input is read in a process with little memory and little time.

A fault is an exception that is not the project's, a message of many lines, a reader that hangs, or
that ends by a signal. An input is known by its format's name and its number.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import random
import resource
import signal
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from testbed.errors import TestbedError
from tests.fuzz.formats import FORMATS, Format

CORPUS = Path(__file__).with_name("corpus")
FOUND = Path(__file__).with_name("found")
ROOT = Path(__file__).resolve().parents[2]
MAX_S = 10.0  # of processor time, for an input
MAX_MEMORY_BYTES = 1 << 30  # beyond what the process has before
MAX_MESSAGE = 8000
BATCH = 200  # inputs that one process reads
NUMBER_BYTES = 8


@dataclass
class Attempts:
    """What became of inputs; faults by their place, each with the first input that showed it."""

    inputs: int = 0
    refused: int = 0
    faults: dict[str, bytes] = field(default_factory=dict)


def corpus(name: str) -> list[bytes]:
    """Inputs that once broke the readers of a format."""
    return [path.read_bytes() for path in sorted((CORPUS / name).glob("*"))]


def damaged_input(name: str, number: int, bases: Sequence[bytes]) -> bytes:
    """The input of this number."""
    dice = random.Random(f"{name} {number}")
    return FORMATS[name].damage(dice, dice.choice(bases))


def attempt_numbers(name: str, first: int, until_s: float) -> Attempts:
    """Read one damaged input after the other, until a time of the monotonic clock."""
    done, number = Attempts(), first
    bases = [*FORMATS[name].bases(), *corpus(name)]
    while time.monotonic() < until_s:
        batch = [damaged_input(name, number + place, bases) for place in range(BATCH)]
        attempt(FORMATS[name], batch, done)
        number += BATCH
    return done


def attempt(chosen: Format, inputs: Sequence[bytes], done: Attempts | None = None) -> Attempts:
    """Read inputs, each once; one that ends the process is a fault, and the others go on."""
    done = done or Attempts()
    first = 0
    while first < len(inputs):
        first += _attempt_in_child(chosen, inputs[first:], done)
    return done


def _attempt_in_child(chosen: Format, inputs: Sequence[bytes], done: Attempts) -> int:
    """Read inputs in a process; return how many were read until it ended."""
    begun = mmap.mmap(-1, NUMBER_BYTES)  # shared: how many inputs have been begun
    with tempfile.TemporaryDirectory(prefix="fuzz-") as name, tempfile.TemporaryFile() as told:
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                _read_all(chosen, inputs, Path(name), begun, told.fileno())
                status = 0
            finally:
                os._exit(status)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        told.seek(0)
        answers = [json.loads(line) for line in told]
    count = int.from_bytes(begun[:], "little")
    done.inputs += count
    done.refused += sum(answer == "" for _, answer in answers)
    for place, fault in answers:
        if fault:
            done.faults.setdefault(fault, inputs[place])
    if status:
        done.faults.setdefault(f"the process ended with status {status}", inputs[count - 1])
        return max(count, 1)
    return len(inputs)


def _read_all(
    chosen: Format, inputs: Sequence[bytes], folder: Path, begun: mmap.mmap, told: int
) -> None:
    chosen.prepare(folder)
    signal.signal(signal.SIGVTALRM, _hung)
    resource.setrlimit(resource.RLIMIT_DATA, (memory_limit(), resource.RLIM_INFINITY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for place, data in enumerate(inputs):
        begun[:] = (place + 1).to_bytes(NUMBER_BYTES, "little")
        signal.setitimer(signal.ITIMER_VIRTUAL, MAX_S)
        answer = outcome(lambda data=data: chosen.read(data, folder))  # type: ignore[misc]
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        if answer is not None:
            os.write(told, json.dumps([place, answer]).encode() + b"\n")


def memory_limit() -> int:
    """Return RLIMIT_DATA for MAX_MEMORY_BYTES beyond what this process has now."""
    data_pages = int(Path("/proc/self/statm").read_text().split()[5])
    return data_pages * resource.getpagesize() + MAX_MEMORY_BYTES


class _Hang(BaseException):
    """A reader takes too long; nothing that catches Exception catches this."""


def _hung(_number: int, _frame: FrameType | None) -> None:
    raise _Hang


def outcome(read: Callable[[], object]) -> str | None:
    """None if it was read, an empty text if it was refused in a line, or the fault."""
    try:
        read()
    except TestbedError as error:
        message = error.message
        if "\n" in message or len(message) > MAX_MESSAGE:  # the console escapes the rest
            return f"a message that is no line, or a long one, at {_place(error)}"
        return ""
    except BaseException as error:
        return f"{type(error).__name__} at {_place(error)}"
    return None


def _place(error: BaseException) -> str:
    """The last of the project's lines that an exception came through."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = (frame for frame in frames if frame.name != _hung.__name__)
    *_, last = (f for f in ours if ROOT in Path(f.filename).parents and "/.venv/" not in f.filename)
    return f"{Path(last.filename).name}:{last.lineno}"


def keep(name: str, data: bytes) -> Path:
    """Store an input that is a fault."""
    folder = FOUND / name
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / hashlib.sha256(data).hexdigest()[:12]
    path.write_bytes(data)
    return path
