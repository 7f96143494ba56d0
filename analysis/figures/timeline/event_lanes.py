"""The lanes of events below a timeline: one per kind, and a band for the congestion state."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Patch
from matplotlib.transforms import ScaledTranslation

from analysis.figures.plotting import style
from analysis.figures.plotting.thinning import COLUMNS
from analysis.figures.timeline.event_markers import MARKERS, STATE_NAMES, STATES
from analysis.figures.timeline.timeline_data import Span, Timeline
from analysis.trials.series import Floats

LANE_INCHES = 0.15
LEGEND_BELOW_INCHES = 0.24  # on the line of the axis' name
BAND = "congestion state"


def lanes_inches(found: Timeline) -> float:
    """The height of all lanes."""
    return LANE_INCHES * max(1, len(found.events) + (found.states is not None) * 1.3)


def draw_lanes(axes: Axes, found: Timeline) -> None:
    """The events at their times, one lane per kind, with the number of each."""
    axes.grid(False, axis="y")
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", length=0)
    for place, (kind, times) in enumerate(found.events.items()):
        axes.axhline(place, color="#EEEEEE", linewidth=0.5, zorder=0.5)
        look = MARKERS[kind]
        shown = _apart(times, found.span)
        axes.plot(shown, np.full(len(shown), place), linestyle="", label=str(kind), **look)
        axes.annotate(
            f"{len(times)}",
            (1, place),
            xycoords=axes.get_yaxis_transform(),
            xytext=(4, 0),
            textcoords="offset points",
            fontsize=6.5,
            color=style.BLACK if len(times) else "#AAAAAA",
            va="center",
        ).set_in_layout(False)
    names = [str(kind) for kind in found.events]
    if found.states is not None:
        _draw_states(axes, found, len(names) + 0.65)
    heights = [*range(len(names)), *([len(names) + 0.2] if found.states is not None else [])]
    axes.set_yticks(heights, [*names, *([BAND] if found.states is not None else [])])
    axes.set_ylim(len(names) + (0.65 if found.states is not None else -0.4), -0.6)


def _apart(times: Floats, span: Span) -> Floats:
    """One of the times that would be drawn on the same spot."""
    columns = np.floor((times - span.start_s) / span.seconds * COLUMNS)
    _, first = np.unique(columns, return_index=True)
    return times[first]


def _draw_states(axes: Axes, found: Timeline, floor: float) -> None:
    """Stretches in other states than `open`."""
    assert found.states is not None
    for state, look in STATES.items():
        own = found.states[found.states["state"] == state]
        widths = own["stop_s"] - own["start_s"]
        height = look["height"]
        paint = {name: value for name, value in look.items() if name != "height"}
        axes.broken_barh(
            list(zip(own["start_s"], widths, strict=True)),
            (floor - height, height),
            edgecolor=paint["facecolor"] if "hatch" not in paint else "white",
            linewidth=0.3,
            label=state,
            **paint,
        )
    handles = [
        Patch(
            label=STATE_NAMES.get(state, state),
            facecolor=look["facecolor"],
            hatch=look.get("hatch"),
            edgecolor="white" if "hatch" in look else look["facecolor"],
            linewidth=0,
        )
        for state, look in STATES.items()
    ]
    assert axes.figure is not None
    below = ScaledTranslation(0, -LEGEND_BELOW_INCHES, axes.figure.dpi_scale_trans)
    axes.legend(
        handles=handles,
        loc="upper right",
        bbox_to_anchor=(1.0, 0.0),
        bbox_transform=axes.transAxes + below,
        borderaxespad=0,
        ncols=len(handles),
        frameon=False,
        fontsize=6,
        handlelength=1.2,
        handleheight=0.8,
        handletextpad=0.4,
        columnspacing=1.2,
        borderpad=0,
    ).set_in_layout(False)
