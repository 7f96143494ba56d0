"""Rough estimates of a trial's wall time in the guest.

The time is corrected by earlier trials' times on this machine.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import statistics
from collections.abc import Iterable
from pathlib import Path

from testbed.machine.atomic import replace
from testbed.machine.journal import state_folder
from testbed.plan.host_settings import browsers
from testbed.plan.plan import Plan, TrafficPlan, plan_traffic
from testbed.runs.traffic_estimate import data_packets, sample_count
from testbed.scenario.model import FlowKind, Scenario
from testbed.scenario.video import Viewing
from testbed.video_site import Transport

BOOT_S = 1.0
PACKET_S = 80e-6  # wall time per data packet and its ACK, including captures
SAMPLE_S = 80e-6
IPERF3_S = 0.1  # to start and end a flow's iperf3
PROGRAMS_S = 1.5  # to start a video's server and player; aioquic takes the same again
QUIC_COST = 3  # cost of a packet relative to TCP, as two programs process it instead of the kernel
BROWSER_S = 12.0  # to start a browser
SHOWN_S = 0.4  # per second of video in a browser


def _packet_s(scenario: Scenario) -> float:
    return PACKET_S * (QUIC_COST if any(_is_quic(flow.video) for flow in scenario.flows) else 1)


def _is_quic(video: Viewing | None) -> bool:
    return video is not None and video.transport is Transport.QUIC


def _history() -> Path:
    return state_folder() / "speed.json"


def pace() -> float:
    """Return actual over estimated time of earlier trials on this machine; 1 if none has run."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        return float(json.loads(_history().read_text())["guest"])
    return 1.0


def learn(trials: Iterable[tuple[Plan, Scenario, float]]) -> None:
    """Update the correction from finished guest trials and their wall times in seconds."""
    ratios = [wall_s / _seconds(plan, scenario) for plan, scenario, wall_s in trials]
    if ratios:
        _history().parent.mkdir(parents=True, exist_ok=True)
        # a moving average, since the machine may have been busy
        known = pace() if _history().exists() else statistics.median(ratios)
        text = json.dumps({"guest": (known + statistics.median(ratios)) / 2})
        replace(_history(), lambda path: path.write_text(text), private=True)


def guest_seconds(plan: Plan, scenario: Scenario) -> float:
    """Estimate a trial's wall time on one core."""
    return all_guest_seconds([(plan, scenario)])


def all_guest_seconds(trials: Iterable[tuple[Plan | TrafficPlan, Scenario]]) -> float:
    """Estimate the wall time of several trials one after the other."""
    return pace() * sum(_seconds(plan, scenario) for plan, scenario in trials)


def guest_seconds_of(scenarios: Iterable[Scenario]) -> float:
    """Estimate the wall time of several scenarios; those that differ in variants share a plan."""
    plans: dict[str, TrafficPlan] = {}
    trials = []
    for each in scenarios:
        flows = tuple(dataclasses.replace(flow, variant=None) for flow in each.flows)
        cell = repr(dataclasses.replace(each, flows=flows, label="", axes={}))
        if cell not in plans:
            plans[cell] = plan_traffic(each)
        trials.append((plans[cell], each))
    return all_guest_seconds(trials)


def _seconds(plan: Plan | TrafficPlan, scenario: Scenario) -> float:
    loaded_s = BOOT_S + sum(PROGRAMS_S * (1 + _is_quic(f.video)) for f in scenario.flows if f.video)
    shown_s = sum(
        BROWSER_S + SHOWN_S * flow.video.length_s for flow in browsers(scenario) if flow.video
    )
    loaded_s += IPERF3_S * sum(f.kind in (FlowKind.TCP, FlowKind.CBR) for f in scenario.flows)
    packets_s = sum(data_packets(plan, scenario)) * _packet_s(scenario)
    return loaded_s + shown_s + packets_s + sample_count(plan, scenario) * SAMPLE_S
