"""The queue disciplines: one table with their tc arguments; limits in bytes and packets."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from testbed.errors import nearest
from testbed.scenario.model import FRAME_OVERHEAD_BYTES, Queue

MTU_BYTES = 1500
FRAME_BYTES = MTU_BYTES + FRAME_OVERHEAD_BYTES  # what a full packet counts in a byte limit


@dataclass(frozen=True)
class Discipline:
    """A queue discipline: how tc names it and its settings.

    `options` maps a scenario's option to tc's keyword and the unit to write behind the
    number. `shared` are words that make a discipline of several queues behave as asked.
    """

    name: str
    counts: str  # the unit of its limit: "bytes" or "packets"
    ecn: bool = False
    options: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    kernel: str = ""  # kernel configuration symbol; the module is sch_<name>

    @property
    def symbol(self) -> str:
        """What the kernel's configuration calls it."""
        return self.kernel or f"CONFIG_NET_SCH_{self.name.upper()}"


_AQM_TIMES = {"target_ms": ("target", "ms"), "interval_ms": ("interval", "ms")}

DISCIPLINES = {
    row.name: row
    for row in (
        Discipline("bfifo", "bytes", kernel="CONFIG_NET_SCHED"),
        Discipline("pfifo", "packets", kernel="CONFIG_NET_SCHED"),
        Discipline(
            "red",
            "bytes",
            ecn=True,
            options={
                "min_bytes": ("min", ""),
                "max_bytes": ("max", ""),
                "avpkt_bytes": ("avpkt", ""),
                "burst_packets": ("burst", ""),
                "probability": ("probability", ""),
            },
        ),
        Discipline("codel", "packets", ecn=True, options=_AQM_TIMES),
        Discipline(
            "fq_codel",
            "packets",
            ecn=True,
            options={**_AQM_TIMES, "flows": ("flows", ""), "quantum_bytes": ("quantum", "")},
        ),
        Discipline(
            "pie",
            "packets",
            ecn=True,
            options={"target_ms": ("target", "ms"), "tupdate_ms": ("tupdate", "ms")},
        ),
        Discipline("cake", "bytes", ecn=True, options={"rtt_ms": ("rtt", "ms")}),
    )
}

# cake marks every ECN-capable packet that it would drop and has no switch for it
ALWAYS_ECN = frozenset({"cake"})
# without a word these mark by default; others need the word to mark
ECN_BY_DEFAULT = frozenset({"fq_codel"})


@dataclass(frozen=True)
class Limit:
    """A queue's limit in every unit that people use; full frames of 1514 bytes."""

    bytes: int
    packets: int
    ms: float
    bdp: float | None  # None where the path has no delay: every buffer is then infinite BDPs

    def __str__(self) -> str:
        bdp = "no delay, so no BDP" if self.bdp is None else f"{self.bdp:.2f} BDP"
        return f"{self.bytes} B = {self.packets} packets = {self.ms:.1f} ms = {bdp}"


def faults(queue: Queue, where: str) -> list[str]:
    """Everything that is wrong with a queue, field by field."""
    row = DISCIPLINES.get(queue.discipline)
    if row is None:
        return [
            f"{where}.discipline: unknown queue {queue.discipline!r}: "
            + nearest(queue.discipline, DISCIPLINES)
        ]
    found = []
    given = [queue.limit_bytes, queue.limit_packets, queue.limit_bdp]
    values = [value for value in given if value is not None]
    if len(values) != 1:
        found.append(f"{where}: give the limit in one unit: limit_bytes, _packets or _bdp")
    if any(value <= 0 for value in values):
        found.append(f"{where}: the limit must be above 0")
    if queue.limit_bytes is not None and 0 < queue.limit_bytes < FRAME_BYTES:
        found.append(f"{where}.limit_bytes: {queue.limit_bytes} holds no full frame of 1514 bytes")
    if queue.ecn and not row.ecn:
        found.append(f"{where}.ecn: {queue.discipline} can't mark packets")
    for name, value in queue.options.items():
        if name not in row.options:
            found.append(f"{where}.options.{name}: {queue.discipline} has no such option")
        elif value <= 0:
            found.append(f"{where}.options.{name}: must be above 0")
    return found


def resolve(queue: Queue, rate_mbit: float, rtt_ms: float) -> Limit:
    """The limit in all units, rounded down to what the discipline counts."""
    bdp_bytes = rate_mbit * 1e6 / 8 * rtt_ms / 1e3
    if queue.limit_bdp is not None:
        size = max(FRAME_BYTES, math.floor(queue.limit_bdp * bdp_bytes))
    elif queue.limit_packets is not None:
        size = queue.limit_packets * FRAME_BYTES
    else:
        size = queue.limit_bytes or 0
    if DISCIPLINES[queue.discipline].counts == "packets":
        size = max(1, size // FRAME_BYTES) * FRAME_BYTES
    return Limit(
        bytes=size,
        packets=size // FRAME_BYTES,
        ms=size * 8 / (rate_mbit * 1e3),
        bdp=size / bdp_bytes if bdp_bytes else None,
    )


def arguments(queue: Queue, limit: Limit, rate_mbit: float) -> tuple[str, ...]:
    """What follows the discipline's name on tc's command line."""
    row = DISCIPLINES[queue.discipline]
    options = dict(queue.options)
    if queue.discipline == "red":
        options = _red_defaults(options, limit.bytes)
    size = limit.bytes if row.counts == "bytes" else limit.packets
    words = ["memlimit" if queue.discipline == "cake" else "limit", str(size)]
    for name, value in options.items():
        keyword, unit = row.options[name]
        words += [keyword, f"{value:g}{unit}" if unit or value < 1 else f"{int(value)}"]
    if queue.discipline == "red":
        words += ["bandwidth", f"{round(rate_mbit * 1e6)}bit"]
    if queue.discipline == "cake":
        words += ["unlimited", "besteffort", "flows"]
    elif queue.ecn:
        words.append("ecn")
    elif queue.discipline in ECN_BY_DEFAULT:
        words.append("noecn")
    return (queue.discipline, *words)


def _red_defaults(options: dict[str, float], limit_bytes: int) -> dict[str, float]:
    """RED's thresholds as tc chooses them, written out so that the plan is complete."""
    maximum = options.get("max_bytes", limit_bytes // 4)
    minimum = options.get("min_bytes", maximum // 3)
    average = options.get("avpkt_bytes", 1000)
    burst = (2 * minimum + maximum) / (3 * average)
    return {
        "min_bytes": minimum,
        "max_bytes": maximum,
        "avpkt_bytes": average,
        "burst_packets": options.get("burst_packets", math.ceil(burst)),
        "probability": options.get("probability", 0.02),
    }


def warnings(queue: Queue, limit: Limit) -> Iterator[str]:
    """What a queue is set to and cannot do."""
    if queue.discipline != "red":
        return
    options = _red_defaults(dict(queue.options), limit.bytes)
    low, high = options["min_bytes"], options["max_bytes"]
    if high >= limit.bytes:
        yield f"RED's upper threshold of {high:g} B is not below its limit of {limit.bytes} B"
    if low >= high:
        yield f"RED's lower threshold of {low:g} B is not below its upper one of {high:g} B"
    elif low < options["avpkt_bytes"]:
        yield f"RED's lower threshold of {low:g} B holds no packet: it drops from the first on"
