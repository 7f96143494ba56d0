"""Links in the guest that send packets one after the other, at rates from slow to very fast."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from analysis.trials.packets import TrialPackets
from analysis.verdict.verdict import judge
from benchmarks.link_rates import at_rate, results
from testbed.scenario.network import Queue, Shaping
from testbed.store.reading import Trial
from tests.lab import ended_in_the_guest, run_trials
from tests.scenarios import router, with_network

FULL = 1514


def first_full_packet_ms(trial: Trial) -> tuple[float, float]:
    """Return its round trip from before the bottleneck on, and the time until it is behind it."""
    packets, (flow,) = TrialPackets(trial), trial.record.flows
    sent, behind = (packets.part(r, flow) for r in ("bottleneck-in", "bottleneck-out"))
    assert sent is not None and behind is not None
    data, left = (each.data[each.data["length"] == FULL] for each in (sent, behind))
    answered = sent.acks[sent.acks["ack"] >= data["seq"][0] + data["payload"][0]]
    times = (int(each["time_ns"][0] - data["time_ns"][0]) / 1e6 for each in (answered, left))
    rtt_ms, crossed_ms = times
    return rtt_ms, crossed_ms


def test_a_first_packet_takes_its_time_on_a_slow_link(tmp_path: Path) -> None:
    """10 kbit/s: 1.21 s for a full packet, and its ACK of 66 bytes takes 53 ms."""
    slow = router(rate_mbit=0.01, delay_ms=10, duration_s=20)
    (trial,) = run_trials([slow], tmp_path)
    rtt_ms, crossed_ms = first_full_packet_ms(trial)
    assert crossed_ms == pytest.approx(FULL * 0.8)
    assert rtt_ms == pytest.approx((FULL + 66) * 0.8)
    by_htb = with_network(slow, shaping=Shaping.HTB)
    (trial,) = run_trials([by_htb], tmp_path)
    assert first_full_packet_ms(trial)[1] < FULL * 0.8


@pytest.mark.slow
def test_the_same_network_at_one_and_four_mbit() -> None:
    """All times divided by 4; of the kernel's timers none decides, and TCP's bursts are short."""
    slow, fast = results([at_rate(rate, length_mbit_s=1000) for rate in (1, 4)])
    assert (slow.verdict, fast.verdict) == ("valid", "valid")
    assert fast.utilisation == pytest.approx(slow.utilisation, abs=0.01)
    assert fast.queue_packets == pytest.approx(slow.queue_packets, abs=0.15)


@pytest.mark.slow
@pytest.mark.parametrize("rate_mbit", [10, 1000])
def test_a_link_of_any_rate_is_full_where_its_queue_holds_the_bursts(rate_mbit: float) -> None:
    (filled,) = results([at_rate(rate_mbit, packets=100, length_mbit_s=200)])
    assert filled.verdict == "valid"
    assert filled.utilisation == pytest.approx(1, abs=0.001)


@pytest.mark.slow
def test_a_hundred_gigabit(tmp_path: Path) -> None:
    queue = Queue("pfifo", limit_packets=500)
    (trial,) = run_trials(
        [router(rate_mbit=100_000, delay_ms=0.01, duration_s=0.1, queue=queue)], tmp_path
    )
    verdict = judge(trial)
    assert verdict is not None
    (rate,) = (c for c in verdict.checks if (c.name, c.subject) == ("rate", "router-eth0"))
    assert rate.measured == pytest.approx(100_000, rel=1e-4)


def test_a_window_holds_while_the_receivers_buffer_grows(tmp_path: Path) -> None:
    """20,000 bytes in 100 ms are 1.6 Mbit/s of 10."""
    base = router(rate_mbit=10, delay_ms=50, duration_s=8)
    flow = dataclasses.replace(base.flows[0], window_bytes=20_000)
    (trial,) = run_trials([dataclasses.replace(base, flows=(flow,))], tmp_path)
    verdict = judge(trial)
    assert verdict is not None
    (offered,) = (check for check in verdict.checks if check.name == "window offered")
    assert isinstance(offered.measured, int | float) and 15_000 < offered.measured <= 20_000


def test_a_large_bucket_is_not_valid_silently(tmp_path: Path) -> None:
    """Five packets wait before a bucket of 17."""
    queue = Queue("pfifo", limit_packets=5)
    fast = router(rate_mbit=1000, delay_ms=0.1, duration_s=0.3, queue=queue)
    verdict = judge(ended_in_the_guest(with_network(fast, shaping=Shaping.HTB), tmp_path))
    assert verdict is not None and verdict.verdict == "suspect"
    assert verdict.why.startswith("bucket of router-eth")
