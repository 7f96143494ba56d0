"""A trial run again with one thing changed: where its packets part, and what the change means.

The second run has the same packets until the change, because a trial's packets follow from its
scenario and seed alone. That is compared, not assumed: the first packet that differs is found in
all captures.
"""

from __future__ import annotations

import dataclasses
import enum
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from analysis.captures.inspection import flow_record, view_of
from analysis.captures.tcp import CE
from analysis.metrics.metric_rows import counted
from analysis.metrics.video_columns import PLAYER_METRICS
from analysis.results.tables import write_metrics
from analysis.statistics.intervals import Comparison, compare_paired
from analysis.statistics.packet_comparison import FirstDifference, first_difference
from analysis.statistics.text_tables import usual_columns
from analysis.trials.packets import (
    TrialPackets,
    capture_files,
    capture_interface,
    epoch_ns,
    queue_roles,
)
from analysis.trials.queue_transit import QueueTransit, flows_at_queue, queue_transit
from testbed.errors import TestbedError, UsageError, nearest, quoted
from testbed.own_files.scenario_file import Document, in_document
from testbed.plan.network import Hop
from testbed.plan.plan import make_plan
from testbed.runs.orchestration import (
    RunListener,
    RunOptions,
    invalid_trials,
    plan_and_carry_out,
)
from testbed.runs.selection import DEFAULT_METRIC, RunSelection
from testbed.scenario import file_sweep
from testbed.scenario.limits import MAX_NAME
from testbed.scenario.model import Flow, FlowChange, Scenario, plain
from testbed.scenario.network import Change, Direction, Node, NodeChange
from testbed.scenario.queues import DISCIPLINES, in_own_unit
from testbed.store.reading import Trial, open_trial
from testbed.store.records import FlowRecord, Status

WHAT_IF = "what-if"  # the results folder, unless another is named
CHANGE_AXIS = "change"
NO_CHANGE = "none"
DIRECTION_NAMES = ("forward", "reverse")
# a stretch of marks loses what is sent again, which is not of ECN; options are set one by one
NOT_SET = ("at_s", "mark", "options")
CHANGED_FIELDS = tuple(e.name for e in dataclasses.fields(Change) if e.name not in NOT_SET)
QUEUE_PREFIX = "queue."  # of fields that a queue has in a scenario, and a change by itself
OPTIONS_PREFIX = "options."
Scheduled = TypeVar("Scheduled", Node, Flow)
SET_EXAMPLE = "--at 3.2 --set links.1.forward.rate_mbit=5"

DEFAULT_GAP_NS = 1_000_000  # taken for a packet that no other one precedes or follows

Settings = Mapping[str, Any]  # place of a field → value


class Fate(enum.StrEnum):
    """What happens to one packet in place of what did."""

    LOST = "lost"
    LATE = "late"
    MARKED = "marked"
    SPARED = "spared"


@dataclass(frozen=True)
class Intervention:
    """What is changed: fields, from an instant on or from the beginning, or one packet's fate."""

    settings: Settings = dataclasses.field(default_factory=dict)
    at_s: float | None = None  # None: from the beginning
    packet: int = 0  # its number behind the bottleneck, or if spared before it; 0: none
    fate: Fate = Fate.LOST
    later_ms: float = 0.0  # by which a late packet arrives later
    flow: str = ""  # whose bottleneck; the first flow's unless named
    queue: str = ""  # another of its queues, by interface or link

    @property
    def description(self) -> str:
        """What is changed, in a line."""
        if self.packet:
            fate = f"{self.later_ms:g} ms later" if self.fate is Fate.LATE else self.fate
            return f"packet {self.packet} {fate}"
        assignments = ", ".join(f"{place}={value}" for place, value in self.settings.items())
        return assignments if self.at_s is None else f"{assignments} from {self.at_s:g} s"


