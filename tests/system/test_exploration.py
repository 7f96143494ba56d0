"""`testbed exec --explore` on a test with a margin of time: it finds the rest that is too long."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

TEST = """
import os, socket, time, unittest

class Margin(unittest.TestCase):
    def test_a_sum(self):
        self.assertEqual(1 + 1, 2)

    def test_reply_within_30_ms(self):
        ours, theirs = socket.socketpair()
        server = os.fork()
        if not server:
            while theirs.recv(1):
                time.sleep(0.01)
                theirs.send(b"x")
            os._exit(0)
        for _ in range(60):
            begun = time.monotonic()
            ours.send(b"x")
            ours.recv(1)
            self.assertLess(time.monotonic() - begun, 0.03)
        os.kill(server, 9)
        os.waitpid(server, 0)
"""


def executed(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the command line in a folder."""
    program = Path(sys.executable).with_name("testbed")
    command = [
        str(program),
        "exec",
        *words,
        "--",
        "/usr/bin/python3",
        "-m",
        "unittest",
        "-v",
        "margin",
    ]
    return subprocess.run(
        command, check=False, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True
    )


def test_a_margin_that_a_slow_machine_exceeds_is_found_and_shown_again(tmp_path: Path) -> None:
    (tmp_path / "margin.py").write_text(TEST)
    done = executed(tmp_path, "--explore", "60")
    assert done.returncode == 1, done.stderr
    assert "nothing is slow: nothing failed" in done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith("fails: test_reply_within_30_ms")
    (rest,) = [line for line in lines if " rests for " in line and line.startswith("it takes")]
    assert 20 < float(rest.partition("for ")[2].partition(" ms")[0]) < 50
    assert "twice: the same tests ended alike" in lines
    again = executed(tmp_path, "--perturb", "results/explore/python3/perturbation.json")
    assert again.returncode == 1
    assert "AssertionError" in again.stderr
    assert executed(tmp_path).returncode == 0


def test_a_suite_that_fails_anyway_is_not_explored(tmp_path: Path) -> None:
    (tmp_path / "margin.py").write_text("raise SystemExit(3)")
    done = executed(tmp_path, "--explore", "5")
    assert done.returncode == 2
    assert "although nothing is slow" in done.stderr
    assert done.stderr.count("seed 1: nothing is slow") == 1
