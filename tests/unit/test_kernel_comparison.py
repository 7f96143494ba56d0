"""`testbed kernel compare`: its trials, what can be compared, and how the answer reads."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from analysis.statistics.intervals import compare_paired
from analysis.statistics.packet_comparison import FirstDifference
from experiments.command import main
from testbed.cli import kernel_report
from testbed.errors import UsageError
from testbed.guest import kernels
from testbed.guest.worker import cache_folder
from testbed.kernels import kernel_comparison
from testbed.kernels.comparison_trials import COMPARED_VARIANTS, CONDITIONS, comparison_trials
from testbed.kernels.kernel_comparison import (
    ComparedPacket,
    Divergence,
    Effect,
    KernelComparison,
    NotCompared,
    compare_kernels,
    effects,
)
from testbed.kernels.kernel_sources import KernelSource, build_source, kernel_source
from testbed.kernels.rewind import Sending, read_gdb
from testbed.plan.plan import Task
from testbed.plan.requirements import OTHER_KERNELS
from testbed.runs.sweep import TrialFinished
from testbed.scenario.model import Scenario
from testbed.scenario.queues import DISCIPLINES
from testbed.scenario.variants import VARIANTS
from testbed.store.reading import Trial, open_trial
from testbed.store.records import Record, Status
from tests.scenarios import router
from tests.trial_writer import write_trial

GDB = """\
second 0.395678160
#0  packet_seen (skb=0x6143b300, dev=0x60f8e800) at arch/um/kernel/capture.c:113
#1  0x0000000060261efc in dev_queue_xmit_nit ()
#7  0x000000006035316b in __tcp_transmit_skb (sk=sk@entry=0x615508c0) at net/ipv4/tcp_output.c:1407
#8  0x0000000060355253 in __tcp_retransmit_skb.part.0 ()
#9  __tcp_retransmit_skb (sk=sk@entry=0x615508c0, segs=1) at net/ipv4/tcp_output.c:3317
#10 tcp_xmit_retransmit_queue (sk=0x615508c0) at net/ipv4/tcp_output.c:3422
#11 ip_protocol_deliver_rcu (net=0x60b3a000) at net/ipv4/ip_input.c:205
sender: (struct tcp_sock *) 0x615508c0, reno, recovery
  snd_una 3324334791, snd_nxt 3324525927
  snd_cwnd 127, snd_ssthresh 65
receiver: (struct tcp_sock *) 0x61419280, cubic, open
  snd_una 1169445604
"""


def test_the_trials_have_every_variant_and_every_queue() -> None:
    trials = list(comparison_trials())
    assert len(trials) == 300 == len(COMPARED_VARIANTS) * len(CONDITIONS.strip().splitlines())
    assert len({trial.label for trial in trials}) == 300
    compared = {name for name, each in VARIANTS.items() if not each.needs_accurate_ecn}
    assert compared <= {trial.flow("tcp").variant for trial in trials}
    queues = {
        direction.queue.discipline
        for trial in trials
        for link in trial.network.links
        for direction in (link.forward, link.reverse)
        if direction and direction.queue
    }
    assert queues == {
        row.name
        for row in DISCIPLINES.values()
        if not row.polices and row.symbol not in OTHER_KERNELS
    }


def test_what_gdb_said_is_read() -> None:
    sent = read_gdb(GDB.splitlines())
    assert sent.functions == (
        "__tcp_transmit_skb",
        "__tcp_retransmit_skb",
        "tcp_xmit_retransmit_queue",
    )
    assert sent.socket == (
        "(struct tcp_sock *) 0x615508c0, reno, recovery",
        "snd_una 3324334791, snd_nxt 3324525927",
        "snd_cwnd 127, snd_ssthresh 65",
    )


KERNELS = ("6.1", "6.12")
TIMES = {"red": 0.5, "pie": 0.25, "codel": 2.0}  # of the first packet that differs


@pytest.fixture
def ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make every trial end as its condition says, on each kernel, without a guest.

    B has more throughput in each, more retransmissions in one and fewer in the others.
    """

    def run_all(planned: Sequence[Task], *_: object) -> list[TrialFinished]:
        done = []
        for task in planned:
            scenario = task.scenario
            fails = scenario.axes["condition"] == "fails" and scenario.kernel == KERNELS[1]
            failed = Record(Status.FAILED, engine="guest", seed=1, reason="no such queue")
            name = f"{scenario.name}-{scenario.kernel}"
            path = write_trial(tmp_path / name, scenario=scenario, record=failed if fails else None)
            done.append(TrialFinished(task, path, failed.status if fails else Status.OK))
        return done[::-1]  # trials end in any order

    def first_difference(a: Trial, b: Trial) -> FirstDifference | None:
        assert (a.scenario.kernel, b.scenario.kernel) == KERNELS
        time_s = TIMES.get(a.scenario.axes["condition"])
        return FirstDifference("sender1-eth0", 7, (time_s, time_s + 1)) if time_s else None

    def reductions_of(trials: Sequence[Trial]) -> list[Any]:
        return [SimpleNamespace(trial=each, flows=pd.DataFrame([flow(each)])) for each in trials]

    def flow(trial: Trial) -> dict[str, float]:
        on_b = trial.scenario.kernel == KERNELS[1]
        time_s = TIMES[trial.scenario.axes["condition"]]
        return {
            "throughput_mbps": 4 + on_b * (1 + time_s / 10),
            "retransmitted": 9 + on_b * (time_s - 1),
            "rtt_mean_ms": 30,
        }

    monkeypatch.setattr(kernel_comparison, "choose", lambda *_: None)
    monkeypatch.setattr(kernel_comparison, "run_all", run_all)
    monkeypatch.setattr(kernel_comparison, "first_difference", first_difference)
    monkeypatch.setattr(kernel_comparison, "reductions_of", reductions_of)
    return tmp_path


