"""The table that a run prints: what stands in it, and that nothing unlike is averaged."""

from __future__ import annotations

import json
from collections.abc import Mapping
from io import StringIO

import numpy as np
import pandas as pd
import pytest

from analysis.metrics.columns import METRIC_COLUMNS
from analysis.metrics.metric_rows import read_axes, write_axes
from analysis.statistics.intervals import half_width
from analysis.statistics.summary import sum_up
from analysis.statistics.text_tables import (
    NO_VALUE,
    TextTable,
    as_csv,
    as_frame,
    as_json,
    as_markdown,
    every_column,
    parse_columns,
    summary,
)
from testbed.errors import UsageError


def rows_of(*trials: Mapping[str, object]) -> pd.DataFrame:
    """Metrics of trials that are alike except for what is given."""
    alike: dict[str, object] = {
        "experiment": "x",
        "engine": "guest",
        "status": "ok",
        "verdict": "valid",
        "topology": "router-bottleneck",
        "queue": "bfifo 100000 B",
        "flow": "tcp",
        "kind": "tcp",
        "variant": "reno",
        "setting": "a",
        "label": "",
        "axes": "",
    }
    rows = [{**alike, "trial": f"trial-{i}", **trial} for i, trial in enumerate(trials)]
    return pd.DataFrame(rows, columns=list(METRIC_COLUMNS)).astype({"mark_rate": float})


def cells(table: TextTable, row: int = 0) -> dict[str, str]:
    return dict(zip(table.header, table.rows[row], strict=True))


def test_a_trial_at_a_glance() -> None:
    numbers = {"goodput_mbps": 0.98765, "drop_rate": 0.0145, "rtt_mean_ms": 612.3}
    table = summary(rows_of(numbers | {"retransmitted": 74.0}))
    assert cells(table) == {
        "variant": "reno",
        "goodput Mbit/s": "0.988",
        "dropped %": "1.45",
        "retrans.": "74",
        "RTT ms": "612",
        "RTT 95 % ms": "–",
    }
    assert table.note == "the trial is valid"


def test_drops_that_cannot_be_counted_are_explained() -> None:
    """A flow whose first queue is its own host's is not captured before it."""
    noted = [
        summary(rows_of({"sent_packets": 100, "drop_rate": rate}), ("drop_rate",)).note
        for rate in (float("nan"), 0.0)
    ]
    assert noted[0].startswith("dropped % is unknown for flows whose own host has a queue: links")
    assert "dropped" not in noted[1]


def test_flows_beside_each_other_have_shares() -> None:
    table = summary(
        rows_of(
            {"trial": "t", "flow": "a", "share": 0.25, "goodput_mbps": 1.0},
            {"trial": "t", "flow": "b", "share": 0.75, "goodput_mbps": 3.0},
        )
    )
    assert [cells(table, row)["share %"] for row in (0, 1)] == ["25.0", "75.0"]
    assert [cells(table, row)["flow"] for row in (0, 1)] == ["a", "b"]


@pytest.mark.parametrize("flows", [12, 13])
def test_of_many_flows_a_row_is_a_variant(flows: int) -> None:
    """The mean, but of shares and retransmissions the sum; the note says so."""
    table = summary(
        rows_of(
            *(
                {
                    "trial": "t",
                    "flow": f"tcp{number}",
                    "goodput_mbps": 2.0 * number,
                    "rtt_mean_ms": 10.0 * number,
                    "retransmitted": 3,
                    "share": 1 / flows,
                }
                for number in range(flows)
            )
        )
    )
    if flows == 12:
        assert len(table.rows) == 12 and "mean over a variant" not in table.note
        return
    assert len(table.rows) == 1
    found = cells(table)
    assert (found["goodput Mbit/s"], found["RTT ms"]) == ("12.0", "60.0")
    assert (found["least Mbit/s"], found["most Mbit/s"]) == ("0", "24.0")
    assert (found["retrans."], found["flows"]) == ("39", "13")
    assert "mean over a variant's flows (share, retransmitted, timeouts: their sum)" in table.note


def test_marks_where_there_are_any() -> None:
    assert cells(summary(rows_of({"mark_rate": 0.125})))["marked %"] == "12.50"
    assert "marked %" not in summary(rows_of({"mark_rate": 0.0})).header


