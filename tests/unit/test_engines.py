"""The engines at their edges: a guest that will not boot, a kernel that lacks things."""

from __future__ import annotations

import dataclasses
import os
import threading
from pathlib import Path

import pytest

from experiments.catalogue import EXPERIMENTS
from testbed.cli import machine
from testbed.engine import Cancelled, Job, Missing
from testbed.errors import TestbedError, UsageError
from testbed.guest import boot
from testbed.guest import engine as guests
from testbed.guest.engine import GuestEngine
from testbed.guest.worker import cache_folder
from testbed.host.engine import HostEngine
from testbed.machine.process import Process
from testbed.plan.plan import make_plan, tasks
from testbed.plan.requirements import OTHER_KERNELS, Need, queue_need
from testbed.runs import engine_choice as choices
from testbed.runs.sweep import unsupported
from testbed.scenario.model import CLIENT_PORTS, MAX_PARALLEL, Flow, FlowKind, Scenario
from testbed.scenario.programs import Programs
from testbed.scenario.queues import DISCIPLINES
from testbed.scenario.video import PlayerKind
from testbed.store.names import GUEST_OUTPUT, RECORD
from testbed.store.records import Record, Status
from testbed.trial.make import TrialProgramme
from tests.scenarios import fat_tree, router, video

VEGAS = Need("congestion control", "vegas", "CONFIG_TCP_CONG_VEGAS", "tcp_vegas")
RED = Need("queue discipline", "red", "CONFIG_NET_SCH_RED", "sch_red")


def guest(folder: Path, script: str, config: str = "") -> GuestEngine:
    """An engine whose kernel is a shell script."""
    kernel = folder / "kernel"
    kernel.mkdir()
    (kernel / "linux").write_text(f"#!/bin/sh\n{script}\n")
    (kernel / "linux").chmod(0o755)
    (kernel / "config").write_text(config)
    engine = GuestEngine()
    engine._found = kernel
    return engine


@pytest.mark.parametrize("fixed", [True, False])
def test_addresses_are_random_only_where_they_must_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fixed: bool
) -> None:
    """Containers' seccomp refuses setarch -R; a trial there says what that changes."""
    monkeypatch.setattr(boot, "why_not_confined", lambda: "not here")
    monkeypatch.setattr(boot, "keeps_addresses_fixed", lambda: fixed)
    engine = guest(tmp_path, "cat /proc/self/personality >guest.out; echo 0 >guest.status")
    place = tmp_path / "place"
    place.mkdir()
    job = Job(1, min(os.sched_getaffinity(0)), threading.Event())
    warnings = engine.boot(place, ["true"], job, 10, kept=[GUEST_OUTPUT]).warnings
    assert bool(int((place / GUEST_OUTPUT).read_text(), 16) & 0x0040000) is fixed
    assert any("setarch" in each for each in warnings) is not fixed


def run(
    engine: GuestEngine,
    folder: Path,
    cancel: threading.Event | None = None,
    scenario: Scenario | None = None,
) -> object:
    trial = folder / "trial"
    trial.mkdir()
    (task,) = tasks([scenario or router()])
    core = min(os.sched_getaffinity(0))
    with pytest.MonkeyPatch.context() as patch:  # a script answers nothing
        patch.setattr(TrialProgramme, "finish", lambda _self, _outcome: Record(Status.OK))
        return engine.run(trial, task, Job(7, core, cancel or threading.Event()))


def many(flows: int, parallel: int = 1) -> Scenario:
    """So many flows between two hosts."""
    first = dataclasses.replace(router().flows[0], parallel=parallel)
    named = (dataclasses.replace(first, name=f"tcp{number}") for number in range(flows))
    return dataclasses.replace(router(), flows=tuple(named), sample_interval_ms=1000)


@pytest.mark.parametrize(
    ("scenario", "memory"),
    [
        (many(50), "mem=256M"),  # as ever: the guest's random pool is mixed from it
        (many(65), "mem=3072M"),  # so that TCP has its part
        (many(1000), "mem=3072M"),
        (dataclasses.replace(many(1000), duration_s=250), "mem=3584M"),
        (many(3, parallel=64), "mem=256M"),
        (many(5, parallel=64), "mem=1024M"),
    ],
)
def test_many_flows_get_more_memory(tmp_path: Path, scenario: Scenario, memory: str) -> None:
    with pytest.raises(TestbedError, match=rf"the guest died: {memory} "):
        run(guest(tmp_path, 'echo "$*" >&2; exit 1'), tmp_path, scenario=scenario)


