"""Numbers in what programs print: by patterns or JSON's keys, in a process that may not take long.

A pattern with `.*` twice takes hours of a line of a megabyte, and whoever wrote the scenario may be
a stranger. So patterns are tried by a process of their own, whose processor time is limited.
"""

from __future__ import annotations

import array
import contextlib
import json
import math
import re
import resource
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from testbed.errors import TestbedError, quoted
from testbed.machine import json_files, safe_files
from testbed.machine.process import run
from testbed.scenario.program_numbers import ProgramNumber, ProgramRole, Take
from testbed.store.names import output_file
from testbed.store.reading import Trial
from testbed.store.records import DAMAGED

MAX_MATCHING_S = 10  # of processor time, for all numbers of a flow
MAX_MEASURED_LINE = 1 << 20  # characters
Numbers = dict[str, dict[str, float]]  # flow → column → number


def numbers_of(trial: Trial) -> tuple[Numbers, list[str]]:
    """Return the numbers of a trial's command flows, and sentences on those that are missing."""
    numbers, missing = Numbers(), list[str]()
    for flow in trial.scenario.flows:
        if flow.command is None or not flow.command.measure:
            continue
        measured, why_not = _numbers_of_flow(trial, flow.name, flow.command.measure)
        numbers[flow.name] = {
            each.column: measured.get(each.name, math.nan) for each in flow.command.measure
        }
        missing += [f"flow {flow.name}: {name}: {why}" for name, why in why_not.items()]
    return numbers, missing


def _numbers_of_flow(
    trial: Trial, flow: str, measured: tuple[ProgramNumber, ...]
) -> tuple[Mapping[str, float], Mapping[str, str]]:
    files = {role: trial.file(output_file(flow, role)) for role in ProgramRole}
    request = [
        [str(files[each.printed_by] or ""), each.pattern, each.json, str(each.take)]
        for each in measured
    ]
    argv = [sys.executable, "-P", "-m", __name__, str(MAX_MATCHING_S)]
    done = run(argv, stdin=json.dumps(request), check=False)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    late = f"it was still tried after {MAX_MATCHING_S} s"
    answers += [[None, late]] * (len(measured) - len(answers))
    told = {each.name: answer for each, answer in zip(measured, answers, strict=True)}
    return (
        {name: float(value) for name, (value, _) in told.items() if value is not None},
        {name: str(why) for name, (value, why) in told.items() if value is None},
    )


def answer(file: str, pattern: str, keys: str, take: str) -> tuple[float | None, str]:
    """Return a number of a file, or None and the reason why it is missing."""
    if not file:
        return None, "the program printed nothing"
    path = Path(file)
    try:
        texts = matches(re.compile(pattern), path) if pattern else _in_json(keys, path)
        return taken(Take(take), texts), ""
    except TestbedError as error:
        return None, error.message
    except (OSError, *DAMAGED) as error:
        return None, str(error)


def matches(pattern: re.Pattern[str], path: Path) -> Iterator[str]:
    """Yield the numbers that match on the lines of a file, as text."""
    for line in lines(path):
        for match in pattern.finditer(line.rstrip("\n")):
            yield match[1] if pattern.groups else match[0]


def lines(path: Path) -> Iterator[str]:
    """Yield the lines of a file; raise for one that is too long."""
    for line in safe_files.lines(path, MAX_MEASURED_LINE):
        if len(line) == MAX_MEASURED_LINE and not line.endswith("\n"):
            raise TestbedError(f"{path.name}: a line of more than {MAX_MEASURED_LINE:,} characters")
        yield line


def _in_json(keys: str, path: Path) -> Iterator[str]:
    """Yield the number that keys lead to, in one document or in that of each line."""
    try:
        documents: Iterator[Any] = iter([json_files.read(path)])
    except DAMAGED:
        documents = _documents(path)
    for document in documents:
        value = document
        for key in keys.split("."):
            if isinstance(value, list) and key.isdigit() and int(key) < len(value):
                value = value[int(key)]
            else:
                value = value.get(key) if isinstance(value, dict) else None
        if value is not None:
            yield str(value)


def _documents(path: Path) -> Iterator[Any]:
    for line in lines(path):
        with contextlib.suppress(*DAMAGED):
            yield json_files.parse(line.encode())


def taken(take: Take, texts: Iterator[str]) -> float:
    """Return one number of several."""
    if take is Take.COUNT:
        return sum(1 for _text in texts)
    numbers = array.array("d", map(_number, texts))  # millions of texts would fill the memory
    if not numbers:
        raise TestbedError("nothing matches")
    match take:
        case Take.ONLY if len(numbers) > 1:
            raise TestbedError(f"{len(numbers)} numbers match: `take` says which")
        case Take.MIN:
            return min(numbers)
        case Take.MAX:
            return max(numbers)
        case Take.SUM | Take.MEAN:
            return sum(numbers) / (len(numbers) if take is Take.MEAN else 1)
        case _:
            return numbers[-1 if take is Take.LAST else 0]


def _number(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise TestbedError(f"no number: {quoted(text)}")
    return number


def answers_to(requests: bytes, limit_s: int) -> Iterator[str]:
    """Yield the answer to each request of `numbers_of`, as a line of JSON."""
    resource.setrlimit(resource.RLIMIT_CPU, (limit_s, limit_s))
    for request in json_files.parse(requests):
        yield json.dumps(answer(*request))


if __name__ == "__main__":
    asked = sys.stdin.buffer.read(json_files.MAX_RECORD_BYTES)
    for line in answers_to(asked, int(sys.argv[1])):
        print(line, flush=True)  # it stays, if the next pattern takes too long