def test_losses_on_links_are_a_column_where_there_are_any() -> None:
    behind = {"kind": "tcp", "loss_rate": 0.0103, "drop_rate": 0.0}
    assert cells(summary(rows_of(behind)))["lost in all %"] == "1.03"
    on_the_way = {"kind": "tcp", "loss_rate": 0.0221, "drop_rate": 0.022}
    assert "lost in all %" not in summary(rows_of(on_the_way)).header


def test_numbers_that_programs_print_are_columns() -> None:
    table = summary(rows_of({}).assign(measured_connect_ms=20.5))
    assert cells(table)["connect ms"] == "20.5"


def test_several_seeds() -> None:
    table = summary(rows_of(*({"rtt_mean_ms": value} for value in (8.0, 10.0, 12.0))))
    # Student's t for two degrees of freedom is 4.303, the standard error 2 / √3
    assert cells(table)["RTT ms"] == "10.0 ± 5.0"
    assert half_width(pd.Series([8.0, 10.0, 12.0])) == pytest.approx(4.3027 * 2 / 3**0.5, rel=1e-4)
    assert cells(table)["n"] == "3"
    assert "95 %" in table.note and "all 3 trials are valid" in table.note


def test_failed_and_unsupported_stay_apart() -> None:
    table = summary(
        rows_of(
            {"variant": "veno", "status": "unsupported", "verdict": ""},
            {"variant": "reno", "rtt_mean_ms": 5.0},
            {"variant": "reno", "status": "failed", "verdict": ""},
        )
    )
    assert [row[0] for row in table.rows] == ["reno", "veno"]  # in the usual order
    assert table.rows[0][-3:] == ("1", "valid", "1 ok, 1 failed")
    assert table.rows[1][-3:] == ("0", "–", "unsupported")


def test_invalid_trials_are_left_out_and_named() -> None:
    table = summary(
        rows_of(
            {"rtt_mean_ms": 5.0},
            {"rtt_mean_ms": 7.0, "verdict": "suspect"},
            {"rtt_mean_ms": 900.0, "verdict": "invalid"},
        )
    )
    assert cells(table)["RTT ms"] == "6.00"
    assert "means of two seeds: 3 or more have an interval" in table.note
    assert table.rows[0][-3:] == ("2", "1 valid, 1 suspect, 1 invalid", "ok")
    assert "invalid trials are left out" in table.note


def test_queues_that_differ_are_named() -> None:
    table = summary(rows_of({"queue": "pfifo 10 packets"}, {"queue": "codel 100 packets"}))
    assert table.header[:2] == ("queue", "variant")
    assert [row[0] for row in table.rows] == ["codel 100 packets", "pfifo 10 packets"]


def test_axes_that_vary_come_first_in_numeric_order() -> None:
    table = summary(
        rows_of(
            *(
                {"setting": f"{load}", "axes": write_axes({"load": f"{load}", "order": "first"})}
                for load in (10, 9, 100)
            )
        )
    )
    assert table.header[:2] == ("load", "variant")
    assert [row[0] for row in table.rows] == ["9", "10", "100"]


def test_an_axis_of_one_flows_variant_is_not_said_of_the_others() -> None:
    """As of `--set flows.download.variant=cubic,bbr` beside a video that is Cubic's."""
    rows = [
        {"trial": axis, "flow": flow, "variant": own, "setting": f"{axis}{flow}",
         "axes": write_axes({"variant": axis})}
        for axis in ("cubic", "bbr")
        for flow, own in (("video", "cubic"), ("download", axis))
    ]  # fmt: skip
    table = summary(rows_of(*rows))
    assert table.header[:3] == ("variant (axis)", "variant", "flow")
    own = {(row[0], row[2]): row[1] for row in table.rows}
    assert own[("bbr", "video")] == "cubic" and own[("bbr", "download")] == "bbr"
    without = rows_of(*(row for row in rows if row["flow"] == "download"))
    assert summary(without).header[0] == "variant"


def test_settings_that_are_no_axis_are_kept_apart() -> None:
    table = summary(
        rows_of(
            {"setting": "a", "label": "load 1", "rtt_mean_ms": 5.0},
            {"setting": "b", "label": "load 2", "rtt_mean_ms": 7.0},
        )
    )
    assert table.header[0] == "label"
    assert [row[0] for row in table.rows] == ["load 1", "load 2"]


