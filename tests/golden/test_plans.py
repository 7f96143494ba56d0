"""A scenario and the commands that it becomes; `REGENERATE=1 pytest …` writes them anew."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import pytest

from experiments.catalogue import EXPERIMENTS
from testbed.plan.plan import Plan, make_plan
from testbed.scenario.losses import Loss, LossEvents
from testbed.scenario.named_networks import LinkSettings, NamedNetwork, NetworkName
from testbed.scenario.network import Queue
from testbed.scenario.video import PlayerKind
from testbed.video_site import Transport
from tests.scenarios import access, dumbbell, router, video, with_loss

HERE = Path(__file__).parent / "plans"
IPV6 = NamedNetwork(
    NetworkName.ROUTER_BOTTLENECK,
    LinkSettings(1, queue=Queue("pfifo", limit_packets=20), delay_ms=5),
    ip=6,
)
CASES = {
    "router": router(),
    "router-cbr-codel-delay": router(
        variant="bbr",
        cbr_mbit=0.2,
        delay_ms=5,
        queue=Queue("codel", limit_packets=100, ecn=True, options={"target_ms": 10}),
    ),
    "dumbbell": dumbbell(),
    "access-shaped": access(),
    "access-congested": access("netem-congested"),
    "access-radio": access("wifi-congested"),
    "video-https": video(viewer_variant="vegas"),
    "video-quic": video(Transport.QUIC),
    "video-chromium": video(player=PlayerKind.CHROMIUM),
    "router-ipv6": dataclasses.replace(router(variant="cubic"), network=IPV6.graph()),
    "dumbbell-loss": with_loss(dumbbell(), Loss(LossEvents(0.001, 4, spacing=2))),
    # the papers' own: a CBR that starts at the bottleneck, a flow that ends at the router
    "dumbbell-load": EXPERIMENTS["dumbbell-load"].scenarios({"cbr_mbit": ["1"]}, 1, False)[0],
    "router-bottleneck-router": EXPERIMENTS["router-bottleneck"].scenarios(
        {"path": ["router"], "variant": ["vegas"], "queue": ["bfifo"]}, 1, False
    )[0],
}


def as_text(plan: Plan) -> str:
    lines = [f"veth {v.node1}:{v.name1} {v.node2}:{v.name2}" for v in plan.veths]
    if plan.radio:
        lines += [" ".join(plan.radio.medium), *plan.radio.hostapd.splitlines()]
    for node, settings in plan.sysctls:
        lines += [f"[{node}] sysctl {name}={value}" for name, value in settings]
    lines += [f"[{c.node}] {' '.join(c.argv)}" for c in plan.setup]
    lines += [f"capture {c.interface}: {' '.join(c.roles)}" for c in plan.captures]
    lines += [f"loss {p.interface}: {p.loss} {p.dice!r} {p.packets}" for p in plan.losses]
    for flow in plan.flows:
        lines += [f"{flow.flow.name}: {flow.start_s:g} to {flow.stop_s:g} s"]
        lines += [f"[{c.node}] {' '.join(c.argv)}" for c in (flow.server, flow.client)]
        lines += [f"    {name}={value}" for name, value in flow.client_env]
    lines += [f"needs {need.kind} {need.name}" for need in plan.needs]
    lines += [f"warning: {warning}" for warning in plan.warnings]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("name", CASES)
def test_plan(name: str) -> None:
    text = as_text(make_plan(CASES[name]))
    golden = HERE / f"{name}.txt"
    if os.environ.get("REGENERATE"):
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(text)
    assert text == golden.read_text()
