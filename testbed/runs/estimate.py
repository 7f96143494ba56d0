"""How long a trial takes in the guest, and how much disk: rough, said beforehand.

What trials took on this machine before corrects the estimate.
"""

from __future__ import annotations

import contextlib
import json
import math
import statistics
from collections.abc import Iterable
from pathlib import Path

from testbed.engines.guest import MEMORY_MB, OWN_MB
from testbed.machine.journal import state_folder
from testbed.plan.host_settings import browsers
from testbed.plan.plan import Plan
from testbed.scenario.losses import Loss
from testbed.scenario.model import Flow, Scenario
from testbed.scenario.queues import FRAME_BYTES
from testbed.scenario.video import RULES, Transport, Viewing

BOOT_S = 1.0
GUEST_MB = MEMORY_MB + OWN_MB
PACKET_S = 80e-6  # wall time of a data packet and its ACK, captures included
SAMPLE_S = 80e-6
PAGE_BITS = 8e6  # what a video's viewer loads before it
PROGRAMS_S = 1.5  # until a video's server and player are loaded; aioquic takes as long again
QUIC = 3  # times as long a packet as TCP: two programs, not the kernel, work on it
BROWSER_S = 12.0  # until a browser is there
SHOWN_S = 0.4  # a second of video in a browser
CAPTURED_BYTES = 144 + 32  # a packet of pcapng


def _packets(plan: Plan, scenario: Scenario) -> float:
    """Data packets, if the bottleneck is busy all the time, or if all flows together send less."""
    full = scenario.topology.bottleneck.rate_mbit * 1e6 * plan.end_s / (8 * FRAME_BYTES)
    if scenario.background:
        return full
    return min(full, sum(_flow_packets(flow, plan) for flow in scenario.flows))


def _flow_packets(flow: Flow, plan: Plan) -> float:
    """At most of one flow: a whole video, or what the losses made for it leave a TCP flow."""
    if flow.video is not None:
        return _bits(flow.video) / (8 * FRAME_BYTES)
    rate = _event_rate(flow.loss) if flow.loss else 0.0
    if not rate or not plan.network.rtt_ms:
        return math.inf
    # the square-root law (Mathis and others, 1997)
    return plan.end_s / (plan.network.rtt_ms / 1e3) * math.sqrt(1.5 / rate)


def _event_rate(loss: Loss) -> float:
    """How many packets in one begin a loss event, roughly."""
    if loss.events is not None:
        return loss.events.rate
    assert loss.gilbert_elliott is not None
    return loss.gilbert_elliott.loss_rate


def _bits(video: Viewing) -> float:
    """Of a video and its page: at its bitrate, or the highest that its player may choose."""
    from testbed.scenario.video_content import LADDER  # few scenarios need it

    rates = [rung.bit_per_s for rung in LADDER if video.rule in (*RULES, rung.name)]
    return PAGE_BITS + max(rates) * video.length_s


def _programs_s(scenario: Scenario) -> float:
    """Of videos: the time to load what serves and plays them."""
    return sum(PROGRAMS_S * (1 + _is_quic(f.video)) for f in scenario.flows if f.video)


def _packet_s(scenario: Scenario) -> float:
    return PACKET_S * (QUIC if any(_is_quic(flow.video) for flow in scenario.flows) else 1)


def _is_quic(video: Viewing | None) -> bool:
    return video is not None and video.transport is Transport.QUIC


def _history() -> Path:
    return state_folder().parent / "speed.json"


def pace() -> float:
    """How many times as long as estimated trials have taken here; 1 if none has run."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        return float(json.loads(_history().read_text())["guest"])
    return 1.0


def learn(trials: Iterable[tuple[Plan, Scenario, float]]) -> None:
    """Take note of what guests' trials took: each with its wall time in seconds."""
    ratios = [wall_s / _seconds(plan, scenario) for plan, scenario, wall_s in trials]
    if ratios:
        _history().parent.mkdir(parents=True, exist_ok=True)
        # half of what was known stays: a machine may have been busy
        known = pace() if _history().exists() else statistics.median(ratios)
        _history().write_text(json.dumps({"guest": (known + statistics.median(ratios)) / 2}))


def guest_seconds(plan: Plan, scenario: Scenario) -> float:
    """Wall time on one core."""
    return pace() * _seconds(plan, scenario)


def _seconds(plan: Plan, scenario: Scenario) -> float:
    interval_s = scenario.sample_interval_ms / 1e3
    samples = plan.end_s / interval_s if interval_s else 0
    loaded_s = BOOT_S + _programs_s(scenario)
    shown_s = sum(
        BROWSER_S + SHOWN_S * flow.video.length_s for flow in browsers(scenario) if flow.video
    )
    packets_s = _packets(plan, scenario) * _packet_s(scenario)
    return loaded_s + shown_s + packets_s + samples * SAMPLE_S


def disk_mb(plan: Plan, scenario: Scenario) -> float:
    """Captures (a data packet and about one ACK for two), in MB."""
    return 1.5 * _packets(plan, scenario) * len(plan.captures) * CAPTURED_BYTES / 1e6
