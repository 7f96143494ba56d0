"""A video in a scenario: what may be asked for, and what becomes of it in the plan."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from testbed.errors import UsageError
from testbed.machine.process import CHROMIUM
from testbed.plan.check import validate
from testbed.plan.control_network import CONTROL
from testbed.plan.flows import VIDEO_PORT
from testbed.plan.plan import Plan, make_plan
from testbed.scenario.model import Flow, FlowKind, Profile, Scenario
from testbed.scenario.reading import read_scenario
from testbed.scenario.video import PlayerKind
from testbed.video_site import Transport
from tests.scenarios import access, router, video

TCP = access().flows[0]
BROWSED = video(player=PlayerKind.CHROMIUM)
UP = dataclasses.replace(TCP, name="up", src="station", dst="server", variant="reno")


def with_flow(scenario: Scenario, **changes: Any) -> Scenario:
    flow = dataclasses.replace(scenario.flows[0], **changes)
    return dataclasses.replace(scenario, flows=(flow, *scenario.flows[1:]))


def with_another(scenario: Scenario, *flows: Flow) -> Scenario:
    return dataclasses.replace(scenario, flows=(*scenario.flows, *flows))


def setting(plan: Plan, node: str, name: str) -> str | None:
    return dict(dict(plan.sysctls)[node]).get(name)


@pytest.mark.parametrize("transport", Transport)
@pytest.mark.parametrize("rule", ["throughput", "buffer", "1080p"])
def test_sound_videos(transport: Transport, rule: str) -> None:
    scenario = video(transport, rule=rule, viewer_variant="veno")
    validate(scenario)
    assert read_scenario(scenario.to_json()) == scenario


@pytest.mark.parametrize(
    ("scenario", "said"),
    [
        (with_flow(video(), video=None), "flows[0].video: missing for a flow of kind video"),
        (video(rule="241p"), "video.rule: unknown rule '241p': did you mean '240p'"),
        (video(length_s=0.5), "video.length_s: 0.5 is not between 1 and"),
        (video(control="reno"), "video.control: QUIC's; TCP's is the flow's variant"),
        (
            video(Transport.QUIC, control="vegas"),
            "control: 'vegas': QUIC needs reno or cubic",
        ),
        (video(Transport.QUIC, control=None), "video.control: None"),
        (video(viewer_variant="Vegas!"), "video.viewer_variant: unknown variant"),
        (with_flow(video(), variant=None), "variant: missing: what server sends with"),
        (with_flow(video(), variant="Cubic!"), "variant: unknown variant 'Cubic!'"),
        (with_flow(video(Transport.QUIC), variant="cubic"), "variant: TCP's; QUIC's own is"),
        (
            with_flow(video(), mss=1000, bytes=5),
            "flows[0].bytes: of flows of kind tcp; this is video",
        ),
        (with_flow(video(), parallel=2), "flows[0].parallel: of flows of kind tcp; this is video"),
        (dataclasses.replace(video(), profile=Profile.NS2), "profile modern"),
        (
            with_flow(router(), video=video().flows[0].video),
            "flows[0].video: of flows of kind video; this is tcp",
        ),
        (
            video(player=PlayerKind.CHROMIUM, rule="buffer"),
            "video.rule: buffer: the browser's page plays one bitrate, e.g. 240p",
        ),
        (
            video(Transport.HTTP, player=PlayerKind.CHROMIUM),
            "video.transport: a browser opens one connection over https and quic only",
        ),
        (
            with_another(BROWSED, dataclasses.replace(BROWSED.flows[0], name="second")),
            "flows: station has several browsers: one per host",
        ),
        (
            with_another(video(viewer_variant="vegas"), UP),
            "station sends vegas and reno: one variant per host that plays a video",
        ),
        (
            with_another(video(), dataclasses.replace(TCP, variant="vegas")),
            "server chooses the variant of a flow of kind video by the route to its receiver",
        ),
    ],
)
def test_faults(scenario: Scenario, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        validate(scenario)
    assert said in caught.value.message


def test_the_senders_and_the_receivers_setting() -> None:
    control = "net.ipv4.tcp_congestion_control"
    plan = make_plan(video(viewer_variant="vegas"))
    assert setting(plan, "server", control) == "cubic"
    assert setting(plan, "station", control) == "vegas"
    assert {need.name for need in plan.needs} >= {"cubic", "vegas"}
    assert setting(make_plan(video()), "station", control) is None
    quic = make_plan(video(Transport.QUIC, viewer_variant="vegas"))
    assert setting(quic, "server", control) is None
    assert setting(quic, "station", control) == "vegas"


def test_a_viewer_without_sack_leaves_the_connection_without() -> None:
    assert make_plan(video()).flows[0].options == {"sack", "timestamps"}
    assert make_plan(video(viewer_variant="newreno")).flows[0].options == frozenset()
    assert make_plan(video(Transport.QUIC)).flows[0].options == frozenset()


def test_videos_need_no_network_beside_the_network() -> None:
    assert CONTROL not in make_plan(video()).nodes
    both = make_plan(with_another(video(), dataclasses.replace(TCP, name="tcp")))
    assert CONTROL in both.nodes
    assert [flow.dst_port for flow in both.flows] == [40001, 5202]


def test_every_video_has_ports_of_its_own() -> None:
    second = dataclasses.replace(video(Transport.QUIC).flows[0], name="second")
    plan = make_plan(with_another(video(), second))
    ports = [(flow.src_ports, flow.dst_port) for flow in plan.flows]
    assert ports == [((VIDEO_PORT,), 40001), ((VIDEO_PORT + 1,), 40065)]


def test_a_browser_comes_from_the_ports_that_the_captures_and_samples_ask_for() -> None:
    second = dataclasses.replace(BROWSED.flows[0], name="second")
    plan = make_plan(with_another(video(), second))
    assert plan.flows[1].dst_port == 40065
    assert setting(plan, "station", "net.ipv4.ip_local_port_range") == "40065\t40065"
    assert setting(plan, "server", "net.ipv4.ip_local_port_range") == "50000\t60999"
    assert CHROMIUM in {need.name for need in plan.needs}
    assert CHROMIUM not in {need.name for need in make_plan(video()).needs}


def test_what_a_flow_runs_over() -> None:
    assert TCP.protocol == video().flows[0].protocol == "tcp"
    assert video(Transport.QUIC).flows[0].protocol == "udp"
    assert Flow("cbr", FlowKind.CBR, "a", "b").protocol == "udp"
