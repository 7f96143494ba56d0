"""What an experiment is: a page of data about scenarios, and the figures that show them."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testbed.errors import UsageError, nearest
from testbed.scenario import Scenario

Value = str | float


@dataclass(frozen=True)
class Experiment:
    """Scenarios as the product of axes; `--set` narrows or changes an axis.

    `build` makes the scenario of one combination; `quick` overrides axes for a first
    look; `figures` draws what is in a results folder, given its metrics; `table` is shown
    in place of the usual summary of the metrics.
    """

    name: str
    paper: str
    about: str
    axes: Mapping[str, tuple[Value, ...]]
    build: Callable[..., Scenario]
    figures: Callable[[Path, Any], Sequence[Path]]
    quick: Mapping[str, tuple[Value, ...]]
    table: Callable[[Path, Any], Any] | None = None
    metric: str = "goodput_mbps"  # the main one: what `--until` is about

    def scenarios(
        self, settings: Mapping[str, Sequence[str]], seeds: int, quick: bool
    ) -> list[Scenario]:
        """All scenarios, repeat by repeat."""
        axes = {**self.axes, **(self.quick if quick else {})}
        for key, texts in settings.items():
            axes[key] = tuple(self._value(key, text) for text in texts)
        return list(self._product(axes, seeds))

    def _value(self, key: str, text: str) -> Value:
        if key not in self.axes:
            raise UsageError(
                f"--set {key}: {self.name} has no such setting", nearest(key, self.axes)
            )
        if isinstance(self.axes[key][0], str):
            return text
        try:
            return float(text)
        except ValueError:
            raise UsageError(
                f"--set {key}={text}: not a number", "e.g. --set duration_s=30"
            ) from None

    def _product(self, axes: Mapping[str, tuple[Value, ...]], seeds: int) -> Iterator[Scenario]:
        for seed in range(1, seeds + 1):
            for values in itertools.product(*axes.values()):
                point = dict(zip(axes, values, strict=True))
                names = {k: v if isinstance(v, str) else f"{v:g}" for k, v in point.items()}
                yield dataclasses.replace(self.build(seed=seed, **point), axes=names)
