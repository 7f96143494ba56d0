"""Figures are drawn again exactly when they would be others."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from analysis.figures import figure_cache
from testbed.store.names import RECORD
from tests.trial_writer import write_trial

NAMES = ("one.png", "two.png")


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """A results folder with two figures that are up to date."""
    write_trial(tmp_path / "trial")
    folder = tmp_path / "figures"
    folder.mkdir()
    for name in NAMES:
        for suffix in figure_cache.SUFFIXES:
            (folder / name).with_suffix(suffix).touch()
    drawn = [folder / name for name in NAMES]
    figure_cache.store(folder, "x", figure_cache.inputs_hash(tmp_path), drawn, False)
    return tmp_path


def found(results: Path) -> tuple[str, ...] | None:
    """What need not be drawn."""
    kept = figure_cache.read(results / "figures", "x", figure_cache.inputs_hash(results))
    return kept.figures if kept else None


def test_what_is_up_to_date_stays(results: Path) -> None:
    assert found(results) == NAMES


def test_another_experiments_are_not_these(results: Path) -> None:
    assert figure_cache.read(results / "figures", "y", figure_cache.inputs_hash(results)) is None


def test_a_trial_more_makes_others(results: Path) -> None:
    write_trial(results / "another")
    assert found(results) is None


def test_a_trial_that_ran_again_makes_others(results: Path) -> None:
    record = results / "trial" / RECORD
    data = json.loads(record.read_text())
    record.write_text(json.dumps(data | {"wall_s": data["wall_s"] + 0.001}))
    assert found(results) is None


@pytest.mark.parametrize("suffix", figure_cache.SUFFIXES)
def test_a_figure_that_is_gone_is_drawn_again(results: Path, suffix: str) -> None:
    (results / "figures" / "two.png").with_suffix(suffix).unlink()
    assert found(results) is None


def test_other_code_draws_others(
    results: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path_factory.mktemp("project")
    (project / "analysis").mkdir()
    (project / "analysis" / "style.py").write_text("RED = 1\n")
    monkeypatch.setattr(figure_cache, "CODE_ROOT", project)
    before = figure_cache.inputs_hash(results)
    assert before == figure_cache.inputs_hash(results)
    (project / "analysis" / "style.py").write_text("RED = 2\n")
    assert figure_cache.inputs_hash(results) != before


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"made_of": 1, "figures": 2}'])
def test_a_damaged_note_is_none(results: Path, text: str) -> None:
    (results / "figures" / "x.drawn.json").write_text(text)
    assert found(results) is None
