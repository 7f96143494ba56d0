"""Metrics tables in which every claim of PMW holds, to be bent by tests."""

from __future__ import annotations

import pandas as pd

from analysis.throughput_models import Conditions
from experiments.parvez_mahanti_williamson.models import predict
from experiments.parvez_mahanti_williamson.printed import PMW_MAX_MAPPED_LOSSES, PMW_TABLE_2
from experiments.parvez_mahanti_williamson.recomputed_for_tests import segments_a_round_trip
from tests.claims_tables import SEEDS, Numbers, World, metrics_of

VARIANTS = {"sbs": "newreno", "imp": "newreno-impatient"}
SEGMENT = 1000.0
RTT_S = 0.07


def models_world(place: dict[str, str]) -> dict[str, Numbers]:
    """Both forms a percent above their models."""
    p, m = float(place["p_percent"]) / 100, float(place["m"])
    # ns-2's timer decides from which m on it runs out; what it then costs is more
    rto_s = 0.2 if m < 6 else 0.36
    met = Conditions(p, RTT_S, m, rto_s)
    return {flow: _flow(met, _expected(flow, met), 0.01) for flow in VARIANTS}


def _expected(flow: str, met: Conditions) -> float:
    """The model, beyond its domain by the equation as it stands."""
    prediction = predict(flow, met)
    if isinstance(prediction, float):
        return prediction
    return segments_a_round_trip(met.loss_event_rate, met.losses_per_event) / met.rtt_s


def models_mirrored(place: dict[str, str]) -> dict[str, Numbers]:
    """Impatient has half as much again as the other, whose model is a quarter off."""
    flows = models_world(place)
    flows["sbs"]["goodput_mbps"] *= 1.3
    flows["imp"]["goodput_mbps"] = 1.5 * flows["sbs"]["goodput_mbps"]
    return flows


def _flow(met: Conditions, expected: float, above: float) -> Numbers:
    """Return a flow under conditions, whose goodput is above what its model expects by a part."""
    assert met.rto_s is not None
    return {
        "loss_event_rate": met.loss_event_rate,
        "losses_per_event": met.losses_per_event,
        "loss_rate": met.loss_event_rate * met.losses_per_event,
        "srtt_mean_ms": 1e3 * met.rtt_s,
        "rto_mean_ms": 1e3 * met.rto_s,
        "rto_at_timeout_ms": 1e3 * met.rto_s,
        "segment_bytes": SEGMENT,
        "goodput_mbps": expected * (1 + above) * 8 * SEGMENT / 1e6,
    }


def models_metrics(world: World = models_world, seeds: int = SEEDS) -> pd.DataFrame:
    """newreno-models, the paper's points."""
    parts = []
    for p, most in PMW_MAX_MAPPED_LOSSES.items():
        axes = {
            "p_percent": (f"{100 * p:g}",),
            "m": tuple(map(str, range(1, most + 1))),
            "dropper": ("random",),
            "profile": ("ns2",),
            "duration_s": ("250",),
        }
        parts.append(metrics_of("newreno-models", axes, world, seeds))
    return _named(pd.concat(parts))


def background_world(place: dict[str, str]) -> dict[str, Numbers]:
    """Table II, and RED with fewer losses an event and less between the forms."""
    sessions, red = int(place["sessions"]), place["queue"] == "red"
    row = next(row for row in PMW_TABLE_2 if row.flows == sessions)
    p = row.loss_event_rate
    m = 1.3 if red else min(4.1, row.loss_rate / p)
    error = 0.2064 if sessions == 256 else -0.0707 if red else -0.0978
    lead = 0.03 if red else 0.1359 if sessions <= 64 else 0.0554
    steady = _over(Conditions(p, 0.1, m, 0.2), error)
    impatient = _over(Conditions(p, 0.1, 1.3 if red else 2.4, 0.2), error)
    impatient["goodput_mbps"] = steady["goodput_mbps"] / (1 + lead)
    return {"sbs": steady, "imp": impatient}


def _over(met: Conditions, error: float) -> Numbers:
    return _flow(met, _expected("sbs", met), 1 / (1 + error) - 1)


def background_mirrored(place: dict[str, str]) -> dict[str, Numbers]:
    """Many losses an event, a model that is far above, and Impatient ahead."""
    flows = background_world(place)
    for flow in flows.values():
        flow["losses_per_event"] = 1.05
        flow["goodput_mbps"] *= 0.7
    flows["imp"]["goodput_mbps"] *= 1.5
    return flows


def background_metrics(world: World = background_world, seeds: int = SEEDS) -> pd.DataFrame:
    """newreno-background, whole."""
    axes = {
        "queue": ("droptail", "red"),
        "sessions": tuple(str(row.flows) for row in PMW_TABLE_2),
        "profile": ("ns2",),
        "duration_s": ("1000",),
    }
    return _named(metrics_of("newreno-background", axes, world, seeds))


def _named(table: pd.DataFrame) -> pd.DataFrame:
    """Each flow with its variant and kind."""
    return table.assign(variant=table["flow"].map(VARIANTS), kind="tcp")
