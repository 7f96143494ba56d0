"""What claims select of a table: each part once, and no part for another."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from analysis.claims.samples import Selection, means, usable
from tests import claims_tables as made


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    return usable(made.load_metrics("large", seeds=2))


def chosen(selection: Selection, **axes: object) -> list[int]:
    return list(selection.where(axes).rows.index)


@pytest.mark.parametrize(
    ("axis", "column", "values"),
    [
        ("variant", "axis_variant", (["reno"], ["vegas"], ["vegas", "reno"], ["none"])),
        ("cbr_mbit", "axis_cbr_mbit", ([1], [10], ["1"], [1, 10])),
        ("seed", "seed", ([1], [2])),
        ("flow", "flow", (["tcp"], ["cbr"])),
    ],
)
def test_each_part_is_its_own(
    rows: pd.DataFrame, axis: str, column: str, values: tuple[list[object], ...]
) -> None:
    whole = Selection(rows)
    for _ in range(2):  # the second time from what was selected before
        for wanted in values:
            assert chosen(whole, **{axis: wanted}) == list(rows.index[rows[column].isin(wanted)])


def test_an_axis_is_no_other_with_the_same_value(rows: pd.DataFrame) -> None:
    whole = Selection(rows)
    for axis, column in (("seed", "seed"), ("cbr_mbit", "axis_cbr_mbit")):
        assert chosen(whole, **{axis: 1}) == list(rows.index[rows[column] == 1])


def test_the_same_part_is_selected_once(rows: pd.DataFrame) -> None:
    whole = Selection(rows)
    reno = whole.where({"flow": "tcp", "variant": "reno"})
    assert whole.where({"flow": ("tcp",)}).where({"variant": ["reno"]}) is reno
    assert whole.where({}) is whole


def test_a_part_of_a_part_is_of_both(rows: pd.DataFrame) -> None:
    whole = Selection(rows)
    both = (rows["flow"] == "tcp") & (rows["axis_variant"] == "reno")
    assert chosen(whole, flow="tcp", variant="reno") == list(rows.index[both])
    assert chosen(whole, variant="reno") == list(rows.index[rows["axis_variant"] == "reno"])


def test_values_are_those_of_the_part(rows: pd.DataFrame) -> None:
    whole = Selection(rows)
    for _ in range(2):
        assert whole.values("variant") == ("newreno", "reno", "tahoe", "vegas")
        assert whole.where({"variant": "reno"}).values("variant") == ("reno",)
        assert whole.values("cbr_mbit") == tuple(range(1, 11))
        assert whole.values("none") == ()


def test_texts_are_pythons(rows: pd.DataFrame) -> None:
    """Arrow's columns are selected one by one: several times the time."""
    assert {str(dtype) for dtype in rows.dtypes} == {"object", "float64", "int64"}


@pytest.mark.parametrize("known", [1.0, 0.9, 0.0])
def test_means_are_those_of_a_pivot_table(rows: pd.DataFrame, known: float) -> None:
    """To the last digit, also where values are missing, or all of them."""
    dice = np.random.default_rng(1)
    noise = np.where(dice.random(len(rows)) < known, dice.random(len(rows)), np.nan)
    some = rows.assign(goodput_mbps=noise)
    found = means(some, "goodput_mbps", ["seed", "axis_order"], "axis_cbr_mbit")
    table = some.pivot_table(
        index=["seed", "axis_order"], columns="axis_cbr_mbit", values="goodput_mbps"
    )
    pd.testing.assert_frame_equal(found, table.dropna(), check_exact=True)
    assert found.empty == (known == 0)
