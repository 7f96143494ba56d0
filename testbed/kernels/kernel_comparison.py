"""Two kernels in the same trials: where their packets part, what sent them, what that changes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from analysis.captures.inspection import View, packet_table
from analysis.results.reduction import reductions_of
from analysis.statistics.intervals import Comparison, ComparisonKind, compare_paired
from analysis.statistics.packet_comparison import FirstDifference, first_difference
from analysis.trials.packets import TrialPackets, capture_files, epoch_ns
from testbed.errors import TestbedError
from testbed.kernels.guest_under_gdb import CapturedPacket, DebuggerOrders
from testbed.kernels.kernel_sources import has_symbols
from testbed.kernels.rewind import sending_of
from testbed.plan.plan import tasks
from testbed.runs.engine_choice import choose
from testbed.runs.sweep import SweepEvent, run_all
from testbed.scenario.model import Scenario
from testbed.scenario.variations import on_kernels
from testbed.store.reading import Trial, open_trial
from testbed.store.records import FlowRecord, Status

MAX_EXPLAINED = 3  # trials that run again under gdb
EFFECTS = {  # column → what it is called, and its unit
    "throughput_mbps": ("throughput", "Mbit/s"),
    "retransmitted": ("retransmissions", ""),
    "rtt_mean_ms": ("mean round trip", "ms"),
}
MAX_CHAIN = 5  # functions of a stack that are said
DESCRIBED = ("Source", "Destination", "Info")  # columns of our Wireshark profile


@dataclass(frozen=True)
class ComparedPacket:
    """A packet on one of the kernels, and what the kernel knew when it sent it."""

    text: str  # as Wireshark describes it; empty if the capture ends before
    functions: tuple[str, ...] = ()  # that sent it, the inner one first
    socket: tuple[str, ...] = ()  # lines
    why_not: str = ""  # why the last two are not known
    flow: str = ""  # its name: a condition may have others beside the variant's own


@dataclass(frozen=True)
class Divergence:
    """A trial whose packets differ, and the first that does."""

    trials: tuple[Trial, Trial]
    first: FirstDifference
    packets: tuple[ComparedPacket, ComparedPacket] | None = None  # of those that are explained

    @property
    def condition(self) -> str:
        """The condition and the variant of the trial."""
        axes = self.trials[0].scenario.axes
        return " ".join(filter(None, (axes.get("condition"), axes.get("variant"))))


@dataclass(frozen=True)
class Effect:
    """What the kernels' difference means for a group of trials: B − A over those that differ."""

    group: str  # their variant, or their condition
    what: str
    unit: str
    mean_a: float
    comparison: Comparison

    @property
    def is_significant(self) -> bool:
        """Whether the interval does not hold zero."""
        return not self.comparison.low <= 0 <= self.comparison.high


@dataclass(frozen=True)
class NotCompared:
    """A trial that did not run on both kernels."""

    condition: str
    reason: str


@dataclass(frozen=True)
class KernelComparison:
    """What was compared, and what differs."""

    trials: int
    conditions: tuple[str, ...]  # of the trials
    divergences: tuple[Divergence, ...]  # the earliest first
    failed: tuple[NotCompared, ...]
    effects: tuple[Effect, ...]

    @property
    def same(self) -> int:
        """The number of trials with the same packets."""
        return self.trials - len(self.divergences) - len(self.failed)


def compare_kernels(
    scenarios: Sequence[Scenario],
    kernels: tuple[str, str],
    out: Path,
    watch: Callable[[SweepEvent], None],
    jobs: int | None = None,
    explained: int = MAX_EXPLAINED,
) -> KernelComparison:
    """Run each scenario on both kernels, unless its trial exists, and compare the captures."""
    choose("guest", (), kernels[1])
    engine = choose("guest", (), kernels[0])
    planned = tasks(on_kernels(scenarios, kernels))
    done = {each.scenario.name: each for each in run_all(planned, engine, out, watch, jobs)}
    ended = [done[task.scenario.name] for task in planned]
    failed = []
    divergences = []
    for one, other in zip(ended[::2], ended[1::2], strict=True):
        trials = open_trial(one.path), open_trial(other.path)
        bad = [t for t in trials if t.record.status is not Status.OK]
        condition = trials[0].scenario.axes.get("condition", "")
        failed += [NotCompared(condition, t.record.reason) for t in bad[:1]]
        if not bad and (first := first_difference(*trials)):
            divergences.append(Divergence(trials, first))
    divergences.sort(key=lambda each: each.first.earliest_s)
    return KernelComparison(
        len(scenarios),
        tuple(dict.fromkeys(each.axes.get("condition", "") for each in scenarios)),
        (*_explain(divergences, kernels, explained),),
        tuple(failed),
        tuple(each for each in effects(divergences) if each.is_significant),
    )


