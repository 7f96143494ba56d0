"""The L4S suite: its paths, what asks for L4S, and how its requirements are judged."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pandas as pd
import pytest

from analysis.captures.tcp import CE
from analysis.trials.accurate_ecn import AE, CWR, ECE
from experiments.evaluation import l4s_checks as checks
from experiments.evaluation.l4s import L4S, L4S_PATHS, l4s_trial
from experiments.evaluation.l4s_checks import ECT1, L4S_REQUIREMENTS, L4sTrial
from experiments.evaluation.suite_steps import StepVerdict
from testbed.errors import UsageError
from testbed.plan.plan import Plan, make_plan
from testbed.scenario.model import Scenario

SYN_BITS = 0x02


def planned(path: str) -> tuple[Scenario, Plan]:
    scenario = l4s_trial(variant="dctcp-l4s", path=path, seed=1)
    return scenario, make_plan(scenario)


def filters(plan: Plan) -> list[tuple[str, str]]:
    return [
        (command.node, " ".join(command.argv)) for command in plan.setup if "pedit" in command.argv
    ]


@pytest.mark.parametrize("path", L4S_PATHS)
def test_every_path_can_be_planned_on_the_kernel_that_has_l4s(path: str) -> None:
    scenario, plan = planned(path)
    assert scenario.kernel == "7.3"
    assert "accurate ECN" in {need.kind for need in plan.needs}


def test_the_scalable_flows_host_sends_ect1_and_the_classic_ones_does_not() -> None:
    _, plan = planned("beside-marks")
    ((node, words),) = filters(plan)
    assert node == "sender1"
    assert "match ip tos 2 3" in words and "munge ip tos set 1 retain 3" in words
    sysctls = {name: dict(values).get("net.ipv4.tcp_ecn") for name, values in plan.sysctls}
    assert (sysctls["sender1"], sysctls["receiver1"], sysctls["sender2"]) == ("3", "3", "1")
    _, plan = planned("beside-drops")
    assert dict(dict(plan.sysctls)["sender2"])["net.ipv4.tcp_ecn"] == "2"  # asks for no ECN


def test_two_hosts_with_scalable_flows_have_a_filter_each() -> None:
    _, plan = planned("two-rtts")
    assert [node for node, _ in filters(plan)] == ["sender1", "sender2"]


def test_an_unknown_path_is_refused() -> None:
    with pytest.raises(UsageError, match="path"):
        l4s_trial(variant="dctcp-l4s", path="pi", seed=1)


def test_every_requirement_has_its_paths_or_says_why_not_and_every_path_is_used() -> None:
    for requirement in L4S_REQUIREMENTS:
        assert set(requirement.paths) <= set(L4S_PATHS)
        assert isinstance(requirement.check, str) == (not requirement.paths)
    assert {path for requirement in L4S_REQUIREMENTS for path in requirement.paths} == set(
        L4S_PATHS
    )
    assert set(L4S.quick["path"]) <= set(L4S_PATHS)


def test_a_requirement_whose_path_did_not_run_is_open() -> None:
    statement, verdict = checks.judged_requirement(L4S_REQUIREMENTS[0], {})
    assert (statement, verdict) == ("not run, or not valid: beside-marks", StepVerdict.OPEN)


def trial(
    monkeypatch: pytest.MonkeyPatch,
    data: pd.DataFrame,
    acks: pd.DataFrame,
    metrics: dict[str, list[Any]],
) -> L4sTrial:
    """Return a trial whose packets are the same at both ends."""
    packets = SimpleNamespace(flow=lambda _side, _record: SimpleNamespace(data=data, acks=acks))
    monkeypatch.setattr(checks, "TrialPackets", lambda _trial: packets)
    names = metrics["flow"]
    record = SimpleNamespace(flows=[SimpleNamespace(name=name) for name in names], queues=[])
    scenario = SimpleNamespace(measure_from_s=0.0)
    stored = cast(Any, SimpleNamespace(record=record, scenario=scenario))
    return L4sTrial(stored, pd.DataFrame(metrics))


def packets(ecn: list[int], flags: list[int]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return data with bits of IP, and acknowledgements with bits of TCP, 1 ms apart."""
    data = pd.DataFrame({"ecn": ecn, "flags": 0x10, "payload": 1448, "length": 1514})
    data.loc[0, ["flags", "payload"]] = [SYN_BITS | AE | CWR | ECE, 0]
    data["time_ns"] = np.arange(len(data)) * 1_000_000
    acks = pd.DataFrame({"ecn": 0, "flags": flags, "payload": 0, "length": 66, "time_ns": 0})
    return data, acks