@pytest.mark.parametrize(
    ("flows", "most"), [(156, 64), (157, 32), (312, 32), (313, 16), (624, 16), (625, 8), (1248, 8)]
)
def test_no_two_flows_have_the_same_port(flows: int, most: int) -> None:
    plan = make_plan(many(flows, parallel=most))
    ports = [port for flow in plan.flows for port in flow.src_ports]
    assert len(set(ports)) == flows * most
    assert CLIENT_PORTS[0] <= min(ports) and max(ports) <= CLIENT_PORTS[1]
    assert len({flow.dst_port for flow in plan.flows}) == flows
    with pytest.raises(UsageError) as caught:
        make_plan(many(flows, parallel=most + 1))
    why = f"because each of {flows} flows has {most} of the local ports 40001 to 49999"
    if most == MAX_PARALLEL:
        why = "the local ports of a flow"
    assert caught.value.message == (
        f"flows[0].parallel to flows[{flows - 1}].parallel ({flows}): {most + 1} is not between 1 "
        f"and {most}, {why}"
    )


@pytest.mark.parametrize(
    ("free_mb", "cores", "jobs"),
    [(100_000, 4, 4), (100_000, 1, 1), (3 * 320, 4, 3), (3 * 320 - 1, 4, 2), (10, 4, 1)],
)
def test_there_is_a_guest_per_core_as_far_as_memory_allows(
    monkeypatch: pytest.MonkeyPatch, free_mb: int, cores: int, jobs: int
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: set(range(cores)))
    monkeypatch.setattr(guests, "_available_mb", lambda: free_mb)
    assert GuestEngine().jobs(tasks([router()])) == jobs


def test_there_are_no_more_flows_than_ports() -> None:
    why = "1249 flows; between 1 and 1248 can run, because each has 8 of the local ports 40001 to"
    with pytest.raises(UsageError, match=why):
        make_plan(many(1249))


def test_the_ports_of_many_servers_go_beside_the_network() -> None:
    spans = {
        flows: {word for each in make_plan(many(flows)).setup for word in each.argv if "52" in word}
        for flows in (799, 800)
    }
    assert "5201-5999" in spans[799] and "5201-6000" in spans[800]


def test_a_host_on_which_nobody_may_trace(tmp_path: Path) -> None:
    with pytest.raises(TestbedError, match="no process may trace another") as caught:
        run(guest(tmp_path, "echo 'check_ptrace : expected SIGSTOP' >&2; exit 1"), tmp_path)
    assert "SYS_PTRACE" in caught.value.hint


def test_a_guest_that_does_not_boot(tmp_path: Path) -> None:
    with pytest.raises(TestbedError) as caught:
        run(guest(tmp_path, "echo 'Kernel panic - not syncing' >&2; exit 134"), tmp_path)
    assert caught.value.message == "the guest died: Kernel panic - not syncing"
    assert "testbed check" in caught.value.hint


def test_a_guest_that_ends_without_a_word(tmp_path: Path) -> None:
    with pytest.raises(TestbedError, match="ended with status 3 and no message"):
        run(guest(tmp_path, "exit 3"), tmp_path)


def test_a_guest_that_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("testbed.guest.engine.HANG_S", 0.2)
    monkeypatch.setattr("testbed.guest.engine.HANG_FACTOR", 0)
    with pytest.raises(TestbedError, match="the guest hung"):
        run(guest(tmp_path, "exec sleep infinity"), tmp_path)


@pytest.mark.parametrize(("duration_s", "patience_s"), [(10, 600), (3600, 72_000)])
def test_a_guest_has_ten_minutes_or_twenty_times_its_trial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, duration_s: float, patience_s: float
) -> None:
    """A loaded machine needs minutes for a trial of seconds."""
    waited = []

    def wait(process: Process, guest: boot.Boot) -> float:
        waited.append(guest.patience_s)
        process.wait()
        return 0

    monkeypatch.setattr(boot, "_wait", wait)
    scenario = dataclasses.replace(router(), duration_s=duration_s, sample_interval_ms=1000)
    run(guest(tmp_path, "echo 0 > guest.status"), tmp_path, scenario=scenario)
    assert waited == [patience_s]


def test_a_guest_is_ended_when_the_user_cancels(tmp_path: Path) -> None:
    cancel = threading.Event()
    cancel.set()
    with pytest.raises(Cancelled):
        run(guest(tmp_path, "exec sleep 300"), tmp_path, cancel)


def test_the_status_of_the_trial_is_passed_on(tmp_path: Path) -> None:
    outcome = run(guest(tmp_path, "echo 1 > guest.status"), tmp_path)
    assert getattr(outcome, "status", None) == 1
    left = {path.name for path in (tmp_path / "trial").iterdir() if path.is_file()}
    assert left == {RECORD}


