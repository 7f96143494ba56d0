"""`testbed whatif`: the packets until a change are the same, and those after it are not."""

from __future__ import annotations

import dataclasses
import re
import shutil
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from analysis.captures.tcp import CE
from analysis.results.tables import write_metrics
from analysis.trials.packets import TrialPackets, capture_files, epoch_ns
from analysis.trials.samples import read_samples
from experiments.command import main
from testbed.errors import TestbedError, UsageError
from testbed.runs.orchestration import RunListener, RunOptions
from testbed.runs.what_if import NO_CHANGE, Fate, Intervention, WhatIf, what_if
from testbed.scenario.model import Flow, FlowKind, Scenario
from testbed.scenario.network import Direction, Graph, Link, Node, NodeKind, Queue
from testbed.store.names import LINK_CHANGES
from testbed.store.reading import Trial, open_trial
from tests.browser import Tab, browser
from tests.lab import packets, run_trials
from tests.scenarios import router
from tests.trial_writer import write_trial

AT_S = 1.5


@pytest.fixture(scope="module")
def trial(tmp_path_factory: pytest.TempPathFactory) -> Trial:
    queue = Queue("pfifo", limit_packets=20)
    scenario = router(variant="cubic", rate_mbit=4, queue=queue, delay_ms=10, duration_s=3)
    (made,) = run_trials([scenario], tmp_path_factory.mktemp("stored"))
    return made


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder for all answers: the trial as it was runs once."""
    return tmp_path_factory.mktemp("answers") / "out"


def answer(trial: Trial, change: Intervention, out: Path, seeds: int = 1) -> WhatIf:
    options = RunOptions(seeds=seeds, engine="guest", out=out)
    return what_if(trial, change, options, "", RunListener())


@pytest.mark.slow(but=2)
@pytest.mark.parametrize(
    "settings",
    [
        {"links.1.forward.rate_mbit": "2"},
        {"network.links.router-receiver.forward.loss": "0.5"},
        {"links.0.forward.delay_ms": "30", "links.0.reverse.delay_ms": "5"},
        {"links.0.reverse.up": "false"},
        {"links.1.forward.limit_packets": "5"},
        {"nodes.sender1.net.ipv4.ip_default_ttl": "33"},
        {"flows.tcp.control": "reno"},
    ],
    ids=["rate", "loss", "delays", "outage", "limit", "sysctl", "control"],
)
def test_packets_are_the_same_until_the_change(
    trial: Trial, settings: dict[str, str], out: Path
) -> None:
    found = answer(trial, Intervention(settings, AT_S), out)
    assert found.differs_from_stored is None
    (pair,) = found.pairs
    assert pair.before.scenario.axes["change"] == NO_CHANGE
    assert pair.first is not None and AT_S <= pair.first.earliest_s < AT_S + 0.2
    assert pair.same_packets > 1000 and not found.invalid
    assert {each.metric for each in found.effects} >= {"goodput_mbps", "rtt_mean_ms"}


def test_a_queue_has_other_options_from_then_on(tmp_path: Path) -> None:
    queue = Queue("red", limit_bytes=60_000, options={"min_bytes": 5000, "max_bytes": 15_000})
    scenario = router(variant="cubic", rate_mbit=4, queue=queue, delay_ms=10, duration_s=3)
    (made,) = run_trials([scenario], tmp_path / "stored")
    change = Intervention({"links.1.forward.queue.options.probability": "0.5"}, AT_S)
    found = answer(made, change, tmp_path / "out")
    (pair,) = found.pairs
    assert found.differs_from_stored is None and not found.invalid
    assert pair.first is not None and AT_S <= pair.first.earliest_s < AT_S + 0.2
    table = read_samples(pair.after, LINK_CHANGES)
    assert table is not None
    (row,) = table.to_dict("records")
    assert (row["time_s"], row["change"]) == (AT_S, "probability 0.5")


def test_packets_have_the_sysctl_from_then_on(trial: Trial, out: Path) -> None:
    settings = {"nodes.sender1.net.ipv4.ip_default_ttl": "33"}
    (pair,) = answer(trial, Intervention(settings, AT_S), out).pairs
    source = f"ip.src == {trial.record.flows[0].src_address}"
    usual, other = (
        [each.time_s for each in packets(pair.after, "sender:tcp", f"{source} && ip.ttl == {life}")]
        for life in (64, 33)
    )
    assert max(usual) < AT_S <= min(other) < AT_S + 0.2


def test_a_socket_has_the_congestion_control_from_then_on(trial: Trial, out: Path) -> None:
    (pair,) = answer(trial, Intervention({"flows.tcp.control": "reno"}, AT_S), out).pairs
    (flow,) = pair.after.record.flows
    assert (flow.control, flow.variant_seen) == ("cubic", "reno")


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"nodes.sender1.net.ipv4.nothing": "1"}, "this network namespace has no such setting"),
        ({"nodes.sender1.net.ipv4.tcp_recovery": "x"}, "does not take the value x"),
        (
            {"nodes.sender1.net.ipv4.tcp_available_congestion_control": "x"},
            "it can only be read",
        ),
        ({"flows.tcp.control": "dctcp"}, "'dctcp-reno', not 'dctcp'"),  # it has no ECN
        ({"flows.tcp.control": "nosuch"}, "nosuch"),
    ],
)
def test_what_the_kernel_refuses_is_said(
    trial: Trial, settings: dict[str, str], reason: str, tmp_path: Path
) -> None:
    with pytest.raises(TestbedError, match=reason):
        answer(trial, Intervention(settings, AT_S), tmp_path / "out")


def test_a_change_that_reaches_nothing_changes_no_packet(trial: Trial, out: Path) -> None:
    found = answer(trial, Intervention({"links.1.forward.rate_mbit": "4"}, AT_S), out)
    (pair,) = found.pairs
    packets = TrialPackets(pair.before)
    everything = sum(len(packets.read(file).rows) for file in capture_files(trial).values())
    assert pair.first is None and pair.same_packets == everything
    assert all(each.difference.difference == 0 for each in found.effects)


def middle_segment(trial: Trial) -> pd.Series[Any]:
    """The row of one segment, as captured behind the bottleneck."""
    behind = trial.capture("bottleneck-out:tcp")
    assert behind
    rows = TrialPackets(trial).read(behind).rows
    data = rows[rows["length"] > 1000]
    return data.iloc[len(data) // 2]


def received(trial: Trial, change: Intervention, out: Path) -> list[pd.DataFrame]:
    """What the receiver got without the change, and with it."""
    (pair,) = answer(trial, change, out).pairs
    return [
        TrialPackets(each).read(capture_files(each)["receiver-eth0"]).rows
        for each in (pair.before, pair.after)
    ]


def test_exactly_one_packet_is_lost(trial: Trial, out: Path) -> None:
    lost = middle_segment(trial)
    before, after = received(trial, Intervention(packet=int(lost["frame"])), out)
    until = before["time_ns"] <= lost["time_ns"] + 20_000_000  # until the sender can know of it
    arrived = set(after["time_ns"])
    missing = before[until & ~before["time_ns"].isin(arrived)]
    data_missing = missing[missing["length"] > 1000]
    assert data_missing["seq"].tolist() == [lost["seq"]]


def test_a_packet_of_a_named_queue_is_lost(tmp_path: Path) -> None:
    queue = Queue("pfifo", limit_packets=20)
    links = tuple(
        Link(ends, Direction(rate, 5, queue), Direction(delay_ms=5))
        for ends, rate in ((("a", "r"), 8), (("r", "s"), 6), (("s", "b"), 4))
    )
    routers = tuple(Node(name, NodeKind.ROUTER) for name in ("r", "s"))
    flow = Flow("tcp", FlowKind.TCP, "a", "b", variant="cubic")
    network = Graph((Node("a"), *routers, Node("b")), links)
    (made,) = run_trials([Scenario("test", network, (flow,), 2)], tmp_path / "stored")
    behind = TrialPackets(made).read(capture_files(made)["r-eth1"]).rows
    lost = behind[behind["length"] > 1000].iloc[200]
    for name in ("r-eth1", "r-s"):
        change = Intervention(packet=int(lost["frame"]), queue=name)
        (pair,) = answer(made, change, tmp_path / "out").pairs
        assert pair.first and pair.first.interface == "s-eth0"
        came = TrialPackets(pair.after).read(capture_files(pair.after)["s-eth0"]).rows
        assert lost["ip_id"] not in set(came["ip_id"])


def test_exactly_one_packet_is_late(trial: Trial, out: Path) -> None:
    late = middle_segment(trial)
    before, after = received(
        trial, Intervention(packet=int(late["frame"]), fate=Fate.LATE, later_ms=7), out
    )
    until = late["time_ns"] + 20_000_000  # before the sender can know of it
    usual, other = (
        each[(each["length"] > 1000) & (each["time_ns"] <= until)].set_index("ip_id")["time_ns"]
        for each in (before, after)
    )
    later = (other - usual)[lambda each: each != 0]
    assert later.tolist() == [7_000_000]


def test_exactly_one_dropped_packet_is_spared(trial: Trial, out: Path) -> None:
    before, behind = (trial.capture(f"bottleneck-{side}:tcp") for side in ("in", "out"))
    assert before and behind
    came, left = (TrialPackets(trial).read(each).rows for each in (before, behind))
    dropped = came[(came["payload"] > 0) & ~came["ip_id"].isin(left["ip_id"])]
    spared = dropped.iloc[len(dropped) // 2]
    change = Intervention(packet=int(spared["frame"]), fate=Fate.SPARED)
    (pair,) = answer(trial, change, out).pairs
    reached = [
        TrialPackets(each).read(capture_files(each)["receiver-eth0"]).rows["ip_id"]
        for each in (pair.before, pair.after)
    ]
    assert spared["ip_id"] not in set(reached[0]) and spared["ip_id"] in set(reached[1])
    assert pair.first and pair.first.earliest_s * 1e9 >= spared["time_ns"] - epoch_ns(trial)


def test_exactly_one_packet_is_marked(tmp_path: Path) -> None:
    queue = Queue("codel", limit_packets=200, ecn=True)
    scenario = router(variant="cubic", rate_mbit=4, queue=queue, delay_ms=10, duration_s=2)
    (made,) = run_trials([scenario], tmp_path / "stored")
    marked = middle_segment(made)
    change = Intervention(packet=int(marked["frame"]), fate=Fate.MARKED)
    before, after = received(made, change, tmp_path / "out")
    until = marked["time_ns"] + 20_000_000  # before the sender can know of it
    usual, other = (
        each[(each["length"] > 1000) & (each["time_ns"] <= until)].set_index("ip_id")["ecn"]
        for each in (before, after)
    )
    assert other[other != usual].to_dict() == {marked["ip_id"]: CE}


def test_each_network_is_a_pair(trial: Trial, out: Path) -> None:
    found = answer(trial, Intervention({"flows.tcp.variant": "bbr"}), out, seeds=2)
    seeds = [(each.before.scenario.seed, each.after.scenario.seed) for each in found.pairs]
    assert seeds == [(1, 1), (2, 2)]
    assert [each.after.scenario.flows[0].variant for each in found.pairs] == ["bbr", "bbr"]
    goodput = next(each for each in found.effects if each.metric == "goodput_mbps")
    assert goodput.difference.n_a == 2


FIRST = "document.querySelector('iframe')"


def clocks(tab: Tab, pattern: str) -> int:
    """How many frames' clocks show an instant, once two do or after some seconds."""
    for _ in range(50):
        nodes = tab.call("DOM.getFlattenedDocument", depth=-1, pierce=True)["nodes"]
        texts = [each["nodeValue"] for each in nodes if each["nodeName"] == "#text"]
        shown = sum(re.fullmatch(pattern, each) is not None for each in texts)
        if shown >= 2:
            break
        tab.run("new Promise((done) => setTimeout(done, 200))")
    return shown


