"""The example test cases of draft-ietf-ccwg-bbr (`testbed evaluate bbr --suite bbr-draft`).

One flow over a controlled path, whose socket is sampled every millisecond. Several of the draft's
cases are steps of one path, so there are fewer paths than cases.
"""

from __future__ import annotations

import dataclasses

from experiments.evaluation import evaluation_settings as settings
from experiments.evaluation.path_evaluations import reordering_network
from testbed.errors import require_known
from testbed.scenario.model import CapturePoint, Scenario
from testbed.scenario.named_networks import LinkSettings, dumbbell
from testbed.scenario.network import Change, Direction, Graph, Queue
from testbed.scenario.queues import POLICE, polices

DRAFT_MBIT, FAST_MBIT, DRAFT_RTT_MS = 10.0, 100.0, 40.0
BUFFER_BDP, SHALLOW_BDP = 2.0, 0.1
DRAIN_AT_S = 0.755  # on the plain path, where STARTUP has ended just before
CHANGE_AT_S = 5.0
SPIKE_S = 0.6
REORDERED_PERCENT = 1.0
FAR_MBIT, FAR_RTT_MS = 1.0, 4000.0
BATCH_PACKETS, BATCH_MS = 32, 20.0
TINY_MBIT, TINY_RTT_MS = 0.5, 4.0
BUCKET_BDP = 1.0  # of the policer


DEEP = Queue("pfifo", limit_bdp=BUFFER_BDP)


@dataclasses.dataclass(frozen=True)
class DraftPath:
    """A path of the draft's cases: how long it is watched, and what is special about it."""

    duration_s: float
    rate_mbit: float = DRAFT_MBIT
    rtt_ms: float = DRAFT_RTT_MS
    buffer: Queue = DEEP
    schedule: tuple[Change, ...] = ()
    batched: bool = False
    reordered: bool = False

    @property
    def network(self) -> Graph:
        """A sender, the bottleneck, and a receiver."""
        if self.reordered:
            return reordering_network(REORDERED_PERCENT)
        batches = (BATCH_PACKETS, BATCH_MS) if self.batched else (1, 0.0)
        plain = Direction(delay_ms=self.rtt_ms / 8)  # acknowledgements are not policed
        bottleneck = LinkSettings(
            self.rate_mbit,
            self.rtt_ms / 8,
            self.buffer,
            schedule=self.schedule,
            aggregate_packets=batches[0],
            aggregate_ms=batches[1],
            reverse=plain if polices(self.buffer.discipline) else None,
        )
        return dumbbell(bottleneck, 1, rtts_ms=(self.rtt_ms,))


SPIKE = (
    Change(CHANGE_AT_S, delay_ms=DRAFT_RTT_MS / 8 + 1e3 * SPIKE_S),
    Change(CHANGE_AT_S + SPIKE_S, delay_ms=DRAFT_RTT_MS / 8),
)
DRAFT_PATHS = {
    "plain": DraftPath(13.0),
    "slower-in-drain": DraftPath(3.0, schedule=(Change(DRAIN_AT_S, rate_mbit=0.9 * DRAFT_MBIT),)),
    "faster": DraftPath(9.0, schedule=(Change(CHANGE_AT_S, rate_mbit=FAST_MBIT),)),
    "slower": DraftPath(20.0, FAST_MBIT, schedule=(Change(CHANGE_AT_S, rate_mbit=FAST_MBIT / 10),)),
    "shallow": DraftPath(6.0, buffer=Queue("pfifo", limit_bdp=SHALLOW_BDP)),
    "batches": DraftPath(8.0, batched=True),
    "sub-packet": DraftPath(20.0, TINY_MBIT, TINY_RTT_MS, Queue("pfifo", limit_packets=20)),
    "policer": DraftPath(20.0, buffer=Queue(POLICE, limit_bdp=BUCKET_BDP)),
    "reordered": DraftPath(8.0, reordered=True),
    "spike": DraftPath(10.0, schedule=SPIKE),
    "long": DraftPath(90.0, FAR_MBIT, FAR_RTT_MS),
}


def bbr_draft_trial(*, variant: str, path: str, seed: int) -> Scenario:
    """Watch one flow of a variant on a path of the draft's test cases."""
    require_known("path", path, DRAFT_PATHS)
    drawn = DRAFT_PATHS[path]
    return Scenario(
        experiment="bbr-draft",
        label=f"{variant}-{path}",
        network=drawn.network,
        flows=(settings.flow("flow", 1, variant),),
        duration_s=drawn.duration_s,
        seed=seed,
        captures=tuple(CapturePoint),
        sample_interval_ms=1.0,
    )


BBR_DRAFT = settings.suite(
    name="bbr-draft",
    paper="draft-ietf-ccwg-bbr, BBR Example Test Cases",
    about="the draft's 22 test cases, step by step, by what a socket shows every millisecond",
    variant="bbr",
    paths=DRAFT_PATHS,
    quick=("plain", "faster"),
    build=bbr_draft_trial,
    summary="draft_summary",
)
