"""Real trials on this machine's kernel, as far as it goes; nothing may be left behind."""

from __future__ import annotations

import dataclasses
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest

from experiments.fall_floyd.outcomes import outcome, sequence
from testbed.host.engine import HostEngine
from testbed.plan.host_settings import Parameter
from testbed.plan.plan import make_plan, tasks
from testbed.runs.engine_choice import choose
from testbed.runs.sweep import run_all
from testbed.scenario.model import Profile
from testbed.scenario.variants import VARIANTS
from testbed.store.reading import Trial
from testbed.store.records import Status
from tests.lab import has_no_tracing, packets, rate_mbit, run_trials, samples
from tests.left_behind import HYSTART, seen
from tests.scenarios import router

pytestmark = [
    pytest.mark.host,
    pytest.mark.root("the host engine makes namespaces and queues"),
]

needs_schedstat = pytest.mark.skipif(
    not Path("/proc/self/schedstat").exists(), reason="this kernel does not count"
)


@pytest.mark.parametrize("variant", ["linux-reno", "cubic", "bbr"])
def test_the_bottleneck_sends_at_its_rate(tmp_path: Path, variant: str) -> None:
    """Within 1 %, in real time."""
    if HostEngine().missing(make_plan(router(variant=variant)).needs):
        pytest.skip(f"this kernel has no {variant}")
    before = seen()
    trial = run_trials([router(variant=variant, rate_mbit=2, duration_s=3)], tmp_path, "host")[0]
    assert trial.record.flows[0].variant_seen == VARIANTS[variant].control
    found = packets(trial, "bottleneck-out:tcp", "tcp.len > 0")
    assert rate_mbit(found, 1, 3) == pytest.approx(2, rel=0.01)
    assert seen() == before


def test_exact_losses_on_this_kernel(tmp_path: Path) -> None:
    """The dropper and the profile work here as in the guest (without its delays)."""
    scenario = router(variant="linux-reno", duration_s=3, profile=Profile.NS2, sample_interval_ms=2)
    flow = dataclasses.replace(scenario.flows[0], drops=(15, 25, 27, 29))
    trial = run_trials([dataclasses.replace(scenario, flows=(flow,))], tmp_path, "host")[0]
    seen = outcome(trial, flow, sequence(trial, flow))
    assert seen.sent_again == seen.lost == flow.drops
    assert (seen.timeouts, seen.halvings, seen.slow_start) == (0, 1, False)


@pytest.fixture(scope="module")
def cubic(tmp_path_factory: pytest.TempPathFactory) -> tuple[Trial, list[str]]:
    """A trial that changes a parameter of its control, and what that was before and after."""
    scenario = router(variant="cubic", rate_mbit=5, duration_s=3, cbr_mbit=1, profile=Profile.NS2)
    seen = [HYSTART.read_text()]
    (trial,) = run_trials([scenario], tmp_path_factory.mktemp("cubic"), "host")
    seen.append(HYSTART.read_text())
    return trial, seen


def test_parameters_of_the_kernels_controls_come_back(cubic: tuple[Trial, list[str]]) -> None:
    trial, seen = cubic
    assert make_plan(trial.scenario).parameters == (Parameter("cubic", "hystart", 0),)
    assert seen == ["1\n", "1\n"]


@pytest.mark.parametrize("variant", ["tahoe", "reno", "newreno", "newreno-impatient", "sack"])
def test_our_own_controls_are_the_guests(tmp_path: Path, variant: str) -> None:
    scenario = router(variant=variant, duration_s=1)
    done = run_all(tasks([scenario]), choose("host", ()), tmp_path, lambda _event: None)
    control = VARIANTS[variant].control
    assert done[0].record.status is Status.UNSUPPORTED
    assert done[0].record.reason == f"the host's kernel has no congestion control {control}"


def test_what_the_kernel_lacks_is_named(tmp_path: Path) -> None:
    """Never run as something else."""
    lacking = [
        name
        for name in ("vegas", "veno", "cdg", "nv")
        if HostEngine().missing(make_plan(router(variant=name)).needs)
    ]
    if not lacking:
        pytest.skip("this kernel has every variant")
    done = run_all(
        tasks([router(variant=lacking[0])]), choose("host", ()), tmp_path, lambda _event: None
    )
    assert done[0].record.status is Status.UNSUPPORTED
    assert done[0].record.reason == f"the host's kernel has no congestion control {lacking[0]}"
    assert f"tcp_{lacking[0]}" in done[0].record.hint


