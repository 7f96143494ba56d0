"""Experiments as data: scenarios along axes."""

from __future__ import annotations

import dataclasses
import importlib
import itertools
import math
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testbed.errors import TestbedError, UsageError, nearest
from testbed.scenario.model import Scenario
from testbed.scenario.setting_units import number_hint, unit_of_setting
from testbed.scenario.space import SettingSpace

Value = str | float
Axes = Mapping[str, tuple[Value, ...]]


ALONE = "alone"  # in place of another flow: one has the link to itself
MAX_TRIALS = 100_000  # of one request
MAX_PER_AXIS = 100_000  # of flows, hosts or whatever else an axis counts: each is an object


def refuse_too_many(settings: int, seeds: int) -> None:
    """Raise for more trials than anyone runs: each is planned before the first begins."""
    if settings * seeds > MAX_TRIALS:
        raise UsageError(
            f"{settings * seeds:,} trials ({settings:,} settings with {seeds:,} seeds): at most "
            f"{MAX_TRIALS:,} are planned",
            f"--seeds {MAX_TRIALS // settings}" if settings <= MAX_TRIALS else "fewer values",
        )


@dataclass(frozen=True)
class Experiment:
    """Scenarios as products of axes; `--set` narrows or changes an axis.

    Each of `parts` is a product of its own, of `axes` with what the part has in their
    place; what two parts have in common runs once. `build` makes the scenario of one
    combination; `quick` sets axes for a first look, as `--set` does.

    The rest says how its results are shown and judged. `figures`, `tables`, `summary` and `laws`
    are functions of its results on one engine (`ExperimentResults` in `analysis.results`); `scores`
    and `claims` return the scores of a standard evaluation, and the papers with the claims that
    are tested on its trials. `conclusion` says in a sentence what the results show of a subject.
    `space` is what `evaluate` draws from.
    """

    name: str
    paper: str
    about: str
    axes: Axes
    build: Callable[..., Scenario]
    quick: Axes
    parts: tuple[Axes, ...] = ({},)
    metric: str = "goodput_mbps"  # the main one: what `--until` is about
    compares: tuple[str, ...] = ()  # of a standard evaluation: the axes that `evaluate` takes
    figures: Callable[[Any], Iterable[Any]] | None = None  # None: the general figures
    tables: Callable[[Any], Iterable[tuple[str, Any]]] | None = None  # titles and tables
    summary: Callable[[Any], Any] | None = None  # in place of the table of the metrics
    scores: Callable[[], Sequence[Any]] | None = None
    laws: Callable[[Any], Iterable[Any]] | None = None  # theory's numbers for an evaluation
    claims: Callable[[], Sequence[Any]] | None = None
    conclusion: Callable[[Any, str], str] | None = None
    space: SettingSpace | None = None
    is_suite: bool = False  # test cases, each with steps that are met or not: `evaluate --suite`

    def scenarios(
        self, settings: Mapping[str, Sequence[str]], seeds: int, quick: bool
    ) -> list[Scenario]:
        """Return all scenarios, repeat by repeat."""
        chosen = {
            key: tuple(self._value(key, text) for text in texts) for key, texts in settings.items()
        }
        parts: tuple[Axes, ...] = tuple({**self.axes, **part} for part in self.parts)
        if quick:
            parts = _chosen(parts, {k: v for k, v in self.quick.items() if k not in chosen})
        parts = _chosen(parts, chosen)
        points = dict.fromkeys(
            point for part in parts for point in itertools.product(*part.values())
        )
        refuse_too_many(len(points), seeds)
        return [self._scenario(point, seed) for seed in range(1, seeds + 1) for point in points]

    def values(self) -> Axes:
        """Return every axis with its values in all parts."""
        parts = [{**self.axes, **part} for part in self.parts]
        return {
            key: tuple(dict.fromkeys(value for part in parts for value in part[key]))
            for key in self.axes
        }

    def has_made(self, axes: Iterable[str]) -> bool:
        """Return whether trials along these axes can be this experiment's.

        A scenario in a file of the user's may have the same name.
        """
        return set(self.axes) <= set(axes)

    def _value(self, key: str, text: str) -> Value:
        if key not in self.axes:
            raise UsageError(f"--set {key}: {self.name} has no such axis", nearest(key, self.axes))
        if isinstance(self.axes[key][0], str):
            return text
        number = _finite(text)
        if number is None:
            raise UsageError(
                f"--set {key}={text}: not a number", number_hint(key, text, self.axes[key][0])
            )
        if not unit_of_setting(key) and number > MAX_PER_AXIS:
            raise UsageError(f"--set {key}={text}: more than {MAX_PER_AXIS:,}", self._example(key))
        return number

    def _scenario(self, point: tuple[Value, ...], seed: int) -> Scenario:
        values = dict(zip(self.axes, point, strict=True))
        names = {key: _text(value) for key, value in values.items()}
        try:
            built = self.build(seed=seed, **values)
        except MemoryError:
            raise
        except Exception as error:
            raise self._not_built(values, error) from error
        return dataclasses.replace(built, axes=names)

    def _not_built(self, values: Mapping[str, Value], error: Exception) -> TestbedError:
        """Return the error for values of which `build` cannot make a scenario."""
        known = self.values()
        odd = [key for key, value in values.items() if value not in known[key]]
        hint = "; ".join(map(self._example, odd))
        if isinstance(error, TestbedError):
            return UsageError(error.message, error.hint or hint)
        frame = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(frame.filename).name}, line {frame.lineno}"
        cause = f"{type(error).__name__}: {error} in {where}"
        which = ", ".join(f"{key}={_text(values[key])}" for key in odd)
        if not odd:
            return UsageError(f"{self.name}: {cause}", "correct that line")
        return UsageError(f"{self.name} cannot be made with {which} ({cause})", hint)

    def _example(self, key: str) -> str:
        """Return an example of what to type for an axis: its default values."""
        return f"by default: --set {key}={','.join(map(_text, self.values()[key]))}"


def _text(value: Value) -> str:
    return value if isinstance(value, str) else f"{value:g}"


def _finite(text: str) -> float | None:
    """Read a finite number; None if the text is not one."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def on_demand(module: str, name: str) -> Callable[..., Any]:
    """Return a function that calls `name` of `module`, which it imports when it is called.

    What draws and tests results takes a second to load, and running experiments does not need it.
    A `name` that is no function is returned as it is.
    """

    def call(*arguments: Any) -> Any:
        value = getattr(importlib.import_module(module), name)
        return value(*arguments) if callable(value) else value

    return call


def _chosen(parts: tuple[Axes, ...], chosen: Axes) -> tuple[Axes, ...]:
    """Return the parts with the chosen values only; new values count for all parts.

    A combination that no part holds is made from the first part.
    """
    narrowed = tuple(
        {**part, **{key: tuple(_kept(parts, part, key, values)) for key, values in chosen.items()}}
        for part in parts
    )
    held = tuple(part for part in narrowed if all(part.values()))
    return held or ({**parts[0], **chosen},)


def _kept(
    parts: tuple[Axes, ...], part: Axes, key: str, values: tuple[Value, ...]
) -> Iterator[Value]:
    known = {value for each in parts for value in each[key]}
    return (value for value in values if value in part[key] or value not in known)
