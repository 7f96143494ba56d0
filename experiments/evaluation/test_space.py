"""The space of settings: what is drawn and can run, the paired effects, what is said of them."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from analysis.evaluation.outcome_rows import SUBJECT, VICTIM, with_harm
from analysis.metrics.metric_rows import AXIS
from experiments.evaluation import space_effects, space_figures, space_scores
from experiments.evaluation.space import (
    SPACE,
    bottleneck_queue,
    duration_s,
    parts_of_flows,
    refused,
    starts_ms,
)
from experiments.evaluation.space_effects import (
    OTHER,
    SAME,
    SpaceEffect,
    SpaceResults,
    corrected_cells,
    deciding,
)
from experiments.evaluation.space_scores import (
    OWN_SCORES,
    SPACE_HARM_SCORES,
    STARVATION_SCORES,
    least_share,
    longest_starvation,
    starved,
)
from testbed.errors import UsageError
from testbed.evaluate import drawn_settings as drawing
from testbed.evaluate.drawn_settings import compared_in, drawn_settings
from testbed.evaluate.evaluation import standard_evaluation
from testbed.plan.plan import make_plan
from testbed.runs.estimate import budget_s
from testbed.runs.orchestration import RunListener, RunOptions
from testbed.runs.selection import RunSelection
from testbed.scenario.experiment import ALONE
from testbed.scenario.space import NumberRange
from tests.stand_ins import StandIn

DRAWN = 64


def drawn(count: int = DRAWN) -> list[dict[str, str]]:
    assert SPACE.space is not None
    return [dict(each) for each in itertools.islice(drawn_settings(SPACE.space, {}), count)]


def test_settings_fill_the_space_and_are_the_same_each_time() -> None:
    settings = drawn()
    assert settings == drawn()
    rates = np.log10([float(each["rate_mbit"]) for each in settings])
    assert rates.min() < -0.5 and rates.max() > 3
    assert len({each["queue"] for each in settings}) == 4
    without_loss = sum(each["loss_percent"] == "0" for each in settings)
    assert DRAWN / 4 < without_loss < DRAWN * 3 / 4
    assert not any(refused(each) for each in settings)


def test_a_fat_long_path_is_more_than_a_guest_holds() -> None:
    long_fat = {"rate_mbit": "10000", "rtt_ms": "100", "buffer_bdp": "1", "flows": "2"}
    assert "MB in flight" in refused(long_fat)
    assert not refused({**long_fat, "rtt_ms": "1"})


def test_many_flows_need_room_for_their_windows_and_time_for_their_starts() -> None:
    many = {"rate_mbit": "100", "rtt_ms": "40", "buffer_bdp": "1", "flows": "1000"}
    assert refused(many) == "room for 0.7 packets of each of 1000 flows"
    assert not refused({**many, "rate_mbit": "300", "rtt_ms": "100"})
    assert not refused({**many, "flows": "250"})
    assert starts_ms(250, 300, 3.2) == 100
    assert starts_ms(1000, 300, 3.2) == pytest.approx(404, abs=1)
    assert starts_ms(1000, 10, 8) == 2000


def test_the_space_has_up_to_a_thousand_flows() -> None:
    assert SPACE.space is not None
    settings = itertools.islice(drawn_settings(SPACE.space, {}), 256)
    flows = [float(each["flows"]) for each in settings]
    assert max(flows) > 700
    assert np.median(flows) < 50


def test_flows_that_can_send_nothing_are_not_compared() -> None:
    slow = {"rate_mbit": "0.064", "rtt_ms": "100", "buffer_bdp": "1", "flows": "200"}
    assert "packets for each flow" in refused(slow)
    assert not refused({**slow, "flows": "4"})


def test_a_buffer_has_some_packets_however_short_the_path() -> None:
    assert bottleneck_queue("pfifo", 1, 500, ecn=False).limit_packets == 10
    assert bottleneck_queue("pfifo", 1, 1e6, ecn=False).limit_bdp == 1


@pytest.mark.parametrize("count", [4, pytest.param(DRAWN, marks=pytest.mark.slow)])
def test_drawn_settings_can_be_planned_and_have_the_trials_of_a_comparison(count: int) -> None:
    evaluation = standard_evaluation("bbr", "", ("cubic", "reno"))
    settings = drawn(count)
    scenarios = compared_in(evaluation, SPACE, settings).scenarios(1)
    assert len(scenarios) == len(settings) * (3 * 2 + 2)
    for scenario in scenarios:
        make_plan(scenario)
    second = {each.axes["variant"] for each in scenarios if each.seed == 2}
    assert second == {"cubic"}


def test_numbers_are_drawn_by_their_logarithm() -> None:
    axis = NumberRange("x", 1, 100)
    assert [axis.at(part) for part in (0, 0.5, 1)] == ["1", "10", "100"]
    assert [NumberRange("x", 1, 100, zero=0.5).at(part) for part in (0.4, 0.75)] == ["0", "10"]
    assert NumberRange("x", 2, 250, whole=True).at(0.5) == "22"


def test_flows_are_divided_by_the_mix_and_both_have_some() -> None:
    assert [parts_of_flows(10, mix) for mix in ("1:1", "1:4", "4:1")] == [(5, 5), (2, 8), (8, 2)]
    assert parts_of_flows(2, "1:16") == parts_of_flows(2, "4:1") == (1, 1)
    with pytest.raises(UsageError, match="mix"):
        parts_of_flows(4, "2:1")


@pytest.mark.parametrize(
    ("axis", "value"), [("flows", "1"), ("rate_mbit", "0"), ("signal", "mark"), ("mix", "2:1")]
)
def test_a_setting_that_cannot_be_is_refused_by_its_axis(axis: str, value: str) -> None:
    with pytest.raises(UsageError, match=f"^{axis}: "):
        SPACE.scenarios({axis: [value]}, 1, quick=False)


def test_a_trial_lasts_many_round_trips_but_carries_no_more_than_it_may() -> None:
    assert duration_s(1, 500) == 30.0
    assert duration_s(10, 10) == 5.0
    assert duration_s(1000, 1) == 1.0
    assert duration_s(10_000, 1) == 0.5


@pytest.mark.parametrize("text, seconds", [("30min", 1800), ("90s", 90), ("1.5h", 5400)])
def test_budgets(text: str, seconds: float) -> None:
    assert budget_s(text) == seconds


@pytest.mark.parametrize("text", ["", "30", "0min", "5 days", "-1s"])
def test_what_is_no_budget(text: str) -> None:
    with pytest.raises(UsageError, match="not a time"):
        budget_s(text)


def test_results_are_looked_at_only_when_the_settings_have_doubled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With a budget of 40 s and settings of 1 s, the last rounds are short, and not looked at."""
    settings: list[int] = []

    def carried_out(selection: RunSelection, *_others: object) -> Any:
        settings.append(len(selection.scenarios(1)) // 6)
        return None, SimpleNamespace(folder=Path(str(settings[-1])), trials=[])

    def now() -> float:
        return float(settings[-1] if settings else 0)

    looks: list[int] = []

    def is_decided(folder: Path) -> bool:
        looks.append(int(str(folder)))
        return False

    monkeypatch.setattr(drawing, "plan_and_carry_out", carried_out)
    monkeypatch.setattr("time.monotonic", now)
    folder = drawing.evaluate_space(
        standard_evaluation("bbr", "", ("cubic",)),
        SPACE,
        RunOptions(),
        RunListener(),
        effort=drawing.StoppingRule(40, is_decided),
        command="testbed",
        after_each=lambda _run, _done: None,
    )
    assert settings == [4, 8, 16, 32, 38, 39] and str(folder) == "39"
    assert looks == [4, 8, 16, 32]


def starving(monkeypatch: pytest.MonkeyPatch, acked: dict[str, list[float]]) -> Any:
    """Return a trial of 8 s in which victims have bytes acknowledged each second, of 1 MB/s."""
    times = np.arange(9.0)
    of_flows = [
        pd.DataFrame({"time_s": times, "flow": name, "bytes_acked": np.cumsum([0, *rates])})
        for name, rates in acked.items()
    ]
    sampled = pa.Table.from_pandas(pd.concat(of_flows).sort_values("time_s"))
    monkeypatch.setattr(space_scores, "read_columns", lambda *_: sampled)
    records = [SimpleNamespace(name=name, stopped_s=8.0) for name in acked]
    network = SimpleNamespace(longest_rtt_ms=100.0)
    scenario = SimpleNamespace(measure_from_s=0.0, network=network)
    trial = SimpleNamespace(record=SimpleNamespace(flows=records), scenario=scenario)
    flows = pd.DataFrame({"flow": list(acked)})
    return cast(Any, StandIn(trial=trial, flows=flows, rate_mbit=8.0, carried_mbit=8.0))


def test_a_flow_that_gets_nothing_for_three_of_eight_seconds_is_starved_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mb = 1e6
    seen = starving(monkeypatch, {"victim1": [mb, mb, 0, 0, 0, mb, 0, mb]})
    assert starved(seen) == pytest.approx(50)
    assert longest_starvation(seen) == pytest.approx(100 * 3 / 8)
    assert least_share(seen) == 0


def test_a_fair_share_is_of_all_flows_and_nobody_who_has_it_starves(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen = starving(monkeypatch, {"victim1": [5e5] * 8, "victim2": [4e5] * 8})
    assert starved(seen) == longest_starvation(seen) == 0
    assert least_share(seen) == pytest.approx(80)


def made_up(subject: dict[str, float], noise: float, settings: int = 64) -> SpaceResults:
    """Return results in which the subject differs from Cubic by `subject`, and all by noise."""
    dice = np.random.default_rng(1)
    places = [AXIS + name for name in ("rate_mbit", "rtt_ms", "buffer_bdp", "flows")]
    rows = []
    for _ in range(settings):
        place = dict(zip(places, dice.uniform(1, 100, len(places)).round(2), strict=True))
        for name, seed in (("bbr", SAME), ("cubic", SAME), ("cubic", OTHER)):
            for scores in ((*OWN_SCORES, *STARVATION_SCORES), SPACE_HARM_SCORES):
                values = {s.name: 50 + noise * dice.standard_t(3) for s in scores}
                if name == "bbr":
                    values |= {k: values[k] + v for k, v in subject.items() if k in values}
                rows.append({SUBJECT: name, "seed": seed, **place, **values})
    table = pd.DataFrame(rows).groupby([SUBJECT, "seed", *places]).first()
    return SpaceResults("cubic", ("bbr",), places, table, table)


def test_an_effect_is_found_and_named_by_its_score_alone() -> None:
    space = made_up({"throughput_mbps": 30.0, "starved": 12.0}, noise=1.0)
    known = {
        (e.subject, e.score.name) for e in space_effects.space_effects(space) if e.is_discovery
    }
    assert known == {("bbr", "throughput_mbps"), ("bbr", "starved")}
    sentence = space_figures.sentence(space, space_effects.space_effects(space), "bbr")
    assert sentence.startswith(
        "bbr is no worse for cubic than cubic itself in 0 % (0–6) of 64 settings"
    )
    assert "Worst, with" in sentence
    assert (
        "Settings are drawn evenly from rate 0.064 to 10000 Mbit/s, rtt 0.1 to 1000 ms, "
        "buffer 0.05 to 16 BDP, flows 2 to 1000 (by the logarithm): not as often as networks "
        "have them."
    ) in sentence


def test_what_was_fixed_is_no_part_of_what_settings_were_drawn_from() -> None:
    places = [AXIS + name for name in ("rate_mbit", "rtt_ms")]
    index = pd.MultiIndex.from_tuples([(10.0, 20.0), (10.0, 40.0)], names=places)
    drawn = pd.Series([1.0, 2.0], index)
    assert space_figures.prior_words(drawn) == "rtt 0.1 to 1000 ms (by the logarithm)"
    assert space_figures.prior_words(drawn[:1]) == ""


def test_what_harms_no_more_than_the_incumbent_is_no_worse() -> None:
    space = made_up({}, noise=0.1)
    sentence = space_figures.sentence(space, space_effects.space_effects(space), "bbr")
    assert "in 100 %" in sentence


def test_the_worst_setting_may_still_be_harmed_less() -> None:
    space = made_up({"throughput_mbps": -30.0}, noise=0.001)
    sentence = space_figures.sentence(space, space_effects.space_effects(space), "bbr")
    assert "Worst, with 30 points less harm to throughput" in sentence


def test_without_valid_trials_beside_the_incumbent_the_sentence_says_so() -> None:
    space = made_up({}, noise=1.0, settings=8)
    beside = space.beside.drop("bbr")
    nothing = replace(space, beside=beside)
    sentence = space_figures.sentence(nothing, space_effects.space_effects(nothing), "bbr")
    assert sentence == "No setting has valid trials of bbr beside cubic."


@pytest.mark.parametrize(
    ("evaluations", "most"),  # at 0.05 more in 1 of 100 tests like this one
    [(5, 2), pytest.param(50, 7, marks=pytest.mark.slow)],
)
def test_of_a_control_against_itself_little_is_found(evaluations: int, most: int) -> None:
    """Roles are swapped at random in settings in which only chance tells two trials apart."""
    null = [each.by_setting for each in space_effects.space_effects(made_up({}, noise=20.0))]
    dice, score = np.random.default_rng(7), OWN_SCORES[0]
    wrong = 0
    for _ in range(evaluations):
        effects = []
        for values in null:
            swapped = values * dice.choice([-1, 1], len(values))
            mean = space_effects._mean_of(swapped)
            effects.append(SpaceEffect("bbr", score, swapped, mean))
        cells = [cell for _, group in corrected_cells(effects) for cell in group]
        wrong += any(cell.p < space_effects.SPACE_LEVEL for cell in cells)
    assert wrong <= most


def test_the_axis_that_decides_is_named() -> None:
    space = made_up({}, noise=1.0)
    effects = space_effects.space_effects(space)[0]
    flows = effects.by_setting.index.get_level_values(f"{AXIS}flows").to_numpy()
    by_flows = pd.Series(np.where(flows > 50, 30.0, 0.0), effects.by_setting.index)
    effect = SpaceEffect("bbr", effects.score, effects.by_setting + by_flows, effects.found)
    first, *others = deciding(effect).items()
    assert first[0] == "flows" and first[1] > 60
    assert all(part < 20 for _, part in others)
    assert not deciding(SpaceEffect("bbr", effects.score, by_flows[:10], effects.found))


def test_a_victims_harm_is_by_what_it_has_alone_in_the_same_setting() -> None:
    rows = [
        ("cubic", ALONE, 1.0, 10.0),
        ("bbr", "cubic", 1.0, 2.0),
        ("cubic", ALONE, 100.0, 4.0),
        ("bbr", "cubic", 100.0, 2.0),
    ]
    table = pd.DataFrame(rows, columns=[SUBJECT, VICTIM, f"{AXIS}rate_mbit", "throughput_mbps"])
    harm = with_harm(table.assign(seed=1), SPACE_HARM_SCORES[:1])
    assert list(harm["throughput_mbps"]) == [80.0, 50.0]


def test_effects_are_paired_by_setting() -> None:
    space = made_up({"starved": 12.0}, noise=0.0, settings=8)
    effect = space.effect(STARVATION_SCORES[0], "bbr")
    assert len(effect) == 8
    assert all(math.isclose(each, 12.0) for each in effect)
