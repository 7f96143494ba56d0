"""What all tests share."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def root() -> Path:
    """The project's own directory."""
    return ROOT


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that run real trials, so that `-m "not system"` leaves them out."""
    for item in items:
        if any(
            item.path.is_relative_to(ROOT / "tests" / each) for each in ("system", "robustness")
        ):
            item.add_marker(pytest.mark.system)
