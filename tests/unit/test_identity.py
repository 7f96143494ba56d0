"""What makes a trial another one: values, programs and sources; never a sentence."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import os
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks import papers
from testbed.errors import TestbedError
from testbed.guest.engine import GuestEngine
from testbed.guest.worker import PROBLEM, Requirements, equipment
from testbed.machine.process import run
from testbed.plan.plan import Plan, make_plan, tasks
from testbed.plan.requirements import Need
from testbed.runs import behaviour, provenance, sources
from testbed.runs.behaviour import Behaviour, Ledger
from testbed.runs.cluster import differences, requirements
from testbed.runs.engine_choice import Choice
from testbed.runs.identity import identify
from testbed.runs.provenance import programs_of
from testbed.runs.sweep import run_all
from testbed.scenario.model import Flow, FlowKind, Scenario
from testbed.scenario.programs import Programs
from testbed.scenario.reading import read_scenario
from testbed.store.reading import scenario_text, with_files_from
from tests.scenarios import access, background, router, video
from tests.unit.test_sweep import FakeEngine, succeed

ONLY_HERE = {"testbed/runner/preload/spoken_netlink.c"}  # makes messages before a trial


def with_cbr() -> Scenario:
    return router(cbr_mbit=0.5)


def identity(scenario: Scenario, change: Callable[[Plan], Plan] = lambda plan: plan) -> str:
    return identify(scenario, change(make_plan(scenario)), FakeEngine(succeed))


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Our sources, to be changed."""
    for folder in ("topologies", "testbed"):
        skip = shutil.ignore_patterns("__pycache__")
        shutil.copytree(sources.PROJECT / folder, tmp_path / folder, ignore=skip)
    monkeypatch.setattr(sources, "PROJECT", tmp_path)
    return tmp_path


def change(path: Path) -> None:
    """Add code that means something, as if before this process began."""
    path.write_text(path.read_text() + ("x = 1\n" if path.suffix == ".py" else "int x;\n"))
    sources._state.cache_clear()


def reworded(plan: Plan) -> Plan:
    needs = tuple(dataclasses.replace(need, kind=f"some {need.kind}") for need in plan.needs)
    return dataclasses.replace(plan, warnings=("worded anew",), needs=(*needs, Need("a", "b")))


def test_a_warning_or_a_requirement_makes_no_other_trial() -> None:
    assert identity(router(), reworded) == identity(router())


def test_what_a_trial_does_makes_another_one() -> None:
    def another_argument(plan: Plan) -> Plan:
        command = dataclasses.replace(plan.setup[0], argv=(*plan.setup[0].argv, "x"))
        return dataclasses.replace(plan, setup=(command, *plan.setup[1:]))

    assert identity(router(), another_argument) != identity(router())


@pytest.mark.slow(but=3)
@pytest.mark.parametrize(
    ("file", "makes_others"),
    [
        ("testbed/traffic/iperf3/pace.c", {"access", "background", "cbr", "radio", "router"}),
        ("testbed/traffic/workload/client.c", {"background"}),
        ("testbed/traffic/workload/common.h", {"background"}),
        ("testbed/trial/medium/phy.c", {"radio"}),
        ("testbed/trial/make.py", {"access", "background", "cbr", "radio", "router", "video"}),
        ("testbed/traffic/video/player.py", {"video"}),
        ("topologies/dumbbell.py", set()),
        ("testbed/plan/check.py", set()),
    ],
)
def test_a_source_makes_other_trials_of_those_that_use_it(
    project: Path, file: str, makes_others: set[str]
) -> None:
    scenarios = {
        "access": access(),
        "background": background(),
        "cbr": with_cbr(),
        "radio": access("wifi-good"),
        "router": router(),
        "video": video(),
    }
    before = {name: identity(scenario) for name, scenario in scenarios.items()}
    change(project / file)
    assert {n for n, s in scenarios.items() if identity(s) != before[n]} == makes_others


