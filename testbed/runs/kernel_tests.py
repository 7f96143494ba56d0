"""The results of Linux's own tests, whoever ran them: tdc or KUnit."""

from __future__ import annotations

from dataclasses import dataclass


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
