"""The standard evaluations: their scores on made-up rows, what is said of them, and the verb."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pandas as pd
import pytest

from analysis.evaluation import findings, standing
from analysis.evaluation.outcome_rows import (
    SUBJECT,
    VICTIM,
    in_settings,
    over_settings,
    with_harm,
    with_second_half,
)
from analysis.evaluation.trial_view import LESS, MORE, Score, TrialView
from analysis.metrics.digest import THROUGHPUT_SERIES
from analysis.metrics.rates import jain
from analysis.statistics.intervals import Comparison, compare_in_settings, compare_paired
from analysis.trials.capacity import Capacity
from experiments.catalogue import EXPERIMENTS
from experiments.evaluation import scores, theory
from experiments.evaluation.deployability import deployability_sheet, harm_comparisons
from experiments.evaluation.scores import (
    HARM_SCORES,
    jain_over_time,
    lesser_share,
    long_of_fair,
    oscillation,
    time_to_fair_s,
)
from testbed.errors import UsageError
from testbed.evaluate import evaluation
from testbed.guest import kernels
from testbed.runs import orchestration
from testbed.runs.orchestration import CompletedRun, PlannedRun, RunListener, RunOptions
from testbed.scenario.experiment import ALONE
from tests.stand_ins import StandIn


def score(better: int = MORE) -> Score:
    return Score("x", "x (%)", better, lambda seen: 0.0)


def seen(rates: dict[str, tuple[int, list[float]]], rate_mbit: float = 10.0) -> TrialView:
    """Flows with the second in which they start, and their rates in each second."""
    records = [
        SimpleNamespace(name=name, started_s=float(start), stopped_s=float(start + len(values)))
        for name, (start, values) in rates.items()
    ]
    rows = [
        (name, THROUGHPUT_SERIES, start + n + 0.5, value)
        for name, (start, values) in rates.items()
        for n, value in enumerate(values)
    ]
    digest = pd.DataFrame(rows, columns=["flow", "what", "x", "value"])
    flows = pd.DataFrame({"flow": list(rates), "throughput_mbps": [2.0] * len(rates)})
    queue = SimpleNamespace(rate_mbit=rate_mbit, sampled=True)
    trial = SimpleNamespace(record=SimpleNamespace(flows=records, queues=[queue]))
    return TrialView(cast(Any, trial), flows, digest)


TWO = {"first": (0, [10.0] * 4 + [9.0, 5.0, 5.0, 5.0]), "late": (4, [1.0, 5.0, 5.0, 5.0])}


def test_a_share_is_fair_from_the_second_on_in_which_it_is() -> None:
    assert time_to_fair_s(seen(TWO)) == 2.0
    never = {"first": (0, [10.0] * 8), "late": (4, [0.1] * 4)}
    assert time_to_fair_s(seen(never)) == 4.0  # until the end


def test_jain_over_time_knows_only_shared_seconds() -> None:
    expected = 100 * np.mean([jain(pd.Series([9.0, 1.0])), 1, 1, 1])
    assert jain_over_time(seen(TWO)) == pytest.approx(expected)


def test_a_steady_flow_does_not_oscillate() -> None:
    assert oscillation(seen(TWO)) == 0.0
    assert oscillation(seen({"one": (0, [9.0, 4.0, 6.0, 4.0, 6.0])})) > 20


def test_a_latecomer_that_takes_most_of_the_last_third_is_as_unfair_as_one_that_gets_little() -> (
    None
):
    assert lesser_share(seen(TWO)) == pytest.approx(50.0)
    taken = {"first": (0, [9.0] * 4 + [1.0] * 4), "late": (4, [9.0] * 4)}
    assert lesser_share(seen(taken)) == pytest.approx(10.0)


def test_the_long_flow_is_measured_by_half_of_the_link() -> None:
    lot = {"long": (0, [2.0] * 3), "cross1": (0, [8.0] * 3)}
    assert long_of_fair(seen(lot, rate_mbit=8.0)) == pytest.approx(50.0)


def with_transfers(**columns: list[float | str]) -> TrialView:
    """A workload that stopped at second 10, and its transfers."""
    view = seen({"web": (0, [1.0] * 10)})
    rows = pd.DataFrame({"flow": "web", "due_s": 0.0, **columns})
    view.__dict__["transfers"] = rows  # in place of the kept table
    return view


def test_a_transfer_that_does_not_finish_counts_until_the_flows_end() -> None:
    view = with_transfers(
        size_class=["long", "long", "long", "short"],
        start_s=[1.0, 4.0, math.nan, 0.0],
        due_s=[1.0, 4.0, 7.0, 0.0],
        completion_s=[2.0, math.nan, math.nan, 0.05],
    )
    assert list(scores.took_s(view, "long")) == [2.0, 6.0, 3.0]
    assert scores.long_mean_s(view) == pytest.approx(11 / 3)
    assert scores.short_99_ms(view) == pytest.approx(50.0)


def test_without_long_transfers_their_mean_is_not_known() -> None:
    view = with_transfers(size_class=["short"], start_s=[0.0], completion_s=[0.05])
    assert math.isnan(scores.long_mean_s(view))


def test_a_changing_link_is_used_as_far_as_it_could_carry() -> None:
    view = seen({"tcp": (0, [4.0] * 10)})
    cast(Any, view.trial).scenario = SimpleNamespace(measure_from_s=5.0)
    view.__dict__["capacity"] = Capacity((0.0, 7.5), (6.0, 2.0))  # 4 in the second half
    assert scores.CELLULAR_SCORES[0].of(view) == pytest.approx(100 * 2.0 / 4.0)


def changed_at_4(rates: list[float], backlog: list[float]) -> TrialView:
    """A flow whose path changes at second 4, with the mean backlog of each second."""
    view = seen({"tcp": (0, rates)})
    cast(Any, view.trial).scenario = SimpleNamespace(measure_from_s=4.0)
    view.__dict__["backlog_packets"] = lambda: pd.Series(backlog)
    return view


def test_a_path_has_settled_when_its_rate_and_its_queue_are_those_of_the_end() -> None:
    slow = [10.0] * 4 + [2.0, 4.0, 8.0, 9.5, 9.5, 9.5]
    assert scores.settling_s(changed_at_4(slow, [0.0] * 10)) == 4.0
    full = [0.0] * 4 + [60.0, 60.0, 20.0, 20.0, 20.0, 20.0]
    assert scores.settling_s(changed_at_4([10.0] * 4 + [9.5] * 6, full)) == 3.0


def test_what_is_sent_again_beyond_what_was_dropped_is_needless() -> None:
    view = seen({"tcp": (0, [9.0])})
    counts = {"sent_packets": [1000.0], "retransmitted": [30.0], "drop_rate": [0.0101]}
    score = next(each for each in scores.REORDERING_SCORES if each.name == "needless")
    assert score.of(TrialView(view.trial, pd.DataFrame(counts), view.digest)) == 2.0
    counts["retransmitted"] = [5.0]
    assert score.of(TrialView(view.trial, pd.DataFrame(counts), view.digest)) == 0.0


def outcome(values: dict[str, list[float]], **axes: object) -> pd.DataFrame:
    """One setting: each subject's values by seed."""
    rows = [
        {SUBJECT: name, "seed": seed, "x": value, **axes}
        for name, by_seed in values.items()
        for seed, value in enumerate(by_seed, start=1)
    ]
    return pd.DataFrame(rows)


