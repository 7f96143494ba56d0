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
    """Attacks are short by default."""
    parser.addoption(
        "--full", action="store_true", help="attack thousands of times instead of a few: minutes"
    )


@pytest.fixture(scope="session")
def full(request: pytest.FixtureRequest) -> bool:
    """Whether the attacks run in their full number."""
    return bool(request.config.getoption("--full"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that run real trials, so that `-m "not system"` leaves them out."""
    for item in items:
        if any(
            item.path.is_relative_to(ROOT / "tests" / each) for each in ("system", "robustness")
        ):
            item.add_marker(pytest.mark.system)