def in_condition(name: str, variant: str = "cubic") -> Scenario:
    axes = {"condition": name, "variant": variant}
    scenario = router(variant=variant, cbr_mbit=0.1, duration_s=12, axes=axes)
    return dataclasses.replace(scenario, label=f"{name}-{variant}")


def ignore(_event: object) -> None:
    """Take an event of a sweep."""


def test_kernels_are_compared_trial_by_trial(ran: Path) -> None:
    names = ("same", "red", "fails", "pie", "codel")
    found = compare_kernels(list(map(in_condition, names)), KERNELS, ran, ignore, explained=0)
    assert (found.trials, found.same, found.conditions) == (5, 1, names)
    assert [each.condition for each in found.divergences] == [
        "pie cubic",
        "red cubic",
        "codel cubic",
    ]
    assert [[trial.scenario.kernel for trial in each.trials] for each in found.divergences] == [
        list(KERNELS)
    ] * 3
    assert found.failed == (NotCompared("fails", "no such queue"),)
    assert [each.packets for each in found.divergences] == [None] * 3
    (effect,) = found.effects  # the only one that is significant
    assert (effect.group, effect.what, effect.mean_a) == ("cubic", "throughput", 4.0)
    assert effect.comparison.difference == pytest.approx(1 + sum(TIMES.values()) / 30)
    assert 0 < effect.comparison.low < effect.comparison.difference


def test_effects_are_of_variants_or_of_conditions(ran: Path) -> None:
    scenarios = [in_condition(name, variant) for name in TIMES for variant in ("reno", "cubic")]
    found = compare_kernels(scenarios, KERNELS, ran, ignore, explained=0)
    of_variants = list(effects(found.divergences))
    assert [(each.group, each.what, each.comparison.n_a) for each in of_variants] == [
        (variant, what, 3)
        for variant in ("cubic", "reno")
        for what in ("throughput", "retransmissions")
    ]
    # the two trials of a condition differ alike: no deviation, so no test
    assert list(effects(found.divergences, "condition")) == []


@pytest.fixture
def in_gdb(monkeypatch: pytest.MonkeyPatch) -> list[Trial]:
    """Let gdb print GDB for each trial, and return the trials that ran under it."""
    stopped: list[Trial] = []

    def sending_of(trial: Trial, orders: Any, _say: object) -> Sending:
        stopped.append(trial)
        assert (orders.packet.interface, orders.packet.frame) == ("sender1-eth0", 7)
        assert orders.dst_port == trial.record.flows[0].dst_port
        return read_gdb(GDB.splitlines())

    monkeypatch.setattr(kernel_comparison, "sending_of", sending_of)
    monkeypatch.setattr(kernel_comparison, "has_symbols", lambda name: name == KERNELS[0])
    return stopped


