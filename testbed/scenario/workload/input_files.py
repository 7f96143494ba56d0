"""The files that a workload may name: times of arrivals, and points of a distribution."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from testbed.errors import UsageError, quoted
from testbed.scenario.workload.workload import Workload

LONGEST_BYTES = 4 << 20
_T = TypeVar("_T")


def read_times(path: Path) -> tuple[float, ...]:
    """Read times in seconds, one a line; what follows a `#` is a comment."""
    return tuple(_lines(path, "a time in seconds", lambda words: _numbers(words, 1)[0]))


def read_cdf(path: Path) -> tuple[tuple[float, ...], ...]:
    """Read points, one a line: a size in bytes, the share of transfers that are not larger."""
    wanted = "a size in bytes and the part of the transfers that are not larger"
    return tuple(_lines(path, wanted, lambda words: _numbers(words, 2)))


def with_files(workload: Workload, folder: Path) -> Workload:
    """Return the workload with its files replaced by what they hold."""
    arrivals, sizes = workload.arrivals, workload.sizes
    if arrivals.file is not None:
        times = read_times(folder / arrivals.file)
        arrivals = dataclasses.replace(arrivals, times_s=times, file=None)
    if sizes.file is not None:
        sizes = dataclasses.replace(sizes, cdf=read_cdf(folder / sizes.file), file=None)
    return dataclasses.replace(workload, arrivals=arrivals, sizes=sizes)


def _lines(path: Path, wanted: str, read: Callable[[list[str]], _T]) -> list[_T]:
    found = []
    for number, line in enumerate(_text(path).splitlines(), start=1):
        words = line.partition("#")[0].replace(",", " ").split()
        try:
            if words:
                found.append(read(words))
        except ValueError:
            raise UsageError(
                f"{path}: line {number}: {quoted(line.strip())} is not {wanted}",
                "one a line; what follows a # is a comment",
            ) from None
    return found


def _numbers(words: list[str], count: int) -> tuple[float, ...]:
    values = tuple(float(word) for word in words)
    if len(values) != count or not all(map(math.isfinite, values)):
        raise ValueError
    return values


def _text(path: Path) -> str:
    hint = "paths are relative to the scenario's file"
    try:
        with path.open("rb") as file:
            data = file.read(LONGEST_BYTES + 1)
        if len(data) > LONGEST_BYTES:
            raise UsageError(f"{path}: longer than {LONGEST_BYTES >> 20} MB", hint)
        return data.decode()
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}", hint) from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: not a text", hint) from error
