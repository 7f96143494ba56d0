"""The search for the worst setting: it finds one, makes it plainer, and keeps what matters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from experiments.catalogue import EXPERIMENTS
from experiments.evaluation.space import SPACE
from testbed.cli.parser import build_parser
from testbed.errors import TestbedError, UsageError
from testbed.evaluate.adversary import (
    AdversarySearch,
    WorstSetting,
    confirmed,
    find_worst,
    plainest,
)
from testbed.evaluate.evaluation import standard_evaluation
from testbed.runs.orchestration import RunListener, RunOptions
from testbed.scenario.space import DrawnSetting


@dataclass
class MadeUp(AdversarySearch):
    """A search in which bad are slow links with deep buffers, and nothing else matters."""

    hopeless: bool = False
    lucky: bool = False  # with one seed, fast links look worse still

    def effects(self, settings: Sequence[DrawnSetting], seed: int = 1) -> list[float]:
        assert self.experiment.space is not None
        values = []
        for setting in settings:
            is_bad = float(setting["buffer_bdp"]) > 4 and float(setting["rate_mbit"]) < 100
            effect = 80.0 - float(setting["rate_mbit"]) / 10 if is_bad else -3.0
            effect = 0.0 if self.hopeless or self.experiment.space.refuse(setting) else effect
            if self.lucky and seed == 1 and float(setting["rate_mbit"]) > 1000:
                effect = 99.0
            self.known[(tuple(sorted(setting.items())), seed)] = effect
            values.append(effect)
        return values


def search(**changes: Any) -> MadeUp:
    assert SPACE.space is not None
    evaluation = standard_evaluation("bbr", "", ("cubic",))
    adversary = SPACE.space.adversaries["harm"]
    lines: list[str] = []
    parts = (evaluation, SPACE, adversary, RunOptions(), RunListener(), lines.append, "testbed")
    return MadeUp(*parts, lambda _folder: None, **changes)


def test_the_worst_setting_is_found_and_made_plain() -> None:
    worst = find_worst(search(), budget_s=1.0)
    assert worst.worst.effect > 70
    assert worst.plain.effect >= 0.85 * worst.worst.effect
    usual = {
        name: f"{v[0]:g}" if isinstance(v[0], float) else v[0] for name, v in SPACE.axes.items()
    }
    differ = {name for name, value in worst.plain.setting.items() if value != usual[name]}
    assert "buffer_bdp" in differ
    assert differ <= {"buffer_bdp", "rate_mbit"}
    assert worst.scenario.axes["variant"] == "bbr"
    assert worst.scenario.axes["buffer_bdp"] == worst.plain.setting["buffer_bdp"]
    assert len(worst.fresh) == 2


def test_what_one_seed_alone_shows_is_passed_over() -> None:
    assert SPACE.space is not None
    middle = {axis.name: axis.at(0.5) for axis in SPACE.space.axes}
    worst_search = search(lucky=True)
    worst_search.effects(
        [{**middle, "rate_mbit": "3000"}, {**middle, "rate_mbit": "50", "buffer_bdp": "8"}]
    )
    assert confirmed(worst_search, lambda: True).setting["rate_mbit"] == "50"
    assert confirmed(worst_search, lambda: False).setting["rate_mbit"] == "3000"


def test_no_plainer_setting_is_taken_on_the_word_of_one_seed() -> None:
    assert SPACE.space is not None
    middle = {axis.name: axis.at(0.5) for axis in SPACE.space.axes}
    worst = WorstSetting({**middle, "rate_mbit": "3210", "buffer_bdp": "0.51"}, 99.0)
    assert plainest(search(lucky=True), worst, lambda: True) == worst


def test_a_subject_that_is_nowhere_worse_gets_one_line() -> None:
    with pytest.raises(TestbedError, match="in none of"):
        find_worst(search(hopeless=True), budget_s=0.2)


def test_what_a_search_runs_is_what_its_adversary_needs() -> None:
    assert SPACE.space is not None
    setting = {axis.name: axis.at(0.5) for axis in SPACE.space.axes}
    worst_search = search()
    names = sorted(each.label for each in worst_search.selection([setting], 2).scenarios(2))
    assert names == ["bbr-alone", "bbr-on-cubic", "cubic-alone", "cubic-on-cubic"]
    worst_search.adversary = SPACE.space.adversaries["stall"]
    names = sorted(each.label for each in worst_search.selection([setting], 1).scenarios(1))
    assert names == ["bbr-alone", "cubic-alone"]


def test_an_unknown_adversary_is_refused_with_those_that_there_are() -> None:
    options = build_parser().parse_args(["evaluate", "bbr", "--adversary", "starvaton"])
    options.experiments = EXPERIMENTS
    with pytest.raises(UsageError) as caught:
        options.act(options)
    assert "starvation" in caught.value.hint