def fate_of_one(
    drop: int | None, delay: tuple[int, float] | None, mark: int | None, spare: int | None
) -> tuple[int, Fate, float]:
    """Return the packet that is named, its fate, and by how many milliseconds it is later."""
    if delay:
        return delay[0], Fate.LATE, delay[1]
    fates = ((drop, Fate.LOST), (mark, Fate.MARKED), (spare, Fate.SPARED))
    return next(((packet, fate, 0.0) for packet, fate in fates if packet), (0, Fate.LOST, 0.0))


@dataclass(frozen=True)
class Counterfactual:
    """A network as it was, and with the change."""

    before: Trial
    after: Trial
    first: FirstDifference | None  # None: no packet differs

    @property
    def same_packets(self) -> int:
        """How many packets all captures together have before the first that differs."""
        until_ns = math.inf
        if self.first is not None:
            until_ns = epoch_ns(self.before) + self.first.earliest_s * 1e9
        packets = TrialPackets(self.before)
        times = (packets.read(file).rows["time_ns"] for file in capture_files(self.before).values())
        return sum(int((each < until_ns).sum()) for each in times)


@dataclass(frozen=True)
class MetricEffect:
    """A flow's metric as it was and with the change, over the networks that were drawn."""

    flow: str
    metric: str
    before: float  # means
    after: float
    difference: Comparison


@dataclass(frozen=True)
class WhatIf:
    """The outcome: the trials, how they compare, and what the first one proves."""

    run: Path
    pairs: tuple[Counterfactual, ...]  # by seed
    differs_from_stored: FirstDifference | None  # of the trial as it is stored
    effects: tuple[MetricEffect, ...]
    invalid: tuple[str, ...]  # names of trials whose numbers do not count


def refuse_unrepeatable(trial: Trial) -> None:
    """Raise unless the trial's packets are the same whenever it runs."""
    if trial.record.status is not Status.OK:
        raise TestbedError(
            f"{trial.path}: the trial did not end well: {trial.record.reason}",
            "name a trial that did; testbed run runs this one again",
        )
    if not trial.record.virtual_time:
        raise TestbedError(
            f"{trial.path}: it ran in real time, and would have other packets now",
            "run it in virtual time: testbed run … --engine guest",
        )


def what_if(
    trial: Trial, change: Intervention, options: RunOptions, command: str, listener: RunListener
) -> WhatIf:
    """Run a trial as it was and with the change, for each seed from its own on, and compare."""
    refuse_unrepeatable(trial)
    if not capture_files(trial):
        raise TestbedError(
            f"{trial.path}: it has no captures, so that nothing shows where packets part",
            "run it with captures, and ask about that trial",
        )
    for path in capture_files(trial).values():
        trial.file(path.relative_to(trial.path).as_posix())  # raises if it was damaged since
    if change.packet and options.seeds > 1:
        raise UsageError(
            "--seeds: the packet of that number is another one in another network",
            "leave out --seeds",
        )
    before = _named(trial.scenario, trial.scenario, NO_CHANGE)
    after = _named(_changed(trial, change), trial.scenario, _shortened(change.description))

    def scenarios(seeds: int) -> list[Scenario]:
        return [
            dataclasses.replace(each, seed=trial.scenario.seed + repeat)
            for repeat in range(seeds)
            for each in (before, after)
        ]

    selection = RunSelection(
        before.experiment, DEFAULT_METRIC, (), scenarios, lambda each: each.axes, kernels_named=True
    )
    _, done = plan_and_carry_out(selection, options, command, listener)
    ended = {each.scenario.name: open_trial(each.path) for each in done.trials}
    trials = [ended[each.name] for each in scenarios(options.seeds)]
    for each in trials:
        if each.record.status is not Status.OK:
            raise TestbedError(f"{each.path}: {each.record.reason}", each.record.hint)
    pairs = tuple(
        Counterfactual(one, other, first_difference(one, other))
        for one, other in zip(trials[::2], trials[1::2], strict=True)
    )
    stored = first_difference(trial, pairs[0].before)
    metrics = write_metrics(done.folder)
    effects = tuple(_effects(counted(metrics), pairs))
    return WhatIf(done.folder, pairs, stored, effects, tuple(sorted(invalid_trials(metrics))))