def counter(value: int) -> int:
    """Return an acknowledgement's flags with the counter of marks at a value."""
    bits = ((4, AE), (2, CWR), (1, ECE))
    return 0x10 | sum(bit for weight, bit in bits if value % 8 & weight)


FLOWS = {"flow": ["scalable1", "classic"]}


def test_marks_are_counted_modulo_eight_in_the_acknowledgements(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    arrived = [0, *[CE] * 9, ECT1]
    data, acks = packets(arrived, [counter(value) for value in (5, 8, 12, 14)])
    seen = {"fast": trial(monkeypatch, data, acks, FLOWS)}
    assert seen["fast"].reported_and_marked == (9, 9)
    assert checks.reports_marks(seen).met
    data, acks = packets(arrived, [counter(5), counter(6)])  # once a round trip, as of old
    assert not checks.reports_marks({"fast": trial(monkeypatch, data, acks, FLOWS)}).met


def test_a_control_that_sends_ect0_or_asks_for_old_ecn_does_not_meet_the_requirement(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data, acks = packets([0, ECT1, ECT1], [0x10])
    seen = {"fast": trial(monkeypatch, data, acks, FLOWS)}
    assert checks.sends_ect1(seen).met and checks.asks_for_accurate_ecn(seen).met
    data.loc[2, "ecn"] = 2
    data.loc[0, "flags"] = SYN_BITS | CWR | ECE
    seen = {"fast": trial(monkeypatch, data, acks, FLOWS)}
    assert not checks.sends_ect1(seen).met
    reading = checks.asks_for_accurate_ecn(seen)
    assert (reading.said, reading.met) == ("the SYN has CWR, ECE", False)


def test_the_bounds_of_rates_hold_for_either_side(monkeypatch: pytest.MonkeyPatch) -> None:
    data, acks = packets([0, ECT1], [0x10])
    for goodputs, met in (([20, 10], True), ([21, 10], False), ([10, 21], False)):
        flows: dict[str, list[Any]] = {**FLOWS, "goodput_mbps": list(goodputs)}
        seen = {"beside-marks": trial(monkeypatch, data, acks, flows)}
        assert checks.beside("beside-marks", checks.MAX_ROUGHLY)(seen).met is met


def test_marks_that_grow_rarer_with_the_rate_are_not_scalable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data, acks = packets([0, ECT1], [0x10])

    def at(marks: float) -> L4sTrial:
        numbers = {"mark_rate": marks, "received_packets": 1.0, "duration_s": 1.0}
        flows = {**{k: [v] for k, v in numbers.items()}, "srtt_mean_ms": [20.0]}
        return trial(monkeypatch, data, acks, {"flow": ["scalable1"], **flows})

    assert at(100).rounds_between_marks == pytest.approx(0.5)
    assert checks.marks_keep_their_distance({"slow": at(100), "fast": at(80)}).met
    assert not checks.marks_keep_their_distance({"slow": at(100), "fast": at(50)}).met


def test_a_burst_is_what_is_sent_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    data, acks = packets([0, *[ECT1] * 399], [0x10])
    single = trial(monkeypatch, data, acks, FLOWS)
    assert single.burst_ms(80.0) == 0
    data["time_ns"] = np.arange(400) // 4 * 1_000_000  # four at a time
    four = trial(monkeypatch, data, acks, FLOWS)
    assert four.burst_ms(80.0) == pytest.approx(3 * 1514 * 8e-3 / 80)
