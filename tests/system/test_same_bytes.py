"""A program sees the same, and so sends the same, whoever runs it and wherever its files lie."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from analysis.statistics.comparison import compare_results
from testbed.guest.engine import GuestEngine
from testbed.own_files.scenario_file import in_file
from testbed.scenario.model import Scenario
from testbed.store.names import SCENARIO, output_file
from testbed.store.reading import Trial
from tests.lab import OrdinaryUser, capture_hashes, run_trials

LEAK = Path(__file__).parents[1] / "leak.py"
SINK = """
import socket, sys
listener = socket.create_server(("", int(sys.argv[1])))
while True:
    with listener.accept()[0] as peer:
        while peer.recv(65536):
            pass
"""
OTHERS = ("zz", "a", "Z", "m.txt", "run")
LEAKING = {
    "experiment": "leak",
    "topology": {
        "kind": "router-bottleneck",
        "bottleneck": {"rate_mbit": 10, "queue": {"discipline": "pfifo", "limit_packets": 50}},
    },
    "flows": [
        {
            "name": "leak",
            "kind": "command",
            "src": "sender1",
            "dst": "receiver",
            "variant": "cubic",
            "command": {
                "client": ["python3", "leak.py", "{server_ip}", "{port}"],
                "server": ["python3", "sink.py", "{port}"],
                "files": ["leak.py", "sink.py", *OTHERS],
                "upload": True,
            },
        }
    ],
    "duration_s": 4,
}


def leaking(folder: Path) -> Path:
    """Write the scenario and its files, made in another order by each who calls this."""
    folder.mkdir(exist_ok=True)
    for name in sorted(OTHERS, key=lambda name: hash((name, str(folder)))):
        (folder / name).write_text(name * 1000)
    (folder / "run").chmod(0o755)
    (folder / "sink.py").write_text(SINK)
    shutil.copyfile(LEAK, folder / "leak.py")
    path = folder / "leak.json"
    path.write_text(json.dumps(LEAKING))
    return path


def run_here(folder: Path, umask: int) -> Trial:
    """Run the scenario with another umask, in a folder of its own."""
    scenario = in_file(leaking(folder)).scenario
    before = os.umask(umask)
    try:
        (trial,) = run_trials([scenario], folder / "out")
    finally:
        os.umask(before)
    return trial


def seen(trial: Trial) -> dict[str, object]:
    facts: dict[str, object] = json.loads((trial.path / output_file("leak", "client")).read_text())
    return facts


@pytest.fixture(scope="module")
def on_tmpfs() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as name:
        yield Path(name)


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Trial:
    return run_here(tmp_path_factory.mktemp("first"), 0o022)


def test_another_folder_file_system_and_umask(first: Trial, on_tmpfs: Path) -> None:
    for umask in (0o077, 0):
        other = run_here(on_tmpfs / f"{umask}", umask)
        assert seen(other) == seen(first)
        assert capture_hashes(other) == capture_hashes(first)
        assert other.path.name == first.path.name
        assert other.record.identity == first.record.identity


@pytest.mark.skipif(os.geteuid() != 0, reason="an ordinary user cannot become another one")
def test_another_user(first: Trial) -> None:
    kernel = GuestEngine().kernel
    assert kernel is not None
    with OrdinaryUser(kernel) as user:
        leaking(user.home / "mine")
        done = user.testbed("run", "mine/leak.json", "--engine", "guest", "--out", "out")
        assert done.returncode == 0, done.stderr
        out = user.home / "out"
        theirs = compare_results(first.path.parent, out, {})
        assert (theirs.agrees, theirs.identical, theirs.matched) == (True, 1, 1)


def test_who_reads_the_results_does_not_see_where_the_files_lay(first: Trial) -> None:
    home = str(first.path.parents[1])
    for name in (SCENARIO, "trial.json"):
        assert home not in (first.path / name).read_text(), name


def test_a_run_in_a_moved_folder_is_done(tmp_path: Path) -> None:
    """And a trial that has moved with its files can be run again from its own scenario."""
    trial = run_here(tmp_path / "before", 0o022)
    captured = trial.path / "captures"
    made_ns = captured.stat().st_mtime_ns
    moved = (tmp_path / "before").rename(tmp_path / "elsewhere")
    (again,) = run_trials([in_file(moved / "leak.json").scenario], moved / "out")
    assert (again.path / "captures").stat().st_mtime_ns == made_ns
    stored: Scenario = in_file(again.path / SCENARIO).scenario
    assert stored.hash == again.scenario.hash
    (moved / "zz").write_text("another file")
    (another,) = run_trials([stored], moved / "out")
    assert (another.path / "captures").stat().st_mtime_ns != made_ns
