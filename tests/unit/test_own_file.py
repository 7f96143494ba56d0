"""Experiments in files of the user's own: written, listed, planned; each fault in one line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from experiments.catalogue import EXPERIMENTS
from experiments.command import main
from testbed.errors import UsageError
from testbed.plan.plan import make_plan
from testbed.runs.experiment_file import files_with_experiments, load


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def failing(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one line that a wrong request is answered with."""
    assert main(arguments) == 2
    line, hint = capsys.readouterr().err.splitlines()
    assert hint.startswith("    hint: ")
    return line


def written(text: str, name: str = "mine.py") -> Path:
    path = Path(name)
    path.write_text(text)
    return path


def test_a_new_one_is_planned_listed_and_draws(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new", "how_much"]) == 0
    own = load(Path("how_much.py"), EXPERIMENTS)
    assert own.experiment.name == "how_much"
    assert make_plan(own.experiment.scenarios({}, 1, True)[0]).end_s < 20
    assert own.figures is not None
    rows = pd.DataFrame(
        {"variant": ["reno"] * 2, "axis_buffer_bdp": [0.5, 1], "goodput_mbps": [4, 9]}
    )
    [(name, figure)] = own.figures(rows)
    assert name == "goodput"
    assert np.asarray(figure.axes[0].lines[0].get_ydata()).tolist() == [4, 9]
    capsys.readouterr()
    assert main(["list"]) == 0
    assert "./how_much.py" in capsys.readouterr().out
    assert main(["plan", "./how_much.py", "--quick", "--set", "buffer_bdp=1,3"]) == 0
    assert "linux-reno-3bdp-seed1" in capsys.readouterr().out
    assert sorted(path.name for path in Path().iterdir()) == ["how_much.py"]


def test_nothing_is_overwritten_and_names_are_names(capsys: pytest.CaptureFixture[str]) -> None:
    written("", "mine.py")
    assert "mine.py: it exists already" in failing(capsys, "new", "mine")
    assert "not a name for an experiment" in failing(capsys, "new", "../mine")
    assert "a built-in experiment" in failing(capsys, "new", "fall-floyd")
    assert Path("mine.py").read_text() == ""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1\nx = unknown\n", "mine.py: line 2: NameError: name 'unknown' is not defined"),
        ("x = (\n", "mine.py: line 1: SyntaxError: '(' was never closed"),
        ("x = 1\n", "mine.py: has no EXPERIMENT = Experiment(…)"),
        (
            "from experiments.fall_floyd.fall_floyd import EXPERIMENT\n",
            "mine.py: 'fall-floyd' is the name of a built-in experiment",
        ),
    ],
)
def test_what_is_wrong_in_a_file_is_told_with_its_line(
    capsys: pytest.CaptureFixture[str], text: str, message: str
) -> None:
    written(text)
    assert message in failing(capsys, "plan", "./mine.py")


def test_a_file_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert "nowhere.py: no such file" in failing(capsys, "run", "./nowhere.py")


def test_listing_runs_nothing() -> None:
    written("EXPERIMENT = Experiment(name='a', about='mine')\nraise SystemExit(9)\n")
    written("this is no Python", "broken.py")
    written("EXPERIMENT = 3\n", "other.py")
    assert [(path.name, about) for path, about in files_with_experiments(Path())] == [
        ("mine.py", "mine")
    ]


def test_it_may_import_what_lies_beside_it() -> None:
    written("HELP = 3\n", "beside_it_lies.py")
    with pytest.raises(UsageError, match="has no EXPERIMENT"):
        load(written("import beside_it_lies\n"), {})
