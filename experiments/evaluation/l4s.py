"""L4S: what RFC 9331 requires of a scalable control (`testbed evaluate dctcp-l4s --suite l4s`).

A control runs alone and beside Classic ones, through DualPI2 and through single queues that mark
as RFC 3168 has it or only drop, on Linux 7.3, the first kernel here with DualPI2 and accurate ECN.
"""

from __future__ import annotations

import dataclasses

from experiments.evaluation import evaluation_settings as settings
from experiments.evaluation.path_evaluations import reordering_network
from testbed.errors import require_known
from testbed.scenario.model import CapturePoint, Scenario
from testbed.scenario.network import Graph, Queue
from testbed.scenario.queues import DUALPI2_PACKETS

L4S_KERNEL = "7.3"
L4S_SLOW_MBIT, L4S_MBIT, L4S_FAST_MBIT = 10.0, 40.0, 80.0
L4S_RTT_MS = 20.0
NEAR_MS, FAR_MS = 10.0, 40.0
TINY_WINDOW_RTT_MS, TINY_WINDOW_FLOWS = 5.0, 10
L4S_WIRE_MS = 1.0  # of the bottleneck, one way
LOST_SEGMENT = 18_000  # of some 40,000
L4S_REORDERED_PERCENT = 5.0
DURATION_S, L4S_SAMPLES_MS = 12.0, 5.0
CLASSIC_BDP = 4.0

DUALPI2 = Queue("dualpi2", limit_packets=DUALPI2_PACKETS, ecn=True)
CODEL, PIE = (Queue(name, limit_bdp=CLASSIC_BDP, ecn=True) for name in ("codel", "pie"))


@dataclasses.dataclass(frozen=True)
class L4sPath:
    """A bottleneck of the suite, and what is beside the control there."""

    queue: Queue = DUALPI2
    rate_mbit: float = L4S_MBIT
    rtts_ms: tuple[float, ...] = (L4S_RTT_MS,)
    flows: int = 1  # of the control; the first pair of hosts has the first of them, and so on
    beside: str = ""  # a flow of this variant, too
    asks_ecn: bool = True  # the flow beside; the control always does
    dropped: tuple[int, ...] = ()
    reordered: bool = False

    @property
    def network(self) -> Graph:
        """A pair of hosts for each round trip, and one for the flow beside."""
        if self.reordered:
            return reordering_network(L4S_REORDERED_PERCENT)
        return settings.dumbbell(
            self.queue,
            len(self.rtts_ms) + bool(self.beside),
            (*self.rtts_ms, *((self.rtts_ms[0],) if self.beside else ())),
            self.rate_mbit,
            delay_ms=L4S_WIRE_MS,
        )


L4S_PATHS = {
    "slow": L4sPath(rate_mbit=L4S_SLOW_MBIT),
    "fast": L4sPath(rate_mbit=L4S_FAST_MBIT),
    "beside-marks": L4sPath(beside="cubic"),
    "beside-drops": L4sPath(beside="cubic", asks_ecn=False),
    "codel": L4sPath(CODEL, beside="cubic"),
    "pie": L4sPath(PIE, beside="cubic"),
    "tail-drop": L4sPath(settings.buffer(settings.FIFO), beside="linux-reno"),
    "loss": L4sPath(dropped=(LOST_SEGMENT,)),
    "two-rtts": L4sPath(rtts_ms=(NEAR_MS, FAR_MS), flows=2),
    "tiny-window": L4sPath(
        rate_mbit=L4S_SLOW_MBIT, rtts_ms=(TINY_WINDOW_RTT_MS,), flows=TINY_WINDOW_FLOWS
    ),
    "reordered": L4sPath(reordered=True),
}


def l4s_trial(*, variant: str, path: str, seed: int) -> Scenario:
    """Run a scalable control on a path of the suite, alone or beside a Classic one."""
    require_known("path", path, L4S_PATHS)
    drawn = L4S_PATHS[path]
    pairs = len(drawn.rtts_ms)
    flows = [
        dataclasses.replace(
            settings.flow(f"scalable{number + 1}", number % pairs + 1, variant),
            drops=drawn.dropped,
        )
        for number in range(drawn.flows)
    ]
    if drawn.beside:
        flows.append(settings.flow("classic", pairs + 1, drawn.beside))
    trial = settings.trial(
        "l4s",
        (variant, path),
        drawn.network,
        tuple(flows),
        DURATION_S,
        seed,
        asks_ecn=drawn.asks_ecn,
    )
    return dataclasses.replace(
        trial,
        kernel=L4S_KERNEL,
        sample_interval_ms=L4S_SAMPLES_MS,
        captures=tuple(CapturePoint),
    )


L4S = settings.suite(
    name="l4s",
    paper="RFC 9331, 4",
    about="what RFC 9331 requires of a scalable control, and its neighbours, on Linux 7.3",
    variant="dctcp-l4s",
    paths=L4S_PATHS,
    quick=("fast", "beside-marks", "codel"),
    build=l4s_trial,
    summary="l4s_summary",
)
