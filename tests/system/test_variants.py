"""Every variant on a real kernel does what its definition says: read from packets and sockets.

One, two, three and four exact segments of a window are lost (Fall, Floyd 1996).
"""

from __future__ import annotations

import dataclasses
import itertools
import json
from pathlib import Path

import pytest

from analysis.captures.tcp import read_capture
from analysis.metrics.loss_events import LossyConnection, lossy_connections
from analysis.results.reduction import reduce_trial
from analysis.trials.packets import TrialPackets
from analysis.trials.samples import read_counters, read_samples
from experiments.fall_floyd.fall_floyd import EXPERIMENT, LOST
from experiments.fall_floyd.outcomes import EXPECTED, Outcome, SegmentSequence, outcome, sequence
from testbed.scenario.model import Profile, Scenario
from testbed.scenario.network import Queue
from testbed.scenario.variants import LINUX_CONTROLS, VARIANTS
from testbed.store.names import SOCKET_SAMPLES
from testbed.store.reading import Trial
from tests.lab import ON_FIRST, capture_hashes, packets, run_trials, samples
from tests.scenarios import router

ON_ANY_KERNEL = [name for name, each in VARIANTS.items() if not each.needs_accurate_ecn]
WHEEL_S = 0.032  # of timers from 0.25 to 2 s, with 250 ticks a second (kernel/time/timer.c)
CASES = tuple(itertools.product(EXPECTED, LOST))


@dataclasses.dataclass(frozen=True)
class Case:
    """A trial with its losses, and what became of them."""

    trial: Trial
    sequence: SegmentSequence
    outcome: Outcome


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, int], Case]:
    """The whole experiment."""
    scenarios = EXPERIMENT.scenarios({}, 1, quick=False)
    trials = run_trials(scenarios, tmp_path_factory.mktemp("fall-floyd") / "out")
    found = {}
    for trial in trials:
        flow = trial.scenario.flows[0]
        seen = sequence(trial, flow)
        case = Case(trial, seen, outcome(trial, flow, seen))
        found[flow.variant or "", len(flow.drops)] = case
    return found


DELAY_BASED = ("vegas", "vegas1995", "bbr")


@pytest.mark.parametrize(("variant", "lost"), CASES)
def test_a_variant_does_what_its_definition_says(
    cases: dict[tuple[str, int], Case], variant: str, lost: int
) -> None:
    seen = cases[variant, lost].outcome
    assert list(EXPECTED[variant][lost - 1].differences(seen)) == []


@pytest.mark.parametrize(
    ("one", "other"), [pair for pair in itertools.permutations(EXPECTED, 2) if "sack" not in pair]
)
def test_the_proof_tells_every_variant_from_every_other(
    cases: dict[tuple[str, int], Case], one: str, other: str
) -> None:
    """What one does is, with some number of losses, not what the other's definition says."""
    assert any(
        list(EXPECTED[other][lost - 1].differences(cases[one, lost].outcome)) for lost in LOST
    )


def test_sack_is_told_from_newreno_by_its_speed(cases: dict[tuple[str, int], Case]) -> None:
    assert list(EXPECTED["newreno"][3].differences(cases["sack", 4].outcome))
    assert list(EXPECTED["sack"][3].differences(cases["newreno", 4].outcome))


def data_packets(trial: Trial, role: str) -> int:
    path = trial.capture(role)
    assert path is not None, role
    rows = read_capture(path).rows
    return int(((rows["payload"] > 0) & (rows["src_port"] == 40001)).sum())


@pytest.mark.parametrize(("variant", "lost"), CASES)
def test_exactly_the_wanted_segments_are_lost(
    cases: dict[tuple[str, int], Case], variant: str, lost: int
) -> None:
    """The dropper's own count, and the packets that came to the router and not out of it."""
    trial = cases[variant, lost].trial
    counts = json.loads((trial.path / "samples" / "drops.json").read_text())["tcp"]
    assert counts["dropped"] == lost
    assert (
        data_packets(trial, "bottleneck-in:tcp") - data_packets(trial, "bottleneck-out:tcp") == lost
    )
    assert trial.record.warnings == ()