def test_the_command_line_differs_by_the_seed_alone(tmp_path: Path) -> None:
    """It is mixed into the guest's random pool."""
    script = 'printf "%s\\n" "$@" > flows/seen; echo 0 > guest.status'
    run(guest(tmp_path, script), tmp_path)
    words = (tmp_path / "trial" / "flows" / "seen").read_text().split()
    assert "um_seed=7" in words
    assert not any(str(tmp_path) in word for word in words)


def test_what_the_guest_lacks_is_named(tmp_path: Path) -> None:
    engine = guest(tmp_path, "exit 0", "CONFIG_TCP_CONG_VEGAS=y\n# CONFIG_NET_SCH_RED is not set\n")
    assert [str(missing) for missing in engine.missing([VEGAS, RED])] == ["queue discipline red"]
    assert engine.controls() == {"reno", "vegas"}


def test_what_another_kernel_has_is_no_fault_of_this_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The check names it apart, and both engines say which kernel has it."""
    monkeypatch.setattr(GuestEngine, "try_out", lambda _self: "boots")
    monkeypatch.setattr(GuestEngine, "version", lambda _self: "6.1.192")
    needs = machine._needs()
    symbols = {need.symbol for need in needs} - OTHER_KERNELS.keys()
    engine = guest(tmp_path, "exit 0", "".join(f"{symbol}=y\n" for symbol in symbols))
    state, _ = machine._engine(engine, needed=True)
    assert state.state == "6.1.192; boots; lacks: nothing; on other kernels only: prague, dualpi2"
    monkeypatch.setattr(HostEngine, "_has", lambda _self, need: need not in needs)
    for each in (engine, HostEngine()):
        remedies = {missing.need.name: missing.remedy for missing in each.missing(needs)}
        assert "--set kernel=7.3" in remedies["dualpi2"]
        assert "docs/variants.md" in remedies["prague"]
    assert remedies["red"].startswith("kernel ") and "dualpi2" not in remedies["red"]


def test_a_policer_is_an_action_not_a_discipline() -> None:
    assert queue_need(DISCIPLINES["police"]).kind == "action"
    assert queue_need(DISCIPLINES["dualpi2"]).kind == "queue discipline"


def test_a_program_that_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = guest(tmp_path, "exit 0")
    assert engine.missing([Need("program", "sh")]) == []
    monkeypatch.setattr("testbed.engine.PROGRAM_PATH", str(tmp_path))
    remedies = {
        "tc": "apt install iproute2",
        "python": "Debian has no program of this name: type python3",
        "no-such-browser": "correct the name; or, if no-such-browser is also its package: "
        "apt install no-such-browser",
    }
    for name, remedy in remedies.items():
        (missing,) = engine.missing([Need("program", name)])
        assert missing.remedy == remedy
    record = unsupported(engine, [missing])
    assert record.reason == "the guest has no program no-such-browser"


@pytest.mark.parametrize(
    ("player", "memory"), [(PlayerKind.MODEL, "256M"), (PlayerKind.CHROMIUM, "1024M")]
)
def test_a_browser_has_more_memory(tmp_path: Path, player: PlayerKind, memory: str) -> None:
    script = 'printf "%s\\n" "$@" > flows/seen; echo 0 > guest.status'
    run(guest(tmp_path, script), tmp_path, scenario=video(player=player))
    assert f"mem={memory}" in (tmp_path / "trial" / "flows" / "seen").read_text().split()


def test_a_python_that_does_not_see_mininet(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in an environment without Debian's packages, into which a wheel is installed."""
    as_user(monkeypatch, 0, [])
    monkeypatch.setattr("testbed.host.engine.find_spec", lambda _: None)
    reason = HostEngine().ready()
    assert "mininet is not among" in reason and "--system-site-packages" in reason


def test_a_kernel_that_is_not_built_may_be_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built: list[Path | None] = [None]
    monkeypatch.setattr("testbed.guest.kernels.built_folder", lambda _: built[0])
    engine = GuestEngine("6.1")
    looked = f"kernel 6.1 is not built (looked for in {cache_folder()}): ./setup.sh"
    assert engine.ready().startswith(looked)
    built[0] = tmp_path  # by the run that asked
    assert engine.kernel == tmp_path


def as_user(monkeypatch: pytest.MonkeyPatch, uid: int, host_lacks: list[Need]) -> None:
    monkeypatch.setattr("os.geteuid", lambda: uid)
    monkeypatch.setattr(GuestEngine, "ready", lambda _self: "")
    lacks = [Missing(need, "") for need in host_lacks]
    monkeypatch.setattr(HostEngine, "missing", lambda _self, _needs: lacks)


