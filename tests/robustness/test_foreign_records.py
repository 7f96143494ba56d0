"""trial.json with other values than the testbed writes: a line that names the field, or a page."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from analysis.results import reduction
from analysis.results.reduction import Reduction
from testbed.cli.entry import main
from testbed.errors import TestbedError
from testbed.store.names import RECORD, REPORT
from testbed.store.reading import Trial, open_trial
from tests.robustness.strange_values import PLACE, as_json, places, with_value
from tests.trial_writer import write_trial

STRANGE = (
    "NaN",
    "1e999",
    "-1e999",
    '"x"',
    "null",
    "[]",
    "{}",
    "1" + "0" * 26,
    "-1",
    "1e12",
    "true",
)


@pytest.mark.slow
def test_every_strange_value_is_a_line_or_read(tmp_path: Path) -> None:
    """Whatever stands in a field's place, reading the record ends in one kind of error."""
    trial = write_trial(tmp_path / "trial")
    data = json.loads((trial / RECORD).read_text())
    refused = 0
    for number in range(len(list(places(data)))):
        for strange in STRANGE:
            (trial / RECORD).write_text(with_value(data, number, strange))
            try:
                open_trial(trial)
            except TestbedError as error:
                refused += 1
                assert len(error.message) < 300
    assert refused > 300


@pytest.mark.slow(but=1)
@pytest.mark.parametrize(
    "name", ["epoch_s", "started_s", "stopped_s", "rate_mbit", "limit", "seed"]
)
def test_a_report_of_numbers_that_cannot_be(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The trials with them are left out or on the page, and the good one is on it."""
    write_trial(tmp_path / "x" / "good")
    for number, strange in enumerate(STRANGE):
        file = write_trial(tmp_path / "x" / f"bad{number}") / RECORD
        data = json.loads(file.read_text())
        for part in (data, *data["flows"], *data["queues"]):
            if name in part:
                part[name] = PLACE
        file.write_text(as_json(data, strange))
    assert main(["report", str(tmp_path / "x")]) == 0
    assert capsys.readouterr().err.count(f"{RECORD}: damaged: {name}: ") >= 6
    assert "<td>tcp 0." in (tmp_path / "x" / REPORT).read_text()


def test_an_error_of_ours_is_no_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bug must not look like a trial that failed."""
    trial = open_trial(write_trial(tmp_path / "trial"))

    def wrong(_trial: Trial, *, is_fresh: bool) -> Reduction:
        raise KeyError("goodput_mbps", is_fresh)

    monkeypatch.setattr(reduction, "reduce_trial", wrong)
    with pytest.raises(KeyError):
        list(reduction.reductions_of([trial]))
