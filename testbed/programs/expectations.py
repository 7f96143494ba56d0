"""What a laboratory's script has to show: numbers of its run, each in a range, as a TOML file.

A number stands in what the script printed, in a text or CSV file that it wrote, or in the flows of
a capture, as `testbed reduce` has them.
"""

from __future__ import annotations

import contextlib
import csv
import json
import math
import re
import signal
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from analysis.metrics.program_output import MAX_MATCHING_S, lines, matches, taken
from testbed.errors import TestbedError, UsageError, nearest, quoted, short
from testbed.faults import Fault, unknown, usage_error
from testbed.machine.safe_files import UnfitFile, plain_file, read_bytes
from testbed.scenario.program_numbers import Take, pattern_faults
from testbed.scenario.reading import checked
from testbed.store.names import CAPTURES_FOLDER, MACHINE_ERRORS, MACHINE_FILES, MACHINE_OUTPUT

MAX_EXPECTATIONS_BYTES = 1 << 16
MAX_DOTS = 200  # in a line: a dotted key takes the square of its parts in time and memory
MAX_MEASURED_BYTES = 1 << 26  # of a file with numbers
CAPTURE_SUFFIXES = (".pcap", ".pcapng", ".cap")
EXPECTATIONS_HINT = "experiments/course/bufferbloat.toml is an example; docs/mininet.md"


@dataclass(frozen=True)
class Expectation:
    """A number, where it stands, and its range."""

    what: str
    """The number with its unit, as the table names it."""
    at_least: float | None = None
    """Its smallest allowed value."""
    at_most: float | None = None
    """Its largest allowed value."""
    file: str = ""
    """The file in the script's folder, or a capture that `captures` asks for; `*` and `?` can stand
    for several. Without it, the number is in what the script printed."""
    pattern: str = ""
    """A regular expression for one line; its group is the number."""
    column: str = ""
    """In place of a pattern: a column of a CSV file, or of a capture's flows (`testbed reduce`)."""
    src: str = "*"
    """Only flows from here, such as `10.0.0.1:*`."""
    dst: str = "*"
    """Only flows to here."""
    take: Take = Take.ONLY
    """How one number is made of several: first, last, min, max, mean, sum or count."""

    @property
    def wanted(self) -> str:
        """The range in words."""
        low, high = self.at_least, self.at_most
        if low is None or high is None:
            return f"≥ {low:g}" if low is not None else f"≤ {high:g}"
        return f"{low:g}" if low == high else f"{low:g} to {high:g}"


@dataclass(frozen=True)
class Expectations:
    """What a script's run has to show, and how it is started for that."""

    expect: tuple[Expectation, ...]
    """The numbers."""
    arguments: tuple[str, ...] = ()
    """The script's arguments."""
    status: int = 0
    """Its exit status."""
    captures: tuple[str, ...] = ()
    """The interfaces that are captured, as for `testbed mininet --capture`."""


@dataclass(frozen=True)
class MeasuredNumber:
    """The number measured for an expectation in one run, or the reason why it is missing."""

    expectation: Expectation
    value: float = math.nan
    missing: str = ""

    @property
    def holds(self) -> bool:
        """Whether the number is in its range."""
        return not self.missing and not self.too_low and not self.too_high

    @property
    def too_low(self) -> bool:
        """Whether it is below its range."""
        low = self.expectation.at_least
        return low is not None and self.value < low

    @property
    def too_high(self) -> bool:
        """Whether it is above its range."""
        high = self.expectation.at_most
        return high is not None and self.value > high


def read_expectations(path: Path) -> Expectations:
    """Read a file of expectations, and report all its faults at once."""
    name = path.name
    try:
        text = read_bytes(path, MAX_EXPECTATIONS_BYTES).decode()
        if any(line.count(".") > MAX_DOTS for line in text.split("\n")):
            raise ValueError(f"more than {MAX_DOTS} dots in a line")
        document = tomllib.loads(text, parse_float=_finite)
        data = json.loads(json.dumps(document, default=str))  # without TOML's dates
    except FileNotFoundError as error:
        raise UsageError(f"{path}: no such file", "name it: --expect FILE") from error
    except UnfitFile:
        raise
    except (ValueError, RecursionError) as error:  # of TOML, or of its encoding
        raise UsageError(f"{name}: not TOML: {short(error)}", EXPECTATIONS_HINT) from error
    expectations: Expectations
    expectations, faults = checked(Expectations, data, name)
    if faults := faults or list(_faults(expectations)):
        raise usage_error(faults, name, EXPECTATIONS_HINT)
    return expectations


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text} is not a bound: leave it out")
    return value


