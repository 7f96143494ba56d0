"""What a trial notes of its sockets, and of parameters that are not what they should be."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from testbed.errors import TestbedError
from testbed.plan.host_settings import Parameter
from testbed.plan.plan import make_plan
from testbed.store import FlowRecord, Record, Status
from testbed.trial.parts.flow_traffic import FlowTraffic
from testbed.trial.parts.part import RunningTrial
from testbed.trial.parts.sampling import SampledSocket, Sampler, Sampling
from testbed.trial.verify import verify_parameters
from tests.scenarios import router


def recorded(tmp_path: Path, variant: str, sockets: list[SampledSocket]) -> FlowRecord:
    """The record of a flow whose sockets showed these."""
    scenario = router(variant=variant)
    plan = make_plan(scenario)
    trial = RunningTrial(scenario, plan, {}, tmp_path)
    flows, sampling = FlowTraffic(trial), Sampling(trial)
    running: Any = SimpleNamespace(plan=plan.flows[0], seen=lambda: ("", ()))
    flows._flows = [running]
    flows._started["tcp"], flows._stopped["tcp"] = 0.0, 1.0
    sampling._sampler = Sampler([], [])
    sampling._sampler.sampled_sockets = lambda: sockets  # type: ignore[method-assign]
    (record,) = sampling.describe(flows.describe(Record(Status.OK))).flows
    return record


def seen(control: str, options: frozenset[str] | None) -> SampledSocket:
    return SampledSocket("tcp", control, options, cookie=1)


def test_what_was_asked_of_a_socket_stands_beside_what_it_ran(tmp_path: Path) -> None:
    record = recorded(tmp_path, "tahoe", [seen("cubic", frozenset({"sack"}))])
    assert (record.control, record.variant_seen) == ("tahoe", "cubic")
    assert (record.options, record.options_seen) == ((), ("sack",))


def test_an_option_counts_where_all_of_a_flows_sockets_have_it(tmp_path: Path) -> None:
    both = [seen("cubic", frozenset({"sack", "timestamps"})), seen("reno", frozenset({"sack"}))]
    record = recorded(tmp_path, "cubic", both)
    assert record.options_seen == ("sack",)
    assert record.variant_seen == "cubic+reno"


def test_a_socket_that_was_never_seen(tmp_path: Path) -> None:
    record = recorded(tmp_path, "cubic", [seen("", None)])
    assert (record.variant_seen, record.options_seen) == ("", ())


def test_a_parameter_that_is_not_what_it_should_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "alpha").write_text("2\n")
    monkeypatch.setattr(Parameter, "file", property(lambda self: str(tmp_path / self.name)))
    plan: Any = SimpleNamespace(parameters=(Parameter("vegas", "alpha", 2),))
    verify_parameters(plan)
    plan.parameters = (Parameter("vegas", "alpha", 1),)
    with pytest.raises(TestbedError, match="vegas: alpha is 2, not 1"):
        verify_parameters(plan)
