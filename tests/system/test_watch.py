"""`testbed run --watch` from its beginning to its end, and to a Ctrl-C: nothing is left behind."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.store.names import REPORT
from tests.lab import PATIENCE_S
from tests.scenarios import router

INTERRUPTED = 130


class Command:
    """A run in a process of its own, whose lines are read one by one."""

    def __init__(self, folder: Path, root: Path, seeds: int) -> None:
        self.out, self.temporary = folder / "out", folder / "tmp"
        self.temporary.mkdir()
        scenario = folder / "asked.json"
        scenario.write_text(router(variant="cubic", duration_s=2, seed=1).to_json())
        asked = [
            "run",
            str(scenario),
            "--seeds",
            str(seeds),
            "--jobs",
            "1",
            "--watch",
            "--engine",
            "guest",
        ]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "experiments", *asked, "--out", str(self.out)],
            cwd=root,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "TMPDIR": str(self.temporary)},
        )
        self.said = ""

    def until(self, pattern: str) -> str:
        """The first group of the first line that matches."""
        assert self.process.stdout
        for line in self.process.stdout:
            self.said += line
            if found := re.search(pattern, line):
                return found[1]
        raise AssertionError(self.said)

    def end(self) -> int:
        """Its exit status."""
        assert self.process.stdout
        self.said += self.process.stdout.read()
        return self.process.wait()


def token_of(url: str) -> str:
    return url.rstrip("/").rpartition("/")[2]


def started_programs() -> list[str]:
    """The words with which every process on this machine was started."""
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            found.append(file.read_text(errors="replace"))
    return found


@pytest.fixture
def command(tmp_path: Path, root: Path) -> Iterator[Command]:
    made = Command(tmp_path, root, seeds=2)
    yield made
    made.process.kill()
    made.process.wait()


@pytest.mark.slow
def test_the_page_is_there_and_then_a_file(command: Command) -> None:
    url = command.until(r"watch: (\S+)")
    assert not [words for words in started_programs() if token_of(url) in words]
    with urllib.request.urlopen(url, timeout=PATIENCE_S) as answer:
        assert b"<progress" in answer.read()
    page = Path(command.until(r"report: (\S+)"))
    assert command.end() == 0, command.said
    assert page.name == REPORT and "2 trials" in page.read_text()
    with pytest.raises(OSError):
        urllib.request.urlopen(url, timeout=PATIENCE_S)
    assert list(command.temporary.iterdir()) == []
    files = [path for path in command.out.rglob("*") if path.is_file()]
    assert [path for path in files if token_of(url).encode() in path.read_bytes()] == []


@pytest.mark.slow
def test_after_a_ctrl_c_the_page_has_what_is_complete(command: Command) -> None:
    command.until(r"(\[1/2\])")
    command.process.send_signal(signal.SIGINT)
    assert command.end() == INTERRUPTED, command.said
    assert "interrupted; complete trials are kept" in command.said
    found = re.search(r"report: (\S+)", command.said)
    assert found and re.search(r"[12] trials?", Path(found[1]).read_text())
    assert list(command.temporary.iterdir()) == []