def _shortened(text: str) -> str:
    return text if len(text) <= MAX_NAME else text[: MAX_NAME - 1] + "…"


def _named(scenario: Scenario, original: Scenario, value: str) -> Scenario:
    return dataclasses.replace(
        scenario, label=original.label, axes={**original.axes, CHANGE_AXIS: value}
    )


def _changed(trial: Trial, change: Intervention) -> Scenario:
    """Return the trial's scenario with the change; raise if there can be no such scenario."""
    if change.packet:
        return _with_other_packet(trial, change)
    if not change.settings:
        raise UsageError("whatif: what is to be changed?", f"{SET_EXAMPLE}, or --drop 812")
    if change.at_s is None:
        document = in_document(Document(plain(trial.scenario)), str(trial.path), trial.path)
        texts = {place: (text,) for place, text in change.settings.items()}
        (scenario,) = file_sweep.sweep(document, texts, 1)
        return _checked(scenario, trial.path)
    scenario = trial.scenario
    for place, text in change.settings.items():
        scenario = _with_setting(scenario, change.at_s, place, text)
    return _checked(scenario, trial.path)


def _with_setting(scenario: Scenario, at_s: float, place: str, text: str) -> Scenario:
    """Return the scenario in which a field has another value from an instant on."""
    kind, _, rest = place.removeprefix("network.").partition(".")
    name, _, field = rest.partition(".")
    if kind == "links":
        number, side, field = _link_field(scenario, place, rest)
        value: Any = file_sweep.parsed(text)
        if field.startswith(OPTIONS_PREFIX):
            field, value = "options", {field.removeprefix(OPTIONS_PREFIX): value}
        return _with_changes(scenario, number, side, {at_s: {field: value}})
    if kind == "nodes":
        node = NodeChange(at_s, field.removeprefix("sysctls."), text)
        nodes = _with_scheduled(scenario.network.nodes, name, node, place)
        return dataclasses.replace(
            scenario, network=dataclasses.replace(scenario.network, nodes=nodes)
        )
    if kind == "flows" and field == "control":
        flow = FlowChange(at_s, text)
        return dataclasses.replace(
            scenario, flows=_with_scheduled(scenario.flows, name, flow, place)
        )
    raise UsageError(
        f"--set {place}: only {', '.join(CHANGED_FIELDS)} and options of a link, sysctls of a node "
        "and a flow's control can change while flows run",
        f"{SET_EXAMPLE}, or nodes.h1.net.ipv4.tcp_recovery=0, or flows.tcp.control=bbr",
    )


def _with_scheduled(
    parts: tuple[Scheduled, ...], name: str, change: Any, place: str
) -> tuple[Scheduled, ...]:
    """Return nodes or flows, of which the one of that name or number has one change more."""
    numbers = {each.name: n for n, each in enumerate(parts)}
    numbers |= {str(n): n for n in numbers.values()}
    if name not in numbers:
        raise UsageError(f"--set {place}: no {quoted(name)} there", nearest(name, numbers))
    part: Any = parts[numbers[name]]
    schedule = tuple(sorted((*part.schedule, change), key=lambda each: each.at_s))
    changed = list(parts)
    changed[numbers[name]] = dataclasses.replace(part, schedule=schedule)
    return tuple(changed)


def _checked(scenario: Scenario, folder: Path) -> Scenario:
    return in_document(Document(plain(scenario)), "--set", folder).scenario


