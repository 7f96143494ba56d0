"""`--expect`: what the means of a run have to be, by themselves and beside a baseline."""

from __future__ import annotations

import dataclasses
import xml.etree.ElementTree as ET
from pathlib import Path

import pandas as pd
import pytest

from analysis.statistics.expected import check_expected, parse_expected, read_baseline
from experiments.command import main
from testbed.errors import UsageError
from tests.lab import run_trials
from tests.scenarios import router


def rows(goodputs: dict[str, list[float]], **columns: object) -> pd.DataFrame:
    """A flow of each variant, with a row for each seed."""
    cell = {"experiment": "e", "topology": "t", "queue": "q", "engine": "guest", "setting": "s"}
    state = {"status": "ok", "verdict": "valid", "axes": ""}
    return pd.DataFrame(
        [
            {**cell, **state, "variant": name, "flow": name, "goodput_mbps": value, **columns}
            for name, values in goodputs.items()
            for value in values
        ]
    )


@pytest.mark.parametrize(
    ("text", "met"),
    [
        ("goodput_mbps >= 0.95 * baseline", [True, False]),
        ("goodput_mbps >= baseline", [False, False]),
        ("goodput_mbps<1.5*baseline", [True, True]),
        ("goodput_mbps > 8.5", [True, False]),
    ],
)
def test_means_are_held_to_their_bounds(text: str, met: list[bool]) -> None:
    before = rows({"cubic": [10.0, 10.0], "bbr": [10.0, 10.0]})
    now = rows({"cubic": [9.4, 9.8], "bbr": [8.0, 8.2]})
    checked = list(check_expected(parse_expected(text), now, before))
    assert [cell.is_met for cell in checked] == met
    assert checked[1].words.startswith("bbr: goodput_mbps 8.1, expected ")


def test_invalid_trials_do_not_count() -> None:
    now = pd.concat([rows({"cubic": [9.0]}), rows({"cubic": [1.0]}, verdict="invalid")])
    (cell,) = check_expected(parse_expected("goodput_mbps >= 9"), now, None)
    assert cell.value == 9.0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("goodput_mbps == 3", "not METRIC >= NUMBER"),
        ("goodput >= 3", "no metric 'goodput'"),
        ("goodput_mbps >= 1e", "not a number"),
        ("goodput_mbps >= 2 * base", "not METRIC >= NUMBER"),
    ],
)
def test_what_cannot_be_expected_is_said(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse_expected(text)


def test_the_baseline_of_another_scenario_is_refused() -> None:
    with pytest.raises(UsageError, match="it has no goodput_mbps of cubic in this scenario"):
        list(
            check_expected(
                parse_expected("goodput_mbps >= baseline"),
                rows({"cubic": [9.0]}),
                rows({"cubic": [9.0]}, setting="other"),
            )
        )


@pytest.mark.parametrize("content", [b"", b"\x00\xff", b"a,b\n1,2\n"])
def test_files_that_are_no_baseline_are_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "metrics.csv"
    path.write_bytes(content)
    with pytest.raises(UsageError, match="--baseline"):
        read_baseline(path)


def test_a_run_fails_that_falls_below_its_baseline(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scenario = router(variant="cubic", rate_mbit=4, duration_s=2)
    out, file = tmp_path / "out", tmp_path / "asked.json"
    run_trials([scenario], out)
    file.write_text(dataclasses.replace(scenario).to_json())
    run = ["run", str(file), "--out", str(out), "--name", "it", "--engine", "guest"]
    assert main(run) == 0
    baseline = tmp_path / "baseline.csv"
    baseline.write_bytes((out / "runs" / "it" / "metrics.csv").read_bytes())
    words = ["--baseline", str(baseline), "--junit", str(tmp_path / "j.xml")]
    assert main([*run, *words, "--expect", "goodput_mbps >= baseline"]) == 0
    capsys.readouterr()
    assert main([*run, *words, "--expect", "goodput_mbps > 1.05 * baseline"]) == 1
    assert "testbed: tcp: goodput_mbps 3." in capsys.readouterr().err
    (failure,) = ET.parse(tmp_path / "j.xml").iter("failure")
    assert "expected > " in failure.attrib["message"]
