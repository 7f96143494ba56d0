"""The guest's kernel as an axis of every experiment and every scenario's file."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence

from testbed.scenario.model import BASE_KERNEL, Scenario

AXIS = "kernel"

Settings = Mapping[str, Sequence[str]]


def set_apart(settings: Settings, own: Iterable[str]) -> tuple[Sequence[str], Settings]:
    """The kernels that are set, if any, and the other settings; an axis of the experiment's own
    is left to it."""
    if AXIS in own:
        return (), settings
    rest = {name: values for name, values in settings.items() if name != AXIS}
    return tuple(dict.fromkeys(settings.get(AXIS, ()))), rest


def on_kernels(scenarios: Iterable[Scenario], kernels: Sequence[str]) -> list[Scenario]:
    """Each scenario on each of the kernels, side by side; as they are if none is set."""
    if not kernels:
        return list(scenarios)
    return [_on(scenario, kernel) for scenario in scenarios for kernel in kernels]


def _on(scenario: Scenario, kernel: str) -> Scenario:
    """The label tells the trial's directory from that of the first kernel, which has none."""
    words = (scenario.label, *(() if kernel == BASE_KERNEL else (f"{AXIS}-{kernel}",)))
    return dataclasses.replace(scenario, kernel=kernel, label="-".join(filter(None, words)))


def axes_of(scenario: Scenario) -> Mapping[str, str]:
    """The scenario's place on its axes, with its kernel unless that is the first one: trials are
    as they were before there was another."""
    if scenario.kernel == BASE_KERNEL or AXIS in scenario.axes:
        return scenario.axes
    return {**scenario.axes, AXIS: scenario.kernel}
