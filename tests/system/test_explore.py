"""`testbed explore` with trials: the page that asks for them, and the page that has them."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from analysis.report.explore_page import key_of
from experiments.command import main
from testbed.runs.explore import USUAL_SLIDERS
from tests.browser import browser
from tests.lab import PATIENCE_S

INTERRUPTED = 130
FIRST = "0." + key_of([each.first for each in USUAL_SLIDERS[1:]])  # at 1 Mbit/s


def told(url: str, at: str) -> dict[str, Any]:
    """Return what the server tells of a position, once it has run."""
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        with urllib.request.urlopen(f"{url}now?at={at}", timeout=PATIENCE_S) as answer:
            found: dict[str, Any] = json.load(answer)
        if "waiting" not in found:
            return found
        time.sleep(0.1)
    raise AssertionError("it never ran")


def test_a_position_runs_when_it_is_asked_for(tmp_path: Path, root: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "experiments", "explore"],
        cwd=root,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    try:
        assert process.stdout
        said = process.stdout.readline()
        address = re.search(r"explore: (\S+)", said)
        assert address, said
        found = told(address[1], FIRST)
        assert [row[:2] for row in found["rows"]] == [["one", "cubic"], ["other", "bbr"]]
        assert found["grade"] == "valid" and found["series"]
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_S) == INTERRUPTED
        assert "Traceback" not in process.stdout.read()
    finally:
        process.kill()
        process.wait()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_page_has_all_positions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    one = [f"--set={each.place}={each.values[each.first]}" for each in USUAL_SLIDERS[:-1]]
    two = ["--set=flows.other.variant=bbr,cubic", "--set=duration_s=2"]
    assert main(["explore", "--page", "own.html", *one, *two]) == 0
    with browser() as tab:
        tab.open(tmp_path / "own.html", 390)
        rows = "[...document.getElementById('numbers').tBodies[0].rows]"
        rows += ".map((row) => row.cells[1].textContent)"
        asked = "new Promise((done) => setTimeout(done, 300))"
        tab.run(asked)
        assert tab.run(rows) == ["cubic", "bbr"]
        tab.run("location.hash = '0.0.0.0.0.1.0'")
        tab.run(asked)
        assert tab.run(rows) == ["cubic", "cubic"]
        assert tab.run("document.querySelectorAll('#plot canvas').length") > 0
        command = tab.run("document.getElementById('command').textContent")
        assert "flows.other.variant=cubic" in command
        assert tab.requests == [(tmp_path / "own.html").as_uri()] and not tab.complaints
