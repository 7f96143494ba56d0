"""Measured flows beside the models of their throughput: conditions, predictions and errors."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from analysis.throughput_models import Conditions, Invalid
from experiments.parvez_mahanti_williamson.models import (
    conditions,
    expected_pps,
    goodput_pps,
    predict,
    with_model,
)

ROW = {
    "variant": "newreno",
    "loss_event_rate": 0.001,
    "losses_per_event": 2.5,
    "srtt_mean_ms": 70.0,
    "rto_mean_ms": 280.0,
    "rto_at_timeout_ms": math.nan,
    "segment_bytes": 1000.0,
    "goodput_mbps": 8.0,
}


def test_a_row_says_what_its_flow_met() -> None:
    assert conditions(ROW) == Conditions(0.001, 0.07, 2.5, 0.28)
    assert conditions(ROW | {"rto_at_timeout_ms": 300.0}).rto_s == 0.3
    assert conditions(ROW | {"rto_mean_ms": math.nan}).rto_s is None
    assert goodput_pps(ROW) == 1000
    assert math.isnan(goodput_pps(ROW | {"segment_bytes": math.nan}))


@pytest.mark.parametrize(
    ("changes", "statement"),
    [
        ({"loss_event_rate": 0.0, "losses_per_event": math.nan}, "no loss event"),
        ({"loss_event_rate": math.nan}, "p is nan"),
        ({"variant": "bbr"}, "no model of bbr"),
        ({"variant": "newreno-impatient", "rto_mean_ms": math.nan}, "needs the RTO"),
    ],
)
def test_where_no_model_answers_it_says_why(changes: dict[str, object], statement: str) -> None:
    prediction = expected_pps(ROW | changes)
    assert isinstance(prediction, Invalid)
    assert statement in prediction.because
    table = with_model(pd.DataFrame([ROW | changes]))
    assert math.isnan(table["model_error"].iloc[0])
    assert statement in table["why_not"].iloc[0]


def test_the_error_is_what_the_model_expects_too_much() -> None:
    expected = predict("sbs", conditions(ROW))
    assert isinstance(expected, float)
    line = with_model(pd.DataFrame([ROW])).iloc[0]
    assert line["expected_pps"] == expected
    assert line["model_error"] == pytest.approx(expected / 1000 - 1)
    assert line["why_not"] == ""


def test_each_form_has_its_own_model() -> None:
    many = ROW | {"losses_per_event": 8.0}
    impatient = expected_pps(many | {"variant": "newreno-impatient"})
    assert impatient != expected_pps(many)
    assert impatient == predict("imp", conditions(many))