def test_subjects_are_compared_over_the_settings_that_both_have() -> None:
    both = outcome({"a": [1.0, 2.0], "b": [3.0, 5.0]}, axis_n=1)
    alone = outcome({"a": [100.0, 100.0]}, axis_n=2)
    table = pd.concat([both, alone])
    assert over_settings(table, "a", "x") == {1: 50.5, 2: 51.0}
    assert in_settings(table, "a", "b", "x") == ([{1: 1.0, 2: 2.0}], [{1: 3.0, 2: 5.0}])


def test_a_setting_that_differs_from_another_is_no_error_of_the_comparison() -> None:
    """Two settings with very different values, and a difference of one in each."""
    low = outcome({"a": [2.0, 2.1, 1.9], "b": [1.0, 1.2, 0.8]}, axis_n=1)
    high = outcome({"a": [101.0, 101.2, 100.9], "b": [100.1, 100.0, 100.0]}, axis_n=2)
    comparison = compare_in_settings(*in_settings(pd.concat([low, high]), "a", "b", "x"))
    assert comparison.difference == pytest.approx(1.0) and comparison.n_a == 6
    assert comparison.low > 0.8 and comparison.p < 0.001


def test_a_seed_without_all_settings_does_not_count() -> None:
    table = pd.concat(
        [outcome({"a": [1.0, math.nan]}, axis_n=1), outcome({"a": [3.0, 9.0]}, axis_n=2)]
    )
    assert over_settings(table, "a", "x") == {1: 2.0}


