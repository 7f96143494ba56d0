"""Parts of a scenario in a few words, as tables and figures show them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

from testbed.scenario import Queue, Scenario, TopologyKind
from testbed.store import Trial

# The order in which people name them; others follow by the alphabet.
VARIANT_ORDER = (
    "tahoe",
    "reno",
    "newreno",
    "newreno-impatient",
    "sack",
    "vegas",
    "veno",
    "cubic",
    "bbr",
    "linux-reno",
)


BETWEEN = " · "


def queue_label(queue: Queue) -> str:
    """The queue: `bfifo 100000 B`, `codel 100 packets ecn`."""
    if queue.limit_bytes is not None:
        size = f"{queue.limit_bytes} B"
    elif queue.limit_packets is not None:
        size = f"{queue.limit_packets} packets"
    else:
        size = f"{queue.limit_bdp:g} BDP"
    options = [f"{name}={value:g}" for name, value in sorted(queue.options.items())]
    return " ".join([queue.discipline, size, *(["ecn"] if queue.ecn else []), *options])


def variant_key(name: str) -> tuple[int, str]:
    """Sorts variants in their usual order."""
    known = VARIANT_ORDER.index(name) if name in VARIANT_ORDER else len(VARIANT_ORDER)
    return known, name


def path_rtt_ms(scenario: Scenario) -> float:
    """Propagation there and back, on links without settings of their own."""
    topology = scenario.topology
    return 2 * (
        topology.bottleneck.delay_ms + _access_links(topology.kind) * topology.access.delay_ms
    )


def _access_links(kind: TopologyKind) -> int:
    """How many of them a path has, one way."""
    match kind:
        case TopologyKind.ROUTER_BOTTLENECK:
            return 1
        case TopologyKind.DUMBBELL:
            return 2
        case _:
            assert_never(kind)


def in_lines(parts: Iterable[str], letters: int) -> str:
    """The parts with dots between them, in lines of at most so many letters."""
    lines = [""]
    for part in parts:
        longer = f"{lines[-1]}{BETWEEN}{part}" if lines[-1] else part
        if not lines[-1] or len(longer) <= letters:
            lines[-1] = longer
        else:
            lines.append(part)
    return "\n".join(lines)


def setting_label(trial: Trial) -> str:
    """The network, the stacks' profile and the machine, as the feet of figures say them."""
    scenario, record = trial.scenario, trial.record
    topology = scenario.topology
    bottleneck = topology.bottleneck
    ways = "both ways" if bottleneck.both_directions else "one way"
    kernel = " ".join(record.kernel.split()[:2])  # without the build's date
    return BETWEEN.join(
        [
            f"{topology.kind}, {topology.hosts} sender{'s' * (topology.hosts > 1)}",
            f"{bottleneck.rate_mbit:g} Mbit/s {ways}",
            queue_label(bottleneck.queue),
            f"path RTT {path_rtt_ms(scenario):g} ms and serialisation",
            f"{scenario.duration_s:g} s",
            f"profile {scenario.profile}",
            f"engine {record.engine}" + (f" ({kernel})" if kernel else ""),
        ]
    )
