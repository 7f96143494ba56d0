"""Stacks in the guest: one of one's own by the page's steps, and those that fail."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from analysis.captures.tcp import CE
from analysis.trials.packets import TrialPackets
from analysis.verdict.checks import Grade
from analysis.verdict.verdict import judge
from experiments.command import main
from testbed.own_files.scenario_file import document_from_options, in_document
from testbed.runs.engine_choice import choose
from testbed.scenario.model import Scenario
from testbed.stacks.flows import with_stacks
from testbed.store.reading import Trial
from tests.lab import capture_hashes, ended_trials

JOINED = """
import socket, sys, time
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
if len(sys.argv) == 2:
    udp.bind(("", int(sys.argv[1])))
    while True:
        udp.recv(2000)
udp.setsockopt(socket.SOL_UDP if hasattr(socket, "SOL_UDP") else 17, 103, 1200)  # UDP_SEGMENT
while True:
    udp.sendto(bytes(12_000), (sys.argv[2], int(sys.argv[1])))
    time.sleep(0.05)
"""
ENDS = {  # what a sender does at its 30th datagram → what the verdict says
    "raise SystemExit('lost my way')": "status 1: lost my way",
    "break": "ended before the flow did",
}


@pytest.fixture(scope="module")
def mine(tmp_path_factory: pytest.TempPathFactory, root: Path) -> Path:
    """The stack that docs/stacks.md shows."""
    folder = tmp_path_factory.mktemp("stacks") / "mine"
    folder.mkdir()
    page = (root / "docs" / "stacks.md").read_text()
    for name, kind in (("stack.toml", "toml"), ("flow.py", "python")):
        (block,) = re.findall(rf"```{kind}\n(.*?)```", page, re.DOTALL)
        (folder / name).write_text(block)
    return folder


def two_flows(stack: Path) -> Scenario:
    flows = [f"h1,h3,stack={stack}", "h2,h3,variant=linux-reno"]
    words = ("single,3", "bw=10,delay=5ms,max_queue_size=40", flows, 3.0)
    return with_stacks(in_document(document_from_options(*words), "").scenario)


def verdict(trial: Trial) -> tuple[Grade, str]:
    found = judge(trial)
    assert found is not None
    return found.verdict, found.why


def with_program(mine: Path, folder: Path, text: str) -> Path:
    folder.mkdir()
    (folder / "stack.toml").write_text((mine / "stack.toml").read_text())
    (folder / "flow.py").write_text(text)
    return folder


def test_the_page_has_thirty_lines(mine: Path) -> None:
    assert len((mine / "flow.py").read_text().splitlines()) <= 30


def test_a_stack_of_ones_own_shares_a_link_with_tcp_twice_alike(mine: Path, tmp_path: Path) -> None:
    trials = [
        *ended_trials([two_flows(mine)], tmp_path / "a", choose("guest", [])),
        *ended_trials([two_flows(mine)], tmp_path / "b", choose("guest", [])),
    ]
    assert [verdict(each) for each in trials] == [(Grade.VALID, "")] * 2
    assert len({str(capture_hashes(each)) for each in trials}) == 1
    assert not trials[0].record.warnings
    packets = TrialPackets(trials[0])
    for each in trials[0].record.flows:
        sent = packets.flow("sender", each)
        assert sent is not None and len(sent.data) > 500


def test_joined_datagrams_are_single_packets_everywhere(mine: Path, tmp_path: Path) -> None:
    stack = with_program(mine, tmp_path / "joined", JOINED)
    (trial,) = ended_trials([two_flows(stack)], tmp_path / "out", choose("guest", []))
    assert verdict(trial) == (Grade.VALID, "")
    packets = TrialPackets(trial)
    for role in ("sender", "receiver"):
        seen = packets.flow(role, trial.record.flows[0])
        assert seen is not None and len(seen.data) > 500
        assert set(seen.data["length"]) == {14 + 28 + 1200}


def test_a_sender_may_send_marked_datagrams_itself(mine: Path, tmp_path: Path) -> None:
    """As s2n-quic does, to see whether the path keeps a mark."""
    marking = "udp.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, 3)\nudp.settimeout(1)"
    text = (mine / "flow.py").read_text().replace("udp.settimeout(1)", marking, 1)
    stack = with_program(mine, tmp_path / "marking", text)
    (trial,) = ended_trials([two_flows(stack)], tmp_path / "out", choose("guest", []))
    assert verdict(trial) == (Grade.VALID, "")
    sent = TrialPackets(trial).flow("sender", trial.record.flows[0])
    assert sent is not None and (sent.data["ecn"] == CE).sum() > 500


@pytest.mark.parametrize(("act", "said"), ENDS.items(), ids=["crashes", "ends"])
def test_a_sender_that_ends_makes_its_trial_invalid_and_the_sweep_goes_on(
    mine: Path, tmp_path: Path, act: str, said: str
) -> None:
    text = (mine / "flow.py").read_text()
    broken = with_program(
        mine,
        tmp_path / "broken",
        text.replace("    lost = {", f"    if number == 30:\n        {act}\n    lost = {{", 1),
    )
    scenarios = [two_flows(broken), two_flows(mine)]
    bad, good = ended_trials(scenarios, tmp_path / "out", choose("guest", []))
    assert verdict(good) == (Grade.VALID, "")
    grade, why = verdict(bad)
    assert grade is Grade.INVALID and said in why


def test_the_verb_tries_each_control(
    mine: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["stack", "check", str(mine)]) == 0
    assert re.findall(r"mine:(\w+): \d\.\d\d Mbit/s", capsys.readouterr().out) == ["gentle", "half"]
