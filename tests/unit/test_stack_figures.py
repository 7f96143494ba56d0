"""Envelopes and conformance, whose definition is QUICbench's, and the matrix of shares."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from analysis.figures.figure import Boxes
from experiments.stacks import stack_figures
from experiments.stacks.envelope import Points, conformance, envelope
from experiments.stacks.stack_figures import Conformity, shares, sharing_figures
from experiments.stacks.stack_trials import kernels_own, sharing_trial
from testbed.errors import UsageError


def grid(left: float, bottom: float, side: int = 20) -> Points:
    """A square of points, one unit apart, with twenty more far outside that do not count."""
    places = np.arange(side, dtype=float)
    x, y = (each.ravel() for each in np.meshgrid(left + places, bottom + places))
    square = np.column_stack((x, y))
    far = np.array([[1000.0, 1000.0], [-1000.0 + 2 * left + side, -1000.0 + 2 * bottom + side]])
    return np.concatenate((square, np.repeat(far, 10, axis=0)))


def test_outliers_are_no_part_of_an_envelope() -> None:
    found = envelope(grid(0, 0))
    assert len(found.points) == 420 and len(found.nearest) == 399
    assert found.hull.min() == 0 and found.hull.max() == 19


@pytest.mark.parametrize(
    ("right", "expected"),
    [(0, 1.0), (100, 0.0), (10, 0.5)],  # half of each square is in the other one
)
def test_conformance_is_the_share_of_points_in_the_others_hull(
    right: float, expected: float
) -> None:
    one, other = envelope(grid(0, 0)), envelope(grid(right, 0))
    assert conformance(one, other) == pytest.approx(expected, abs=0.02)
    assert conformance(other, one) == conformance(one, other)


def test_points_on_a_line_have_an_envelope() -> None:
    line = np.column_stack((np.arange(40.0), np.zeros(40)))
    assert conformance(envelope(line), envelope(line)) == 1


def results(*rows: tuple[str, str, float]) -> Any:
    names = ("axis_pair", "flow", "share")
    return SimpleNamespace(
        good=pd.DataFrame(rows, columns=names), engine="guest", key="stack-sharing"
    )


def test_a_pair_is_two_cells_and_one_beside_itself() -> None:
    found = results(
        ("cubic/quinn:bbr", "one", 0.1),
        ("cubic/quinn:bbr", "other", 0.9),
        ("cubic/quinn:bbr", "one", 0.2),
        ("cubic/quinn:bbr", "other", 0.8),
        ("cubic/cubic", "one", 0.6),
        ("cubic/cubic", "other", 0.4),
    )
    percent = {(each.one, each.other): round(each.mean) for each in shares(found)}
    assert percent == {
        ("cubic", "quinn:bbr"): 15,
        ("quinn:bbr", "cubic"): 85,
        ("cubic", "cubic"): 60,
    }
    (figure,) = sharing_figures(found)
    (panel,) = figure.all_panels
    assert (panel.x.names, panel.y.names) == (["cubic", "quinn:bbr"],) * 2
    (box,) = panel.marks
    assert isinstance(box, Boxes) and [each.split("\n")[0] for each in box.texts] == [
        "15",
        "85",
        "60",
    ]
    assert not list(sharing_figures(results()))


def test_what_a_pair_and_a_counterpart_cannot_be() -> None:
    assert kernels_own("cubic") == "cubic"
    with pytest.raises(UsageError, match="not ONE/OTHER"):
        sharing_trial(pair="cubic", rate_mbit=1, rtt_ms=9, buffer_bdp=1, duration_s=2, seed=1)


def test_the_matrix_names_who_has_more_than_half_beside_each_other() -> None:
    rows = [(f"{one}/{other}", flow, share) for one, other, first in
            (("a", "b", 0.7), ("a", "c", 0.9), ("b", "c", 0.5))
            for flow, share in (("one", first), ("other", 1 - first))]  # fmt: skip
    (figure,) = sharing_figures(results(*rows))
    assert figure.title == "a has 70 to 90 % of both flows' goodput, whoever is beside it"
    (figure,) = sharing_figures(results(*rows[:2], *rows[4:], ("a/c", "one", 0.5)))
    assert figure.title == "Who shares with whom: percent of both flows' goodput"


def test_the_envelopes_name_the_likest_and_the_least_like(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    near, far = envelope(grid(0, 0)), envelope(grid(500, 500))
    between = envelope(grid(10, 0))
    cells = [
        Conformity(name, (20.0, 10.0, bdp), test, near)
        for name, bdp, test in (
            ("a:x", 1, near),
            ("a:x", 3, between),
            ("b:y", 1, far),
            ("b:y", 3, near),
        )
    ]
    monkeypatch.setattr(stack_figures, "conformities", lambda _: cells)
    (figure,) = stack_figures.conformance_figures(results())
    assert figure.title.startswith("Most like the kernel's is a:x (conformance 0.5")
    assert figure.title.endswith(" and least b:y (conformance 0.00 to 1.00)")
    monkeypatch.setattr(stack_figures, "conformities", lambda _: cells[:1])
    (figure,) = stack_figures.conformance_figures(results())
    assert figure.title.startswith("a:x beside the kernel's control of the same kind: conformance")
