"""How long a trial takes in the guest, and how much disk: rough, said beforehand."""

from __future__ import annotations

from testbed.plan import Plan
from testbed.queues import FRAME_BYTES
from testbed.scenario import Scenario

BOOT_S = 1.0
PACKET_S = 80e-6  # wall time of a data packet and its ACK, captures included
SAMPLE_S = 80e-6
CAPTURED_BYTES = 144 + 32  # a packet of pcapng


def _packets(plan: Plan, scenario: Scenario) -> float:
    """Data packets, if the bottleneck is busy all the time."""
    rate_bps = scenario.topology.bottleneck.rate_mbit * 1e6
    return rate_bps * plan.end_s / (8 * FRAME_BYTES)


def guest_seconds(plan: Plan, scenario: Scenario) -> float:
    """Wall time on one core."""
    interval_s = scenario.sample_interval_ms / 1e3
    samples = plan.end_s / interval_s if interval_s else 0
    return BOOT_S + _packets(plan, scenario) * PACKET_S + samples * SAMPLE_S


def disk_mb(plan: Plan, scenario: Scenario) -> float:
    """Captures (a data packet and about one ACK for two), in MB."""
    return 1.5 * _packets(plan, scenario) * len(plan.captures) * CAPTURED_BYTES / 1e6
