"""The process boundary: statuses, hints, and that nothing outlives us."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from testbed.errors import TestbedError
from testbed.machine.process import GUARD, end, require, run, run_told, start, stream
from tests.lab import alive, wait_until


def test_output_and_status() -> None:
    assert run(("cat",), stdin="hello").stdout == "hello"
    assert run(("false",), check=False).status == 1


def test_a_failure_quotes_what_was_printed() -> None:
    with pytest.raises(TestbedError) as caught:
        run(("ls", "/no/such/place"))
    assert "exit status 2" in caught.value.message
    assert "No such file" in caught.value.message


def test_a_missing_program_names_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda *_args, **_kw: None)
    with pytest.raises(TestbedError) as caught:
        require("tc")
    assert "iproute2" in caught.value.hint


def test_a_hung_command_is_ended() -> None:
    with pytest.raises(TestbedError, match="no end after"):
        run(("sleep", "60"), timeout_s=0.1)


def test_end_insists() -> None:
    ignore = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN)"
    script = f"{ignore}; print(1, flush=True); time.sleep(60)"
    with stream((sys.executable, "-c", script)) as stubborn:
        assert stubborn.stdout and stubborn.stdout.readline() == "1\n"
        assert end(stubborn, signal.SIGTERM, patience_s=0.2) == -signal.SIGKILL  # type: ignore[arg-type]


def test_a_long_command_that_is_interrupted_cleans_up_and_leaves_nothing(tmp_path: Path) -> None:
    made, left = tmp_path / "made", tmp_path / "left"
    clean = f"sleep 1; rm {made}"  # longer than Python waits for a process after ^C
    stubborn = f"(trap '' TERM; sh -c 'echo $PPID' >{left}; sleep 300)"
    script = f"trap '{clean}; exit 130' TERM; touch {made}; {stubborn} & echo on >&2; wait"

    def interrupt(_line: str) -> None:
        wait_until(lambda: left.exists() and bool(left.read_text()))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_told(("sh", "-c", script), interrupt, dict(os.environ))
    assert not made.exists()
    wait_until(lambda: not alive(int(left.read_text())))


@pytest.mark.parametrize(
    "call", ["start(words); time.sleep(300)", "run_on_terminal(words, dict(os.environ))"]
)
def test_what_we_start_dies_with_us(call: str) -> None:
    """Even when we are killed and can't clean up: the kernel does it."""
    code = (
        "import os, time; from testbed.machine.process import run_on_terminal, start;"
        f"words = ('sleep', '300'); {call}"
    )
    with subprocess.Popen([sys.executable, "-c", code]) as parent:
        children = Path(f"/proc/{parent.pid}/task/{parent.pid}/children")
        child = int(wait_until(children.read_text))
        wait_until(lambda: Path(f"/proc/{child}/comm").read_text() == "sleep\n")  # guard no more
        parent.kill()
    wait_until(lambda: not alive(child))


SESSIONS = "setsid sh -c '(sleep 300 & echo $! >&3) & exec sleep 300' & echo $! >&3; "
SESSIONS += "sh -c 'setsid sleep 300 & echo $! >&3'; "


@pytest.mark.parametrize("how", ["exit 5", "kill -TERM $$", "TERM", "died"])
def test_the_guard_ends_all_that_a_program_started(tmp_path: Path, how: str) -> None:
    out = tmp_path / "started"
    script = f"{SESSIONS} until [ $(wc -l <{out}) = 3 ]; do sleep 0.01; done; echo all >&3; "
    script += how if " " in how else "sleep 300"
    # in between, a shell that dies and leaves the guard alone
    words = ("sh", "-c", f'"$@" 3>{out} & echo $! >{tmp_path}/guard; wait $!', "sh")
    with subprocess.Popen([*words, str(GUARD), "--all", "sh", "-c", script]) as parent:
        wait_until(lambda: out.exists() and out.read_text().endswith("all\n"))
        guard = int((tmp_path / "guard").read_text())
        if how == "TERM":
            os.kill(guard, signal.SIGTERM)
        elif how == "died":
            parent.kill()
        parent.wait()
    wait_until(lambda: not alive(guard))
    statuses = {"exit 5": 5, "kill -TERM $$": 128 + signal.SIGTERM, "TERM": 128 + signal.SIGKILL}
    assert parent.returncode == statuses.get(how, -signal.SIGKILL)
    started = [int(line) for line in out.read_text().split()[:-1]]
    assert len(started) == 3
    assert not any(map(alive, started))


def test_the_guard_says_what_is_wrong(tmp_path: Path) -> None:
    path = {"PATH": str(tmp_path)}  # ours may have folders that this user may not search
    for words, status, said in (
        ((), 2, "usage: testbed-guard [--all] PROGRAM"),
        (("no-such-program",), 127, "testbed-guard: no-such-program: No such file"),
    ):
        done = run((str(GUARD), *words), check=False, env=path)
        assert done.status == status
        assert said in done.stderr


def test_start_writes_to_files(tmp_path: Path) -> None:
    process = start(
        ("sh", "-c", "echo $WORD; pwd"),
        stdout=tmp_path / "out",
        cwd=tmp_path,
        env={**os.environ, "WORD": "hi"},
    )
    assert process.wait() == 0
    assert (tmp_path / "out").read_text() == f"hi\n{tmp_path}\n"
