"""The first moments of a command: streams that the caller closed, and ^C while Python starts."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from testbed.cli.entry import main

TESTBED = Path(sys.prefix) / "bin" / "testbed"
CLOSED = ("sh", "-c", 'exec "$0" "$@" <&- >&- 2>&-')


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("words", [["schema"], ["list"], ["run", "no-such-experiment"]])
def test_closed_streams(words: list[str]) -> None:
    """What is printed goes nowhere."""
    assert subprocess.call([*CLOSED, TESTBED, *words]) == (2 if words[0] == "run" else 0)


def test_streams_are_open_before_anything_else_is() -> None:
    """No file that is opened later gets the number of a stream that was closed."""
    program = (
        "from experiments import command; command.main(['schema']); import os, sys;"
        "sys.exit(any(os.readlink(f'/proc/self/fd/{n}') != '/dev/null' for n in range(3)))"
    )
    assert subprocess.call([*CLOSED, sys.executable, "-c", program]) == 0


@pytest.mark.slow
def test_an_interrupt_at_the_start_is_no_traceback() -> None:
    """It waits until Python has started (setup.sh), and then ends the process silently."""
    for number in range(20):
        with subprocess.Popen(
            [TESTBED, "list"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        ) as child:
            time.sleep(0.01 * number)
            child.send_signal(signal.SIGINT)
            said = child.communicate()[1]
        assert child.returncode in (-signal.SIGINT, 130, 0)
        assert b"Traceback" not in said


def test_a_thread_that_cannot_be_started_is_a_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As under a small `ulimit -v` or `ulimit -u`."""

    def refuse() -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr("testbed.own_files.json_schema.scenario_schema", refuse)
    assert main(["schema"]) == 1
    said = capsys.readouterr().err
    assert "no other thread can be started" in said and "ulimit" in said