@pytest.mark.skipif(has_no_tracing(), reason="this kernel has no tracing")
def test_events_are_what_the_capture_and_the_samples_show(tmp_path: Path) -> None:
    """Each retransmission, each drop, and the window at each sample."""
    scenario = router(variant="cubic", rate_mbit=5, duration_s=4)
    trial = run_trials([scenario], tmp_path, "host")[0]
    (warning,) = trial.record.warnings
    assert "its path has no delay" in warning
    events = samples(trial, "events")
    times = {
        kind: [float(event["time_s"]) for event in events if event["event"] == kind]
        for kind in ("probe", "retransmit", "state", "drop")
    }
    assert len(times["probe"]) > 500
    resent = packets(trial, "sender:tcp", "tcp.analysis.retransmission")
    assert len(times["retransmit"]) == len(resent) > 0
    for packet, time_s in zip(resent, times["retransmit"], strict=True):
        assert abs(packet.time_s - time_s) < 1e-3
    dropped = max(int(row["drops"]) for row in samples(trial, "queues"))
    assert len(times["drop"]) == dropped > 0
    assert times["state"]
    agree_on_the_window(events, samples(trial, "sockets"))


def agree_on_the_window(events: list[dict[str, str]], sockets: list[dict[str, str]]) -> None:
    """A probe shows the window before its ACK: the one since the event before it.

    A sample is stamped before it is read. Where the machine makes the reader wait in
    between, it may show what a later ACK left, but not what the next sample's time
    has passed; and mostly it does not wait. Samples right after an event are left out:
    another processor may still be at the ACK. So it may be when a reader had to wait, who then
    sees the window from before an ACK and the round trip from after it: each is of some moment.
    """
    compared = at_once = 0
    for sample, after in pairwise(sockets):
        begin, end = float(sample["time_s"]), float(after["time_s"])
        later = [e for e in events if e["event"] != "drop" and float(e["time_s"]) > begin]
        until = next((n for n, e in enumerate(later) if float(e["time_s"]) > end), None)
        if until is None or any(e["event"] != "probe" for e in later[: until + 1]):
            continue
        if any(e["flow"] and 0 <= begin - float(e["time_s"]) < 1e-3 for e in events):
            continue
        read = (int(sample["cwnd"]), float(sample["srtt_ms"]))
        shown = [(int(e["cwnd"]), float(e["srtt_ms"])) for e in later[: until + 1]]
        same = [pytest.approx(each, abs=1e-3) == read for each in shown]
        for value, moments in zip(read, zip(*shown, strict=True), strict=True):
            assert any(pytest.approx(each, abs=1e-3) == value for each in moments), sample["time_s"]
        compared += 1
        at_once += same[0]
    assert at_once > 100
    assert at_once > 0.8 * compared


@needs_schedstat
def test_how_busy_the_machine_was(cubic: tuple[Trial, list[str]]) -> None:
    trial, _ = cubic
    seconds = samples(trial, "load")
    assert len(seconds) >= 2
    assert any(float(row["busiest"]) > 0 for row in seconds)  # an idle second may show no tick
    for row in seconds:
        assert 0 <= float(row["busiest"]) <= 1
        assert 0 <= float(row["softirq"]) + float(row["steal"]) <= 1
    watched = {row["name"]: row for row in samples(trial, "processes")}
    roles = {f"iperf3 {role} {flow}" for role in ("client", "server") for flow in ("tcp", "cbr")}
    captures = {f"tcpdump {capture.interface}" for capture in trial.record.captures}
    assert set(watched) == {"runner"} | roles | captures
    assert watched["iperf3 client tcp"]["node"] == "sender1"
    assert all(int(row["slices"]) > 0 and float(row["run_s"]) > 0 for row in watched.values())


@pytest.mark.parametrize("topology", ["router_bottleneck,senders=3", "dumbbell,pairs=2"])
def test_topologies_work_with_plain_mininet(root: Path, topology: str) -> None:
    """The command in each file's docstring."""
    file = f"topologies/{topology.split(',')[0]}.py"
    argv = ["mn", "--custom", file, "--topo", topology, "--link", "tc", "--controller", "none"]
    done = subprocess.run(
        [*argv, "--test", "pingall"], capture_output=True, text=True, cwd=root, check=False
    )
    assert "0% dropped" in done.stdout + done.stderr
