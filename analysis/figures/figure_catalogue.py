"""Which experiment gets which figures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from analysis.figures.papers import (
    dumbbell_load,
    dumbbell_pairs,
    dumbbell_queues,
    newreno_background,
    newreno_models,
    router_bottleneck,
    router_fairness,
    video_access,
)
from analysis.figures.shared import general
from analysis.figures.shared.common import Drawn
from analysis.results.material import Material

FIGURES: Mapping[str, Callable[[Material], Iterator[Drawn]]] = {
    "dumbbell-load": dumbbell_load.draw,
    "dumbbell-pairs": dumbbell_pairs.draw,
    "dumbbell-queues": dumbbell_queues.draw,
    "newreno-background": newreno_background.draw,
    "newreno-models": newreno_models.draw,
    "router-bottleneck": router_bottleneck.draw,
    "router-fairness": router_fairness.draw,
    "video-access": video_access.draw,
}


def draw(material: Material) -> Iterator[Drawn]:
    """The experiment's own figures, or those that suit any."""
    yield from FIGURES.get(material.experiment, general.draw)(material)
