"""A trial run again with one thing changed: where its packets part, and what the change means.

The second run has the same packets until the change, because a trial's packets follow from its
scenario and seed alone. That is compared, not assumed: the first packet that differs is found in
all captures.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.captures.inspection import Point, flow_record, view_of
from analysis.metrics.metric_rows import counted
from analysis.metrics.video_columns import PLAYER_METRICS
from analysis.results.tables import write_metrics
from analysis.statistics.intervals import Comparison, compare_paired
from analysis.statistics.packet_comparison import FirstDifference, first_difference
from analysis.statistics.text_tables import usual_columns
from analysis.trials.packets import TrialPackets, capture_files, capture_interface, epoch_ns
from testbed.errors import TestbedError, UsageError, nearest, quoted
from testbed.own_files.scenario_file import Document, in_document
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
from testbed.scenario.model import Scenario, plain
from testbed.scenario.network import Change, Direction
from testbed.store.reading import Trial, open_trial
from testbed.store.records import Status

WHAT_IF = "what-if"  # the results folder, unless another is named
CHANGE_AXIS = "change"
NO_CHANGE = "none"
DIRECTION_NAMES = ("forward", "reverse")
CHANGED_FIELDS = tuple(each.name for each in dataclasses.fields(Change) if each.name != "at_s")
SET_EXAMPLE = "--at 3.2 --set links.1.forward.rate_mbit=5"

Settings = Mapping[str, str]  # place of a field → value


@dataclass(frozen=True)
class Intervention:
    """What is changed: fields, from an instant on or from the beginning, or one packet's fate."""

    settings: Settings = dataclasses.field(default_factory=dict)
    at_s: float | None = None  # None: from the beginning
    packet: int = 0  # its number in the capture behind the bottleneck; 0: none
    flow: str = ""  # whose bottleneck; the first flow's unless named
    later_ms: float = math.inf  # by which the packet arrives later; inf: it is lost

    @property
    def description(self) -> str:
        """What is changed, in a line."""
        if self.packet and math.isinf(self.later_ms):
            return f"without packet {self.packet}"
        if self.packet:
            return f"packet {self.packet} {self.later_ms:g} ms later"
        words = ", ".join(f"{place}={value}" for place, value in self.settings.items())
        return words if self.at_s is None else f"{words} from {self.at_s:g} s"


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
        raise UsageError(
            "whatif: what is to be changed?", f"{SET_EXAMPLE}, --drop 812, or --delay 812=5"
        )
    if change.at_s is None:
        document = in_document(Document(plain(trial.scenario)), str(trial.path), trial.path)
        texts = {place: (text,) for place, text in change.settings.items()}
        (scenario,) = file_sweep.sweep(document, texts, 1)
        return _checked(scenario, trial.path)
    scenario = trial.scenario
    for place, text in change.settings.items():
        number, side, field = _link_field(scenario, place)
        values: dict[str, Any] = {field: file_sweep.parsed(text)}
        scenario = _with_changes(scenario, number, side, {change.at_s: values})
    return _checked(scenario, trial.path)


def _checked(scenario: Scenario, folder: Path) -> Scenario:
    return in_document(Document(plain(scenario)), "--set", folder).scenario


def _link_field(scenario: Scenario, place: str) -> tuple[int, int, str]:
    """Return the link's number, its direction's, and the field of `links.1.forward.rate_mbit`."""
    links = scenario.network.links
    parts = place.removeprefix("network.").split(".")
    if len(parts) != 4 or parts[0] != "links":
        fields = f"{', '.join(CHANGED_FIELDS)} of a link"
        raise UsageError(f"--set {place}: only {fields} can change while flows run", SET_EXAMPLE)
    numbers = {str(n): n for n in range(len(links))} | {
        each.name: n for n, each in enumerate(links)
    }
    for part, known in zip(parts[1:], (numbers, DIRECTION_NAMES, CHANGED_FIELDS), strict=True):
        if part not in known:
            raise UsageError(f"--set {place}: no {quoted(part)} there", nearest(part, known))
    return numbers[parts[1]], DIRECTION_NAMES.index(parts[2]), parts[3]


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
        schedule[at_s] = dataclasses.replace(schedule.get(at_s, Change(at_s)), **values)
    ordered = tuple(schedule[at_s] for at_s in sorted(schedule))
    both[side] = dataclasses.replace(both[side], schedule=ordered)
    links[number] = dataclasses.replace(links[number], forward=both[0], reverse=both[1])
    network = dataclasses.replace(scenario.network, links=tuple(links))
    return dataclasses.replace(scenario, network=network)


def _with_other_packet(trial: Trial, change: Intervention) -> Scenario:
    """Return the scenario in which the link behind the bottleneck loses or delays one packet."""
    flow = flow_record(trial, change.flow)
    rows = TrialPackets(trial).read(view_of(trial, flow.name, Point.BOTTLENECK_OUT).capture).rows
    interface = capture_interface(trial, Point.BOTTLENECK_OUT, flow)
    (hop,) = (
        hop
        for both in make_plan(trial.scenario).network.hops
        for hop in both
        if hop.out.name == interface
    )
    direction = hop.direction
    if direction.jitter_ms or direction.schedule or direction.loss or direction.trace:
        raise UsageError(
            f"packet {change.packet} cannot be singled out: {hop.link.name} varies by itself",
            "change a link's loss: --at S --set links.N.forward.loss=1",
        )
    sent = rows[rows["src"] == flow.src_address]
    times = ((sent["time_ns"] - epoch_ns(trial)) / 1e9).tolist()
    numbers = sent["frame"].tolist()
    if change.packet not in numbers:
        raise UsageError(
            f"packet {change.packet}: {flow.name}'s sender has no such packet there",
            f"testbed inspect {trial.path} --flow {flow.name} "
            f"--point {Point.BOTTLENECK_OUT} --packets 20",
        )
    at = numbers.index(change.packet)
    around = [*times[max(0, at - 1) : at], *times[at + 1 : at + 2]]
    gap_s = min((abs(each - times[at]) for each in around), default=1e-3)
    if not gap_s:
        raise UsageError(
            f"packet {change.packet}: another packet arrives at the same instant",
            "name one that does not",
        )
    inside, outside = {"loss": 1.0}, {"loss": 0.0}
    if math.isfinite(change.later_ms):
        usual_ms = direction.delay_ms
        inside, outside = {"delay_ms": usual_ms + change.later_ms}, {"delay_ms": usual_ms}
    window = {times[at] - gap_s / 2: inside, times[at] + gap_s / 2: outside}
    side = DIRECTION_NAMES.index("forward" if hop.link.ends[0] == hop.out.node else "reverse")
    return _checked(_with_changes(trial.scenario, hop.number, side, window), trial.path)


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
