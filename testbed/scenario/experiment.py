"""Experiments as data: scenarios along axes."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from testbed.errors import UsageError, nearest
from testbed.scenario.model import Scenario

Value = str | float
Axes = Mapping[str, tuple[Value, ...]]


@dataclass(frozen=True)
class Experiment:
    """Scenarios as products of axes; `--set` narrows or changes an axis.

    Each of `parts` is a product of its own, of `axes` with what the part has in their
    place; what two parts have in common runs once. `build` makes the scenario of one
    combination; `quick` sets axes for a first look, as `--set` does. How its results are
    shown, the catalogue of figures knows by the experiment's name.
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

    def scenarios(
        self, settings: Mapping[str, Sequence[str]], seeds: int, quick: bool
    ) -> list[Scenario]:
        """All scenarios, repeat by repeat."""
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
        return [self._scenario(point, seed) for seed in range(1, seeds + 1) for point in points]

    def values(self) -> Axes:
        """Every axis with all its values, whichever part has them."""
        parts = [{**self.axes, **part} for part in self.parts]
        return {
            key: tuple(dict.fromkeys(value for part in parts for value in part[key]))
            for key in self.axes
        }

    def _value(self, key: str, text: str) -> Value:
        if key not in self.axes:
            raise UsageError(f"--set {key}: {self.name} has no such axis", nearest(key, self.axes))
        if isinstance(self.axes[key][0], str):
            return text
        try:
            return float(text)
        except ValueError:
            raise UsageError(
                f"--set {key}={text}: not a number", "e.g. --set duration_s=30"
            ) from None

    def _scenario(self, point: tuple[Value, ...], seed: int) -> Scenario:
        values = dict(zip(self.axes, point, strict=True))
        names = {k: v if isinstance(v, str) else f"{v:g}" for k, v in values.items()}
        return dataclasses.replace(self.build(seed=seed, **values), axes=names)


def _chosen(parts: tuple[Axes, ...], chosen: Axes) -> tuple[Axes, ...]:
    """The parts with the chosen values alone; values that no part has are for all of them.

    A combination that no part holds is wanted none the less: it is made from the first.
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
