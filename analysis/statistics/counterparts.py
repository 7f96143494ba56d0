"""Matching the trials of two results folders by scenario, and comparing their captures.

Trials match by their scenario without the seed (and without what only looks: captures and
samples), and by the engine only where both folders hold the same several ones.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from analysis.trials.labels import variant_key
from testbed.errors import TestbedError
from testbed.store import CaptureRecord, Trial, trials_in

Key = tuple[str, str]  # scenario as JSON, engine where that is part of the match
Side = dict[Key, dict[int, Trial]]  # by seed


def sides(first: Path, second: Path) -> tuple[Side, Side]:
    found = [list(trials_in(first)), list(trials_in(second))]
    for path, trials in zip((first, second), found, strict=True):
        if not trials:
            raise TestbedError(f"{path}: holds no trials", "name two results folders")
    engines = [{trial.record.engine for trial in trials} for trials in found]
    several = max(map(len, engines)) > 1  # only then the engine has to tell trials apart
    if several and engines[0] != engines[1]:
        path, names = max(zip((first, second), engines, strict=True), key=lambda one: len(one[1]))
        raise TestbedError(
            f"{path}: holds trials of several engines: {', '.join(sorted(names))}",
            "compare folders of one engine each: `testbed run … --out DIR`",
        )
    return _side(first, found[0], several), _side(second, found[1], several)


def _side(folder: Path, trials: Iterable[Trial], by_engine: bool) -> Side:
    side: Side = {}
    for trial in trials:
        key = (setting_json(trial), trial.record.engine if by_engine else "")
        twin = side.setdefault(key, {}).setdefault(trial.scenario.seed, trial)
        if twin is not trial:
            raise TestbedError(
                f"{folder}: {twin.path.name} and {trial.path.name} are of the same scenario",
                "move one of them away",
            )
    return side


def setting_json(trial: Trial) -> str:
    """The scenario without its seed and its captures and samples."""
    plain = dataclasses.replace(
        trial.scenario, seed=0, axes={}, captures=(), snaplen_bytes=0, sample_interval_ms=0
    )
    return plain.to_json()


def unmatched(own: Side, other: Side) -> Iterator[str]:
    for key, seeds in own.items():
        yield from (seeds[s].path.name for s in sorted(seeds) if s not in other.get(key, {}))


def same_captures(left: Trial, right: Trial) -> bool:
    """True if both have at least one capture, and the same captures byte for byte."""
    first, second = (
        {capture.file: _digest(trial, capture) for capture in trial.record.captures}
        for trial in (left, right)
    )
    return bool(first) and all(first.values()) and first == second


def _digest(trial: Trial, capture: CaptureRecord) -> str:
    """The recorded hash, or that of the file in older results; empty if neither exists."""
    path = trial.path / capture.file
    if capture.sha256 or not path.is_file():
        return capture.sha256
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def labels(trials: Mapping[Key, Trial]) -> dict[Key, str]:
    """The settings' labels in their usual order, extended where a label is ambiguous."""
    several = len({trial.scenario.experiment for trial in trials.values()}) > 1
    alike: dict[str, list[Key]] = {}
    for key, trial in trials.items():
        scenario = trial.scenario
        label = scenario.label or scenario.experiment
        if several and scenario.label:
            label = f"{scenario.experiment} {label}"
        alike.setdefault(f"{label} {key[1]}".rstrip(), []).append(key)
    found: dict[Key, str] = {}
    for label, keys in alike.items():
        flat = {key: dict(_flat(json.loads(key[0]))) for key in keys}
        names = list(dict.fromkeys(name for own in flat.values() for name in own))
        open_ = [n for n in names if len({own.get(n) for own in flat.values()}) > 1]
        for key in keys:
            words = [f"{n.split('.')[-1]}={flat[key][n]}" for n in open_ if n in flat[key]]
            found[key] = " ".join(dict.fromkeys([label, *words]))
    ordered = sorted(found, key=lambda key: (_variant(trials[key]), found[key]))
    return {key: found[key] for key in ordered}


def _variant(trial: Trial) -> tuple[int, str]:
    return variant_key(trial.scenario.flows[0].variant or "")


def _flat(value: object, name: str = "") -> Iterator[tuple[str, str]]:
    """The scenario's fields by path: `topology.bottleneck.rate_mbit`, `1`."""
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, each in items:
            yield from _flat(each, f"{name}.{key}".lstrip("."))
    else:
        yield name, str(value)