@pytest.mark.parametrize(("variant", "lost"), CASES)
def test_timeouts_are_those_that_the_kernel_counted(
    cases: dict[tuple[str, int], Case], variant: str, lost: int
) -> None:
    case = cases[variant, lost]
    counted = read_counters(case.trial, "sender1")["TcpExtTCPTimeouts"]
    assert case.outcome.timeouts == counted
    last = read_samples(case.trial, SOCKET_SAMPLES)
    assert last is not None
    assert len(case.outcome.sent_again) == last["total_retrans"].max()


def connection(trial: Trial) -> LossyConnection:
    """The trial's only one, with what its captures tell of its losses."""
    found = lossy_connections(trial, TrialPackets(trial), trial.record.flows[0])
    assert found is not None
    return found[0]


def counted(trial: Trial) -> tuple[int, int]:
    """What the sender's kernel says it had of timeouts and of recoveries."""
    counters = read_counters(trial, "sender1")
    entered = counters["TcpExtTCPRenoRecovery"] + counters["TcpExtTCPSackRecovery"]
    return counters["TcpExtTCPTimeouts"], entered


@pytest.mark.parametrize(("variant", "lost"), CASES)
def test_all_that_is_lost_is_one_loss_event(
    cases: dict[tuple[str, int], Case], variant: str, lost: int
) -> None:
    """However often the variant times out or recovers for it."""
    found = connection(cases[variant, lost].trial)
    assert [event.losses for event in found.events] == [lost]
    seen = len(found.answers.timeouts), len(found.answers.recoveries)
    assert seen == counted(cases[variant, lost].trial)


@pytest.mark.parametrize("lost", LOST)
def test_the_window_is_one_segment_after_a_loss_in_tahoe_only(
    cases: dict[tuple[str, int], Case], lost: int
) -> None:
    least = {}
    for variant in EXPECTED:
        rows = samples(cases[variant, lost].trial, "sockets")
        again = cases[variant, lost].sequence.again.time_s[0]
        soon = [row for row in rows if again < float(row["time_s"]) < again + 0.15]
        least[variant] = min(int(row["cwnd"]) for row in soon)
    assert least.pop("tahoe") == 1
    assert all(window >= 7 for window in least.values())


@pytest.mark.parametrize("lost", [1, 2, 3])
def test_impatient_is_newreno_but_for_its_timer(
    cases: dict[tuple[str, int], Case], lost: int
) -> None:
    """As long as that does not fire, the two send the same at the same times."""
    one, other = (cases[name, lost].sequence for name in ("newreno", "newreno-impatient"))
    assert one.new.number.tolist() == other.new.number.tolist()
    assert one.new.time_s.tolist() == pytest.approx(other.new.time_s.tolist(), abs=1e-9)
    assert one.again.time_s.tolist() == pytest.approx(other.again.time_s.tolist(), abs=1e-9)


def test_impatient_times_out_a_timeout_after_the_first_partial_ack(
    cases: dict[tuple[str, int], Case],
) -> None:
    case = cases["newreno-impatient", 4]
    acks = case.sequence.acks
    first_hole, second_hole = case.outcome.lost[:2]
    partial = acks.time_s[acks.number >= first_hole][0]
    assert acks.number[acks.number >= first_hole][0] == second_hole - 1
    seen = case.sequence.timeouts_s[0]  # by a sample
    fired = max(time_s for time_s in case.sequence.again.time_s if time_s <= seen)
    # never early; late by what the kernel's wheel rounds so long a timer up to
    assert 0 <= fired - partial - case.outcome.rto_ms / 1e3 <= WHEEL_S


@pytest.mark.parametrize("variant", EXPECTED)
def test_growth_is_a_segment_a_window_in_congestion_avoidance(
    cases: dict[tuple[str, int], Case], variant: str
) -> None:
    """Between two openings of the window, a window's worth is acknowledged."""
    rows = samples(cases[variant, 1].trial, "sockets")
    calm = [row for row in rows if row["ca_state"] == "open" and row["ssthresh"]]
    calm = [row for row in calm if int(row["cwnd"]) > int(row["ssthresh"])]
    openings: list[tuple[int, int]] = []
    for row in calm:
        if not openings or int(row["cwnd"]) > openings[-1][0]:
            openings.append((int(row["cwnd"]), int(row["bytes_acked"])))
    assert len(openings) > 5
    for (window, before), (wider, after) in itertools.pairwise(openings):
        assert wider == window + 1
        assert (after - before) / 1000 == pytest.approx(window, abs=1)


