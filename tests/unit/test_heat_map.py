"""Maps of two numeric axes: when there is one, what it shows, and what its title says."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from analysis.figures.figure import Boxes
from analysis.figures.general import heat_map

AXES = ("rtt_ms", "buffer_bdp")
RTTS, BUFFERS = (20.0, 40.0, 80.0), (0.5, 2.0)


def rows(goodput: Callable[[float, float], float], name: str = "cubic") -> pd.DataFrame:
    """A trial for each combination."""
    return pd.DataFrame(
        {
            "series": name,
            "trial": f"{rtt}-{buffer}",
            "verdict": "valid",
            "axis_rtt_ms": rtt,
            "axis_buffer_bdp": buffer,
            "goodput_mbps": goodput(rtt, buffer),
            "owd_mean_ms": rtt / 2,
        }
        for rtt, buffer in itertools.product(RTTS, BUFFERS)
    )


def test_a_map_has_every_combination_in_its_place_and_shade() -> None:
    made = heat_map.figure(rows(lambda rtt, buffer: buffer * 100 / rtt), AXES, "series")
    (goodput,), (delay,) = made.panels
    assert goodput is not None and delay is not None
    (cells,) = goodput.marks
    assert isinstance(cells, Boxes)
    corners = zip(np.ravel(cells.left), np.ravel(cells.bottom), strict=True)
    shown = dict(zip(corners, cells.texts, strict=True))
    assert shown[-0.5, 0.5] == "10" and shown[1.5, -0.5] == "0.625"
    shades = dict(zip(cells.texts, np.ravel(cells.opacities), strict=True))
    assert shades["10"] == pytest.approx(heat_map.DARKEST)
    assert shades["0.625"] == pytest.approx(heat_map.PALEST)
    assert (goodput.x.names, goodput.y.names) == (["20", "40", "80"], ["0.5", "2"])


@pytest.mark.parametrize(
    ("goodput", "said"),
    [
        (
            lambda rtt, buffer: 200 / rtt + buffer / 10,
            "Goodput falls from 10.1 to 2.62 Mbit/s as RTT grows from 20 to 80 ms; "
            "buffer changes it by 0.15.",
        ),
        (
            lambda _rtt, buffer: 4 * buffer,
            "Goodput rises from 2 to 8 Mbit/s as buffer grows from 0.5 to 2 BDP; "
            "RTT changes it by 0.",
        ),
        (lambda _rtt, _buffer: 9.5, "Neither RTT nor buffer changes goodput by 5 %."),
    ],
)
def test_the_title_says_what_decides(goodput: Callable[[float, float], float], said: str) -> None:
    assert heat_map.figure(rows(goodput), AXES, "series").title == said


def test_of_several_series_the_title_is_about_the_one_that_changes_most() -> None:
    both = pd.concat([rows(lambda rtt, _: 200 / rtt), rows(lambda *_: 9.0, "bbr")])
    assert heat_map.figure(both, AXES, "series").title.startswith("Cubic's goodput falls")


def test_there_is_no_map_of_few_cells_of_names_or_of_one_axis_twice() -> None:
    table = rows(lambda *_: 1.0)
    assert heat_map.axes_of(table, AXES) == AXES
    assert heat_map.axes_of(table[table["axis_rtt_ms"] < 80], AXES) is None
    assert heat_map.axes_of(table.assign(axis_rtt_ms=table["axis_rtt_ms"].map(str)), AXES) is None
    same = table.assign(axis_buffer_bdp=table["axis_rtt_ms"] * 2)
    assert heat_map.axes_of(same, AXES) is None
