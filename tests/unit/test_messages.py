"""Figures' titles: sentences that are made of the numbers, and the curves below them."""

from __future__ import annotations

import base64
import json
import zlib

import numpy as np
import pandas as pd
import pytest

from analysis.figures.figure import Curve, resolved_limits
from analysis.figures.general import messages, over_time
from analysis.metrics import digest
from analysis.results import page_series
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


def plotted(rate: list[float]) -> str:
    step = 0.1
    series = {
        "throughput": {"x": page_series.packed(np.arange(len(rate)) * step, 1e-3),
                       "y": page_series.packed(rate, 1e-4)}
    }  # fmt: skip
    return base64.b64encode(zlib.compress(json.dumps({"tcp": series}).encode())).decode()


def test_an_outage_of_half_a_second_is_in_the_curve(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(over_time, "_capacity", lambda *_: None)
    table = pd.DataFrame(
        {"trial": "a", "number": 1, "flow": "tcp", "variant": "cubic", "seed": [1]}
    )
    rate = [8.0] * 20 + [0.0] * 5 + [8.0] * 20

    class Trial:
        path = type("Path", (), {"name": "a"})
        scenario = dumbbell()

    found = over_time.figure([("", table)], {1: plotted(rate)}, [Trial()])  # type: ignore[list-item]
    assert found is not None
    (panel,) = found.all_panels
    (curve,) = (mark for mark in panel.marks if isinstance(mark, Curve))
    assert np.count_nonzero(np.asarray(curve.y) == 0) == 5
    assert resolved_limits(panel)[0] == (0.0, Trial.scenario.duration_s)
    assert resolved_limits(panel)[1] == pytest.approx((0.0, 8.4))


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
