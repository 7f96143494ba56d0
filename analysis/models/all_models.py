"""All models: one explicit table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from analysis.models import classic, newreno
from analysis.models.conditions import Conditions, Invalid, Prediction, fault


@dataclass(frozen=True)
class Model:
    """A model's equation, and where it comes from."""

    label: str
    source: str
    equation: Callable[[Conditions], Prediction]


MODELS: dict[str, Model] = {
    "sbs": Model("NewReno, Slow-but-Steady", "Parvez 2006, eq. 4", newreno.sbs),
    "imp": Model("NewReno, Impatient", "Parvez 2006, eq. 8", newreno.imp),
    "square-root": Model("square-root law", "Mathis 1997", classic.square_root),
    "pftk": Model("PFTK", "Padhye 1998, full", classic.pftk),
    "pftk-approximate": Model("PFTK", "Padhye 1998, approximate", classic.pftk_approximate),
    "cubic": Model("Cubic", "RFC 9438, 5.1", classic.cubic),
}


def predict(name: str, conditions: Conditions) -> Prediction:
    """Segments/s that the model expects under these conditions, or why it does not hold."""
    because = fault(conditions)
    return Invalid(because) if because else MODELS[name].equation(conditions)
