"""A scenario whose fields are moved by hand: every position is a run of the real kernel.

The page can only name positions, by the numbers of values that the user of the command chose.
"""

from __future__ import annotations

import itertools
import json
import math
import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from analysis.report.explore_page import Explored, Json, Slider, explore_page, key_of, position_json
from analysis.report.live.loopback_server import Query
from analysis.results.reduction import reductions_of
from testbed.errors import TestbedError, UsageError
from testbed.machine.atomic import workplace
from testbed.own_files.scenario_file import Document, in_document, in_file
from testbed.plan.plan import make_plan
from testbed.runs.orchestration import RunListener, RunOptions, plan_and_carry_out
from testbed.runs.selection import DEFAULT_METRIC, RunSelection
from testbed.scenario import file_sweep
from testbed.scenario.model import Scenario
from testbed.scenario.reading import ScenarioDocument
from testbed.store.reading import open_trial

EXPLORE = "explore"
MAX_KEPT = 1000  # positions: some 10 MB
MAX_POSITIONS = 5000  # of a page
MAX_EXPLORED_BYTES = 10_000_000
POSITION = re.compile(r"\d{1,3}(\.\d{1,3}){0,15}", re.ASCII)
MOVED_VARIANTS = ("cubic", "linux-reno", "bbr", "vegas", "westwood", "illinois", "hybla")
MOVED_QUEUES = ("pfifo", "red", "codel", "fq_codel", "pie", "cake")
QUEUE_PLACE = "topology.bottleneck.queue"
USUAL_SLIDERS = (
    Slider("topology.bottleneck.rate_mbit", "rate, Mbit/s", ("1", "2", "5", "10", "20", "50"), 3),
    Slider("topology.rtts_ms.0", "round trip, ms", ("5", "10", "20", "50", "100", "200"), 3),
    Slider(f"{QUEUE_PLACE}.limit_bdp", "buffer, BDP", ("0.25", "0.5", "1", "2", "4", "8"), 2),
    Slider(f"{QUEUE_PLACE}.discipline", "queue", MOVED_QUEUES),
    Slider("flows.one.variant", "flow one", MOVED_VARIANTS),
    Slider("flows.other.variant", "flow other", MOVED_VARIANTS, 2),
)
USUAL_DOCUMENT = {
    "experiment": EXPLORE,
    "topology": {
        "kind": "dumbbell",
        "hosts": 2,
        "rtts_ms": [50],
        "bottleneck": {
            "rate_mbit": 10,
            "queue": {"discipline": "pfifo", "limit_bdp": 1},
        },
    },
    "flows": [
        {"name": "one", "kind": "tcp", "src": "sender1", "dst": "receiver1", "variant": "cubic"},
        {"name": "other", "kind": "tcp", "src": "sender2", "dst": "receiver2", "variant": "bbr"},
    ],
    "duration_s": 10,
}
LATTICE = {  # of a page that has all of its positions, unless others are named
    "topology.bottleneck.rate_mbit": ("2", "10"),
    "topology.rtts_ms.0": ("20", "100"),
    f"{QUEUE_PLACE}.limit_bdp": ("0.5", "1", "4"),
    f"{QUEUE_PLACE}.discipline": ("pfifo", "codel", "fq_codel"),
    "flows.one.variant": ("cubic", "linux-reno", "bbr"),
    "flows.other.variant": ("cubic", "linux-reno", "bbr"),
}

Position = tuple[int, ...]
Settings = Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class Exploration:
    """A scenario's file, and what is moved in it."""

    document: ScenarioDocument
    explored: Explored

    @property
    def sliders(self) -> tuple[Slider, ...]:
        """What is moved."""
        return self.explored.sliders

    def scenario(self, position: Position) -> Scenario:
        """Return the scenario at a position; raise if there can be none."""
        chosen = zip(self.sliders, position, strict=True)
        values = {slider.place: (slider.values[at],) for slider, at in chosen}
        (scenario,) = file_sweep.sweep(self.document, values, 1)
        make_plan(scenario)
        return scenario

    def positions(self) -> list[Position]:
        """Return all positions."""
        return list(itertools.product(*(range(len(each.values)) for each in self.sliders)))


