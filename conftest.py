"""What all tests share."""

from __future__ import annotations

import gc
import json
import os
import signal
from collections import Counter
from pathlib import Path

import pytest

# What tests import is a hundred thousand objects, none of them garbage, which Python would look for
# after every 700.
gc.set_threshold(100_000)

ROOT = Path(__file__).resolve().parent
USUAL_DURATIONS = ROOT / "tests" / "durations.json"  # seconds by file
REAL_TRIALS = [ROOT / "tests" / name for name in ("system", "robustness")]
MAX_LISTED = 20


@pytest.fixture(scope="session")
def root() -> Path:
    """The project's own directory."""
    return ROOT


def pytest_addoption(parser: pytest.Parser) -> None:
    """Attacks and trials are few by default, and nothing is set up from nothing."""
    parser.addoption("--all", action="store_true", help="run the slow tests, too: some minutes")
    parser.addoption(
        "--full",
        action="store_true",
        help="attack thousands of times instead of a few, and run more trials: hours",
    )
    parser.addoption(
        "--bare",
        action="store_true",
        help="run tests/bare, which sets up from nothing: root, an hour",
    )
    parser.addoption(
        "--durations-file",
        type=Path,
        metavar="FILE",
        help="note there how long each file of tests takes, so that the longest begin first",
    )


@pytest.fixture(scope="session")
def full(request: pytest.FixtureRequest) -> bool:
    """Whether attacks and trials run in their full number."""
    return bool(request.config.getoption("--full"))


@pytest.fixture(scope="session")
def with_slow(request: pytest.FixtureRequest) -> bool:
    """Whether the slow tests run, too."""
    return _with_slow(request.config)


def _with_slow(config: pytest.Config) -> bool:
    return bool(config.getoption("--all") or config.getoption("--full"))


def pytest_configure(config: pytest.Config) -> None:
    # a shell that runs the tests in the background has it ignored, and programs inherit that
    signal.signal(signal.SIGINT, signal.default_int_handler)
    file = config.getoption("--durations-file")
    if file and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Durations(file))


class Durations:
    """Notes how long each file of tests takes."""

    def __init__(self, file: Path) -> None:
        """Take the file of the notes."""
        self._file = file
        self._seconds: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._seconds[report.nodeid.partition("::")[0]] += report.duration  # type: ignore[assignment]

    def pytest_sessionfinish(self) -> None:
        known = _read(self._file)
        known.update((name, round(seconds, 1)) for name, seconds in self._seconds.items())
        self._file.parent.mkdir(parents=True, exist_ok=True)
        self._file.write_text(json.dumps(known, indent=0, sort_keys=True) + "\n")

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        total = sum(self._seconds.values())
        terminalreporter.write_line(f"the files that took longest, of {total:.0f} s in all:")
        for name, seconds in self._seconds.most_common(MAX_LISTED):
            terminalreporter.write_line(f"{seconds:6.1f} s  {name}")


def _read(file: Path | None) -> dict[str, float]:
    try:
        seconds: dict[str, float] = json.loads(file.read_text()) if file else {}
    except (OSError, ValueError):
        return {}
    return seconds


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip what is not asked for, mark the tests that run real trials, and sort the files: those
    without real trials first, and the longest before the others."""
    seconds = _read(USUAL_DURATIONS) | _read(config.getoption("--durations-file"))
    cases: Counter[str] = Counter()  # of each test function
    for item in items:
        function = item.nodeid.partition("[")[0]
        cases[function] += 1
        if why := _why_not(item, cases[function], config):
            item.add_marker(pytest.mark.skip(reason=why))
        if any(map(item.path.is_relative_to, REAL_TRIALS)):
            item.add_marker(pytest.mark.system)

    def place(item: pytest.Item) -> tuple[bool, float]:
        is_system = item.get_closest_marker("system") is not None
        return is_system, -seconds.get(item.nodeid.partition("::")[0], 1.0)

    items.sort(key=place)


def _why_not(item: pytest.Item, case: int, config: pytest.Config) -> str:
    """Return why a test, or this case of it, is left out; empty if it runs."""
    if item.path.is_relative_to(ROOT / "tests" / "bare") and not config.getoption("--bare"):
        return "--bare sets up from nothing"
    needs_root = item.get_closest_marker("root")
    if needs_root and os.geteuid():
        return f"needs root: {needs_root.args[0]}"
    slow = item.get_closest_marker("slow")
    is_slow = case > slow.kwargs.get("but", 0) if slow else item.get_closest_marker("host")
    if is_slow and not _with_slow(config):
        return "slow: --all"
    return ""