def _link_field(scenario: Scenario, place: str, rest: str) -> tuple[int, int, str]:
    """Return the link's number, its direction's, and the field of `1.forward.rate_mbit`."""
    links = scenario.network.links
    numbers = {str(n): n for n in range(len(links))} | {
        each.name: n for n, each in enumerate(links)
    }
    link, direction, field = (*rest.split(".", 2), "", "")[:3]
    field = field.removeprefix(QUEUE_PREFIX)
    fields = (*CHANGED_FIELDS, *([field] if field.startswith(OPTIONS_PREFIX) else []))
    for part, known in ((link, numbers), (direction, DIRECTION_NAMES), (field, fields)):
        if part not in known:
            raise UsageError(f"--set {place}: no {quoted(part)} there", nearest(part, known))
    return numbers[link], DIRECTION_NAMES.index(direction), field


def _with_changes(
    scenario: Scenario, number: int, side: int, changes: Mapping[float, Mapping[str, Any]]
) -> Scenario:
    """Return the scenario with changes of a link's direction, each with its instant.

    At an instant at which the direction changes already, the fields of both are set.
    """
    links = list(scenario.network.links)
    both: list[Direction] = list(links[number].directions)  # one may stand for both: part them
    schedule = {each.at_s: each for each in both[side].schedule}
    for at_s, values in changes.items():
        there = schedule.get(at_s, Change(at_s))
        options = {**(there.options or {}), **values.get("options", {})} or None
        schedule[at_s] = dataclasses.replace(there, **{**values, "options": options})
    ordered = tuple(schedule[at_s] for at_s in sorted(schedule))
    both[side] = dataclasses.replace(both[side], schedule=ordered)
    links[number] = dataclasses.replace(links[number], forward=both[0], reverse=both[1])
    network = dataclasses.replace(scenario.network, links=tuple(links))
    return dataclasses.replace(scenario, network=network)


def _with_other_packet(trial: Trial, change: Intervention) -> Scenario:
    """Return the scenario in which one packet has another fate at the bottleneck or behind it."""
    flow, spares = flow_record(trial, change.flow), change.fate is Fate.SPARED
    role = _queue_role(trial, flow, change.queue) if change.queue else "bottleneck"
    point = f"{role}-in" if spares else f"{role}-out"
    packets = TrialPackets(trial)
    rows = packets.read(view_of(trial, flow.name, point).capture).rows
    hop = _hop(trial, capture_interface(trial, f"{role}-out", flow))
    direction = hop.direction
    if direction.schedule or (
        not spares and (direction.jitter_ms or direction.loss or direction.trace)
    ):
        raise UsageError(
            f"packet {change.packet} cannot be singled out: {hop.link.name} varies by itself",
            "change a link's loss: --at S --set links.N.forward.loss=1",
        )
    rows = rows[(rows["src"] == flow.src_address) & (rows["frame"] == change.packet)]
    if rows.empty:
        raise UsageError(
            f"packet {change.packet}: {flow.name}'s sender has no such packet there",
            f"testbed inspect {trial.path} --flow {flow.name} --point {point} --packets 20",
        )
    row, transit = rows.iloc[0], _transit(trial, packets, hop)
    if spares:
        inside, outside = _one_more(change.packet, row, transit, hop)
        others = np.concatenate((transit.arrived_ns, transit.lost_ns))
        at_once = int((transit.lost_ns == row["time_ns"]).sum())
    else:
        inside, outside = _on_its_way(change, row, direction)
        others = transit.left_ns
        at_once = int((others == row["time_ns"]).sum())
    if at_once > 1:
        what = "is dropped" if spares else "leaves"
        raise UsageError(
            f"packet {change.packet}: another packet {what} at the same instant",
            "name one that does not",
        )
    apart_ns = np.abs(others - row["time_ns"])
    half_s = int(apart_ns[apart_ns > 0].min(initial=DEFAULT_GAP_NS)) / 2e9
    at_s = (int(row["time_ns"]) - epoch_ns(trial)) / 1e9
    side = DIRECTION_NAMES.index("forward" if hop.link.ends[0] == hop.out.node else "reverse")
    window = {at_s - half_s: inside, at_s + half_s: outside}
    return _checked(_with_changes(trial.scenario, hop.number, side, window), trial.path)


