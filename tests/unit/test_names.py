"""One rule for names: in validation, where a path is made, and in what others wrote."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from testbed.errors import TestbedError, UsageError
from testbed.plan.check import validate
from testbed.scenario.losses import Loss, LossEvents
from testbed.scenario.model import Scenario
from testbed.scenario.names import is_name
from testbed.store import names as store
from testbed.store.names import RECORD, SCENARIO
from testbed.store.reading import open_trial
from tests.scenarios import router, with_loss
from tests.trial_writer import write_trial

NAMES = ["a", "reno-2", "x_y.z", "-", "7", "a" * 64, "tcp..2"]
NO_NAMES = [
    *("", ".", "..", ".x", "../../x", "/tmp/x", "a/b", "a\\b", "a b", "a\n", "a\x00", "é", "a;b"),
    *("[red]", "$\\frac{$", "<b>", "a" * 65, "\ud800", "a\u202eb", "%s"),
]


@pytest.mark.parametrize("text", NAMES)
def test_names(text: str) -> None:
    assert is_name(text)
    validate(named(flow=text, label=text, experiment=text))


@pytest.mark.parametrize("text", NO_NAMES)
@pytest.mark.parametrize("what", ["flow", "label", "experiment"])
def test_what_is_no_name(what: str, text: str) -> None:
    if (what, text) == ("label", ""):
        return  # a trial needs none
    field = "flows[0].name" if what == "flow" else what
    with pytest.raises(UsageError) as caught:
        validate(named(**{what: text}))
    assert f"{field}: " in caught.value.message
    assert caught.value.message.isprintable() and len(caught.value.message) < 300


def named(flow: str = "tcp", **names: Any) -> Scenario:
    scenario = router()
    flows = (dataclasses.replace(scenario.flows[0], name=flow),)
    return dataclasses.replace(scenario, flows=flows, **names)


def test_axes_have_names_and_short_values() -> None:
    validate(router(axes={"pair": "reno/cubic", "rate": "1e+06", "path": ""}))
    for axes in ({"a=b": "1"}, {"a": "1; b=2"}, {"a": "x\ny"}, {"a": "$\\frac{$"}, {"a": "x" * 65}):
        with pytest.raises(UsageError, match="axes"):
            validate(router(axes=axes))


def test_dice_are_a_short_text() -> None:
    sound, wrong = (Loss(LossEvents(0.1), dice=dice) for dice in ("both forms", "a\n"))
    validate(with_loss(router(), sound))
    with pytest.raises(UsageError, match=r"flows\[0\].loss.dice: 'a\\n'"):
        validate(with_loss(router(), wrong))


@pytest.mark.parametrize("other", ["tcp", "tcp.client", "tcp.sizes", "tcp.a.b"])
def test_flows_do_not_share_files(other: str) -> None:
    scenario = router(cbr_mbit=0.5)
    second = dataclasses.replace(scenario.flows[1], name=other)
    with pytest.raises(UsageError, match=f"flows: .*'{other}'"):
        validate(dataclasses.replace(scenario, flows=(scenario.flows[0], second)))


@pytest.mark.parametrize("text", NO_NAMES)
def test_no_path_is_made_of_it(text: str) -> None:
    files = (store.playback_file, store.sizes_file, store.capture_file, store.results_folder)
    for path_of in files:
        with pytest.raises(TestbedError, match="not a name for a file"):
            path_of(text)
    for path_with_role in (store.report_file, store.errors_file):
        with pytest.raises(TestbedError, match="not a name for a file"):
            path_with_role(text, "client")
    if text:
        with pytest.raises(TestbedError, match="not a name for a file"):
            store.trial_folder(named(label=text), "guest")


def test_a_trial_of_our_own_is_read(tmp_path: Path) -> None:
    assert open_trial(write_trial(tmp_path / "trial")).record.flows


@pytest.mark.parametrize(
    ("file", "where", "value"),
    [
        (SCENARIO, ("label",), "../../x"),
        (SCENARIO, ("experiment",), "/tmp/x"),
        (SCENARIO, ("flows", 0, "name"), "/tmp/x"),
        (SCENARIO, ("axes",), {"$\\frac{$": "1"}),
        (SCENARIO, ("flows", 0, "name"), 7),
        (SCENARIO, ("flows", 0, "variant"), "$\\frac{$"),
        (SCENARIO, ("flows", 0, "src"), "[/]"),
        (RECORD, ("flows", 0, "variant_seen"), "[/]"),
        (RECORD, ("flows", 0, "name"), "/tmp/x"),
        (RECORD, ("flows", 0, "name"), "another"),
        (RECORD, ("flows", 0, "name"), None),
        (RECORD, ("engine",), "../x"),
        (RECORD, ("queues", 0, "interface"), "../x"),
        (RECORD, ("captures", 0, "interface"), "/x"),
        (RECORD, ("captures", 0, "file"), "/etc/passwd"),
        (RECORD, ("captures", 0, "file"), "captures/../../x"),
        (RECORD, ("captures", 0, "file"), "flows/x.json"),
        (RECORD, ("captures", 0, "file"), ["captures", "x"]),
        (RECORD, ("flows",), 7),
        (RECORD, ("status",), "splendid"),
    ],
)
def test_a_doctored_trial_is_refused(
    tmp_path: Path, file: str, where: tuple[str | int, ...], value: object
) -> None:
    trial = write_trial(tmp_path / "trial")
    data = json.loads((trial / file).read_text())
    at = data
    for step in where[:-1]:
        at = at[step]
    at[where[-1]] = value
    (trial / file).write_text(json.dumps(data))
    with pytest.raises(TestbedError) as caught:
        open_trial(trial)
    assert str(trial) in caught.value.message and caught.value.hint
