"""Files of paths that change: what is read, and the line that is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.catalogue import EXPERIMENTS
from testbed.errors import UsageError
from testbed.plan.plan import make_plan
from testbed.scenario.network import Change
from testbed.scenario.trace import path_changes, read_path_file

HANDOVER = """time_s,delay_ms,rate_mbit,up
0,20,10,
4, 22.5,,
5,31,4,0
5.1,,,1
"""


def test_an_empty_field_leaves_what_was() -> None:
    assert path_changes(HANDOVER, "path.csv") == (
        Change(0.0, rate_mbit=10, delay_ms=20),
        Change(4.0, delay_ms=22.5),
        Change(5.0, rate_mbit=4, delay_ms=31, up=False),
        Change(5.1, up=True),
    )
    assert path_changes("rate_mbit,time_s\n7,0\n", "p") == (Change(0.0, rate_mbit=7),)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "p: line 1: '': not a path"),
        ("time_s\n0\n", "p: line 1: 'time_s': not a path"),
        ("time_s,delay\n0,1\n", "p: line 1: 'time_s,delay': not a path"),
        ("time_s,up,up\n0,1,1\n", "p: line 1: 'time_s,up,up': not a path"),
        ("time_s,delay_ms\n", "p: no line is at second 0"),
        ("time_s,delay_ms\n1,20\n", "p: no line is at second 0"),
        (
            "time_s,delay_ms\n0,20\n3,1\n3,2\n",
            "p: line 4: time_s is not later than the line before",
        ),
        ("time_s,delay_ms\n0,20\n,1\n", "p: line 3: time_s is not later than the line before"),
        ("time_s,delay_ms\n0,20\n3\n", "p: line 3: 1 of 2 fields"),
        ("time_s,delay_ms\n0,soon\n", "p: line 2: delay_ms 'soon': not valid"),
        ("time_s,delay_ms\n0,-1\n", "p: line 2: delay_ms '-1': not valid"),
        ("time_s,rate_mbit\n0,0\n", "p: line 2: rate_mbit '0': not valid"),
        ("time_s,rate_mbit\n0,inf\n", "p: line 2: rate_mbit 'inf': not valid"),
        (
            f"time_s,delay_ms\n0,{'1' * 200_000}\n",
            "p: line 2: field larger than field limit (131072)",
        ),
        ("time_s,up\n0,yes\n", "p: line 2: up 'yes': not 0 or 1"),
    ],
)
def test_the_line_that_is_wrong_is_named(text: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        path_changes(text, "p")
    assert caught.value.message == message and caught.value.hint


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        read_path_file(tmp_path / "none.csv")
    (tmp_path / "path.csv").write_bytes(b"time_s,delay_ms\n\xff")
    with pytest.raises(UsageError, match="not text"):
        read_path_file(tmp_path / "path.csv")
    (tmp_path / "long.csv").write_text("0" * (2 << 20))
    with pytest.raises(UsageError, match="longer than 1 MB"):
        read_path_file(tmp_path / "long.csv")


def test_a_file_is_the_bottleneck_of_a_trial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.csv").write_text(HANDOVER)
    settings = {"path": ["mine.csv"], "variant": ["bbr"], "duration_s": ["5"]}
    (trial,) = EXPERIMENTS["leo"].scenarios(settings, 1, quick=False)
    bottleneck = trial.network.bottleneck
    assert (bottleneck.rate_mbit, bottleneck.delay_ms) == (10, 20)
    assert [each.at_s for each in bottleneck.schedule] == [4.0]  # the trial has 5 s
    make_plan(trial)
    for text in ("time_s,delay_ms\n0,20\n", "time_s,delay_ms,rate_mbit,up\n0,20,10,0\n"):
        Path("mine.csv").write_text(text)
        with pytest.raises(UsageError, match="begins without a rate or a delay, or down"):
            EXPERIMENTS["leo"].scenarios(settings, 1, quick=False)


def test_the_model_is_handed_over_every_15_s() -> None:
    (trial,) = EXPERIMENTS["leo"].scenarios({"variant": ["bbr"]}, 1, quick=False)
    changes = trial.network.bottleneck.schedule
    down = [each.at_s for each in changes if each.up is False]
    up = [each.at_s for each in changes if each.up]
    assert down == [15, 30, 45] and up == pytest.approx([15.1, 30.1, 45.1])
    make_plan(trial)