def _explain(
    divergences: Sequence[Divergence], kernels: tuple[str, str], most: int
) -> Iterable[Divergence]:
    """Yield all; the earliest of the first few variants with what sent the packets."""
    seen: set[str] = set()
    for each in divergences:
        variant = each.trials[0].scenario.axes.get("variant", "")
        if variant in seen or len(seen) >= most:
            yield each
            continue
        seen.add(variant)
        one, other = (_packet(each, side, kernels[side]) for side in (0, 1))
        yield Divergence(each.trials, each.first, (one, other))


def _packet(divergence: Divergence, side: int, kernel: str) -> ComparedPacket:
    """Return a kernel's version of the packet, from a second run of its trial under gdb."""
    trial, first = divergence.trials[side], divergence.first
    if math.isnan(first.time_s[side]):
        return ComparedPacket("")
    capture = capture_files(trial)[first.interface]
    titles, *rows = packet_table(View(capture, f"frame.number == {first.number}"), 1)
    text = ", ".join(
        cell.strip()
        for row in rows
        for title, cell in zip(titles, row, strict=True)
        if title in DESCRIBED
    )
    flow = _flow_of(trial, capture, first.number)
    if flow is None:
        return ComparedPacket(text, why_not="it is no flow's")
    if not has_symbols(kernel):
        why_not = f"kernel {kernel} has no symbols: testbed rewind"
        return ComparedPacket(text, why_not=why_not, flow=flow.name)
    orders = DebuggerOrders(
        (_time_ns(trial, capture, first.number) - epoch_ns(trial)) / 1e9,
        epoch_ns(trial),
        flow.src_ports,
        flow.dst_port,
        CapturedPacket(first.interface, first.number),
    )
    try:
        sent = sending_of(trial, orders, lambda _line: None)
    except TestbedError as error:
        return ComparedPacket(text, why_not=error.message, flow=flow.name)
    return ComparedPacket(text, sent.functions[:MAX_CHAIN], sent.socket, flow=flow.name)


def _time_ns(trial: Trial, capture: Path, number: int) -> int:
    rows = TrialPackets(trial).read(capture).rows
    return int(rows.loc[rows["frame"] == number, "time_ns"].iloc[0])


def _flow_of(trial: Trial, capture: Path, number: int) -> FlowRecord | None:
    """Return the flow that a packet is of."""
    rows = TrialPackets(trial).read(capture).rows
    of_packet = rows[rows["frame"] == number]
    if of_packet.empty:
        return None
    ports = {int(of_packet["src_port"].iloc[0]), int(of_packet["dst_port"].iloc[0])}
    return next(
        (
            flow
            for flow in trial.record.flows
            if flow.dst_port in ports and ports & set(flow.src_ports)
        ),
        None,
    )


def effects(divergences: Sequence[Divergence], axis: str = "variant") -> Iterable[Effect]:
    """Yield the effects on the trials of each variant, or of each condition."""
    tables = {
        each.trial.path: each.flows
        for each in reductions_of([trial for d in divergences for trial in d.trials])
    }
    groups: dict[str, list[Divergence]] = {}
    for each in divergences:
        groups.setdefault(each.trials[0].scenario.axes.get(axis, ""), []).append(each)
    for name, group in sorted(groups.items()):
        for column, (what, unit) in EFFECTS.items():
            a, b = (
                {
                    number: float(tables[each.trials[side].path][column].iloc[0])
                    for number, each in enumerate(group)
                }
                for side in (0, 1)
            )
            comparison = compare_paired(b, a)
            if comparison.kind is ComparisonKind.TESTED:
                yield Effect(name, what, unit, sum(a.values()) / len(a), comparison)
