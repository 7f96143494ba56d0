"""Calls: what is sent when, and fields that no stored scenario has."""

from __future__ import annotations

import dataclasses
import itertools
import json
import statistics
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pandas as pd
import pytest

from analysis.verdict.checks import Grade
from analysis.verdict.evidence import Evidence
from analysis.verdict.traffic import calls
from testbed.errors import UsageError
from testbed.plan.check import validate
from testbed.plan.plan import make_plan
from testbed.runs.sources import parts_of
from testbed.scenario.call import Call, Media, datagrams
from testbed.scenario.model import Flow, FlowKind, Scenario, plain
from testbed.scenario.programs import Programs, Transmission
from testbed.scenario.reading import read_scenario
from testbed.store.names import report_file
from tests.scenarios import router
from tests.sealing import file_in

VIDEO = Call(Media.VIDEO, rate_mbit=1.5)


def with_call(call: Call | None, **fields: Any) -> Scenario:
    scenario = router(duration_s=10, cbr_mbit=0.1)
    flow = Flow("call", FlowKind.CALL, "sender2", "receiver", call=call, **fields)
    return dataclasses.replace(scenario, flows=(scenario.flows[0], flow))


def test_a_voice_is_even() -> None:
    sent = list(datagrams(Call(), 1, ""))
    assert [each.at_ns for each in sent] == [20_000_000 * number for number in range(50)]
    assert {each.payload for each in sent} == {172}
    assert [each.ticks for each in sent[:3]] == [0, 160, 320]


def test_a_videos_frames_have_their_rate_and_deviate() -> None:
    """The mean of the rate and of the intervals; a scale of 0.15 means that they differ by that."""
    sent = list(datagrams(VIDEO, 200, "1"))
    assert sum(each.payload - 12 for each in sent) * 8 / 200 == pytest.approx(1.5e6, rel=0.02)
    starts = sorted({each.at_ns for each in sent})
    gaps = [(b - a) * 30e-9 for a, b in itertools.pairwise(starts)]
    assert statistics.mean(gaps) == pytest.approx(1, rel=0.02)
    assert statistics.mean(abs(gap - 1) for gap in gaps) == pytest.approx(0.15, rel=0.05)
    assert max(each.payload for each in sent) <= 1200
    assert sum(each.ends_frame for each in sent) == len(starts)
    assert sent == list(datagrams(VIDEO, 200, "1")) != list(datagrams(VIDEO, 200, "2"))


def test_a_call_is_planned_from_its_sender_to_its_receiver() -> None:
    scenario = with_call(VIDEO)
    plan = make_plan(scenario)
    (_, call) = plan.flows
    assert call.client.node == "sender2" and call.server.node == "receiver"
    assert call.datagrams and max(each.at_ns for each in call.datagrams) < 10e9
    assert "testbed-call" in parts_of(plan)
    assert read_scenario(scenario.to_json()) == scenario


@pytest.mark.parametrize(
    ("scenario", "said"),
    [
        (with_call(None), "flows[1].call: missing for a flow of kind call"),
        (with_call(Call(rate_mbit=5)), "flows[1].call.rate_mbit: of a video; this is a voice"),
        (with_call(Call(Media.VIDEO, frames_per_s=0)), "flows[1].call.frames_per_s: 0"),
        (with_call(VIDEO, variant="cubic"), "flows[1].variant: of flows of kind"),
    ],
)
def test_faults_of_calls(scenario: Scenario, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        validate(scenario)
    assert said in caught.value.message


@pytest.mark.parametrize(("read", "grade"), [(1000, Grade.VALID), (500, Grade.INVALID)])
def test_a_receiver_must_have_read_what_its_capture_has(
    tmp_path: Path, read: int, grade: Grade
) -> None:
    (tmp_path / "flows").mkdir()
    (tmp_path / report_file("call", "server")).write_text(json.dumps({"bytes": read}))
    captured = SimpleNamespace(data=pd.DataFrame({"payload": [400, 600]}))
    evidence = SimpleNamespace(
        trial=SimpleNamespace(file=file_in(tmp_path), scenario=with_call(Call())),
        flows=[SimpleNamespace(name="call", started_s=0.0, stopped_s=1.0)],
        packets=SimpleNamespace(part=lambda _role, _flow: captured),
        virtual_time=True,
    )
    (check,) = calls(cast("Evidence", evidence))
    assert (check.name, check.subject, check.verdict) == ("goodput", "call", grade)
    assert check.measured == pytest.approx(read * 8e-6)
    assert check.expected == pytest.approx(0.008)
    said = f"{read} bytes by its receiver, 1000 in the capture"
    assert (said in check.why) == (read != 1000)


def test_what_a_flow_does_not_use_is_not_written() -> None:
    """So stored scenarios keep their text and their hash."""
    bare, calling = router().flows[0], with_call(VIDEO).flows[1]
    assert "call" not in plain(bare) and "call=" not in repr(bare)
    assert plain(calling)["call"]["rate_mbit"] == 1.5
    assert repr(calling).endswith(f"call={VIDEO!r})")
    assert "protocol" not in repr(Programs(("true",)))


def test_programs_that_speak_udp_have_no_variant() -> None:
    programs = Programs(("client",), ("server", "{port}"), protocol=Transmission.UDP)
    scenario = router()
    flow = Flow("own", FlowKind.COMMAND, "sender1", "receiver", command=programs)
    assert flow.protocol == "udp"
    validate(dataclasses.replace(scenario, flows=(flow,)))
    with pytest.raises(UsageError, match="the programs speak UDP"):
        other = dataclasses.replace(flow, variant="cubic")
        validate(dataclasses.replace(scenario, flows=(other,)))
