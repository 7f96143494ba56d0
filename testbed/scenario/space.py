"""A space of settings: axes with ranges, from which an experiment's settings are drawn."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

SPACE_DIGITS = 3  # significant ones: a setting can be typed


@dataclass(frozen=True)
class NumberRange:
    """An axis of numbers, drawn evenly in their logarithm."""

    name: str
    low: float
    high: float
    zero: float = 0.0  # the share of settings in which it is 0
    whole: bool = False  # a count

    def at(self, part: float) -> str:
        """Return the value at a part of the axis, between 0 and 1, as `--set` takes it."""
        if part < self.zero:
            return "0"
        place = (part - self.zero) / (1 - self.zero)
        value = math.exp(math.log(self.low) + place * math.log(self.high / self.low))
        return f"{round(value)}" if self.whole else f"{float(f'{value:.{SPACE_DIGITS}g}'):g}"


@dataclass(frozen=True)
class NameChoice:
    """An axis of names; one that stands there twice is drawn twice as often."""

    name: str
    values: tuple[str, ...]

    def at(self, part: float) -> str:
        """Return the name at a part of the axis, between 0 and 1."""
        return self.values[min(int(part * len(self.values)), len(self.values) - 1)]


SpaceAxis = NumberRange | NameChoice
DrawnSetting = Mapping[str, str]  # axis → value


@dataclass(frozen=True)
class Adversary:
    """What a search for a subject's worst setting makes as large as it can."""

    about: str
    victims: tuple[str, ...]  # beside whom a subject runs: ALONE, or any name for the incumbent
    effects: Callable[[Any, str], Mapping[Any, float]]  # of results and a subject, by setting


@dataclass(frozen=True)
class SettingSpace:
    """The axes of a space, what of it cannot run, and when enough of it has."""

    axes: tuple[SpaceAxis, ...]
    refuse: Callable[[DrawnSetting], str]  # the reason, or nothing
    decided: Callable[[Any], bool]  # whether the results of its experiment need no more settings
    adversaries: Mapping[str, Adversary]  # by name

    def at(self, parts: Sequence[float]) -> DrawnSetting:
        """Return the setting at a point of the unit cube."""
        return {
            axis.name: axis.at(float(part)) for axis, part in zip(self.axes, parts, strict=True)
        }