def test_slow_start_is_a_segment_an_ack(cases: dict[tuple[str, int], Case]) -> None:
    """Initial window 1 and an ACK for every segment: 1, 2, 4, 8 segments a round trip."""
    new = cases["newreno", 1].sequence.new
    start = new.time_s[0]
    rounds = [int((new.time_s < start + 0.2 * k + 0.195).sum()) for k in range(4)]
    assert rounds == [1, 3, 7, 15]


def test_every_segment_is_acknowledged_and_as_large_as_asked(
    cases: dict[tuple[str, int], Case],
) -> None:
    trial = cases["newreno", 1].trial
    data, acks = (
        [packet for packet in packets(trial, "receiver:tcp", condition) if packet.time_s < 5.9]
        for condition in ("tcp.len > 0 && tcp.srcport == 40001", "tcp.srcport == 5201")
    )
    assert {packet.payload for packet in data[1:]} == {1000}
    assert len(acks) == len(data) + 1  # and the SYN's
    assert packets(trial, "sender:tcp", "tcp.options.timestamp.tsval") == []


@pytest.fixture(scope="module")
def lossy(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Trial]:
    """Each variant through a small buffer, as the kernel ships otherwise."""
    queue = Queue("pfifo", limit_packets=20)
    scenarios = [
        router(variant=name, rate_mbit=5, delay_ms=20, queue=queue, duration_s=6)
        for name in ON_ANY_KERNEL
    ]
    trials = run_trials(scenarios, tmp_path_factory.mktemp("lossy") / "out")
    return dict(zip(ON_ANY_KERNEL, trials, strict=True))


@pytest.mark.parametrize("name", ON_ANY_KERNEL)
def test_every_variant_runs_its_own_control_and_options(lossy: dict[str, Trial], name: str) -> None:
    trial, recipe = lossy[name], VARIANTS[name]
    assert trial.record.flows[0].variant_seen == recipe.control
    sysctls = trial.record.sysctls["sender1"]
    assert {key: sysctls[f"net.ipv4.{key}"] for key in recipe.sender} == dict(recipe.sender)
    offered = {
        "tcp.options.sack_perm": recipe.sender.get("tcp_sack", "1"),
        "tcp.options.timestamp": recipe.sender.get("tcp_timestamps", "1"),
    }
    options = [name if on == "1" else f"!{name}" for name, on in offered.items()]
    syn = " && ".join(("tcp.flags.syn == 1", "tcp.flags.ack == 0", *options))
    assert len(packets(trial, "sender:tcp", syn)) == 1


@pytest.mark.parametrize("name", ON_ANY_KERNEL)
def test_metrics_count_what_the_kernel_counted(lossy: dict[str, Trial], name: str) -> None:
    """Segments sent again, and timeouts."""
    row = reduce_trial(lossy[name]).flows.iloc[0]
    counters = read_counters(lossy[name], "sender1")
    times = [sample["time_s"] for sample in samples(lossy[name], "sockets")]
    assert len(times) == len(set(times))
    more = counters["TcpRetransSegs"] - row["retransmitted"]
    assert more >= 0
    if more:  # the host's counter runs on until the queues have drained
        stopped = lossy[name].record.flows[0].stopped_s
        after = f"tcp.len > 0 && frame.time_relative > {stopped}"
        assert more <= len(packets(lossy[name], "sender:tcp", after))
    assert row["timeouts"] == counters["TcpExtTCPTimeouts"]


@pytest.mark.parametrize("name", EXPECTED)
def test_timeouts_and_recoveries_are_seen_in_the_capture(
    lossy: dict[str, Trial], name: str
) -> None:
    """Every loss event has one that began it; SACK begins some without the first segment."""
    found = connection(lossy[name])
    seen = len(found.answers.timeouts), len(found.answers.recoveries)
    timeouts, recoveries = counted(lossy[name])
    # a timer that fires while the segment's last copy has not left the host sends nothing
    unsent = read_counters(lossy[name], "sender1")["TcpExtTCPSpuriousRtxHostQueues"]
    assert 0 <= timeouts - seen[0] <= unsent and 0 < seen[1] <= recoveries
    if name != "sack":
        assert seen[1] == recoveries
        assert 0 < len(found.events) <= sum(seen)


