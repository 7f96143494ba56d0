"""The markers of events, in lanes and among segments: told apart by shape and by colour."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from analysis.figures.plotting import style
from analysis.figures.timeline.timeline_events import Kind

MARKERS: Mapping[Kind, dict[str, Any]] = {
    Kind.DROP: {"marker": "x", "color": style.BLACK, "markersize": 3.6, "markeredgewidth": 0.8},
    Kind.MARK: {"marker": "d", "color": style.ORANGE, "markersize": 3.4, "markeredgewidth": 0},
    Kind.RETRANSMISSION: {
        "marker": "o",
        "color": style.VERMILLION,
        "markersize": 3,
        "markeredgewidth": 0,
    },
    Kind.FAST: {
        "marker": ">",
        "color": style.VERMILLION,
        "markersize": 3.8,
        "markeredgewidth": 0,
    },
    Kind.SPURIOUS: {
        "marker": "o",
        "color": style.VERMILLION,
        "markersize": 3,
        "markeredgewidth": 0.7,
        "markerfacecolor": "white",
    },
    Kind.OUT_OF_ORDER: {
        "marker": "s",
        "color": style.SKY,
        "markersize": 2.8,
        "markeredgewidth": 0,
    },
    Kind.DUPLICATE_ACK: {
        "marker": "|",
        "color": style.GREY,
        "markersize": 4,
        "markeredgewidth": 0.5,
    },
    Kind.TIMEOUT: {"marker": "v", "color": style.BLACK, "markersize": 4.2, "markeredgewidth": 0},
}

# The more serious, the darker and the higher.
STATES: Mapping[str, dict[str, Any]] = {
    "disorder": {"facecolor": style.SKY, "height": 0.3},
    "cwr": {"facecolor": style.ORANGE, "height": 0.5, "hatch": "//////"},
    "recovery": {"facecolor": style.BLUE, "height": 0.7},
    "loss": {"facecolor": style.BLACK, "height": 0.9},
}
STATE_NAMES = {"cwr": "CWR"}