def test_the_earliest_trial_of_the_first_variants_is_explained(
    ran: Path, in_gdb: list[Trial]
) -> None:
    several = [("pie", "cubic"), ("red", "cubic"), ("red", "reno"), ("codel", "bbr")]
    scenarios = [in_condition(*each) for each in several]
    found = compare_kernels(scenarios, KERNELS, ran, ignore, explained=2)
    explained = [each.condition for each in found.divergences if each.packets]
    assert explained == ["pie cubic", "red reno"]
    assert [trial.scenario.kernel for trial in in_gdb] == [KERNELS[0]] * 2  # B has no symbols
    assert found.divergences[0].packets
    a, b = found.divergences[0].packets
    assert a.text == b.text and "10.0.1.2, 10.0.0.2" in a.text
    assert a.functions[0] == "__tcp_transmit_skb" and a.socket[1].startswith("snd_una")
    assert (a.why_not, b.why_not) == ("", "kernel 6.12 has no symbols: testbed rewind")
    assert (b.functions, b.socket) == ((), ())


@pytest.fixture
def found(tmp_path: Path) -> KernelComparison:
    scenario = router(variant="cubic", cbr_mbit=0.1, axes={"condition": "red", "variant": "cubic"})
    trial: Trial = open_trial(write_trial(tmp_path / "trial", scenario=scenario))
    packets = (
        ComparedPacket(
            "1 0.5 TCP " + "x" * 90,
            ("tcp_write_xmit", "tcp_ack"),
            ("cubic, open",),
            flow="background",
        ),
        ComparedPacket(""),
    )
    first = Divergence((trial, trial), FirstDifference("sender1-eth0", 7, (0.5, math.nan)), packets)
    effect = Effect(
        "cubic",
        "throughput",
        "Mbit/s",
        4.0,
        compare_paired({1: 5, 2: 6, 3: 7.5}, {1: 4, 2: 5, 3: 6}),
    )
    failed = tuple(NotCompared(name, "the guest's kernel has no queue") for name in ("pie", "red"))
    return KernelComparison(300, ("red", "pie"), (first,), failed, (effect,))


def test_a_mail(found: KernelComparison) -> None:
    lines = list(kernel_report.lines_of(found, ("~/linux@v6.1 (6.1)", "~/linux (6.1)"), "mail"))
    assert lines[0] == "Subject: other packets in 1 of 300 trials"
    assert all(len(line) <= 75 for line in lines)
    text = "\n".join(lines)
    assert "0.500000 s  red cubic" in text and "packet 7 of sender1-eth0" in text
    assert "of flow background" in text and "sent by tcp_write_xmit < tcp_ack" in text
    assert "B, at no time: no such packet" in text
    assert "cubic: throughput +1.17 Mbit/s [" in text
    assert "2 trials were not compared: the guest's kernel has no queue" in text


def test_other_forms(found: KernelComparison) -> None:
    text = "\n".join(kernel_report.lines_of(found, ("a", "b"), "md"))
    assert text.startswith("### Other packets in 1 of 300 trials")
    assert "| 0.500000 | red cubic | 7 of `sender1-eth0` |" in text
    answer = json.loads("\n".join(kernel_report.lines_of(found, ("a", "b"), "json")))
    assert answer["same"] == 297
    reason = "the guest's kernel has no queue"
    assert answer["failed"] == {reason: 2}
    assert answer["failed_conditions"] == {"pie": reason, "red": reason}
    (differing,) = answer["differing"]
    assert differing["seconds"] == [0.5, None]
    assert differing["versions"][0]["functions"] == ["tcp_write_xmit", "tcp_ack"]


def test_nothing_differs() -> None:
    same = KernelComparison(300, ("red",), (), (), ())
    assert kernel_report.summary(same) == "the same packets in all 300 trials"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "linux" / "net").mkdir(parents=True)
    (tmp_path / "linux" / "net" / "a.c").write_text("int a;\n")
    return tmp_path / "linux"


