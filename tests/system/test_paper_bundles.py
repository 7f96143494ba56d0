"""A release's bundles of papers: made by its script, verified elsewhere with an empty home."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

PAPERS_SCRIPT = Path(__file__).parents[2] / "contrib" / "papers.sh"
NUMBER_OF_PAPERS = 6


def test_every_paper_has_experiments_that_are_there() -> None:
    from experiments.catalogue import EXPERIMENTS

    papers = re.findall(r"^paper (\S+) '[^']+' (.+)$", PAPERS_SCRIPT.read_text(), re.M)
    assert len(papers) == NUMBER_OF_PAPERS
    for name, experiments in papers:
        assert set(experiments.split()) <= set(EXPERIMENTS), name


@pytest.fixture
def other_file_system() -> Iterator[Path]:
    """A folder in memory: all that verifying writes is there."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as name:
        yield Path(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["fall-floyd", "guo-yuan-sheng"])  # the quickest
def test_a_papers_bundle_is_the_same_elsewhere(
    name: str, root: Path, tmp_path: Path, other_file_system: Path
) -> None:
    subprocess.run([PAPERS_SCRIPT, tmp_path, name], check=True, stdout=subprocess.DEVNULL)
    bundle, elsewhere = tmp_path / f"{name}.zip", other_file_system / "home"
    assert not [each for each in zipfile.ZipFile(bundle).namelist() if each.endswith(".pcapng")]
    elsewhere.mkdir()
    caches = os.environ.get("XDG_CACHE_HOME", str(Path.home() / ".cache"))  # kernels take minutes
    done = subprocess.run(
        [root / ".venv/bin/testbed", "verify", bundle, "--trials", "3", "--nonce", "release"],
        cwd=elsewhere,
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(elsewhere),
            "XDG_CACHE_HOME": caches,
            "TMPDIR": str(other_file_system),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"same bytes: (\d+) of \1 captures", done.stdout)
