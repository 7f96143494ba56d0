"""The BBR draft's test cases: the states in a socket's samples, and the steps that are judged."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pandas as pd
import pytest

from experiments.evaluation import bbr_draft_checks as checks
from experiments.evaluation import bbr_states
from experiments.evaluation.bbr_draft import DRAFT_PATHS, bbr_draft_trial
from experiments.evaluation.bbr_states import MSS_BYTES, PACING_PART, BbrSamples
from experiments.evaluation.suite_steps import StepReading, StepVerdict
from testbed.errors import UsageError

LINK_MBIT = 10.0
PAYLOAD_MBIT = LINK_MBIT * 1448 / 1514


def samples(
    monkeypatch: pytest.MonkeyPatch, gains: list[tuple[float, float]], estimate: float = 1.0
) -> BbrSamples:
    """Return samples of phases with a length in seconds and a gain, at a link of 10 Mbit/s."""
    rates = np.concatenate(
        [np.full(round(1000 * length), gain * PACING_PART * PAYLOAD_MBIT) for length, gain in gains]
    )
    time_s = np.arange(1, len(rates) + 1) / 1000
    rows = pd.DataFrame(
        {
            "time_s": time_s,
            "pacing_mbps": rates * estimate,
            "cwnd": 80,
            "unacked": 33,
            "retrans": 0,
            "lost": 0,
            "total_retrans": 0,
            "srtt_ms": 40.0,
            "min_rtt_ms": 40.0,
            "bytes_acked": time_s * PAYLOAD_MBIT * 1e6 / 8,
            "delivery_mbps": PAYLOAD_MBIT,
            "ca_state": "open",
        }
    )
    monkeypatch.setattr(
        bbr_states, "Samples", lambda _trial: SimpleNamespace(flow=lambda _record: rows)
    )
    queue = SimpleNamespace(sampled=True, rate_mbit=LINK_MBIT)
    record = SimpleNamespace(flows=[SimpleNamespace(name="flow")], queues=[queue])
    scenario = SimpleNamespace(duration_s=float(time_s[-1]))
    return BbrSamples(cast(Any, SimpleNamespace(record=record, scenario=scenario)))


STARTUP = [(0.2, 1.4), (0.5, 2.885), (0.15, 0.347)]
CYCLE = [(0.05, 1.25), (0.04, 0.75), (0.24, 1.0)]


def test_startup_drain_and_probing_are_read_from_the_pacing_rate(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen = samples(monkeypatch, STARTUP + CYCLE * 12)
    assert seen.drain is not None
    assert seen.drain.begin_s == pytest.approx(0.701)
    assert seen.drain.end_s == pytest.approx(0.851)
    assert seen.startup_mbit == pytest.approx(PAYLOAD_MBIT)
    assert seen.cruise_mbit(2, 4) == pytest.approx(PAYLOAD_MBIT, rel=1e-3)
    up = seen.of_gain(1.25, 2, 4)
    assert len(up) in (6, 7)
    assert all(following == pytest.approx(0.75, rel=0.01) for _, following in up)
    assert all(phase.end_s - phase.begin_s == pytest.approx(0.05) for phase, _ in up)


def test_an_estimate_that_is_five_percent_off_does_not_pass(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert checks.startup_estimate(samples(monkeypatch, STARTUP + CYCLE * 4)).met
    off = checks.startup_estimate(samples(monkeypatch, STARTUP + CYCLE * 4, estimate=1.05))
    assert not off.met
    assert off.said == "+5.0 % of the link's rate"


def test_rounds_are_counted_by_the_round_trip(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = samples(monkeypatch, STARTUP + CYCLE * 4)
    assert seen.rounds(1.0, 1.4) == pytest.approx(10, abs=0.1)
    assert checks.rounds_in_drain(seen).said.startswith("3.7 round trips")


def test_a_flow_that_never_drains_does_not_meet_what_is_asked_of_drain(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen = samples(monkeypatch, [(3.0, 1.0)])
    assert seen.drain is None
    assert not checks.drains(seen).met
    assert not checks.drained(seen).met
    assert checks.probe_rtt_length(seen) == StepReading("none", False)


def test_probe_rtt_is_where_the_window_is_four_packets(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = samples(monkeypatch, STARTUP + CYCLE * 12)
    seen.rows.loc[(seen.rows["time_s"] > 2) & (seen.rows["time_s"] <= 2.25), "cwnd"] = 4
    (probe,) = seen.probe_rtts()
    assert (probe.begin_s, probe.end_s) == pytest.approx((2.001, 2.251))
    assert checks.probe_rtt_length(seen).met
    assert not checks.probe_rtt_window(seen).met  # half of 33 packets


def test_what_is_sent_again_behind_a_policer_counts_from_the_middle_of_the_trial(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    policed = next(each for each in checks.DRAFT_CASES if each.number == 17)
    conforms, losses = (step.check for step in policed.steps if step.number == "4")
    assert callable(conforms) and callable(losses)
    seen = samples(monkeypatch, STARTUP + CYCLE * 12)
    half_s = seen.scenario.duration_s / 2
    seen.rows["total_retrans"] = np.where(seen.time_s < half_s / 2, 0, 500)
    assert losses(seen).met  # all of them in the first half
    packets = PAYLOAD_MBIT * 1e6 * half_s / 8 / MSS_BYTES
    seen.rows["total_retrans"] = packets / 40 * seen.time_s / half_s
    assert losses(seen) == StepReading("2.4 % sent again", False)
    assert conforms(seen).met


def test_the_bdp_is_of_full_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = samples(monkeypatch, CYCLE)
    assert seen.bdp_packets() == pytest.approx(PAYLOAD_MBIT * 1e6 * 0.04 / 8 / MSS_BYTES)


def test_there_are_twenty_two_cases_and_each_has_its_path_or_says_why_not() -> None:
    assert [case.number for case in checks.DRAFT_CASES] == list(range(1, 23))
    for case in checks.DRAFT_CASES:
        assert case.path in DRAFT_PATHS or all(isinstance(s.check, str) for s in case.steps)
    assert {case.path for case in checks.DRAFT_CASES} - {""} == set(DRAFT_PATHS)


def test_a_step_without_its_trial_is_open() -> None:
    statement, verdict = checks.judged_step(checks.DRAFT_CASES[0].steps[0], None)
    assert (statement, verdict) == ("its path did not run", StepVerdict.OPEN)


def test_an_unknown_path_is_refused() -> None:
    with pytest.raises(UsageError, match="path"):
        bbr_draft_trial(variant="bbr", path="plane", seed=1)
