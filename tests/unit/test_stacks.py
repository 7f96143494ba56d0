"""Stacks: their descriptions and faults, their builds, and what their flows become."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest

from experiments.catalogue import EXPERIMENTS
from experiments.command import main
from testbed.errors import TestbedError, UsageError
from testbed.evaluate.evaluation import standard_evaluation, taking_part
from testbed.own_files.scenario_file import document_from_options, in_document
from testbed.plan.plan import make_plan
from testbed.runs.selection import select_scenarios
from testbed.scenario.model import Flow, FlowKind, Scenario
from testbed.stacks.flows import check_stack, with_stacks
from testbed.stacks.stack import SHIPPED, build, shipped, sources_hash, stack_of
from tests.scenarios import dumbbell

MINE = """
about = "mine"
files = ["flow.py"]
receiver = ["python3", "flow.py", "{port}"]
sender = ["python3", "flow.py", "{server_ip}", "{port}", "{variant}"]
variants = {half = "linux-reno", gentle = ""}
"""
LOCKED = {"quic-go": "go.mod", "quinn": "Cargo.lock", "s2n-quic": "Cargo.lock"}


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "stack.toml").write_text(MINE)
    (folder / "flow.py").write_text("print()\n")
    return folder


def built_by(folder: Path, *commands: str) -> Path:
    words = ", ".join(f'["sh", "-c", "{each}"]' for each in commands)
    text = (folder / "stack.toml").read_text()
    (folder / "stack.toml").write_text(f"build = [{words}]\n{text}")
    return folder


def stack_flow(stack: str | None, variant: str | None = None) -> Scenario:
    flow = Flow("f", FlowKind.STACK, "sender1", "receiver1", variant=variant, stack=stack)
    return dataclasses.replace(dumbbell(), flows=(flow,))


@pytest.mark.parametrize("name", shipped())
def test_a_shipped_stack_says_the_version_that_its_lock_has(name: str) -> None:
    about = stack_of(name).description
    if name in LOCKED:
        version = re.search(r"\d+\.\d+\.\d+", about.about)
        lock = (SHIPPED / name / LOCKED[name]).read_text()
        assert version and re.search(rf'{name}(" ?\n?version = "|\S* v){version[0]}', lock)
    assert about.variants


def test_a_stacks_flow_becomes_its_programs(mine: Path) -> None:
    (flow,) = with_stacks(stack_flow(str(mine), "gentle")).flows
    assert (flow.kind, flow.variant, flow.stack) == (FlowKind.COMMAND, None, None)
    assert flow.command is not None and flow.command.stack == "mine:gentle"
    assert flow.command.client[-1] == "gentle" and flow.command.upload
    (first,) = with_stacks(stack_flow(str(mine))).flows
    assert first.command is not None and first.command.stack == "mine:half"


def test_a_variant_with_a_colon_is_a_stack(mine: Path) -> None:
    tcp = Flow("f", FlowKind.TCP, "sender1", "receiver1", variant=f"{mine}:half")
    (flow,) = with_stacks(dataclasses.replace(dumbbell(), flows=(tcp,))).flows
    assert flow.command is not None and flow.command.stack == "mine:half"


def test_the_command_line_and_sweeps_name_stacks(mine: Path) -> None:
    flows = [f"h1,h3,stack={mine},variant=half", "h2,h3"]
    document = in_document(document_from_options("single,3", "bw=10,delay=1ms", flows, 3), "")
    selection = select_scenarios(
        [document], {"flows.0.variant": ("half", "gentle")}, "a scenario", False
    )
    commands = [each.flows[0].command for each in selection.scenarios(1)]
    assert [each.stack for each in commands if each] == ["mine:half", "mine:gentle"]


def test_an_evaluation_takes_what_a_stack_can_do(
    mine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(mine.parent)
    evaluation = standard_evaluation("./mine:half", "", ("cubic",))
    assert evaluation.name == "evaluate-mine-half"
    chosen = [EXPERIMENTS[name] for name in ("latecomer", "completion")]
    able, unable = taking_part(evaluation, chosen)
    assert ([each.name for each in able], unable) == (["latecomer"], ["completion"])
    assert taking_part(standard_evaluation("bbr", "", ("cubic",)), chosen) == (chosen, [])
    with pytest.raises(UsageError, match="mine has no congestion control 'bbr'"):
        standard_evaluation("./mine:bbr", "")


def test_only_a_network_with_programs_of_udp_stops_to_segment_it(mine: Path) -> None:
    for scenario, expected in ((stack_flow(str(mine)), True), (dumbbell(), False)):
        words = [each.argv for each in make_plan(with_stacks(scenario)).setup]
        offloads = [each for each in words if each[0] == "ethtool"]
        assert offloads
        assert all(("tx-udp-segmentation" in each) is expected for each in offloads)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("variants =", "variant ="), "did you mean 'variants'?"),
        (('["flow.py"]', '["other.py"]'), "files: no such file: 'other.py'"),
        (('["flow.py"]', '["/etc/passwd"]'), "is not in the folder"),
        (('["flow.py"]', '["../mine/flow.py"]'), "is not in the folder"),
        (("{server_ip}", "{address}"), "sender: unknown placeholder '{address}'"),
        (('"{port}"]\nsender', '"80"]\nsender'), "receiver: has no {port}"),
        (("linux-reno", "Linux Reno"), "is no variant of the kernel's"),
        (("about =", "about"), "not TOML"),
    ],
)
def test_a_fault_of_a_description_names_its_field(
    mine: Path, change: tuple[str, str], said: str
) -> None:
    (mine / "stack.toml").write_text(MINE.replace(*change))
    with pytest.raises(UsageError, match=re.escape(said)):
        stack_of(str(mine))


@pytest.mark.parametrize(
    ("stack", "variant", "said"),
    [
        ("quin", "bbr", "unknown stack 'quin'"),
        (None, "bbr", "stack: missing"),
        ("MINE", "cubic", "stack mine has no congestion control 'cubic'"),
    ],
)
def test_a_flow_of_no_stack_is_refused(
    mine: Path, stack: str | None, variant: str, said: str
) -> None:
    with pytest.raises(UsageError, match=re.escape("flows[0]")) as error:
        with_stacks(stack_flow(str(mine) if stack == "MINE" else stack, variant))
    assert said in error.value.message


def test_what_is_built_is_kept_until_a_source_changes(mine: Path) -> None:
    built_by(mine, "cat flow.py flow.py >two.py; mv two.py flow.py; mkdir target; touch target/x")
    stack = stack_of(str(mine))
    with pytest.raises(UsageError, match="mine is not built"):
        stack.programs("half")
    said = list[str]()
    folder = build(stack, said.append)
    assert (folder / "flow.py").read_text() == "print()\n" * 2
    assert (mine / "flow.py").read_text() == "print()\n"
    assert stack.programs("half").files == (str(folder / "flow.py"),)
    assert build(stack, said.append) == folder and len(said) == 1
    before = sources_hash(mine)
    (mine / "target").mkdir()
    (mine / "target" / "x").touch()
    assert sources_hash(mine) == before
    (mine / "flow.py").write_text("print(1)\n")
    assert not stack.is_built


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("echo compiling; echo 'error: no such crate' >&2; exit 3", "3: error: no such crate"),
        ("rm flow.py", "its build made no flow.py"),
    ],
)
def test_a_stack_that_does_not_build_leaves_nothing(mine: Path, command: str, said: str) -> None:
    stack = stack_of(str(built_by(mine, command)))
    with pytest.raises(TestbedError, match=re.escape(said)):
        build(stack, lambda _line: None)
    assert not list(stack.cached.parent.iterdir())


def test_the_verb_builds_the_others_when_one_fails(
    mine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = mine.parent / "broken"
    broken.mkdir()
    for name in ("stack.toml", "flow.py"):
        (broken / name).write_bytes((mine / name).read_bytes())
    built_by(broken, "false")
    assert main(["stack", "build", str(broken), str(mine)]) == 1
    output = capsys.readouterr()
    assert "stack broken: sh -c false: exit status 1" in output.err
    assert f"stack mine: {mine}" in output.out
    assert main(["stack", "list", str(mine)]) == 0
    assert "half, gentle" in capsys.readouterr().out


def test_a_path_too_long_for_a_variant_is_refused_before_anything_is_planned(
    mine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(mine.parent)
    check_stack("./mine:half")
    with pytest.raises(UsageError, match="at most 64 characters as a variant"):
        check_stack(f"{mine}{'/.' * 32}:half")
