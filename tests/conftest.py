"""What all tests share."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def root() -> Path:
    """The project's own directory."""
    return ROOT


def pytest_addoption(parser: pytest.Parser) -> None:
    """Attacks are short by default, and nothing is set up from nothing."""
    parser.addoption(
        "--full", action="store_true", help="attack thousands of times instead of a few: minutes"
    )
    parser.addoption(
        "--bare",
        action="store_true",
        help="run tests/bare, which sets up from nothing: root, an hour",
    )


@pytest.fixture(scope="session")
def full(request: pytest.FixtureRequest) -> bool:
    """Whether the attacks run in their full number."""
    return bool(request.config.getoption("--full"))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the tests that run real trials, so that `-m "not system"` leaves them out."""
    for item in items:
        if item.path.is_relative_to(ROOT / "tests" / "bare") and not config.getoption("--bare"):
            item.add_marker(pytest.mark.skip(reason="--bare sets up from nothing"))
        if any(
            item.path.is_relative_to(ROOT / "tests" / each) for each in ("system", "robustness")
        ):
            item.add_marker(pytest.mark.system)
