"""Scenarios at the bounds of what is accepted: odd, short, and each for the guest to run."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Mapping
from typing import Any

from testbed.scenario.losses import GilbertElliott, Loss, LossEvents
from testbed.scenario.model import CapturePoint, Profile, Scenario
from testbed.scenario.named_networks import LinkSettings
from testbed.scenario.network import Direction, Queue, Radio
from testbed.scenario.variants import VARIANTS
from tests import scenarios

Odd = tuple[str, Scenario]
SECONDS = 2.0


def oddities() -> tuple[Odd, ...]:
    """All of them, each with a name of its own, groups mixed so that a few are of every group."""
    groups = (_trials(), _queues(), _flows(), _cbr(), _links(), _losses(), _others())
    mixed = itertools.chain.from_iterable(itertools.zip_longest(*map(list, groups)))
    return tuple(each for each in mixed if each is not None)


def _one(**changes: Any) -> Scenario:
    usual: dict[str, Any] = {
        "duration_s": SECONDS,
        "queue": Queue("bfifo", limit_bytes=15_140),
    }
    return scenarios.router(**usual | changes)


def _with_flow(number: int = 0, base: Scenario | None = None, **changes: Any) -> Scenario:
    scenario = base or _one()
    flows = list(scenario.flows)
    flows[number] = dataclasses.replace(flows[number], **changes)
    return dataclasses.replace(scenario, flows=tuple(flows))


def _trials() -> Iterator[Odd]:
    """Numbers of the whole trial."""
    settings: Mapping[str, tuple[Any, ...]] = {
        "seed": (0, 2**31, 2**32 - 1),
        "snaplen_bytes": (54, 55, 65_535, 262_144),
        "sample_interval_ms": (0, 0.1, 60_000),
        "duration_s": (0.1, 0.3, 7.7),
        "start_jitter_ms": (1e-9, 1900),
        "network_jitter": (1e-9, 0.2),
        "drawn_service_times": (1e-9, 10),
        "measure_from_s": (1e-9, 1.999),
        "captures": ((), (CapturePoint.SENDERS,), (CapturePoint.BOTTLENECK,)),
        "profile": (Profile.NS2,),
        "label": ("", "-", "a" * 64, "x..y"),
        "axes": ({}, {"a": ""}, {"a": "1e+06"}),
    }
    for name, values in settings.items():
        for value in values:
            yield f"{name} {value!r:.30}", dataclasses.replace(_one(), **{name: value})
    rates = (0.001, 0.0012345, 0.01, 0.999999, 7.7777777, 1000.0, 10_000, 40_000)
    for rate_mbit in rates:
        far_ms = 100 if rate_mbit >= 1000 else 0  # the window, not the rate, is then the limit
        yield f"rate {rate_mbit}", _one(rate_mbit=rate_mbit, delay_ms=far_ms)
    for delay_ms in (1e-9, 0.001, 0.017, 33.333, 499):
        yield f"delay {delay_ms}", _one(delay_ms=delay_ms)
    yield "delay 29999", _one(delay_ms=29_999, duration_s=300, sample_interval_ms=60_000)


OPTIONS: Mapping[str, tuple[Mapping[str, float], ...]] = {
    "red": (
        *({"avpkt_bytes": 1}, {"avpkt_bytes": 1500}, {"probability": 0.999}, {"burst_packets": 6}),
        *({"burst_packets": 500}, {"min_bytes": 3000, "max_bytes": 3001}, {"min_bytes": 2000}),
        *({"probability": 0.001}, {"max_bytes": 60_000}, {"min_bytes": 2000, "max_bytes": 60_000}),
    ),
    "codel": (
        *({"target_ms": 0.02}, {"target_ms": 2_199_000}, {"interval_ms": 0.02}, {"target_ms": 3.3}),
        *({"interval_ms": 2_199_000}, {"ce_threshold_ms": 0.02}, {"ce_threshold_ms": 2_199_000}),
    ),
    "fq_codel": (
        *({"flows": 1}, {"flows": 65_536}, {"quantum_bytes": 256}, {"quantum_bytes": 1 << 20}),
        *({"target_ms": 0.02}, {"interval_ms": 2_199_000}, {"ce_threshold_ms": 7.7}),
    ),
    "pie": (
        *({"target_ms": 0.02}, {"target_ms": 4294}, {"tupdate_ms": 4}, {"tupdate_ms": 5}),
        *({"tupdate_ms": 4_000_000}, {"target_ms": 0.33, "tupdate_ms": 33.3}),
    ),
    "cake": ({"rtt_ms": 0.02}, {"rtt_ms": 0.11}, {"rtt_ms": 4_294_967}, {"rtt_ms": 33.3}),
}


def _queues() -> Iterator[Odd]:
    """Every discipline with options at their ends, and limits of every size."""
    for discipline, several in OPTIONS.items():
        for options in several:
            queue = Queue(discipline, limit_bytes=60_560, options=options)
            yield f"{discipline} {options}", _one(queue=queue)
        queue = Queue(discipline, limit_bytes=60_560, ecn=True)
        yield f"{discipline} marks", _one(queue=queue)
    for discipline in ("bfifo", "pfifo", "codel", "fq_codel", "pie", "cake"):
        for limit_packets in (1, 2, 3, 1000):
            queue = Queue(discipline, limit_packets=limit_packets)
            yield f"{discipline} of {limit_packets} packets", _one(queue=queue)
    for limit_bdp in (1e-9, 0.1, 1.0000001, 20):
        queue = Queue("bfifo", limit_bdp=limit_bdp)
        yield f"bfifo of {limit_bdp} BDP", _one(queue=queue, delay_ms=20)


def _flows() -> Iterator[Odd]:
    """What a TCP flow may be."""
    settings: Mapping[str, tuple[Any, ...]] = {
        "mss": (88, 89, 536, 1448),
        "window_bytes": (88, 1448, 65_535, 1 << 30),
        "rto_min_ms": (1, 3, 1000, 120_000),
        "bytes": (1, 37, 1448, 100_001, 1 << 50),
        "drops": ((1,), (2,), (1, 2, 3), (536_870_912,), tuple(range(1, 21))),
        "parallel": (2, 20),
        "start_s": (1e-9, 1.0, 1.9),
        "duration_s": (0.1, 1e-1 + 1e-9, 86_400),
        "name": ("-", "a" * 64, "x.y", "7", "client"),
    }
    for name, values in settings.items():
        for value in values:
            yield f"flow {name} {value!r:.30}", _with_flow(**{name: value})
    here = [name for name, each in VARIANTS.items() if not each.needs_accurate_ecn]
    for variant in (*here, "westwood", "htcp"):
        yield f"variant {variant}", _with_flow(variant=variant)


def _cbr() -> Iterator[Odd]:
    """UDP beside TCP."""
    settings: Mapping[str, tuple[Any, ...]] = {
        "rate_mbit": (0.001, 0.1, 0.333333, 1, 20),
        "packet_bytes": (44, 45, 1499, 1500),
        "jitter": (0, 1e-9, 1),
        "start_s": (0.5, 1.9),
        "name": ("b" * 64,),
    }
    for name, values in settings.items():
        for value in values:
            yield f"cbr {name} {value!r:.30}", _with_flow(1, _one(cbr_mbit=0.5), **{name: value})


def _links() -> Iterator[Odd]:
    """Access links with rates, queues, delays that vary, and losses."""
    few = Queue("pfifo", limit_packets=1)
    paths = (
        LinkSettings(rate_mbit=0.001, delay_ms=1, queue=few),
        LinkSettings(rate_mbit=0.5, queue=few),
        LinkSettings(rate_mbit=40_000, delay_ms=1),
        LinkSettings(rate_mbit=1.5, reverse=Direction(0.001)),
        LinkSettings(rate_mbit=10, delay_ms=3, reverse=Direction(0.01, 3)),
        LinkSettings(delay_ms=10, jitter_ms=10),
        LinkSettings(delay_ms=10, jitter_ms=1e-9),
        LinkSettings(delay_ms=300, jitter_ms=299),
        LinkSettings(delay_ms=1e-9, loss=GilbertElliott(1e-6, 1e-6, 1e-6)),
        LinkSettings(loss=GilbertElliott(0.02, 0.5)),
        LinkSettings(loss=GilbertElliott(1e-6, 1, 1, 0.0001)),
        LinkSettings(delay_ms=5, loss=GilbertElliott(1, 1, 0.1, 0.05)),
    )
    for number, path in enumerate(paths):
        base = _one(duration_s=5)
        yield f"link {number}", scenarios.with_network(base, access=vars(path))


def _losses() -> Iterator[Odd]:
    """Losses by chance on the receiver's link."""
    several = (
        Loss(LossEvents(1e-6)),
        Loss(LossEvents(1.0)),
        Loss(LossEvents(0.5, 3, 2)),
        Loss(LossEvents(0.01, 10_000, 10_000)),
        Loss(LossEvents(0.1, even=True)),
        Loss(LossEvents(0.2, one_at_a_time=False), spare_retransmissions=False),
        Loss(gilbert_elliott=GilbertElliott(1e-6, 1)),
        Loss(gilbert_elliott=GilbertElliott(0.5, 0.5)),
        Loss(gilbert_elliott=GilbertElliott(0.1, 1, 1, 0.1), spare_retransmissions=False),
        Loss(LossEvents(0.05), dice="x" * 64),
    )
    for number, loss in enumerate(several):
        yield f"loss {number}", scenarios.with_loss(_one(delay_ms=5), loss)


def _others() -> Iterator[Odd]:
    """Sessions, radios, and networks of many hosts."""
    base = scenarios.background(2, duration_s=3)
    settings: Mapping[str, tuple[Any, ...]] = {
        "number": (1, 400),
        "long_share": (0, 1),
        "think_ms": (1, 86_400_000),
        "rtt_max_ms": (4000,),
        "spread_s": (0, 2.999),
    }
    for name, values in settings.items():
        for value in values:
            yield f"sessions {name} {value}", scenarios.with_sessions(base, **{name: value})
    for radio in (Radio(-82), Radio(-20), Radio(-60, 0.9)):
        home = scenarios.access("wifi-good", duration_s=3)
        changed = scenarios.with_link(home, "ap-station", radio=radio)
        yield f"radio {radio.signal_dbm} {radio.busy}", changed
    for hosts in (2, 99):
        yield f"{hosts} hosts", scenarios.with_network(_one(), hosts=hosts)
