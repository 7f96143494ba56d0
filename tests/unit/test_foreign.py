"""The sources of others: whole in the clone, fetched by their hashes, built without libraries."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from testbed.machine.compiled import LIBRARIES


@pytest.fixture
def foreign(root: Path, tmp_path: Path) -> Path:
    """The folder with one source, which is elsewhere."""
    folder = tmp_path / "foreign"
    folder.mkdir()
    shutil.copy(root / "foreign" / "fetch.py", folder)
    (tmp_path / "elsewhere").write_bytes(b"source")
    digest = hashlib.sha256(b"source").hexdigest()
    places = f"file://{tmp_path}/nowhere file://{tmp_path}/elsewhere"
    (folder / "x.list").write_text(f"# name, sha256, places\nx.tar {digest} {places}\n")
    return folder


def fetch(folder: Path, name: str = "x.tar") -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "XDG_CACHE_HOME": str(folder.parent / "cache")}
    argv = [sys.executable, str(folder / "fetch.py"), name]
    return subprocess.run(argv, capture_output=True, text=True, env=environment, check=False)


def test_a_source_is_fetched_once_from_the_first_place_that_has_it(foreign: Path) -> None:
    path = Path(fetch(foreign).stdout.strip())
    assert path.read_bytes() == b"source" and [path] == list(path.parent.iterdir())
    (foreign.parent / "elsewhere").unlink()
    assert fetch(foreign).stdout.strip() == str(path)


def test_another_content_is_refused_and_leaves_nothing(foreign: Path) -> None:
    (foreign.parent / "elsewhere").write_bytes(b"another")
    done = fetch(foreign)
    assert done.returncode == 1 and "it has another hash" in done.stderr
    assert "hint: " in done.stderr and "Traceback" not in done.stderr
    assert not list((foreign.parent / "cache" / "tcp-testbed" / "sources").iterdir())


def test_a_damaged_copy_is_fetched_again(foreign: Path) -> None:
    path = Path(fetch(foreign).stdout.strip())
    path.write_bytes(b"damaged")
    assert Path(fetch(foreign).stdout.strip()).read_bytes() == b"source"


def test_the_source_in_the_clone_is_debians(root: Path) -> None:
    done = fetch(root / "foreign", "iperf3_3.12.orig.tar.gz")
    assert Path(done.stdout.strip()).parent == root / "foreign"


@pytest.mark.parametrize("name", ["iperf3", "ip", "tc"])
def test_what_decides_packets_uses_the_c_library_alone(name: str) -> None:
    argv = ["readelf", "--dynamic", str(LIBRARIES / f"testbed-{name}")]
    shown = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    needed = {line.split("[")[1].rstrip("]") for line in shown.splitlines() if "NEEDED" in line}
    assert needed <= {"libc.so.6", "libm.so.6"}
