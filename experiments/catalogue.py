"""All experiments: one explicit table."""

from __future__ import annotations

from experiments import fall_floyd, router_bottleneck, variants
from testbed.errors import UsageError, nearest
from testbed.experiment import Experiment

EXPERIMENTS: dict[str, Experiment] = {
    each.name: each
    for each in (router_bottleneck.EXPERIMENT, fall_floyd.EXPERIMENT, variants.EXPERIMENT)
}


def experiment(name: str) -> Experiment:
    """The experiment of that name."""
    if name not in EXPERIMENTS:
        raise UsageError(f"unknown experiment {name!r}", nearest(name, EXPERIMENTS))
    return EXPERIMENTS[name]
