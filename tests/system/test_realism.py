"""Links in the guest that aggregate, and hosts that take time to receive."""

from __future__ import annotations

import dataclasses
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from analysis.trials.packets import TrialPackets
from testbed.scenario.model import Scenario
from testbed.scenario.network import Queue
from testbed.store.reading import Trial
from tests.lab import run_trials
from tests.scenarios import router, with_network

Integers = npt.NDArray[np.int64]
RATE_MBIT = 10


def base(**settings: Any) -> Scenario:
    queue = Queue("pfifo", limit_packets=40)
    plain = router(variant="cubic", rate_mbit=RATE_MBIT, delay_ms=2, duration_s=3, queue=queue)
    return with_network(plain, **settings)


def data_at(trial: Trial, role: str) -> tuple[Integers, Integers]:
    """Return the times and lengths of the flow's data at a capture."""
    found = TrialPackets(trial).part(role, trial.record.flows[0])
    assert found is not None
    return found.data["time_ns"].astype(np.int64), found.data["length"].astype(np.int64)


def crossings(trial: Trial) -> tuple[Integers, Integers]:
    """Return when each packet left the queue, and when the receiver saw it, in order."""
    (left_ns, length), (came_ns, arrived) = (
        data_at(trial, role) for role in ("bottleneck-out", "receiver")
    )
    assert list(length) == list(arrived)  # none is lost, and none overtakes
    return left_ns, came_ns


def test_a_burst_leaves_when_its_last_bit_does(tmp_path: Path) -> None:
    """Six packets at most, of which none is added after 5 ms: five of 1.2 ms each."""
    by_number, by_time = run_trials(
        [
            base(aggregate_packets=6),
            base(aggregate_packets=40, aggregate_ms=5),
        ],
        tmp_path,
    )
    for trial, most in ((by_number, 6), (by_time, 5)):
        left_ns, length = data_at(trial, "bottleneck-out")
        bursts = Counter(left_ns.tolist())
        assert max(bursts.values()) == most and min(bursts.values()) < most
        starts = np.unique(left_ns)
        sizes = np.array([length[left_ns == at].sum() for at in starts])
        gaps_ns = np.diff(starts)
        full = sizes[1:] == most * 1514  # behind one another
        assert gaps_ns[full].min() == pytest.approx(most * 1514 * 8e3 / RATE_MBIT, abs=2)


def test_what_comes_while_an_interrupt_is_held_is_received_with_it(tmp_path: Path) -> None:
    (trial,) = run_trials([base(hold_us=3000)], tmp_path)
    left_ns, came_ns = crossings(trial)
    for at in np.unique(came_ns):
        together = left_ns[came_ns == at]
        assert at - together.min() == 3_000_000
    assert (np.diff(came_ns) == 0).any()


def test_receiving_takes_what_the_seed_draws(tmp_path: Path) -> None:
    costs = base(cost_us=300, wake_us=200)
    other_seed = dataclasses.replace(costs, seed=2)
    first, again, other = (
        run_trials([each], tmp_path / str(number))[0]
        for number, each in enumerate((costs, costs, other_seed))
    )
    left_ns, came_ns = crossings(first)
    took_ns = came_ns - left_ns
    assert took_ns.min() >= 0 and took_ns.max() <= 2 * (300 + 200) * 1000 + 600_000
    assert took_ns.mean() == pytest.approx(500_000, rel=0.1)
    assert list(crossings(again)[1]) == list(came_ns)
    assert list(crossings(other)[1]) != list(came_ns)


def test_the_set_is_valid_and_changes_the_packets(tmp_path: Path) -> None:
    exact, realistic = run_trials([base(), dataclasses.replace(base(), realistic=True)], tmp_path)
    assert list(data_at(exact, "sender")[0]) != list(data_at(realistic, "sender")[0])


def test_bbr_has_its_window_again_when_it_has_probed(tmp_path: Path) -> None:
    """Within 10 ms of PROBE_RTT's end more was outstanding than acknowledgements explain."""
    queue = Queue("bfifo", limit_bytes=104_857)
    fast = router(variant="bbr", rate_mbit=50, duration_s=15, queue=queue, seed=2)
    run_trials([dataclasses.replace(fast, realistic=True)], tmp_path)  # the verdict is valid
