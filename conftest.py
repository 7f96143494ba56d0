"""What all tests share."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest

# What tests import is a hundred thousand objects, none of them garbage, which Python would look for
# after every 700.
gc.set_threshold(100_000)

ROOT = Path(__file__).resolve().parent

# The files that take longest, these first: each runs in one process, and the last to be begun
# should not be one of them.
LONGEST = """
    test_pages test_linters test_report_figures test_report_alike test_report
    test_report_page test_claims test_overlay
    test_ended_on_the_host test_guest test_fidelity test_variants test_video_trial
    test_killed test_video test_shared_folders test_video_browser test_losses test_guest_kernels
    test_sessions_trial test_cluster test_kernel_variants test_watch test_programs test_radio
""".split()


@pytest.fixture(scope="session")
def root() -> Path:
    """The project's own directory."""
    return ROOT


def pytest_addoption(parser: pytest.Parser) -> None:
    """Attacks and trials are few by default, and nothing is set up from nothing."""
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


@pytest.fixture(scope="session")
def full(request: pytest.FixtureRequest) -> bool:
    """Whether attacks and trials run in their full number."""
    return bool(request.config.getoption("--full"))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the tests that run real trials, so that `-m "not system"` leaves them out, and put the
    longest files first."""
    for item in items:
        if item.path.is_relative_to(ROOT / "tests" / "bare") and not config.getoption("--bare"):
            item.add_marker(pytest.mark.skip(reason="--bare sets up from nothing"))
        if any(
            item.path.is_relative_to(ROOT / "tests" / each) for each in ("system", "robustness")
        ):
            item.add_marker(pytest.mark.system)
    items.sort(key=_place)


def _place(item: pytest.Item) -> tuple[bool, int]:
    """In the order of files: those without real trials, then those with them."""
    stem = item.path.stem
    place = LONGEST.index(stem) if stem in LONGEST else len(LONGEST)
    return item.get_closest_marker("system") is not None, place