def harm_rows(throughput: dict[tuple[str, str], float], seed: int = 1) -> pd.DataFrame:
    rows = [
        {
            SUBJECT: one,
            VICTIM: victim,
            "seed": seed,
            "throughput_mbps": value,
            "queue_mean_ms": 10.0 / value,
            "drop_rate": 0.0,
        }
        for (one, victim), value in throughput.items()
    ]
    return pd.DataFrame(rows)


def test_harm_is_what_a_victim_loses_of_what_it_has_alone() -> None:
    """Ware and others (2019): (x - y) / x of throughput, (y - x) / y of delay and losses."""
    rows = harm_rows({
        ("a", ALONE): 10.0, ("a", "a"): 5.0, ("b", "a"): 1.0, ("c", "a"): 40.0, ("a", "b"): 4.0,
    })  # fmt: skip
    harms = with_harm(rows, HARM_SCORES).set_index([SUBJECT, VICTIM])
    assert ALONE not in harms.index.get_level_values(VICTIM)
    harmed = [("a", "a"), ("b", "a"), ("c", "a")]
    assert list(harms["throughput_mbps"][harmed]) == pytest.approx([50.0, 90.0, -100.0])
    assert list(harms["queue_mean_ms"][harmed]) == pytest.approx([50.0, 90.0, -100.0])
    assert list(harms["drop_rate"][harmed]) == [0.0, 0.0, 0.0]
    assert math.isnan(harms["throughput_mbps"]["a", "b"])  # b was never alone


@pytest.mark.parametrize(
    ("alone", "beside", "harm"), [(0.0, 0.1, 100.0), (0.1, 0.0, -100.0), (0.02, 0.08, 75.0)]
)
def test_harm_by_losses_of_none(alone: float, beside: float, harm: float) -> None:
    rows = harm_rows({("a", ALONE): 1.0, ("b", "a"): 1.0}).assign(drop_rate=[alone, beside])
    assert list(with_harm(rows, HARM_SCORES)["drop_rate"]) == pytest.approx([harm])


@pytest.mark.parametrize(
    ("beside", "statement"),
    [(5.2, "deployable"), (5.0, "deployable"), (4.2, "more harmful"), (4.52, "open")],
)
def test_a_variant_is_deployable_that_harms_no_more_than_the_others_own_kind(
    beside: float, statement: str
) -> None:
    """Two of a have 5 of 10 Mbit/s each: the margin of five points is at 4.5."""
    shake = (0.0, 0.3, -0.3, 0.15, -0.15, 0.1, -0.1, 0.2)
    rows = pd.concat(
        harm_rows({("a", ALONE): 10.0, ("a", "a"): 5.0, ("b", "a"): beside + each / 2}, seed)
        for seed, each in enumerate(shake)
    )
    comparisons = harm_comparisons(with_harm(rows, HARM_SCORES), HARM_SCORES[:1])
    (only,) = [each for each in comparisons if each.own]
    assert (only.harming, only.harmed, only.deployable) == ("b", "a", statement)
    words = [cell.words for cell in deployability_sheet([only]).rows[0]]
    assert words[1:3] == ["b", "a"] and words[4] == "50" and words[-1] == statement


def test_a_flow_alone_has_the_link_to_itself() -> None:
    trials = EXPERIMENTS["harm"].scenarios({"victim": [ALONE], "variant": ["bbr"]}, 1, quick=True)
    ((flow,),) = (trial.flows for trial in trials)
    assert (flow.name, flow.variant) == ("victim", "bbr")


def judged(comparison: Comparison, better: int, p_holm: float) -> str:
    return str(standing._standing(comparison, score(better), p_holm))


def test_the_words_follow_the_sign_the_correction_and_what_is_better() -> None:
    more = compare_paired({1: 5.0, 2: 5.1, 3: 5.2}, {1: 1.0, 2: 1.2, 3: 1.1})
    assert judged(more, MORE, 0.01) == "better"
    assert judged(more, LESS, 0.01) == "worse"
    assert judged(more, MORE, 0.2) == "not separable"
    same = compare_paired({1: 5.0, 2: 5.0}, {1: 5.0, 2: 5.0})
    assert judged(same, MORE, math.nan) == "the same"
    assert judged(compare_paired({1: 5.0}, {1: 4.0}), MORE, math.nan) == "not known"
    two = compare_paired({1: 5.0, 2: 5.1}, {1: 4.0, 2: 4.2})
    assert judged(two, MORE, 0.01) == "not known"