@pytest.mark.parametrize(
    ("uid", "lacks", "engine", "reason"),
    [
        (1000, [], "guest", "virtual time, no root needed"),
        (0, [], "host", "has everything"),
        (0, [VEGAS, RED], "guest", "lacks congestion control vegas, queue discipline red"),
    ],
)
def test_the_engine_is_chosen_and_says_why(
    monkeypatch: pytest.MonkeyPatch, uid: int, lacks: list[Need], engine: str, reason: str
) -> None:
    as_user(monkeypatch, uid, lacks)
    choice = choices.choose("auto", make_plan(router()).needs)
    assert choice.engine.name == engine
    assert reason in choice.reason


def test_the_host_needs_root(monkeypatch: pytest.MonkeyPatch) -> None:
    as_user(monkeypatch, 1000, [])
    with pytest.raises(TestbedError, match="the host engine runs with sudo only"):
        choices.choose("host", ())


def test_an_engine_that_does_not_exist() -> None:
    with pytest.raises(UsageError) as caught:
        choices.choose("hots", ())
    assert caught.value.hint == "did you mean 'host'?"


@pytest.mark.parametrize(
    ("experiment", "settings", "memory_mb"),
    [
        ("dumbbell-queues", {}, 256),
        ("parking-lot", {"bottlenecks": ("3",)}, 256),
        ("parking-lot", {"bottlenecks": ("4",)}, 256),  # 22 captures
        ("intra-protocol", {"flows": ("16",)}, 256),
        ("intra-protocol", {"flows": ("64",)}, 1024),
    ],
)
def test_a_guest_has_more_memory_only_where_it_must(
    experiment: str, settings: dict[str, tuple[str, ...]], memory_mb: int
) -> None:
    """With too little it reads its programs again and again; with more, its packets differ."""
    made = EXPERIMENTS[experiment].scenarios(settings, seeds=1, quick=False)
    assert {guests.memory_mb(task) for task in tasks(made)} == {memory_mb}


@pytest.mark.parametrize(
    ("hours", "flows", "memory_mb"), [(1, 1, 256), (12, 1, 1024), (23, 1, 1024), (23, 2, 1792)]
)
def test_rows_of_long_reports_take_memory(hours: int, flows: int, memory_mb: int) -> None:
    (task,) = tasks([dataclasses.replace(many(flows), duration_s=hours * 3600.0)])
    assert guests.memory_mb(task) == memory_mb


@pytest.mark.parametrize(
    ("programs", "asked_mb", "memory_mb"),
    [(5, 0, 256), (20, 0, 1024), (50, 0, 1280), (50, 300, 300)],
)
def test_programs_take_memory_that_a_scenario_can_name(
    programs: int, asked_mb: int, memory_mb: int
) -> None:
    """Fifty of them in 256 MB read their own code again and again, and never ended."""
    ends = ("sender1", "receiver")
    command = Programs(("true",), ("true", "{port}"))
    one = Flow("", FlowKind.COMMAND, *ends, variant="cubic", command=command)
    flows = tuple(dataclasses.replace(one, name=f"p{number}") for number in range(programs))
    (task,) = tasks([dataclasses.replace(router(), flows=flows, memory_mb=asked_mb)])
    assert guests.memory_mb(task) == memory_mb


def test_a_trial_that_does_not_fit_into_the_machine_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fitting, large = tasks([router(), dataclasses.replace(many(1), duration_s=82_800.0)])
    pages = {"SC_PHYS_PAGES": 600 << 8, "SC_PAGE_SIZE": 4096}
    monkeypatch.setattr(os, "sysconf", pages.__getitem__)
    assert GuestEngine().jobs([fitting]) >= 1
    with pytest.raises(UsageError, match="needs 980 MB of memory, and this machine has 600"):
        GuestEngine().jobs([fitting, large])


def test_a_flow_that_is_longer_than_iperf3_can_is_refused() -> None:
    make_plan(dataclasses.replace(many(1), duration_s=86_390.0))
    with pytest.raises(UsageError, match=r"flows\[0\]: runs for more than 86390 s, which iperf3"):
        make_plan(dataclasses.replace(many(1), duration_s=86_400.0))


def test_guests_with_more_memory_are_fewer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: set(range(4)))
    monkeypatch.setattr(guests, "_available_mb", lambda: 3000)
    small, large = tasks([router(), dataclasses.replace(many(1), duration_s=82_800.0)])
    assert [GuestEngine().jobs(each) for each in ([small], [large], [small, large])] == [4, 2, 2]


def test_many_nodes_take_memory() -> None:
    """The 208 of this network fill 256 MB, and the guest would look for free memory for ever."""
    (large,) = tasks([fat_tree(ports=8)])
    assert guests.memory_mb(large) == guests.LARGE_MB