def test_certified_code_makes_the_same_trial(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A comment changes nothing; other code makes other trials until it is certified."""
    ledger = tmp_path / "ledger.json"
    monkeypatch.setattr(behaviour, "LEDGER", ledger)
    plan, runner = make_plan(router()), project / "testbed" / "runner" / "runner.c"
    known: dict[str, tuple[str, ...]]
    known = {name: (state,) for name, state in sources.parts_of(plan, "6.1").items()}
    behaviour.write(Ledger({"b1": Behaviour({}, known)}))
    before = identity(router())
    runner.write_text(runner.read_text() + "/* a comment */\n")
    sources._state.cache_clear()
    assert identity(router()) == before
    change(runner)
    assert identity(router()) != before
    known["testbed-runner"] += (sources.parts_of(plan, "6.1")["testbed-runner"],)
    behaviour.write(Ledger({"b1": Behaviour({}, known), "b2": Behaviour({}, known)}))
    assert identity(router()) == before


def test_a_congestion_control_concerns_the_trials_that_name_it() -> None:
    def controls(variant: str) -> list[str]:
        flow = dataclasses.replace(router().flows[0], variant=variant)
        parts = sources.parts_of(make_plan(dataclasses.replace(router(), flows=(flow,))), "6.1")
        assert "kernel 6.1" in parts
        return [name for name in parts if name.startswith("kernel/congestion")]

    assert controls("tahoe") == ["kernel/congestion/tcp_tahoe.c"]
    assert controls("cubic") == []


def test_a_trial_runs_again_only_for_what_matters(project: Path, tmp_path: Path) -> None:
    def fresh() -> dict[str, bool]:
        choice = Choice(FakeEngine(succeed), "a test")
        both = tasks([router(), background()])
        done = run_all(both, choice, tmp_path / "out", lambda _event: None)
        return {each.task.scenario.network.name: each.fresh for each in done}

    assert fresh() == {"router-bottleneck": True, "dumbbell": True}
    assert fresh() == {"router-bottleneck": False, "dumbbell": False}
    client = project / "testbed" / "traffic" / "workload" / "client.c"
    built = next(each.file for each in sources.BUILT if client in each.sources())
    change(client)
    os.utime(client, (built.stat().st_mtime,) * 2)  # as if setup.sh had compiled it
    assert fresh() == {"router-bottleneck": False, "dumbbell": True}


def test_a_program_older_than_its_sources_does_not_run(project: Path, tmp_path: Path) -> None:
    change(project / "testbed" / "traffic" / "workload" / "client.c")
    choice = Choice(FakeEngine(succeed), "a test")
    with pytest.raises(TestbedError, match="is older than its sources") as caught:
        run_all(tasks([background()]), choice, tmp_path / "out", lambda _event: None)
    assert "./setup.sh" in caught.value.hint
    assert run_all(tasks([router()]), choice, tmp_path / "out", lambda _event: None)


HERE = {"kernel": "6.1 abc", "iperf3": "3.12", "topologies/dumbbell.py": "a" * 64}


@pytest.mark.parametrize(
    ("there", "told"),
    [
        ({}, ""),
        ({"iperf3": "3.16"}, "iperf3 3.16, here 3.12"),
        ({"topologies/dumbbell.py": "b" * 64}, "another topologies/dumbbell.py"),
        ({"topologies/mine.py": "b" * 64}, "an extra topologies/mine.py"),
        (
            {"kernel": "6.1 abd", "iperf3": "3.16"},
            "kernel 6.1 abd, here 6.1 abc, iperf3 3.16, here 3.12",
        ),
    ],
)
def test_a_worker_that_differs_is_told_by_what_differs(there: dict[str, str], told: str) -> None:
    assert differences({**HERE, **there}, HERE) == told


def test_a_worker_that_cannot_run_trials_says_why() -> None:
    assert differences({PROBLEM: "nginx is not installed"}, HERE) == "nginx is not installed"


def test_workers_are_compared_in_all_that_identifies_a_trial() -> None:
    """Every source in C, every program and every file of an identity is in the equipment."""
    scenario = access()
    needed = requirements(tasks([scenario]), GuestEngine())
    here = equipment(needed.packed())
    assert not differences(here, here)
    assert set(programs_of(scenario)) < set(here)
    compiled = sources.compiled_for(make_plan(with_cbr()))
    files = {str(path.relative_to(sources.PROJECT)) for each in compiled for path in each.sources()}
    assert len(files) > 10 and files - ONLY_HERE < set(here)
    (kernel,) = (name for name in here if name.startswith("kernel "))
    assert here[kernel].startswith(f"{GuestEngine().version()} ")


def test_a_worker_without_a_program_says_so() -> None:
    needed = Requirements({}, {}, [], ["no-such-program"], [])
    assert equipment(needed.packed()) == {PROBLEM: "no-such-program is not installed"}


def test_files_of_command_flows_are_compared(tmp_path: Path) -> None:
    path = tmp_path / "script"
    path.write_text("one")
    needed = Requirements({}, {}, [], [], [str(path)]).packed()
    here = equipment(needed)
    path.write_text("two")
    assert differences(equipment(needed), here) == f"another {path}"
    path.unlink()
    assert differences(equipment(needed), here) == f"no {path}"


def test_programs_of_sbin_are_found_by_ordinary_users(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/usr/local/bin:/usr/bin:/bin")
    provenance._version.cache_clear()
    found = provenance.versions_of(("nginx", "hostapd"))
    assert list(found) == ["nginx", "hostapd"]
    assert all(re.match(r"\d", version) for version in found.values())


def test_trials_that_differ_in_their_seeds_alone_are_planned_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    planned = []

    def recorded(scenario: Scenario) -> Plan:
        planned.append(scenario)
        return make_plan(scenario)

    monkeypatch.setattr(papers, "make_plan", recorded)
    papers.what_runs("run variants --seeds 3 --set variant=cubic,bbr", ())
    assert [(each.flows[0].variant, each.seed) for each in planned] == [("cubic", 1), ("bbr", 1)]


def test_another_kernel_is_another_revision() -> None:
    of = papers.what_runs
    commands = [
        f"run variants{more}" for more in ("", " --set kernel=6.12", " --set kernel=6.1,6.12")
    ]
    assert len({of(command, ()).revision for command in commands}) == len(commands)


def served(folder: Path, text: str) -> Scenario:
    folder.mkdir()
    (folder / "page").write_text(text)
    command = Programs(("curl", "{server_ip}"), files=(str(folder / "page"),))
    ends = ("sender1", "receiver")
    flow = Flow("fetch", FlowKind.COMMAND, *ends, variant="cubic", command=command)
    return dataclasses.replace(router(), flows=(flow,))


def test_files_of_a_flow_count_by_name_and_content_and_not_by_place(tmp_path: Path) -> None:
    here, there, other = (
        served(tmp_path / name, text) for name, text in (("a", "x"), ("b", "x"), ("c", "y"))
    )
    assert here.name == there.name == other.name
    assert identity(here) == identity(there) != identity(other)
    assert str(tmp_path) not in scenario_text(here, tmp_path / "results" / "trial")
    assert (
        with_files_from(
            read_scenario(scenario_text(here, tmp_path / "results" / "trial").encode(), ""),
            tmp_path / "results" / "trial",
        )
        == here
    )


def test_a_video_without_its_package_is_one_line_with_what_to_type(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def version(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    provenance._version.cache_clear()
    monkeypatch.setattr(importlib.metadata, "version", version)
    with pytest.raises(TestbedError) as raised:
        provenance.programs(video())
    assert raised.value.message == "aioquic is not installed: videos need it"
    assert raised.value.hint.startswith("pip install 'tcp-testbed[video]'")


def test_nothing_but_videos_loads_their_packages() -> None:
    program = "import sys, testbed.runs.sweep, testbed.trial.make, analysis.report.make\n"
    program += "print({'aioquic', 'cryptography'} & set(sys.modules))"
    assert run([sys.executable, "-c", program]).stdout == "set()\n"