def test_an_evaluation_without_a_valid_trial_says_nothing() -> None:
    good = pd.DataFrame({"kind": [], "trial": [], "axis_variant": []})
    empty: Any = StandIn(
        experiment="harm",
        definition=EXPERIMENTS["harm"],
        trials=(),
        good=good,
        digest=pd.DataFrame(),
        varied=lambda: ["variant"],
    )
    lines = standing.standings([empty], "bbr", ["cubic"])
    assert len(lines) == len(HARM_SCORES) and all(math.isnan(line.mean) for line in lines)
    assert {line.beside[0].standing for line in lines} == {standing.Standing.UNKNOWN}
    assert standing.text_table(lines, "bbr", ["cubic"]).rows


def test_a_subject_beside_itself_has_other_seeds() -> None:
    """Its later seeds are a rival's, paired with the first ones; nothing runs twice."""
    itself = evaluation.standard_evaluation("cubic", "", ["cubic", "cubic"])
    assert itself.settings(EXPERIMENTS["harm"]) == {
        "variant": ("cubic",),
        "victim": ("cubic", ALONE),
    }
    table = outcome({"cubic": [1.0, 2.0, 3.0, 5.0]})
    name = standing.rival_names("cubic", itself.others)[0]
    (line,) = standing.score_lines(
        "x", with_second_half(table, "cubic", name), [score()], "cubic", [name]
    )
    assert (line.mean, line.beside[0].found.difference) == (1.5, -2.5)


def test_a_screen_has_what_differs_and_names_the_rest() -> None:
    def line(experiment: str, stands: standing.Standing) -> standing.ScoreLine:
        comparison = compare_paired({1: 1.0, 2: 1.1, 3: 0.9}, {1: 2.0, 2: 2.3, 3: 2.2})
        beside = (standing.RivalComparison("cubic", comparison, stands),)
        return standing.ScoreLine(experiment, score(), 1.0, 3, beside)

    better, worse, open_ = (standing.Standing(e) for e in ("better", "worse", "not separable"))
    lines = [line("a", open_), line("b", worse), line("c", better), line("a", open_)]
    table = standing.screen(lines, "bbr", ["cubic"])
    assert [row[0] for row in table.rows] == ["c", "b"]
    assert table.note.endswith("Not better or worse: a (2).")
    assert len(standing.text_table(lines, "bbr", ["cubic"]).rows) == 4


def test_no_interval_has_what_is_not_possible() -> None:
    far = compare_paired({1: 5.0, 2: 95.0, 3: 50.0}, {1: 90.0, 2: 1.0, 3: 80.0})
    beside = standing.RivalComparison("cubic", far, standing.Standing.OPEN)
    jain_score = replace(score(), most=100.0)
    assert far.low < -100 and far.high > 100
    assert standing.words(beside, jain_score) == "-7 (-100 … 100): not separable"
    assert standing.words(beside, replace(score(), harm=MORE)).startswith("-7 (-200 … ")
    (row,) = findings.sheet(outcome({"bbr": [5.0, 95.0, 99.0]}), [jain_score]).rows
    assert row[-1].words == "66.33 (0 … 100)"


def test_less_than_a_step_of_the_scale_is_no_difference() -> None:
    """Two settings' times in whole seconds, one of which differs in every seed."""
    half = compare_paired(dict.fromkeys((1, 2, 3), 5.5), dict.fromkeys((1, 2, 3), 5.0))
    whole = replace(score(LESS), step=1.0)
    assert standing._standing(half, whole, 0.0) == "not separable"
    assert standing._standing(half, score(LESS), 0.0) == "worse"
    more = compare_paired(dict.fromkeys((1, 2, 3), 7.0), dict.fromkeys((1, 2, 3), 5.0))
    assert standing._standing(more, whole, 0.0) == "worse"
    tiny = compare_paired({1: 99.95, 2: 99.96, 3: 99.94}, {1: 99.9, 2: 99.91, 3: 99.91})
    assert standing._standing(tiny, scores.UTILISATION, 0.0) == "not separable"
    assert standing._standing(tiny, score(), 0.0) == "better"