def _queue_role(trial: Trial, flow: FlowRecord, name: str) -> str:
    """Return what captures call a flow's queue, which is named by its interface or its link."""
    named: dict[str, str] = {}
    for role in queue_roles(trial, flow):
        if interface := capture_interface(trial, f"{role}-out", flow):
            named |= {interface: role, _hop(trial, interface).link.name: role}
    if name not in named:
        message = f"--queue {name}: {flow.name} passes no such queue"
        raise UsageError(message, nearest(name, named) if named else "none was captured")
    return named[name]


def _hop(trial: Trial, interface: str) -> Hop:
    hops = (hop for both in make_plan(trial.scenario).network.hops for hop in both)
    return next(hop for hop in hops if hop.out.name == interface)


def _transit(trial: Trial, packets: TrialPackets, hop: Hop) -> QueueTransit:
    (queue,) = (each for each in trial.record.queues if each.interface == hop.out.name)
    return queue_transit(flows_at_queue(trial, packets, queue))


def _on_its_way(
    change: Intervention, row: pd.Series[Any], direction: Direction
) -> tuple[Settings, Settings]:
    """Return what a link does with the packet, and what it does before and afterwards."""
    if change.fate is Fate.LATE:
        usual_ms = direction.delay_ms
        return {"delay_ms": usual_ms + change.later_ms}, {"delay_ms": usual_ms}
    if change.fate is Fate.LOST:
        return {"loss": 1.0}, {"loss": 0.0}
    if row["ecn"] in (0, CE):
        why = "is marked already" if row["ecn"] == CE else "is not of ECN, and would be dropped"
        raise UsageError(f"packet {change.packet} {why}", "name data of a flow with ECN")
    return {"mark": True}, {"mark": False}


def _one_more(
    packet: int, row: pd.Series[Any], transit: QueueTransit, hop: Hop
) -> tuple[Settings, Settings]:
    """Return the limit with room for one packet more, and the usual one."""
    row_of = DISCIPLINES[hop.queue.discipline]
    if not row_of.tail_drop:
        raise UsageError(
            f"packet {packet}: {row_of.name} drops by more than its limit, and cannot spare one",
            "ask about a trial whose bottleneck is a pfifo or a bfifo",
        )
    if not transit.complete or row["time_ns"] not in transit.lost_ns:
        raise UsageError(
            f"packet {packet}: the queue did not drop it, as far as captures show",
            "testbed watch has the dropped packets, and their numbers before the queue",
        )
    limit, field = in_own_unit(hop.queue, hop.full), f"limit_{row_of.counts}"
    more = int(row["length"]) if row_of.counts == "bytes" else 1
    return {field: limit + more}, {field: limit}


def _effects(metrics: pd.DataFrame, pairs: Sequence[Counterfactual]) -> Iterator[MetricEffect]:
    """Yield the metrics of each flow that are known both before and after."""
    if metrics.empty:
        return
    for flow in dict.fromkeys(metrics["flow"]):
        rows = metrics[metrics["flow"] == flow].set_index("trial")
        for metric in (*usual_columns(metrics), *PLAYER_METRICS):
            values = rows[metric].to_dict()  # NaN where it is not known
            before, after = (
                {n: float(values.get(trial.path.name, math.nan)) for n, trial in enumerate(trials)}
                for trials in zip(*((each.before, each.after) for each in pairs), strict=True)
            )
            both = [n for n in before if math.isfinite(before[n]) and math.isfinite(after[n])]
            if both:
                a, b = (sum(side[n] for n in both) / len(both) for side in (before, after))
                yield MetricEffect(str(flow), metric, a, b, compare_paired(after, before))
