"""The results of Linux's own tests, and their lines in KTAP, the kernel's test protocol."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

KTAP_VERSION = "KTAP version 1"  # the line that begins a list of tests
_NESTED = "    "


@dataclass(frozen=True)
class KernelTest:
    """The result of a test."""

    name: str
    passed: bool
    skipped: bool
    said: tuple[str, ...]  # about a failure


@dataclass(frozen=True)
class SuiteEnd:
    """The results of a suite of tests on a kernel."""

    kernel: str
    suite: str
    tests: tuple[KernelTest, ...]

    @property
    def passed(self) -> bool:
        """Whether none failed."""
        return all(test.passed for test in self.tests)


def ktap_plan(count: int) -> Iterator[str]:
    """Yield the lines before the results of `count` tests or suites."""
    yield KTAP_VERSION
    yield f"1..{count}"


def ktap_result(
    number: int, name: str, passed: bool, said: Iterable[str] = (), *, skipped: bool = False
) -> Iterator[str]:
    """Yield the lines of a test's or a suite's result, after what was said about it."""
    yield from (f"# {line}" for line in said)
    yield f"{'ok' if passed else 'not ok'} {number} {name}{' # SKIP' if skipped else ''}"


def ktap_suite(number: int, end: SuiteEnd) -> Iterator[str]:
    """Yield the lines of a suite: its tests, and its own result."""
    yield from (f"{_NESTED}{line}" for line in ktap_plan(len(end.tests)))
    for position, test in enumerate(end.tests, 1):
        lines = ktap_result(position, test.name, test.passed, test.said, skipped=test.skipped)
        yield from (f"{_NESTED}{line}" for line in lines)
    yield from ktap_result(number, f"{end.kernel} {end.suite}", end.passed)
