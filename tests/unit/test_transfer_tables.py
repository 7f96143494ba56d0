"""Transfers summed up: the table for the terminal, and the figure."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from analysis.figures import style
from analysis.figures.general.transfer_times import SERIES, _caption, panels
from analysis.statistics.text_tables import transfers_summary


def transfers(variant: str, slowdown: float, unfinished: int = 0, **more: object) -> pd.DataFrame:
    """A hundred short transfers, of which the last ones are unfinished, and a long one."""
    done = np.arange(101) < 100 - unfinished
    done[100] = True
    known = np.where(done, slowdown, np.nan)
    return pd.DataFrame(
        {
            "trial": variant, "verdict": "valid", "label": "x", "flow": "web", "variant": variant,
            SERIES: variant, "size_class": ["short"] * 100 + ["long"],
            "state": np.where(done, "finished", "unfinished"),
            "completion_s": known * 0.04, "slowdown": known, "retransmissions": 1.0, **more,
        }
    )  # fmt: skip


def test_the_table_has_a_line_for_each_variant_and_size() -> None:
    table = transfers_summary(pd.concat([transfers("cubic", 2), transfers("bbr", 3, 7)]))
    assert [row[:4] for row in table.rows] == [
        ("cubic", "short", "100", "0"),
        ("cubic", "long", "1", "0"),
        ("bbr", "short", "100", "7"),
        ("bbr", "long", "1", "0"),
    ]
    assert table.rows[2][4:] == ("120", "120", "3.00", "3.00", "100")


def test_invalid_trials_are_not_in_the_table() -> None:
    assert not transfers_summary(transfers("cubic", 2, verdict="invalid")).rows


@pytest.mark.parametrize("slowdown", [np.nan, 1e-12])
def test_numbers_that_are_not_known_or_next_to_nothing(slowdown: float) -> None:
    assert len(transfers_summary(transfers("cubic", slowdown)).rows) == 2


def test_equal_medians_are_no_matter() -> None:
    parts = [("", pd.concat([transfers("cubic", 2), transfers("bbr", 2)]))]
    data = panels(parts, style.series_styles(["cubic", "bbr"])).data
    assert _caption(data).startswith(
        "Of the transfers, half of the short ones take 2 times as long with cubic, 2 times"
    )


def test_a_curve_ends_at_the_part_that_finished() -> None:
    parts = [("queue bfifo", pd.concat([transfers("cubic", 2), transfers("bbr", 3, 20)]))]
    figure = panels(parts, style.series_styles(["cubic", "bbr"]))
    assert figure.data is not None
    short = figure.data[figure.data["size"] == "short"]
    assert short.groupby(SERIES)["share"].max().to_dict() == {"cubic": 1.0, "bbr": 0.8}
    row = [panel for panel in figure.panels[0] if panel is not None]
    assert [panel.title.partition(":")[0] for panel in row] == ["short", "long"]
    assert {panel.x.scale for panel in row} == {"log"}