def test_the_command_says_what_is_the_same(
    trial: Trial, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--at", "1.5", "--set", "links.1.forward.rate_mbit=2", "--out", str(tmp_path / "out")]
    assert main(["whatif", str(trial.path), *words]) == 0
    printed = capsys.readouterr().out
    assert "as it was: the same packets as the trial" in printed
    assert "links.1.forward.rate_mbit=2 from 1.5 s: the same " in printed
    page = Path(printed.split("report: ")[1].split("side by side")[0].strip())
    assert "links.1.forward.rate_mbit=2 from 1.5 s" in page.read_text()
    both = Path(printed.split("side by side: ")[1].strip())
    with browser() as tab:
        tab.visit(both.as_uri(), 1400)
        tab.call("DOM.enable")
        assert clocks(tab, r"1\.5\d{8} s") == 2
        tab.run(f"(() => {{ {FIRST}.src = {FIRST}.src.replace(/#.*/, '#t=2.25'); }})()")
        assert clocks(tab, r"2\.250000000 s") == 2  # in the other one, too


@pytest.mark.parametrize(
    ("change", "message", "hint"),
    [
        (Intervention(), "what is to be changed?", "--drop 812"),
        (Intervention({"links.9.forward.rate_mbit": "1"}, 1), "no '9' there", "0"),
        (Intervention({"links.1.forward.rate": "1"}, 1), "no 'rate' there", "rate_mbit"),
        (Intervention({"links.1.forward.mark": "true"}, 1), "no 'mark' there", "rate_mbit"),
        (Intervention({"flows.tcp.variant": "bbr"}, 1), "can change while flows run", "--at"),
        (Intervention({"links.1.forward.rate_mbit": "fast"}, 1), "rate_mbit", ""),
        (Intervention({"links.1.forward.rate_mbit": "1"}, 99), "not within the trial", ""),
        (Intervention({"links.1.forward.rate_mbit": "1"}, -1), "at_s", ""),
        (Intervention(packet=999_999), "no such packet there", "testbed inspect"),
        (Intervention(packet=999_999, fate=Fate.SPARED), "no such packet", "bottleneck-in"),
        (Intervention(packet=50, fate=Fate.SPARED), "did not drop it", "testbed watch"),
        (Intervention(packet=50, fate=Fate.MARKED), "is not of ECN", "a flow with ECN"),
        (Intervention(packet=50, queue="nowhere"), "passes no such queue", "router-receiver"),
        (Intervention({"links.1.forward.limit_bytes": "9000"}, 1), "queue is a pfifo", ""),
        (Intervention({"nodes.nobody.net.ipv4.ip_default_ttl": "9"}, 1), "no 'nobody'", "router"),
        (Intervention({"nodes.router.kernel.pid_max": "9"}, 1), "the whole kernel's", ""),
        (Intervention({"flows.tcp.control": "bbr"}, 99), "not within the flow's time", ""),
    ],
)
def test_what_cannot_be_is_said(
    trial: Trial, change: Intervention, message: str, hint: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError) as raised:
        answer(trial, change, tmp_path / "out")
    assert message in str(raised.value) and hint in str(raised.value.hint)
    assert not (tmp_path / "out").exists()


def test_without_captures_nothing_is_claimed(trial: Trial, tmp_path: Path) -> None:
    bare = Trial(trial.path, trial.scenario, dataclasses.replace(trial.record, captures=()))
    with pytest.raises(TestbedError, match="it has no captures"):
        answer(bare, Intervention({"links.1.forward.rate_mbit": "2"}, AT_S), tmp_path / "out")


def test_a_damaged_capture_proves_nothing(trial: Trial, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(trial.path, copy)
    (damaged, *_) = capture_files(open_trial(copy)).values()
    damaged.write_bytes(damaged.read_bytes()[:3000])
    with pytest.raises(TestbedError, match="damaged: 3000 bytes"):
        answer(open_trial(copy), Intervention({"duration_s": "1"}), tmp_path / "out")


def test_an_invalid_trial_is_named_and_has_no_effects(
    trial: Trial, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def judged_invalid(folder: Path) -> pd.DataFrame:
        return write_metrics(folder).assign(verdict="invalid")

    monkeypatch.setattr("testbed.runs.what_if.write_metrics", judged_invalid)
    found = answer(trial, Intervention({"links.1.forward.rate_mbit": "2"}, AT_S), tmp_path / "out")
    assert len(found.invalid) == 2 and not found.effects


def test_a_trial_of_the_host_is_refused(tmp_path: Path) -> None:
    made = open_trial(write_trial(tmp_path / "trial"))
    ran = Trial(made.path, made.scenario, dataclasses.replace(made.record, virtual_time=False))
    with pytest.raises(TestbedError, match="it ran in real time"):
        answer(ran, Intervention({"duration_s": "1"}), tmp_path / "out")
