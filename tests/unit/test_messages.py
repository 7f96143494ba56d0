"""Figures' titles: sentences that are made of the numbers, and the curves below them."""

from __future__ import annotations

import base64
import json
import zlib
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from analysis.figures.figure import Area, Curve, resolved_limits
from analysis.figures.general import messages, over_time
from analysis.figures.style import styles_of
from analysis.metrics import digest
from analysis.results import page_series
from analysis.trials.series import Floats
from tests.scenarios import dumbbell


def rows(*cells: tuple[str, float, float], **axes: list[str] | list[float]) -> pd.DataFrame:
    table = pd.DataFrame(cells, columns=["variant", "throughput_mbps", "owd_mean_ms"])
    for name, values in axes.items():
        table[f"axis_{name}"] = values
    return table.assign(series=table["variant"])


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (
            rows(("vegas", 0.957, 60), ("cubic", 0.957, 645)),
            "Both get 0.957 Mbit/s, but packets take 11 times as long with Cubic (645 ms) as with "
            "Vegas (60 ms).",
        ),
        (
            rows(("bbr", 83, 40), ("cubic", 4.65, 27)),
            "BBR gets 83 Mbit/s, Cubic 4.65; packets take 27 ms with Cubic, 40 ms with BBR.",
        ),
        (
            rows(("app", 2, 18), ("bulk", 8, 18), ("app", 3, 76), ("bulk", 7, 78),
                 discipline=["fq_codel", "fq_codel", "pfifo", "pfifo"]),
            "With fq_codel, app gets 2 Mbit/s and bulk 8, and packets take 18 ms; with pfifo, "
            "app 3 and bulk 7, and packets take 77 ms.",
        ),
        (
            rows(("cubic", 7.25, 210), ("cubic", 5.97, 229), trace=["step", "driving"]),
            "Cubic gets 7.25 Mbit/s with trace step, 5.97 with trace driving; packets take 210 ms "
            "with trace step, 229 ms with trace driving.",
        ),
        (
            rows(("cubic", 9, 20), ("cubic", 9, 90), queue=["fq_codel", "pfifo"]),
            "Cubic gets 9 Mbit/s with either, but packets take 4.5 times as long with pfifo "
            "(90 ms) as with fq_codel (20 ms).",
        ),
        (rows(("cubic", 9, 20), ("cubic", 8, 20), ("cubic", 7, 20), ("cubic", 6, 20),
              queue=["a", "a", "b", "b"], trace=["x", "y", "x", "y"]), ""),
    ],
)  # fmt: skip
def test_a_comparison_is_said_in_words(table: pd.DataFrame, said: str) -> None:
    assert messages.comparison(table, "series") == said


def test_a_sweep_is_said_by_its_ends() -> None:
    table = rows(("cubic", 9, 1), ("bbr", 9, 1), ("cubic", 2, 1), ("bbr", 9.1, 1),
                 loss_percent=[0.0, 0.0, 1.0, 1.0])  # fmt: skip
    assert messages.by_number_of(table, "series", "loss_percent") == (
        "As loss goes from 0 to 1 %, BBR stays at 9 Mbit/s and Cubic falls from 9 to 2."
    )


def test_trials_of_several_runs_may_have_different_axes() -> None:
    table = rows(("cubic", 9, 1), ("cubic", 8, 1), ("cubic", 4, 1),
                 loss_percent=[0.0, float("nan"), 1.0])  # fmt: skip
    assert messages.by_number_of(table, "series", "loss_percent") == (
        "As loss goes from 0 to 1 %, Cubic falls from 9 to 4 Mbit/s."
    )


def packed_series(kind: str, x: Floats, y: Floats) -> str:
    series = {kind: {"x": page_series.packed(x, 1e-3), "y": page_series.packed(y, 1e-4)}}
    return base64.b64encode(zlib.compress(json.dumps({"tcp": series}).encode())).decode()


def one_trial() -> tuple[Any, pd.DataFrame]:
    """A trial, and its row."""
    path = SimpleNamespace(name="a")
    row = {"trial": "a", "number": 1, "flow": "tcp", "variant": "cubic", "seed": [1]}
    return SimpleNamespace(path=path, scenario=dumbbell()), pd.DataFrame(row)


def test_an_outage_of_half_a_second_is_in_the_curve(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(over_time, "_capacity", lambda *_: None)
    trial, table = one_trial()
    rate = np.array([8.0] * 20 + [0.0] * 5 + [8.0] * 20)
    text = packed_series("throughput", np.linspace(0.0, 4.4, len(rate)), rate)
    found = over_time.figure([("", table)], {1: text}, [trial])
    assert found is not None
    (panel,) = found.all_panels
    (curve,) = (mark for mark in panel.marks if isinstance(mark, Curve))
    assert np.count_nonzero(np.asarray(curve.y) == 0) == 5
    assert resolved_limits(panel)[0] == (0.0, trial.scenario.duration_s)
    assert resolved_limits(panel)[1] == pytest.approx((0.0, 8.4))


def test_a_queue_holds_its_length_until_it_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    """However its changes are spaced: neither a gap nor a slope is between two of them."""
    monkeypatch.setattr(over_time, "_capacity", lambda *_: None)
    x, y = np.array([0.0, 1.0, 1.01, 1.02, 1.03, 1.2, 3.0]), np.arange(7.0)
    trial, table = one_trial()
    found = over_time.figure([("", table)], {1: packed_series("packets", x, y)}, [trial])
    assert found is not None
    ((curve,),) = (panel.marks for panel in found.all_panels)
    assert isinstance(curve, Curve) and curve.steps
    assert np.allclose(curve.x, x) and np.allclose(curve.y, y)
    both = over_time.mean_of([(x, y), (x[1:], y[1:])], sampled=True)
    held = both[(both["time_s"] > 1.21) & (both["time_s"] < 2.99)]
    assert set(held["mean"]) == {5.0} and set(both[both["time_s"] < 0.99]["mean"]) == {0.0}
    look = styles_of(pd.DataFrame({"variant": ["cubic"]}), "variant")["cubic"]
    marks = over_time.mean_curve(both, look, "cubic", steps=True)
    assert [mark.steps for mark in marks if isinstance(mark, Curve | Area)] == [True, True]


@pytest.mark.parametrize("trials", [1, 2])
def test_a_line_of_means_stops_only_where_nothing_was_sent_for_long(trials: int) -> None:
    x = np.delete(np.arange(40) * 0.1, [3, 5, 6, *range(20, 30)])
    curves = [(x[of_trial:], np.ones(len(x) - of_trial)) for of_trial in range(trials)]
    table = over_time.mean_of(curves, sampled=False)
    unknown = table[table["mean"].isna()]["time_s"]
    assert len(unknown) and unknown.between(2, 3).all()


@pytest.mark.parametrize(
    ("mbit", "length_s", "step_s"), [(10, 20, 0.1), (1, 20, 0.5), (0.1, 20, 0)]
)
def test_a_step_is_short_and_carries_twenty_frames(
    mbit: float, length_s: float, step_s: float
) -> None:
    class Network:
        bottleneck_mbit = mbit

    class Scenario:
        network, duration_s = Network, length_s

    trial = type("Trial", (), {"scenario": Scenario})
    assert digest.fine_step_s(trial) == step_s  # type: ignore[arg-type]
