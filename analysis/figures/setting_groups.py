"""Groups of trials that share a figure: they differ only in the variant and the seed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from analysis.trials.labels import queue_label
from testbed.scenario.reading import exact
from testbed.store.reading import Trial


def by_setting(trials: Iterable[Trial], stem: str) -> dict[str, list[Trial]]:
    """Group trials that differ only in variant and seed, by the name of their figure."""
    groups: dict[bytes, list[Trial]] = {}
    for trial in trials:
        groups.setdefault(_setting(trial), []).append(trial)
    members = list(groups.values())
    return dict(zip(_stems(members, stem), members, strict=True))


def _setting(trial: Trial) -> bytes:
    flows = tuple(replace(flow, variant=None) for flow in trial.scenario.flows)
    return exact(replace(trial.scenario, flows=flows, seed=0, label="", axes={}))


def _stems(groups: Sequence[Sequence[Trial]], stem: str) -> list[str]:
    """File names that tell the figures apart by what differs among them."""
    if len(groups) < 2:
        return [stem] * len(groups)
    texts = [_words(trials[0]) for trials in groups]
    differing = [key for key in texts[0] if len({each[key] for each in texts}) > 1]
    stems = ["-".join([stem, *(each[key] for key in differing)]) for each in texts]
    if len(set(stems)) < len(stems):  # what tells them apart is an axis of another kind
        axes = [_axes(trials[0]) for trials in groups]
        others = [key for key in axes[0] if len({each.get(key) for each in axes}) > 1]
        pairs = zip(stems, axes, strict=True)
        stems = ["-".join([name, *(each.get(key, "") for key in others)]) for name, each in pairs]
    return [
        name if stems.count(name) == 1 else f"{name}-{number}"
        for number, name in enumerate(stems, start=1)
    ]


def _axes(trial: Trial) -> dict[str, str]:
    axes = {**trial.scenario.axes, "kernel": trial.scenario.kernel}
    return {key: re.sub(r"[^\w.]+", "-", value) for key, value in axes.items() if key != "variant"}


def _words(trial: Trial) -> dict[str, str]:
    scenario = trial.scenario
    network = scenario.network
    texts = {
        "queue": queue_label(network.bottleneck_queue),
        "to": "+".join(dict.fromkeys(flow.dst for flow in scenario.flows)),
        "rate": f"{network.bottleneck_mbit:g}mbit",
        "delay": f"{network.longest_rtt_ms / 2:g}ms",
        "duration": f"{scenario.duration_s:g}s",
    }
    return {key: re.sub(r"[^\w.]+", "-", word) for key, word in texts.items()}
