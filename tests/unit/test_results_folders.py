"""Runs: sets of trials that are stored once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from analysis.results.tables import write_metrics
from testbed.cli.entry import main
from testbed.errors import TestbedError, UsageError, quoted
from testbed.runs import results_folders
from testbed.store.names import LATEST, RUN_FILE
from testbed.store.reading import belongs_in_results, trials_in
from tests.trial_writer import write_trial

NAMES = ("one", "two", "three")


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A results folder with three trials and no run."""
    folder = tmp_path / "results" / "x"
    folder.mkdir(parents=True)
    for name in NAMES:
        write_trial(folder / name)
    return folder


def kept(store: Path, name: str, *trials: str) -> results_folders.StoredRun:
    """A run of these trials."""
    return results_folders.keep_run(store, name, "testbed run x", trials)


def test_a_run_has_its_own_trials_and_table(store: Path) -> None:
    run = kept(store, "first", "two", "one")
    assert [trial.path.name for trial in trials_in(run.path)] == ["one", "two"]
    assert sorted(set(write_metrics(run.path)["trial"])) == ["one", "two"]
    assert (run.path / "metrics.csv").is_file()
    assert not (store / "metrics.csv").exists()
    assert len(list(trials_in(store))) == len(NAMES)  # the results folder still has all
    assert all(belongs_in_results(path) for path in store.iterdir())


def test_a_trial_of_a_run_is_the_one_in_the_store(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the link, relative or not: a trial has one place, whatever leads there."""
    run = kept(store, "first", "one")
    monkeypatch.chdir(store.parent)
    for folder in (run.path, store / LATEST, Path("x") / LATEST, Path("x/runs/first")):
        (trial,) = trials_in(folder)
        assert trial.path.parent.resolve() == store
        assert trial.path.is_absolute() == folder.is_absolute()


def test_the_same_trials_again_are_the_same_run(store: Path) -> None:
    first = kept(store, "", "one", "two")
    assert kept(store, "", "two", "one").path == first.path
    assert kept(store, "", "one").path != first.path
    assert kept(store, "own", "one", "two").path != first.path


def test_the_newest_is_the_latest(store: Path) -> None:
    kept(store, "b", "one")
    kept(store, "a", "two")
    assert (store / LATEST).resolve().name == "a"
    assert [run.name for run in results_folders.runs_in(store)] == ["a", "b"]


def test_a_name_is_used_again_for_other_trials(store: Path) -> None:
    kept(store, "a", "one")
    kept(store, "a", "two")
    (run,) = results_folders.runs_in(store)
    assert run.trials == ("two",)
    assert len(list(trials_in(store))) == len(NAMES)


def test_a_trial_that_is_gone_is_none_of_the_run(store: Path) -> None:
    run = kept(store, "a", "one", "gone")
    assert [trial.path.name for trial in trials_in(run.path)] == ["one"]
    assert (len(run.existing_trials()), len(run.trials)) == (1, 2)


def test_removing_frees_what_no_other_run_has(
    store: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    kept(store, "old", "one", "two")
    kept(store, "new", "two")
    monkeypatch.chdir(store.parent.parent)
    assert main(["runs"]) == 0
    shown = capsys.readouterr().out
    assert shown.index("new") < shown.index("old")
    assert "x: 1 trial is in no run" in shown
    assert main(["runs", "remove", "old"]) == 0
    assert "1 trial that no other run has" in capsys.readouterr().out
    assert {path.name for path in store.iterdir()} == {"two", "three", "runs", LATEST}
    assert main(["runs", "remove", "results/x/runs/new", "--unused"]) == 0
    assert {path.name for path in store.iterdir()} == {"runs"}


def test_the_link_follows_a_removal(store: Path) -> None:
    kept(store, "a", "one")
    newest = kept(store, "b", "two")
    results_folders.set_latest_link(store.parent / LATEST, "x/runs/b")
    results_folders.remove_run(newest)
    assert (store / LATEST).resolve().name == "a"
    assert (store.parent / LATEST).resolve().name == "a"


def test_a_misspelt_run_is_told(store: Path) -> None:
    kept(store, "quick", "one")
    with pytest.raises(UsageError, match="no run quik") as error:
        results_folders.find_run("quik", store.parent)
    assert "'quick'" in error.value.hint


def test_two_of_one_name_are_not_guessed(store: Path) -> None:
    kept(store, "a", "one")
    other = store.parent / "y"
    other.mkdir()
    write_trial(other / "one")
    kept(other, "a", "one")
    with pytest.raises(UsageError, match="2 runs are called a"):
        results_folders.find_run("a", store.parent)


@pytest.mark.parametrize("names", [["../../x"], ["a/b"], [".hidden"], [3], ["/etc"], [""]])
def test_another_mans_list_leads_nowhere(store: Path, names: list[object]) -> None:
    run = kept(store, "a", "one")
    (run.path / RUN_FILE).write_text(json.dumps({"trials": names}))
    with pytest.raises(TestbedError, match="is not the name of a trial"):
        list(trials_in(run.path))


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"trials": 1}', "\xff"])
def test_a_damaged_list_is_one_line(store: Path, text: str) -> None:
    run = kept(store, "a", "one")
    (run.path / RUN_FILE).write_text(text, encoding="latin-1")
    with pytest.raises(TestbedError, match=r"run\.json: damaged"):
        list(trials_in(run.path))


@pytest.mark.parametrize("name", ["../up", "a b", ".a", "x" * 65])
def test_a_name_that_is_none_is_refused_before_anything_runs(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "router-bottleneck", "--name", name, "--out", str(tmp_path / "out")]) == 2
    assert capsys.readouterr().err.splitlines() == [
        f"testbed: --name {quoted(name)}: not a name",
        "    hint: names are letters, digits, `.`, `_` and `-`, not beginning with a dot, at most "
        "64",
    ]
    assert not (tmp_path / "out").exists()