@pytest.mark.parametrize("seed", range(20))
def test_nothing_unlike_is_averaged(seed: int) -> None:
    """Experiments with axes drawn at random: a line's trials agree in all of them."""
    dice = np.random.default_rng(seed)
    names = [f"axis{number}" for number in range(dice.integers(1, 6))]
    values = {name: dice.choice(9, size=dice.integers(1, 4), replace=False) for name in names}
    rows = []
    for _ in range(30):
        place = {name: f"{dice.choice(values[name])}" for name in names}
        variant = str(dice.choice(["reno", "cubic"]))
        rows.append({"axes": write_axes(place), "setting": f"{place}", "variant": variant})
    found = sum_up(rows_of(*rows))
    assert sum(len(cell.rows) for cell in found.cells) == len(rows)
    for cell in found.cells:
        assert (
            len({(a, v) for a, v in zip(cell.rows["axes"], cell.rows["variant"], strict=True)}) == 1
        )
    shown = {cell.key_values(found.keys) for cell in found.cells}
    assert len(shown) == len(found.cells), "two lines look the same"
    varying = {n for n in names if len({read_axes(str(r["axes"]))[n] for r in rows}) > 1}
    assert {key.name for key in found.keys} - {"variant"} <= varying


def test_columns_that_the_user_names() -> None:
    columns = parse_columns("jain, goodput_mbps")
    table = summary(rows_of({"jain": 0.5, "goodput_mbps": 1.0}), columns)
    assert table.header == ("variant", "jain", "goodput Mbit/s")
    assert set(every_column()) > set(columns[1:])
    with pytest.raises(UsageError) as caught:
        parse_columns("goodput")
    assert "goodput_mbps" in caught.value.hint
    with pytest.raises(UsageError, match="--columns rtt: no such column") as caught:
        parse_columns("rtt")
    assert "rtt_mean_ms, rtt_p95_ms" in caught.value.hint
    with pytest.raises(UsageError, match="flow: a column of texts") as caught:
        parse_columns("flow")
    assert "leave it out: rows have the flows' names" in caught.value.hint


def test_a_call_has_its_one_way_delay() -> None:
    tcp: dict[str, object] = {"flow": "a", "owd_mean_ms": 20.0}
    call: dict[str, object] = {"flow": "b", "kind": "call"}
    delays: dict[str, object] = {"owd_mean_ms": 91.2, "owd_p95_ms": 129.0}
    assert "one-way ms" not in summary(rows_of(tcp)).header
    table = summary(rows_of(tcp, call | delays))
    place = table.header.index("one-way ms")
    assert [row[place : place + 2] for row in table.rows] == [("20.0", NO_VALUE), ("91.2", "129")]


def test_a_video_has_its_start_and_its_stalls() -> None:
    tcp: dict[str, object] = {"flow": "a"}
    video: dict[str, object] = {"flow": "b", "kind": "video", "startup_s": 4.07, "stalls": 2.0}
    assert "stalls" not in summary(rows_of(tcp)).header
    table = summary(rows_of(tcp, video | {"stall_s": 10.7}))
    place = table.header.index("starts s")
    assert table.header[place : place + 3] == ("starts s", "stalls", "stalled s")
    assert [row[place : place + 3] for row in table.rows][1] == ("4.07", "2", "10.7")


def test_seeds_that_change_nothing_have_no_interval() -> None:
    one = {"goodput_mbps": 9.52, "seed": 1}
    table = summary(rows_of(one, one | {"seed": 2}))
    assert cells(table)["goodput Mbit/s"] == "9.52" and cells(table)["n"] == "2"
    assert "all seeds gave the same numbers" in table.note and "±" not in table.note
    table = summary(rows_of(one, one | {"seed": 2, "retransmitted": 3.0}, one | {"seed": 3}))
    assert cells(table)["goodput Mbit/s"] == "9.52 ± 0.00"
    assert "all seeds" not in table.note


def test_formats_for_programs_and_documents() -> None:
    rows = rows_of({"goodput_mbps": 1.23456789}, {"goodput_mbps": 1.0})
    frame = as_frame(rows, ("goodput_mbps", "jain"))
    back = pd.read_csv(StringIO(as_csv(frame)))
    assert back["goodput_mbps"][0] == (1.23456789 + 1) / 2 and back["n"][0] == 2
    assert json.loads(as_json(frame))[0]["jain"] is None
    text = as_markdown(TextTable(("a", "b"), (("1|2", "3"),), "note"))
    assert text == "| a | b |\n| --- | --- |\n| 1\\|2 | 3 |\n\nnote\n"


def test_a_table_of_nothing() -> None:
    assert summary(rows_of()).rows == ()
