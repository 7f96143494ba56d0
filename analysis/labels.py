"""Parts of a scenario in a few words, as tables and figures show them."""

from __future__ import annotations

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
    access = topology.access.delay_ms * (2 if topology.kind is TopologyKind.DUMBBELL else 1)
    return 2 * (topology.bottleneck.delay_ms + access)


def setting_label(trial: Trial) -> str:
    """The network, the stacks' profile and the machine, as the feet of figures say them."""
    scenario, record = trial.scenario, trial.record
    topology = scenario.topology
    bottleneck = topology.bottleneck
    ways = "both ways" if bottleneck.both_directions else "one way"
    kernel = " ".join(record.kernel.split()[:2])  # without the build's date
    return " · ".join(
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
