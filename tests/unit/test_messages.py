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

from analysis.figures import cases, means
from analysis.figures.figure import Area, Curve, resolved_limits
from analysis.figures.general import load_sweep, messages, over_time
from analysis.figures.style import series_styles, styles_of
from analysis.metrics import digest
from analysis.results import page_series
from analysis.statistics.text_tables import LINK_TABLE_COLUMNS, links_table
from analysis.trials.labels import variant_key
from analysis.trials.series import Floats
from tests.scenarios import dumbbell


def rows(*cells: tuple[str, float, float], **axes: list[str] | list[float]) -> pd.DataFrame:
    table = pd.DataFrame(cells, columns=["variant", "throughput_mbps", "owd_mean_ms"])
    for name, values in axes.items():
        table[f"axis_{name}"] = values
    return table.assign(series=table["variant"], seed=1)


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


@pytest.mark.parametrize(
    ("ends", "said"),
    [
        (([2.1, 3.5, 2.9, 3.3], [1.7, 2.9, 2.2, 2.7]),
         "gets 2.95 and 2.38 Mbit/s, which the seeds do not tell apart"),
        (([2.9, 3.0, 2.9, 3.0], [2.3, 2.4, 2.4, 2.4]), "falls from 2.95 to 2.38 Mbit/s"),
        (([2.9, 3.0], [1.7, 2.9]), "falls from 2.95 to 2.3 Mbit/s"),  # two have no interval
        (([3.0, 3.0, 3.0], [4.0, 4.0, 4.0]), "rises from 3 to 4 Mbit/s"),
        (([3.0, 3.0, 9.0], [8.0, 8.1, 8.0]),  # of two kinds
         "gets 5 and 8.03 Mbit/s, which the seeds do not tell apart"),
    ],
)  # fmt: skip
def test_a_rise_is_said_where_the_intervals_are_apart(
    ends: tuple[list[float], list[float]], said: str
) -> None:
    first, last = ends
    table = rows(*(("cubic", value, 1) for value in (*first, *last)),
                 **{"net.ipv4.tcp_sack": [0.0] * len(first) + [1.0] * len(last)})  # fmt: skip
    table["seed"] = [*range(len(first)), *range(len(last))]
    assert messages.by_number_of(table, "series", "net.ipv4.tcp_sack") == (
        f"As net.ipv4.tcp_sack goes from 0 to 1, Cubic {said}."
    )


def test_a_mean_has_no_more_digits_than_its_values_share() -> None:
    three = rows(("cubic", 7.47, 60), ("bbr", 7.68, 60), ("vegas", 7.71, 60))
    assert messages.comparison(three, "series").startswith("All get about 7.6 Mbit/s;")
    assert messages.spread(three, "series") == "Cubic, BBR and Vegas get 7.47 to 7.71 Mbit/s."
    many = rows(*((f"v{n}", 900.0 + n, 60) for n in range(5)))
    assert messages.comparison(many, "series").startswith("All get about 900 Mbit/s;")
    assert messages.spread(many, "series") == "All 5 get 900 to 904 Mbit/s."


def test_bands_are_whole_and_numbers_in_order() -> None:
    table = pd.DataFrame(
        {"variant": "cubic", "throughput_mbps": [1.0, 5.0, 3.5, 2.0, 2.1, 2.2], "verdict": "valid",
         "axis_loss": [0.0] * 3 + [1.0] * 3}
    )  # fmt: skip
    drawing = load_sweep.figure([("", table)], "loss", [means.THROUGHPUT], "variant")
    (panel,) = drawing.all_panels
    assert resolved_limits(panel)[1][1] > drawing.data["high"].max() > 7
    names = ["32", "4", "10"]
    assert list(series_styles(names)) == sorted(names, key=variant_key) == ["4", "10", "32"]
    links = pd.DataFrame({"label": [f"initcwnd-{name}" for name in sorted(names)],
                          "trial": sorted(names), "link": "a → b"})  # fmt: skip
    links = links.assign(**{column.metric: 1.0 for column in LINK_TABLE_COLUMNS})
    labels = [row[0] for row in links_table(links).rows]
    assert labels == ["initcwnd-4", "initcwnd-10", "initcwnd-32"]
    assert cases.case_words({"net.ipv4.tcp_sack": "0"}) == "net.ipv4.tcp_sack 0"


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
    table = pd.concat([table, table.assign(flow="ping", variant="ping")])
    rate = np.array([8.0] * 20 + [0.0] * 5 + [8.0] * 20)
    text = packed_series("throughput", np.linspace(0.0, 4.4, len(rate)), rate)
    found = over_time.figure([("", table)], {1: text}, [trial])
    assert found is not None
    assert [each.name for each in found.legend] == ["cubic"]  # ping has no line
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
