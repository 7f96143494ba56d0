"""All experiments: one explicit table."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from testbed.scenario.experiment import Experiment

MODULES = {  # MODULE:NAME in this folder, by the experiment's name
    "router-bottleneck": "guo_yuan_sheng.router_bottleneck:EXPERIMENT",
    "router-fairness": "guo_yuan_sheng.router_fairness:EXPERIMENT",
    "dumbbell-load": "kapre_saxena_joshi_hattikar.dumbbell_load:EXPERIMENT",
    "dumbbell-pairs": "kapre_saxena_joshi_hattikar.dumbbell_pairs:EXPERIMENT",
    "dumbbell-queues": "kapre_saxena_joshi_hattikar.dumbbell_queues:EXPERIMENT",
    "dumbbell-phase": "kapre_saxena_joshi_hattikar.dumbbell_phase:EXPERIMENT",
    "newreno-models": "parvez_mahanti_williamson.newreno_models:EXPERIMENT",
    "newreno-background": "parvez_mahanti_williamson.newreno_background:EXPERIMENT",
    "fall-floyd": "fall_floyd.fall_floyd:EXPERIMENT",
    "variants": "all_variants:EXPERIMENT",
    "video-access": "rajore_gupta_sikka_jain.video_access:EXPERIMENT",
    "video-players": "rajore_gupta_sikka_jain.video_players:EXPERIMENT",
    "transfers": "transfers:EXPERIMENT",
    "incast": "incast:EXPERIMENT",
    # the standard evaluations, in the order of the report
    "rtt-fairness": "evaluation.flow_evaluations:RTT_FAIRNESS",
    "buffer-sizing": "evaluation.queue_evaluations:BUFFER_SIZING",
    "convergence": "evaluation.flow_evaluations:CONVERGENCE",
    "latecomer": "evaluation.flow_evaluations:LATECOMER",
    "intra-protocol": "evaluation.flow_evaluations:INTRA_PROTOCOL",
    "harm": "evaluation.flow_evaluations:HARM",
    "parking-lot": "evaluation.flow_evaluations:PARKING_LOT",
    "reverse-traffic": "evaluation.flow_evaluations:REVERSE_TRAFFIC",
    "completion": "evaluation.path_evaluations:COMPLETION",
    "lossy": "evaluation.path_evaluations:LOSSY",
    "reordering": "evaluation.path_evaluations:REORDERING",
    "cellular": "evaluation.path_evaluations:CELLULAR",
    "leo": "evaluation.path_evaluations:LEO_PATH",
    "path-change": "evaluation.path_evaluations:PATH_CHANGE",
    "collapse": "evaluation.extreme_evaluations:COLLAPSE",
    "long-delay": "evaluation.extreme_evaluations:LONG_DELAY",
    "aggregation": "evaluation.extreme_evaluations:AGGREGATION",
    "calls": "evaluation.extreme_evaluations:CALLS",
    "policer": "evaluation.hostile_evaluations:POLICER",
    "misbehaving-receivers": "evaluation.hostile_evaluations:MISBEHAVING_RECEIVERS",
    "ecn": "evaluation.queue_evaluations:ECN",
    "aqm": "evaluation.queue_evaluations:AQM",
    "space": "evaluation.space:SPACE",
    "bbr-draft": "evaluation.bbr_draft:BBR_DRAFT",
    "l4s": "evaluation.l4s:L4S",
    "stack-sharing": "stacks.stack_trials:STACK_SHARING",
    "stack-conformance": "stacks.stack_trials:STACK_CONFORMANCE",
}


class Catalogue(Mapping[str, "Experiment"]):
    """Experiments by their names; each is imported when it is looked up."""

    def __init__(self, modules: Mapping[str, str]) -> None:
        self._modules = modules

    def __getitem__(self, name: str) -> Experiment:
        """Import an experiment."""
        experiment: Experiment = pkgutil.resolve_name(f"experiments.{self._modules[name]}")
        return experiment

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names, in the table's order."""
        return iter(self._modules)

    def __len__(self) -> int:
        """Return the number of experiments."""
        return len(self._modules)


EXPERIMENTS = Catalogue(MODULES)