def _faults(expectations: Expectations) -> Iterator[Fault]:
    if not expectations.expect:
        yield Fault((), "nothing is expected")
    for number, each in enumerate(expectations.expect):
        yield from (fault.inside("expect", number) for fault in _faults_of(each))


def _faults_of(each: Expectation) -> Iterator[Fault]:
    from analysis.captures.flow_tables import HEADINGS

    is_capture = each.file.endswith(CAPTURE_SUFFIXES)
    low, high = each.at_least, each.at_most
    if low is None and high is None:
        yield Fault((), "give at_least, at_most or both")
    elif low is not None and high is not None and low > high:
        yield Fault(("at_least",), f"{low:g} is more than at_most {high:g}")
    if bool(each.pattern) == bool(each.column):
        yield Fault((), "give a pattern or a column")
    elif each.column and not each.file:
        yield Fault(("column",), "of which file?")
    elif each.column and is_capture and each.column not in HEADINGS:
        yield unknown(("column",), "column", each.column, HEADINGS)
    elif each.pattern and is_capture:
        yield Fault(("pattern",), "a capture has columns")
    if not is_capture and (each.src, each.dst) != ("*", "*"):
        yield Fault(("file",), "only captures have src and dst")
    yield from pattern_faults(each.pattern, each.take)
    if Path(each.file).is_absolute() or ".." in Path(each.file).parts:
        yield Fault(("file",), "not in the script's folder")


def measure(expectation: Expectation, run: Path) -> MeasuredNumber:
    """Return the number in a program's results folder."""
    try:
        texts = _texts(expectation, _files(expectation, run))
        with _limited_time() if expectation.pattern else contextlib.nullcontext():
            return MeasuredNumber(expectation, taken(expectation.take, texts))
    except TestbedError as error:
        return MeasuredNumber(expectation, missing=error.message)


def _files(expectation: Expectation, run: Path) -> list[Path]:
    files = [run / MACHINE_OUTPUT, run / MACHINE_ERRORS]
    if expectation.file:
        of_script = (run / MACHINE_FILES).glob(expectation.file)
        of_interfaces = (run / CAPTURES_FOLDER).glob(expectation.file)
        files = sorted(path for path in (*of_script, *of_interfaces) if path.is_file())
    if not files:
        raise TestbedError(f"there is no {expectation.file}")
    try:
        return [plain_file(path, MAX_MEASURED_BYTES) for path in files]
    except OSError as error:
        raise TestbedError(f"{expectation.file or 'the output'}: {error.strerror}") from error


def _texts(expectation: Expectation, files: Sequence[Path]) -> Iterator[str]:
    """Yield the numbers as text, one for each line, row or flow."""
    for path in files:
        if expectation.pattern:
            yield from matches(re.compile(expectation.pattern), path)
        elif path.name.endswith(CAPTURE_SUFFIXES):
            yield from _cells_of_flows(expectation, path)
        else:
            yield from _cells(expectation.column, path)


@contextlib.contextmanager
def _limited_time() -> Iterator[None]:
    """End a block with an error after some time: Python's matching looks for signals.

    A pattern with `.*` twice takes hours of a line of a megabyte, and others more than that.
    """

    def stop(_signal: int, _frame: object) -> None:
        raise TestbedError(f"the pattern was still tried after {MAX_MATCHING_S:g} s")

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, MAX_MATCHING_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def _cells(column: str, path: Path) -> Iterator[str]:
    rows = csv.DictReader(lines(path))
    try:
        if column not in (rows.fieldnames or ()):
            hint = nearest(column, rows.fieldnames or ())
            raise TestbedError(f"{path.name} has no column {quoted(column)}: {hint}")
        for row in rows:
            yield row[column] or ""
    except csv.Error as error:
        raise TestbedError(f"{path.name}: not CSV: {short(error)}") from error


def _cells_of_flows(expectation: Expectation, path: Path) -> Iterator[str]:
    from analysis.captures.flow_tables import read_flows

    columns = ("src", "dst", expectation.column)
    table = read_flows(path).table.select(columns).to_pydict()
    for src, dst, value in zip(*(table[name] for name in columns), strict=True):
        if fnmatchcase(src, expectation.src) and fnmatchcase(dst, expectation.dst):
            yield str(value)