def test_the_sentence_is_made_of_the_rows() -> None:
    rows = {"a": [1.0, 1.1, 0.9], "b": [9.0, 9.1, 9.2]}
    assert (
        findings.sentence(outcome(rows), [score()])
        == "X is best with b, 9.1 %, and worst with a, 1 %."
    )
    assert findings.sentence(outcome(rows), [score(LESS)]).startswith("X is best with a, 1 %")
    wide = outcome({"a": [1000.0, 1500.0], "b": [9.0, 9.0]})
    assert "best with a, 1.25e+03 %, and worst with b, 9 %" in findings.sentence(wide, [score()])


def test_the_sentence_has_no_mean_over_unlike_settings() -> None:
    with_losses = outcome({"a": [1.0, 3.0], "b": [9.0, 9.0]}, axis_loss=1)
    without = outcome({"a": [90.0, 92.0], "b": [95.0, 95.0]}, axis_loss=0)
    said = findings.sentence(pd.concat([with_losses, without]), [score()])
    assert said == "X is best with b, 9 to 95 %, and worst with a, 2 to 91 %."
    best_without = outcome({"a": [97.0, 97.0], "b": [95.0, 95.0]}, axis_loss=0)
    third = outcome({"a": [5.0], "b": [6.0]}, axis_loss=2)
    said = findings.sentence(pd.concat([with_losses, best_without, third]), [score()])
    # of the settings in which it is so, and no others
    assert said == (
        "X is best with b in 2 of 3 settings, 6 to 9 %, and worst with a in 2 of 3 settings, "
        "2 to 5 %."
    )


def test_what_is_equally_good_is_neither_best_nor_worst() -> None:
    def settings(*values: dict[str, float]) -> pd.DataFrame:
        tables = [
            outcome({name: [value] for name, value in each.items()}, axis_n=n)
            for n, each in enumerate(values)
        ]
        return pd.concat(tables)

    full = {"bbr": 100.0, "cubic": 100.0}
    one = settings(full, {"bbr": 99.0, "cubic": 80.0}, full)
    assert findings.sentence(one, [score()]) == (
        "X is best with bbr in 1 of 3 settings, 99 %, and worst with cubic in 1 of 3 settings, "
        "80 %."
    )
    stepped = replace(score(), step=0.5)
    close = settings({"bbr": 99.9, "cubic": 100.0})
    assert findings.sentence(close, [stepped]) == "X: the same of all (99.9 to 100 %)."
    two = settings({"bbr": 99.9, "cubic": 100.0, "reno": 50.0})
    assert findings.sentence(two, [stepped]) == (
        "X is best with bbr and cubic, 99.9 to 100 %, and worst with reno, 50 %."
    )
    turns = settings({"bbr": 1.0, "cubic": 2.0}, {"bbr": 2.0, "cubic": 1.0})
    assert findings.sentence(turns, [score()]) == "X: which is best depends on the setting."


def test_every_evaluation_has_scores_and_is_an_experiment() -> None:
    evaluations = [each for each in EXPERIMENTS.values() if each.compares]
    assert len(evaluations) == 23
    for each in evaluations:
        assert each.scores and all(isinstance(score, Score) for score in each.scores())
        assert set(each.compares) <= set(each.axes)
    others = [each for each in EXPERIMENTS.values() if each.scores and not each.compares]
    assert [each.space is not None for each in others] == [True]  # its settings are drawn


class Recorded(RunListener):
    """Keeps what is said."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def say(self, line: str) -> None:
        self.lines.append(line)


def test_each_run_is_an_ordinary_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Its settings are those of `testbed run`, and it is recorded as such."""
    commands = []

    def carried_out(run: PlannedRun, command: str, _listener: RunListener) -> CompletedRun:
        commands.append(command)
        assert run.options == RunOptions(seeds=2, jobs=3, out=tmp_path, name="evaluate-veno")
        assert {task.scenario.axes["variant"] for task in run.tasks} == {"veno", "cubic"}
        return CompletedRun(tmp_path / run.selection.name, [])

    monkeypatch.setattr(orchestration, "carry_out", carried_out)
    listener, ended = Recorded(), list[str]()
    wanted = evaluation.standard_evaluation("veno", "", ["cubic"])
    folders = evaluation.evaluate(
        wanted,
        [EXPERIMENTS["harm"], EXPERIMENTS["aqm"]],  # of queues alone: not for a variant
        RunOptions(seeds=2, jobs=3, out=tmp_path),
        listener,
        quick=True,
        command=["--jobs", "3"],
        after_each=lambda run, _done: ended.append(run.selection.name),
    )
    assert folders == [tmp_path / "harm"] and ended == ["harm"]
    assert listener.lines[0] == "evaluation 1 of 1: harm"
    assert commands == [
        "testbed run harm --seeds 2 --name evaluate-veno --quick "
        "--set variant=veno,cubic --set victim=veno,cubic,alone --jobs 3"
    ]


