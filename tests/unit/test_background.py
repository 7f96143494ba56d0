"""Background traffic before it runs: its faults, its draws, its plan, and the two programs."""

from __future__ import annotations

import dataclasses
import json
import math
import signal
import socket
import statistics
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from testbed.errors import UsageError
from testbed.machine.netlink import listening
from testbed.plan.background import draw_sessions, plan_background
from testbed.plan.network import build_network
from testbed.plan.plan import make_plan
from testbed.plan.validate import validate
from testbed.scenario.model import Background, CapturePoint, Flow, FlowKind, Scenario
from testbed.traffic.background.sessions import BACKGROUND_PROGRAM
from tests.draws import Generator
from tests.scenarios import background, router

WANTED = Background("sender2", "receiver2", 256)


def bent(**changes: Any) -> Scenario:
    scenario = background()
    assert scenario.background
    return dataclasses.replace(
        scenario, background=dataclasses.replace(scenario.background, **changes)
    )


def test_json_there_and_back() -> None:
    assert Scenario.from_json(background().to_json()) == background()
    assert Scenario.from_json(router().to_json()).background is None


@pytest.mark.parametrize(
    ("scenario", "said"),
    [
        (bent(src="sender9"), "background.src: unknown host 'sender9': did you mean 'sender"),
        (bent(dst="right"), "background.dst: unknown host 'right'"),
        (bent(src="sender1"), "background.src: sender1 has a flow"),
        (bent(dst="sender2"), "background: goes from sender2 to itself"),
        (bent(sessions=0), "background.sessions: 0 is not between 1 and 400"),
        (bent(long_share=1.5), "background.long_share: 1.5"),
        (bent(shape=1.0), "background.shape: 1 is not between 1.001"),
        (bent(think_ms=0.0), "background.think_ms: 0 is not between"),
        (bent(mean_bytes=0), "background.mean_bytes: 0 is not between"),
        (bent(window_bytes=100), "background.window_bytes: 100 is not between 1000"),
        (bent(rtt_min_ms=500.0), "background: rtt_min_ms, rtt_max_ms: rising"),
        (bent(rtt_max_ms=5000.0), "background: rtt_min_ms, rtt_max_ms: rising"),
        (bent(rtt_min_ms=10.0), "background.rtt_min_ms: 10: its path has 14 ms"),
        (bent(spread_s=10.0), "background.spread_s: 10 is not within the trial"),
        (bent(variant="Renno!"), "background.variant: unknown variant 'Renno!'"),
        (
            dataclasses.replace(
                background(),
                flows=(Flow("background", FlowKind.TCP, "sender1", "receiver1", variant="reno"),),
            ),
            "the name 'background' is taken",
        ),
    ],
)
def test_every_fault_is_found(scenario: Scenario, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        validate(scenario)
    assert said in caught.value.message


def test_kinds_are_exact_and_round_trips_uniform() -> None:
    sessions = draw_sessions(WANTED, 1, 14)
    assert [s.kind for s in sessions].count("long") == 64
    assert [s.kind for s in sessions[:64]].count("web") > 32  # not the first ones
    rtts = [s.rtt_ms for s in sessions]
    assert 20 <= min(rtts) < 30 and 450 < max(rtts) <= 460
    assert statistics.mean(rtts) == pytest.approx(240, abs=3 * 440 / math.sqrt(12 * 256))
    assert all(0 <= s.start_s <= 1 for s in sessions)
    assert len({s.seed for s in sessions}) == len({s.start_s for s in sessions}) == 256
    assert all(s.extra_ns == round((s.rtt_ms - 14) * 5e5) for s in sessions)


def test_the_seed_alone_decides() -> None:
    draws = [draw_sessions(WANTED, seed, 14) for seed in (1, 1, 2)]
    assert draws[0] == draws[1]
    assert not {s.seed for s in draws[0]} & {s.seed for s in draws[2]}


def test_sizes_and_thoughts_have_their_means() -> None:
    """The median of a Pareto is known better than its mean, which a few files make."""
    dice = [Generator(s.seed) for s in draw_sessions(WANTED, 1, 14)]
    sizes = [each.size(48_000, 1.2) for each in dice for _ in range(100)]
    least = 48_000 * 0.2 / 1.2
    assert least <= min(sizes) < 1.001 * least
    assert statistics.median(sizes) == pytest.approx(least * 2 ** (1 / 1.2), rel=0.02)
    thoughts = [each.thought(0.5) for each in dice for _ in range(100)]
    assert statistics.mean(thoughts) == pytest.approx(0.5, rel=0.02)


def test_the_plan_sets_its_hosts_as_a_flows() -> None:
    plan = make_plan(background())
    settings = {node: dict(each) for node, each in plan.sysctls}
    assert settings["sender2"]["net.ipv4.tcp_congestion_control"] == "newreno"
    assert settings["sender2"]["net.ipv4.tcp_sack"] == "0"
    for host in ("sender2", "receiver2"):
        assert settings[host]["net.ipv4.tcp_timestamps"] == "0"  # profile ns2
        assert not any(veth.node1 == host and "ctl" in veth.name1 for veth in plan.veths)
    routes = {(route.node, route.peer): dict(route.attributes) for route in plan.routes}
    assert routes["receiver2", "10.1.2.2"] == {"quickack": 1, "window": 64_000}
    assert routes["sender2", "10.2.2.2"] == {"initcwnd": 1}


def test_its_receivers_link_is_a_wire_with_fq() -> None:
    """Whether it has a delay or not; every other wire has its netem."""
    plan = make_plan(background())
    assert plan.background
    tc = [" ".join(c.argv) for c in plan.setup if c.node == "wires" and "root" in c.argv]
    held = {words.split()[4]: words.split()[8] for words in tc}
    assert {name for name, kind in held.items() if kind == "fq"} == set(plan.background.link_ends)
    assert set(held.values()) == {"fq", "netem"}
    bare = background()
    topology = dataclasses.replace(
        bare.named, access=dataclasses.replace(bare.named.access, delay_ms=0), links={}
    )
    plan = make_plan(dataclasses.replace(bare, topology=topology))
    assert plan.background and plan.background.link_delay_ns == 0
    assert plan.background.link == "receiver2-right"
    assert any(v.name2 == plan.background.link_ends[0] for v in plan.veths)


def test_it_is_captured_at_the_bottleneck_alone() -> None:
    roles = {role for capture in make_plan(background()).captures for role in capture.roles}
    own = {role for role in roles if role.endswith(":background")}
    assert own == {"bottleneck-in:background", "bottleneck-out:background"}
    ends = (CapturePoint.SENDERS, CapturePoint.RECEIVERS)
    few = make_plan(background(captures=ends)).captures
    assert {capture.node for capture in few} == {"sender1", "receiver1"}


def test_what_it_needs_of_a_kernel() -> None:
    needs = {need.name for need in make_plan(background()).needs}
    assert {"fq", "clsact", "bpf", "newreno"} <= needs
    assert "fq" not in {need.name for need in make_plan(router()).needs}


def test_a_trial_without_it_is_planned_as_before() -> None:
    scenario = dataclasses.replace(background(), background=None)
    assert plan_background(scenario, build_network(scenario.named)) is None
    text = " ".join(" ".join(c.argv) for c in make_plan(scenario).setup)
    assert " fq " not in text


def free_ports(count: int) -> int:
    """The first of so many ports in a row that nobody listens on."""
    for first in range(17000, 30000, count):
        with socket.socket() as one, socket.socket() as other:
            try:
                one.bind(("", first))
                other.bind(("", first + count - 1))
            except OSError:
                continue
            return first
    raise AssertionError("no ports")


def started(output: Path, *words: str) -> subprocess.Popen[bytes]:
    """One of the programs."""
    with output.open("wb") as out:
        return subprocess.Popen((str(BACKGROUND_PROGRAM), *words), stdout=out)


def test_both_programs_on_the_loopback(tmp_path: Path) -> None:
    """The files are those that the seeds draw, whole, each over a connection of its own."""
    wanted = dataclasses.replace(WANTED, sessions=4, spread_s=0.0)
    sessions = draw_sessions(wanted, 3, 0)
    (tmp_path / "table").write_text("".join(f"{s.kind} 0 {s.seed}\n" for s in sessions))
    port = free_ports(4)
    table = str(tmp_path / "table")
    server = started(tmp_path / "server", "serve", str(port), "4", "1000")
    while not listening(None, port + 3):
        assert server.poll() is None
        time.sleep(0.01)
    draws = ("48000", "1.2", "1e6", table)
    client = started(tmp_path / "client", "fetch", "127.0.0.1", str(port), "1000", *draws)
    time.sleep(0.5)
    for process in (client, server):  # the other way round the client meets a port that is closed
        process.send_signal(signal.SIGTERM)
        process.wait()
    assert server.returncode == client.returncode == 0
    said = [(tmp_path / name).read_text() for name in ("server", "client")]
    reports = [json.loads(text)["sessions"] for text in said]
    for wish, served, fetched in zip(sessions, *reports, strict=True):
        assert fetched["kind"] == wish.kind
        assert fetched["failures"] == 0
        assert abs(fetched["connections"] - served["connections"]) <= 1
        dice = Generator(wish.seed)
        for _, _, size in fetched["files"]:
            assert size == dice.size(48_000, 1.2)
            dice.thought(1)
        if wish.kind == "web":
            assert len(fetched["files"]) > 1
            assert fetched["connections"] - len(fetched["files"]) <= 2
        else:
            assert fetched["bytes"] > 0 and not fetched["files"]
