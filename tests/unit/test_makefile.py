"""The Makefile: what it builds is what the code loads and starts, and headers count."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from testbed.machine.process import run


@pytest.fixture
def sources(root: Path, tmp_path: Path) -> Path:
    """A copy of everything in C, with nothing built."""
    for path in (
        root / "Makefile",
        root / "testbed/guest/openssl.cnf",
        *root.glob("foreign/**/*.*"),
        *root.glob("testbed/traffic/video/*.pem"),
        *root.glob("testbed/**/*.[ch]"),
        *root.glob("analysis/**/*.[ch]"),
    ):
        copy = tmp_path / path.relative_to(root)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, copy)
    return tmp_path


def built_by(folder: Path, *options: str) -> set[str]:
    """Return the names of the programs and libraries that `make` links, or would link."""
    printed = run(["make", "-C", str(folder), *options]).stdout
    return set(re.findall(r"-o \.venv/lib/(\S+)\.new", printed))


def test_what_the_code_names_is_built(root: Path, sources: Path) -> None:
    python = "".join(
        path.read_text()
        for room in ("analysis", "testbed", "topologies")
        for path in (root / room).rglob("*.py")
    )
    named = set(re.findall(r'"(testbed-[a-z0-9-]+\.so)"', python))
    built = built_by(sources, "--dry-run")
    assert len(named) > 4
    assert named <= built
    assert {name for name in built if name.endswith(".so")} <= named
    for program in built - named:
        assert f'"{program}"' in python


def test_nothing_is_built_twice_and_a_header_counts(sources: Path) -> None:
    targets = [f".venv/lib/testbed-{name}" for name in ("workload", "guard")]
    (sources / ".venv/lib").mkdir(parents=True)
    assert built_by(sources, *targets) == {"testbed-workload", "testbed-guard"}
    assert built_by(sources, *targets) == set()
    header = sources / "testbed/traffic/workload/common.h"
    header.write_text(header.read_text() + "\n")
    assert built_by(sources, *targets) == {"testbed-workload"}
