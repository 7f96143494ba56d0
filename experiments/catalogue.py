"""All experiments: one explicit table."""

from __future__ import annotations

from experiments import all_variants, incast, transfers
from experiments.evaluation import (
    bbr_draft,
    extreme_evaluations,
    flow_evaluations,
    hostile_evaluations,
    l4s,
    path_evaluations,
    queue_evaluations,
    space,
)
from experiments.fall_floyd import fall_floyd
from experiments.guo_yuan_sheng import router_bottleneck, router_fairness
from experiments.kapre_saxena_joshi_hattikar import (
    dumbbell_load,
    dumbbell_pairs,
    dumbbell_phase,
    dumbbell_queues,
)
from experiments.parvez_mahanti_williamson import newreno_background, newreno_models
from experiments.rajore_gupta_sikka_jain import video_access, video_players
from testbed.scenario.experiment import Experiment

EXPERIMENTS: dict[str, Experiment] = {
    each.name: each
    for each in (
        router_bottleneck.EXPERIMENT,
        router_fairness.EXPERIMENT,
        dumbbell_load.EXPERIMENT,
        dumbbell_pairs.EXPERIMENT,
        dumbbell_queues.EXPERIMENT,
        dumbbell_phase.EXPERIMENT,
        newreno_models.EXPERIMENT,
        newreno_background.EXPERIMENT,
        fall_floyd.EXPERIMENT,
        all_variants.EXPERIMENT,
        video_access.EXPERIMENT,
        video_players.EXPERIMENT,
        transfers.EXPERIMENT,
        incast.EXPERIMENT,
        # the standard evaluations, in the order of the report
        flow_evaluations.RTT_FAIRNESS,
        queue_evaluations.BUFFER_SIZING,
        flow_evaluations.CONVERGENCE,
        flow_evaluations.LATECOMER,
        flow_evaluations.INTRA_PROTOCOL,
        flow_evaluations.HARM,
        flow_evaluations.PARKING_LOT,
        flow_evaluations.REVERSE_TRAFFIC,
        path_evaluations.COMPLETION,
        path_evaluations.LOSSY,
        path_evaluations.REORDERING,
        path_evaluations.CELLULAR,
        path_evaluations.LEO_PATH,
        path_evaluations.PATH_CHANGE,
        extreme_evaluations.COLLAPSE,
        extreme_evaluations.LONG_DELAY,
        extreme_evaluations.AGGREGATION,
        extreme_evaluations.CALLS,
        hostile_evaluations.POLICER,
        hostile_evaluations.MISBEHAVING_RECEIVERS,
        queue_evaluations.ECN,
        queue_evaluations.AQM,
        space.SPACE,
        bbr_draft.BBR_DRAFT,
        l4s.L4S,
    )
}
