"""`testbed rewind`: gdb stops a guest at a packet, and changes none unless it is told to."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from experiments.command import main
from testbed.guest import kernels
from testbed.store.reading import Trial
from tests.lab import PATIENCE_S, run_trials
from tests.scenarios import router

KERNEL = kernels.default_kernel()
FOLDER = kernels.built_folder(KERNEL)
TESTBED = str(Path(sys.executable).with_name("testbed"))
pytestmark = pytest.mark.skipif(
    FOLDER is None or not (FOLDER / kernels.SYMBOLS).exists(),
    reason=f"kernel/image.sh --symbols {KERNEL}: minutes",
)


@pytest.fixture(scope="module")
def trial(tmp_path_factory: pytest.TempPathFactory) -> Trial:
    scenario = router(rate_mbit=4, delay_ms=10, duration_s=3)
    (done,) = run_trials([scenario], tmp_path_factory.mktemp("rewind") / "out")
    return done


def rewound(trial: Trial, *words: str, typed: str = "") -> subprocess.CompletedProcess[str]:
    """What the command said of the trial."""
    argv = [TESTBED, "rewind", str(trial.path), *words]
    return subprocess.run(
        argv, input=typed, capture_output=True, text=True, check=False, timeout=PATIENCE_S
    )


def test_the_first_retransmission(trial: Trial) -> None:
    done = rewound(trial, "--packet", "retransmission")
    lines = done.stdout.splitlines()
    assert any("__tcp_retransmit_skb" in line for line in lines)  # of the backtrace
    (sender,) = (line for line in lines if line.startswith("sender: (struct tcp_sock *)"))
    assert sender.endswith(("recovery", "loss"))
    assert lines[-1] == f"the same packets as {trial.path}, in all 4 captures"
    assert done.returncode == 0


def test_the_moving_picture_has_the_calls_and_agrees_with_the_rule(
    trial: Trial, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["--why", "retransmission", "--out", str(tmp_path / "page.html")]
    assert main(["watch", str(trial.path), *asked]) == 0
    said = capsys.readouterr().out
    assert re.search(
        r"packet \d+ of sender1-eth0: tcp_v4_rcv → .*tcp_ack → .*__tcp_retransmit_skb", said
    )


def test_calls_in_an_interval(trial: Trial) -> None:
    done = rewound(trial, "--at", "1", "--until", "1.1", "--probe", "tcp_ack:flag")
    *calls, last = done.stdout.splitlines()
    assert calls and all("tcp_ack(flag=" in line for line in calls)
    assert all(1 <= float(line.split()[0]) <= 1.1 for line in calls)
    assert {line.split()[1] for line in calls} == {"sender", "receiver"}
    assert last.startswith("the same packets")


def test_a_session_that_goes_back(trial: Trial) -> None:
    done = rewound(trial, "--at", "1.5", "--gdb", typed="trial until 1.6\ntrial back 1.25\n")
    times = [line for line in done.stdout.splitlines() if "second 1." in line]
    assert [line.split()[-1] for line in times] == ["1.500000000", "1.600000000", "1.250000000"]
    assert done.stdout.count("the same packets") == 2


def test_a_change_is_told(trial: Trial) -> None:
    script = """
        python s = next(a for a, e in sockets().items() if e == "sender")
        python gdb.execute(f"set var ((struct tcp_sock *) {s})->snd_cwnd = 2")
    """
    done = rewound(trial, "--at", "1", "--gdb", typed=script)
    assert done.returncode == 1
    assert "other packets: sender1-eth0 of sender1: packet" in done.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--at", "1", "--probe", "no_such"), "the kernel has no function no_such"),
        (("--at", "1", "--trace", "zzz*"), "the kernel has no function zzz*"),
    ],
)
def test_what_is_not_there_is_one_line(trial: Trial, words: tuple[str, ...], message: str) -> None:
    done = rewound(trial, *words)
    assert done.returncode == 1
    said, hint = done.stderr.splitlines()
    assert said.startswith(f"testbed: {message}") and "hint: " in hint