def test_queues_are_compared_with_one_variant() -> None:
    wanted = evaluation.standard_evaluation("", "codel")
    assert wanted.settings(EXPERIMENTS["parking-lot"]) == {
        "queue": ("codel", "pfifo", "fq_codel", "pie"),
        "variant": ("cubic",),
    }


def test_a_cost_counts_the_trials_that_do_not_exist(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    wanted = evaluation.standard_evaluation("", "codel", ["pfifo"])
    experiments = [EXPERIMENTS["parking-lot"]]
    before = evaluation.evaluation_cost(wanted, experiments, 1, quick=True)
    assert before.trials > 1 and before.existing == 0 and before.seconds > 0
    (name, *_) = (
        each.name for each in experiments[0].scenarios(wanted.settings(experiments[0]), 1, True)
    )
    (tmp_path / "results" / "parking-lot" / f"{name}-guest").mkdir(parents=True)
    after = evaluation.evaluation_cost(wanted, experiments, 1, quick=True)
    assert after.existing == 1 and after.seconds < before.seconds


@pytest.mark.parametrize(
    ("control", "queue", "against", "message"),
    [
        ("", "", (), "name a congestion control"),
        ("", "codle", (), "unknown queue"),
        ("", "codel", ("bbr",), "unknown queue"),
        ("Veno!", "", (), "unknown variant"),
    ],
)
def test_typing_errors_are_refused_before_anything_runs(
    control: str, queue: str, against: Sequence[str], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        evaluation.standard_evaluation(control, queue, against)


def test_an_evaluation_has_its_kernel_and_single_values() -> None:
    exact = evaluation.standard_evaluation("veno", "", ["cubic"])
    chosen = [EXPERIMENTS["lossy"], EXPERIMENTS["harm"]]
    wanted = evaluation.with_settings(exact, {"kernel": ["6.12"], "burst": ["4"]}, chosen)
    assert wanted.name == "evaluate-veno-6.12"
    assert wanted.settings(EXPERIMENTS["lossy"]) == {
        "variant": ("veno", "cubic"),
        "burst": ("4",),
        "kernel": ("6.12",),
    }
    (kernel,) = {each.kernel for each in wanted.selection(chosen[1], quick=True).scenarios(1)}
    assert kernel == "6.12"
    assert "burst" not in wanted.settings(EXPERIMENTS["harm"])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"brust": ["4"]}, "no evaluation has such an axis"),
        ({"burst": ["1", "4"]}, "an evaluation has one value of it"),
        ({"variant": ["bbr"]}, "an evaluation has one value of it"),
    ],
)
def test_wrong_settings_of_an_evaluation(settings: dict[str, list[str]], message: str) -> None:
    exact = evaluation.standard_evaluation("veno", "", ["cubic"])
    with pytest.raises(UsageError, match=message):
        evaluation.with_settings(exact, settings, [EXPERIMENTS["lossy"]])


def test_a_kernel_without_the_control_is_told_before_anything_runs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "config").write_text("CONFIG_TCP_CONG_CUBIC=y\n")
    monkeypatch.setattr(kernels, "built_folder", lambda _name: tmp_path)
    exact = evaluation.standard_evaluation("copa", "", ["cubic"])
    with pytest.raises(UsageError, match=r"kernel mine has no congestion control copa"):
        evaluation.check_controls(replace(exact, kernel="mine"))


def lot(goodput: float) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "trial": ["t"],
            "flow": ["long"],
            "variant": ["cubic"],
            "axis_variant": ["cubic"],
            "axis_bottlenecks": [3.0],
            "throughput_mbps": [goodput],
        }
    )