def exploration(file: Path | None, settings: Settings, *, whole: bool) -> Exploration:
    """Return what is explored in a file, or in the usual scenario; every value alone is valid.

    `whole`: by a page that has all positions.
    """
    document = in_file(file) if file else in_document(Document(USUAL_DOCUMENT), EXPLORE)
    usual = {} if file else {each.place: each for each in USUAL_SLIDERS}
    values: dict[str, Sequence[str]] = {place: each.values for place, each in usual.items()}
    if usual and whole:
        values.update(LATTICE)
    values.update(settings)
    names = [flow.name for flow in document.scenario.flows]
    if not values or len(names) < 2:
        why = "two flows are compared" if values else "what is to be moved?"
        raise UsageError(
            f"explore: {why}", "--set flows.0.variant=cubic,bbr, of a file of two flows"
        )
    sliders, present = [], file_sweep.fields(document)
    for place, texts in values.items():
        named = usual.get(place, Slider(place, place, (present.get(place, ""),)))
        now = named.values[named.first]
        first = texts.index(now) if now in texts else 0
        sliders.append(Slider(place, named.label, tuple(texts), first))
    title = f"{file.stem}: {names[0]} beside {names[1]}" if file else "Two flows and a bottleneck"
    text = json.dumps(document.data, indent=2)
    explored = Exploration(document, Explored(title, text, (names[0], names[1]), tuple(sliders)))
    opened = tuple(each.first for each in sliders)
    for number, slider in enumerate(sliders):
        for at in range(len(slider.values)):  # raises for a value that cannot be beside the first
            explored.scenario((*opened[:number], at, *opened[number + 1 :]))
    return explored


def run_positions(
    explored: Exploration, positions: Sequence[Position], options: RunOptions, listener: RunListener
) -> dict[Position, Json]:
    """Run positions that have not run yet, and return what the page shows of each."""
    shown: dict[Position, Json] = {}
    scenarios: dict[Position, Scenario] = {}
    for position in positions:
        try:
            scenarios[position] = explored.scenario(position)
        except TestbedError as error:
            shown[position] = {"fault": str(error)}
    if scenarios:
        every = list(scenarios.values())
        selection = RunSelection(
            every[0].experiment, DEFAULT_METRIC, (), lambda _seeds: every, lambda each: each.axes
        )
        _, done = plan_and_carry_out(selection, options, "testbed explore", listener)
        ended = {each.scenario.name: open_trial(each.path) for each in done.trials}
        trials = [ended[each.name] for each in every]
        for position, reduction in zip(scenarios, reductions_of(trials, plots=True), strict=True):
            reason = reduction.trial.record.reason
            shown[position] = {"fault": reason} if reason else position_json(reduction)
    return shown


def whole_page(explored: Exploration, options: RunOptions, listener: RunListener) -> str:
    """Return a page that has all positions."""
    count = math.prod(len(each.values) for each in explored.sliders)
    if count > MAX_POSITIONS:
        raise UsageError(
            f"explore: {count:,} positions; a page has at most {MAX_POSITIONS:,}",
            "give fewer values: --set topology.bottleneck.rate_mbit=2,10",
        )
    shown = run_positions(explored, explored.positions(), options, listener)
    text = explore_page(explored.explored, {key_of(each): json for each, json in shown.items()})
    if (size := len(text.encode())) > MAX_EXPLORED_BYTES:
        raise UsageError(
            f"explore: a page of {size / 1e6:.1f} MB; it is to have at most "
            f"{MAX_EXPLORED_BYTES / 1e6:.0f}",
            "give fewer values, or a shorter duration_s",
        )
    return text


class LiveExploration:
    """Positions that a page asks for, run one at a time: what was asked for last is next."""

    def __init__(self, explored: Exploration) -> None:
        self._explored = explored
        self._changed = threading.Condition()
        self._wanted: Position | None = None
        self._shown: dict[Position, Json] = {}

    def news(self, query: Query) -> Json:
        """Answer a page that asks for a position."""
        position = self._position(query.get("at", [""])[0])
        if position is None:
            return {"fault": "There is no such position."}
        with self._changed:
            if position not in self._shown:
                self._wanted = position
                self._changed.notify()
            return self._shown.get(position, {"waiting": True})

    def _position(self, text: str) -> Position | None:
        numbers = tuple(map(int, text.split("."))) if POSITION.fullmatch(text) else ()
        sliders = self._explored.sliders
        if len(numbers) != len(sliders):
            return None
        ends = zip(numbers, sliders, strict=True)
        return numbers if all(at < len(each.values) for at, each in ends) else None

    def run_next(self) -> None:
        """Wait until a position is asked for, and run it; nothing of the run is left."""
        with self._changed:
            while self._wanted is None or self._wanted in self._shown:
                self._changed.wait()
            position = self._wanted
        with workplace(EXPLORE) as folder:
            options = RunOptions(engine="guest", out=folder / EXPLORE, jobs=1)
            try:
                shown = run_positions(self._explored, [position], options, RunListener())[position]
            except TestbedError as error:
                shown = {"fault": str(error)}
        with self._changed:
            if len(self._shown) >= MAX_KEPT:
                self._shown.clear()
            self._shown[position] = shown