@pytest.mark.parametrize("name", [name for name in ON_ANY_KERNEL if name not in DELAY_BASED])
def test_loss_based_variants_fill_the_buffer_and_lose(lossy: dict[str, Trial], name: str) -> None:
    assert int(samples(lossy[name], "queues")[-1]["drops"]) > 0


def test_the_same_seed_gives_the_same_packets(lossy: dict[str, Trial], tmp_path: Path) -> None:
    """Of our own controls too."""
    ours = [name for name in ON_ANY_KERNEL if VARIANTS[name].control not in LINUX_CONTROLS]
    assert ours == ["tahoe", "reno", "newreno", "newreno-impatient", "sack", "vegas1995"]
    again = run_trials([lossy[name].scenario for name in ours], tmp_path)
    for name, trial in zip(ours, again, strict=True):
        assert capture_hashes(trial) == capture_hashes(lossy[name])


def test_vegas_keeps_as_many_packets_queued_as_its_parameters_say(tmp_path: Path) -> None:
    """Linux's 2 to 4, ns-2's 1 to 3, in whole packets, as tcp_vegas.c counts them.

    Vegas forgets its shortest round trip when it starts to send with nothing in flight: so does the
    flow without an early start (ns-2's profile), which takes a full packet's; the other keeps that
    of iperf3's first 37 bytes.
    """
    deep = Queue("pfifo", limit_packets=100)
    plain = router(variant="vegas", rate_mbit=5, delay_ms=20, queue=deep, duration_s=10)
    scenarios: list[Scenario] = [plain, dataclasses.replace(plain, profile=Profile.NS2)]
    bounds = ((2, 4, 103), (1, 3, 1054))  # at least, at most, the shortest round trip's frame
    queued, backlogs = [], []
    for trial, (least, most, frame) in zip(run_trials(scenarios, tmp_path), bounds, strict=True):
        rows = [row for row in samples(trial, "queues") if 5 < float(row["time_s"]) < 10]
        backlogs.append(sum(int(row["backlog_packets"]) for row in rows) / len(rows))
        last = samples(trial, "sockets")[-1]
        empty_ms = 40 + (frame + 54) * 8 / 5000
        queued.append(int(last["cwnd"]) * (float(last["srtt_ms"]) - empty_ms) / empty_ms)
        assert least <= int(queued[-1]) <= most
    modern, ns2 = queued
    assert 1 < backlogs[0] < 4
    assert ns2 < modern or not ON_FIRST


def test_a_receivers_window_bounds_what_is_in_flight(tmp_path: Path) -> None:
    scenario = dataclasses.replace(
        router(variant="newreno", rate_mbit=5, delay_ms=20, duration_s=3), profile=Profile.NS2
    )
    flow = dataclasses.replace(scenario.flows[0], window_bytes=10_000)
    trial = run_trials([dataclasses.replace(scenario, flows=(flow,))], tmp_path)[0]
    in_flight = [int(row["unacked"]) for row in samples(trial, "sockets")]
    assert max(in_flight) == 10


def test_the_timer_is_a_round_trip_and_the_least_that_the_route_adds(tmp_path: Path) -> None:
    scenario = dataclasses.replace(
        router(variant="newreno", rate_mbit=50, delay_ms=35, duration_s=2), profile=Profile.NS2
    )
    flow = dataclasses.replace(scenario.flows[0], rto_min_ms=130, window_bytes=10_000)
    trial = run_trials([dataclasses.replace(scenario, flows=(flow,))], tmp_path)[0]
    last = samples(trial, "sockets")[-1]
    assert float(last["srtt_ms"]) == pytest.approx(70, abs=1)
    assert float(last["rto_ms"]) == pytest.approx(200, abs=4)  # ticks of 4 ms


def test_a_drop_that_never_comes_is_told(tmp_path: Path) -> None:
    scenario = router(duration_s=1)
    flow = dataclasses.replace(scenario.flows[0], drops=(5, 100_000))
    trial = run_trials([dataclasses.replace(scenario, flows=(flow,))], tmp_path)[0]
    (missing,) = trial.record.warnings
    assert "tcp: 1 of 2 drops: the flow sent" in missing