def test_what_can_be_compared(tree: Path, tmp_path: Path) -> None:
    patch = tmp_path / "change.patch"
    patch.write_text("--- a\n")
    assert kernel_source("6.1").kernel == "6.1"
    base = kernel_source(str(tree))
    assert base == KernelSource(str(tree), tree=str(tree))
    patched = kernel_source(str(patch), base)
    assert (patched.tree, patched.patch) == (str(tree), patch)
    assert kernel_source(str(patch), kernel_source("6.12")).tree == "6.12"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["compare", "6.1"], "two kernels"),
        (["compare", "6.1", "nowhere"], "nowhere: no kernel, source tree"),
        (["compare", "6.1", "6.1"], "are the same"),
        (["compare", "change.patch", "6.1"], "a patch on what?"),
        (["compare", ".@nosuchcommit", "6.1"], "no commit 'nosuchcommit'"),
    ],
)
def test_wrong_requests(
    words: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "change.patch").write_text("")
    assert main(["kernel", *words]) == 2  # 1 would be: other packets
    said, hint = capsys.readouterr().err.splitlines()
    assert message in said and hint.strip().startswith("hint: ")


def test_a_tree_that_has_not_changed_is_not_built_again(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    built: list[str] = []

    def build(kernel: kernels.CustomKernel, _progress: kernels.Progress) -> Path:
        built.append(kernel.name)
        folder = kernels.custom_folder(kernel.name)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "base").write_text("0\n")
        return folder

    monkeypatch.setattr(kernels, "build_custom", build)
    source = kernel_source(str(tree))
    for fresh in (True, False):
        assert build_source(source, "compare-b", "", print) == ("compare-b", fresh)
    ours = tmp_path / "kernel"
    shutil.copytree(kernels.SOURCE_FOLDER, ours)
    monkeypatch.setattr(kernels, "SOURCE_FOLDER", ours)
    (ours / "selftests" / "causes").write_text("")  # a list of tests is no part of a kernel
    assert build_source(source, "compare-b", "", print) == ("compare-b", False)
    (ours / "selftests" / "suites").write_text("")
    assert build_source(source, "compare-b", "", print) == ("compare-b", True)
    os.utime(tree / "net" / "a.c", (1, 1))
    assert build_source(source, "compare-b", "", print) == ("compare-b", True)
    assert built == ["compare-b"] * 3


def test_a_first_build_starts_from_what_another_of_its_flavour_compiled(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    likes: list[str] = []

    def build(kernel: kernels.CustomKernel, _progress: kernels.Progress) -> Path:
        likes.append(kernel.like)
        (cache_folder() / "trees" / kernel.name).mkdir(parents=True)
        folder = kernels.custom_folder(kernel.name)
        folder.mkdir(parents=True)
        return folder

    monkeypatch.setattr(kernels, "build_custom", build)
    source = kernel_source(str(tree))
    for name, flavour in (("one", ""), ("check", "selftests"), ("tested", "selftests")):
        build_source(source, name, "", print, flavour)
    assert likes == ["", "", "check"]


def test_a_checkout_that_was_killed_is_made_again(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    git = ["git", "-C", str(tree), "-c", "user.name=x", "-c", "user.email=x@example.org"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "first"]):
        subprocess.run([*git, *words], check=True)
    monkeypatch.setattr(kernels, "build_custom", lambda kernel, _say: Path(kernel.source))
    (cache_folder() / "trees").mkdir(parents=True)
    (cache_folder() / "trees" / "compare-a.index.lock").touch()
    build_source(kernel_source(f"{tree}@HEAD"), "compare-a", "", print)


def test_a_commit_is_built_and_all_of_it_removed(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    git = ["git", "-C", str(tree), "-c", "user.name=x", "-c", "user.email=x@example.org"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "first"]):
        subprocess.run([*git, *words], check=True)
    (tree / "net" / "a.c").write_text("int changed;\n")
    sources: list[str] = []

    def build(kernel: kernels.CustomKernel, _progress: kernels.Progress) -> Path:
        sources.append(Path(kernel.source, "net", "a.c").read_text())
        folder = kernels.custom_folder(kernel.name)
        folder.mkdir(parents=True)
        return folder

    monkeypatch.setattr(kernels, "build_custom", build)
    build_source(kernel_source(f"{tree}@HEAD"), "compare-a", "", print)
    assert sources == ["int a;\n"]
    kernels.remove("compare-a")
    assert not list((tmp_path / "cache").rglob("compare-a*"))


def test_a_patch_on_a_kernel_without_source(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    patch = tmp_path / "change.patch"
    patch.write_text("")
    with pytest.raises(UsageError, match="kernel mine has no source here"):
        kernel_source(str(patch), KernelSource("mine", kernel="mine"))
