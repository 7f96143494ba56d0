"""The papers' exact points: experiments whose networks no seed draws."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.exact_points import at_its_point
from experiments.catalogue import EXPERIMENTS


@pytest.mark.parametrize("name", ["router-fairness", "dumbbell-load"])
def test_at_its_point_an_experiment_differs_in_what_is_drawn_alone(name: str) -> None:
    drawn = EXPERIMENTS[name].scenarios({}, 2, quick=True)
    exact = at_its_point(EXPERIMENTS[name]).scenarios({}, 2, quick=True)
    assert any(each.drawn_share or each.drawn_service_times for each in drawn)
    assert exact == [replace(each, drawn_share=0.0, drawn_service_times=0.0) for each in drawn]