def results(experiment: str, tcp: pd.DataFrame, rate_mbit: float) -> Any:
    """What a law reads of a results."""
    bottleneck = SimpleNamespace(trace=None)
    network = SimpleNamespace(bottleneck_mbit=rate_mbit, bottleneck=bottleneck)
    trial = SimpleNamespace(scenario=SimpleNamespace(network=network))
    definition = EXPERIMENTS[experiment]
    parts = {"experiment": experiment, "definition": definition}
    return StandIn(**parts, tcp=tcp, good=tcp, trials=(trial,))


def test_theory_stands_beside_ours_with_the_difference() -> None:
    (law,) = theory.laws(results("parking-lot", lot(2.0), 10.0))
    assert (law.theory, list(law.ours)) == (5.0, [2.0])
    (row,) = theory.sheet((law,)).rows
    assert [cell.words for cell in row][2:] == ["5", "2", "-60"]


def test_models_speak_of_the_loss_and_the_round_trip_that_were_seen() -> None:
    rows = lot(1.0).assign(
        axis_burst=1.0, axis_loss_percent=1.0, rtt_mean_ms=40.0, axis_variant="linux-reno"
    )
    (law,) = theory.laws(results("lossy", rows, 10.0))
    assert law.theory == pytest.approx(math.sqrt(1.5 / 0.01) / 0.04 * 8 * 1514 / 1e6)


def test_a_shared_link_slows_long_transfers_down_by_its_load(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = lot(1.0).assign(axis_queue="fq_codel", axis_load=0.75)
    transfers = pd.DataFrame(
        {
            "trial": "t",
            "size_class": ["long", "long", "long", "short"],
            "state": ["finished", "finished", "unfinished", "finished"],
            "slowdown": [3.0, 4.0, math.nan, 9.0],
        }
    )
    monkeypatch.setattr(theory, "transfers_of", lambda trials: transfers)
    (law,) = theory.laws(results("completion", rows, 10.0))
    assert (law.theory, list(law.ours)) == (4.0, [3.5])
    assert not theory.laws(results("completion", rows.assign(axis_queue="pfifo"), 10.0))


def test_a_trace_bounds_what_is_carried() -> None:
    rows = lot(1.0).assign(axis_trace="even")
    given = results("cellular", rows, 10.0)
    given.trials[0].path = SimpleNamespace(name="t")
    given.trials[0].scenario.network.bottleneck.trace = "1*2 4"  # 3 frames in 4 ms
    (law,) = theory.laws(given)
    assert law.theory == pytest.approx(3 * 1514 * 8e-3 / 4)


def test_an_experiment_without_a_law_has_none() -> None:
    assert theory.laws(results("harm", lot(1.0), 10.0)) == ()


def test_what_a_realistic_network_changes_is_said() -> None:
    def line(mean: float, stands: standing.Standing) -> standing.ScoreLine:
        comparison = compare_paired({1: 1.0, 2: 2.0}, {1: 0.0, 2: 0.5})
        beside = (standing.RivalComparison("cubic", comparison, stands),)
        return standing.ScoreLine("ecn", score(), mean, 2, beside)

    better, open_ = standing.Standing.BETTER, standing.Standing.OPEN

    def said(one: standing.ScoreLine, other: standing.ScoreLine) -> list[str]:
        return list(standing.changes([one], [other]))

    same = "0 of 1 comparisons are judged otherwise"
    assert said(line(1.0, better), line(1.2, better)) == [same]
    assert said(line(1.0, better), line(1.3, better)) == ["ecn, x (%): 1 becomes 1.3", same]
    assert said(line(math.nan, better), line(1.0, better)) == [same]
    assert said(line(1.0, better), line(1.0, open_)) == [
        "ecn, x (%): 1 becomes 1; beside cubic: better becomes not separable",
        "1 of 1 comparisons are judged otherwise",
    ]


def test_a_realistic_evaluation_has_a_name_and_trials_of_its_own() -> None:
    exact = evaluation.standard_evaluation("bbr", "", ("cubic",))
    made = replace(exact, realistic=True)
    assert (exact.name, made.name) == ("evaluate-bbr", "evaluate-bbr-realistic")
    (experiment, *_) = exact.experiments(EXPERIMENTS.values())
    trials = made.selection(experiment, quick=True).scenarios(1)
    assert trials and all(each.realistic for each in trials)
    assert not any(e.realistic for e in exact.selection(experiment, quick=True).scenarios(1))
