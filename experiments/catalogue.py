"""All experiments: one explicit table."""

from __future__ import annotations

from experiments import (
    all_variants,
    dumbbell_load,
    dumbbell_pairs,
    dumbbell_queues,
    fall_floyd,
    newreno_background,
    newreno_models,
    router_bottleneck,
    router_fairness,
    transfers,
    video_access,
    video_players,
)
from experiments.evaluation.all_evaluations import EVALUATIONS
from testbed.scenario.experiment import Experiment

EXPERIMENTS: dict[str, Experiment] = {
    each.name: each
    for each in (
        router_bottleneck.EXPERIMENT,
        router_fairness.EXPERIMENT,
        dumbbell_load.EXPERIMENT,
        dumbbell_pairs.EXPERIMENT,
        dumbbell_queues.EXPERIMENT,
        newreno_models.EXPERIMENT,
        newreno_background.EXPERIMENT,
        fall_floyd.EXPERIMENT,
        all_variants.EXPERIMENT,
        video_access.EXPERIMENT,
        video_players.EXPERIMENT,
        transfers.EXPERIMENT,
        *EVALUATIONS,
    )
}
