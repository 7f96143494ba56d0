"""What a terminal of 80 columns shows, with and without colours, and what a pipe gets."""

from __future__ import annotations

import fcntl
import os
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from tests.trial_writer import write_trial

ROOT = Path(__file__).resolve().parents[2]
COLUMNS = 80
ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
COLOUR = re.compile(r"\x1b\[[0-9;]*[349][0-9][0-9;]*m")
SCREENS = (
    "list",
    "columns rtt",
    "plan router-bottleneck --quick",
    "check --variants",
    "reduce trial",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("terminal")
    write_trial(made / "trial")
    return made


def on_terminal(words: str, folder: Path, **environment: str) -> str:
    """Return what a command writes to a terminal."""
    ours, its = os.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 40, COLUMNS, 0, 0))
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    with subprocess.Popen(
        [sys.executable, "-m", "experiments", *words.split()],
        stdin=subprocess.DEVNULL,
        stdout=its,
        stderr=its,
        cwd=folder,
        env={**kept, "PYTHONPATH": str(ROOT), "LC_ALL": "C.UTF-8", **environment},
    ):
        os.close(its)
        said = b""
        try:
            while more := os.read(ours, 65536):
                said += more
        except OSError:  # Linux ends a terminal so, when nobody has it open any more
            pass
    os.close(ours)
    return said.decode().replace("\r\n", "\n")


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("words", SCREENS)
def test_no_line_is_wider_than_the_terminal(words: str, folder: Path) -> None:
    """A terminal without any capabilities gets no escape sequences either."""
    said = on_terminal(words, folder, TERM="dumb")
    assert len(said) > 20 and "Traceback" not in said
    assert not ESCAPE.search(said)
    assert [line for line in said.splitlines() if len(line) > COLUMNS] == []


@pytest.mark.slow
def test_colours_can_be_refused(folder: Path) -> None:
    coloured = on_terminal("reduce trial", folder, TERM="xterm-256color")
    assert COLOUR.search(coloured)  # of the bar
    assert not COLOUR.search(
        on_terminal("reduce trial", folder, TERM="xterm-256color", NO_COLOR="1")
    )


def test_a_pipe_has_a_row_on_a_line(folder: Path) -> None:
    """So that grep finds whole rows; what ASCII lacks is replaced."""
    said = subprocess.run(
        [sys.executable, "-m", "experiments", "columns", "rtt"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        check=True,
    ).stdout
    assert said.isascii() and not ESCAPE.search(said.decode())
    assert max(map(len, said.splitlines())) > COLUMNS
