"""Python's way in: the names, what can be asked for, and results as DataFrames."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import testbed
from experiments.catalogue import EXPERIMENTS
from testbed.api.results import Results, open_results
from testbed.api.run import What, selected
from testbed.errors import TestbedError, UsageError
from testbed.scenario.model import Scenario
from tests.scenarios import dumbbell, router
from tests.trial_writer import ISN, LOST, SIZE, write_trial


def scenarios_of(
    what: What, settings: Mapping[str, Any], seeds: int, *, quick: bool
) -> list[Scenario]:
    return selected(what, settings, quick=quick).scenarios(seeds)


SETTINGS = {"variant": ["cubic", "bbr"], "duration_s": 5}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    folder = tmp_path_factory.mktemp("results")
    write_trial(folder / "one-trial", samples=True)
    return open_results(folder)


def test_the_public_names_are_those_of_the_page(root: Path) -> None:
    table = (root / "docs/python.md").read_text().split("## What there is")[1]
    rows = [line.split("|")[1] for line in table.split("**`run(")[0].splitlines() if "| `" in line]
    assert set(re.findall(r"`(\w+)`", " ".join(rows))) == set(dir(testbed))
    for name in dir(testbed):
        assert getattr(testbed, name).__doc__


def test_other_names_are_not_there() -> None:
    with pytest.raises(AttributeError, match="'testbed' has no attribute 'sprint'"):
        _ = testbed.sprint


def test_an_experiment_is_its_name_or_itself() -> None:
    named = scenarios_of("variants", SETTINGS, 2, quick=False)
    assert [each.seed for each in named] == [1, 1, 2, 2]
    assert named == scenarios_of(EXPERIMENTS["variants"], SETTINGS, 2, quick=False)
    assert {each.duration_s for each in named} == {5}


def test_a_scenario_is_itself_or_its_file_or_a_dict(tmp_path: Path) -> None:
    file = tmp_path / "own.json"
    file.write_text(router().to_json())
    settings = {"flows.tcp.variant": ["cubic", "vegas"], "duration_s": np.int64(3)}
    made = [
        scenarios_of(what, settings, 2, quick=False)
        for what in (router(), file, str(file), json.loads(router().to_json()))
    ]
    assert all(each == made[0] for each in made)
    assert [each.flows[0].variant for each in made[0]] == ["cubic", "vegas"] * 2
    several = scenarios_of([router(), router(variant="bbr")], {}, 2, quick=False)
    assert [each.seed for each in several] == [1, 2, 1, 2]


def test_pythons_values_are_looked_at_like_a_files() -> None:
    wrong = router(rate_mbit="fast")  # type: ignore[arg-type]
    with pytest.raises(
        UsageError, match=r"scenario: network\.links\[0\]\.reverse\.rate_mbit: expected"
    ):
        scenarios_of(wrong, {}, 1, quick=False)


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("router-bottelneck", "unknown experiment 'router-bottelneck'"),
        ("none.json", "none.json: no such file"),
        ("none.py", "none.py: no such file"),
        (3, "int cannot run"),
        ([], "the scenarios are none"),
        ([3], "int is not a Scenario"),
        ({"experiment": {1}}, "set is not JSON serializable"),
        ([router(), dataclasses.replace(dumbbell(), experiment="b")], "of 2 experiments"),
    ],
)
def test_wrong_requests(what: object, said: str) -> None:
    with pytest.raises(TestbedError) as caught:
        scenarios_of(what, {}, 1, quick=False)  # type: ignore[arg-type]
    assert said in caught.value.message and caught.value.hint


def test_rows_and_points_have_their_trial(results: Results) -> None:
    assert list(results.rows["flow"]) == ["tcp", "cbr"]
    assert open_results(results.rows).trials[0].path.name == "one-trial"
    trips = results.round_trips()
    assert trips["rtt_ms"].median() == pytest.approx(100)
    assert set(trips["flow"]) == {"tcp"} and set(trips["trial"]) == {"one-trial"}
    assert len(results.sockets()) == 3
    rates = results.throughput(step_s=1.0)
    assert list(rates.loc[rates["flow"] == "cbr", "time_s"].diff().dropna().unique()) == [1.0]
    assert results.where(flow="tcp").trials and not results.where(flow="other").trials
    with pytest.raises(UsageError, match="no column 'flwo'"):
        results.where(flwo="tcp")


def test_trials_that_do_not_count_are_left_out_and_named(results: Results) -> None:
    rows = results.every_row.assign(verdict="invalid", why="an odd queue")
    wrong = dataclasses.replace(results, every_row=rows)
    assert wrong.rows.empty and wrong.round_trips().empty
    with pytest.raises(
        TestbedError, match="1 of 1 trials are left out: one-trial: invalid: an odd"
    ):
        wrong.warn_of_those_left_out()
    twin = dataclasses.replace(results.trials[0], path=Path("twin"))
    more = dataclasses.replace(
        results,
        every_row=pd.concat([results.every_row, rows.assign(trial="twin")]),
        trials=(*results.trials, twin),
    )
    with pytest.warns(UserWarning, match="1 of 2 trials are left out: twin: invalid"):
        more.warn_of_those_left_out()
    assert set(more.sockets()["trial"]) == {"one-trial"}


def test_a_trials_packets_are_pysharks(results: Results) -> None:
    """The fourth segment was lost and repeated, the tenth repeated for nothing."""
    (trial,) = results.trials
    again = trial.packets("tcp.analysis.retransmission")
    assert [int(packet.tcp.seq_raw) for packet in again] == [
        ISN + 1 + SIZE * number - (2**32 if SIZE * number > 2499 else 0) for number in (LOST, 9)
    ]
    assert len(trial.packets("tcp.analysis.retransmission", count=1)) == 1
    assert not trial.packets("tcp.analysis.retransmission", point="receiver", flow="cbr")
    with pytest.raises(UsageError, match="no flow 'other'"):
        trial.packets(flow="other")


def test_a_trials_packet_table_agrees_with_pyshark(results: Results) -> None:
    (trial,) = results.trials
    table = trial.packet_table()
    assert len(table) == len(trial.packets())
    assert list(table.loc[table["retransmission"], "frame"]) == [
        int(packet.number) for packet in trial.packets("tcp.analysis.retransmission")
    ]
    assert table["time_s"].iloc[0] == pytest.approx(1.0)
    assert set(trial.packet_table(flow="cbr")["protocol"]) == {"udp"}
