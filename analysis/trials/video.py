"""What the player of a video saw: its own measures, a row a video flow."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pandas as pd

from testbed.scenario.model import FlowKind
from testbed.store import Trial, playback_file, read_json, report_file, sizes_file

COLUMNS = (
    "trial",
    "flow",
    "variant",
    "transport",
    "rule",
    "why",  # empty, or what ended it before the video did
    "page_s",  # since the viewer's click: the page and all that is on it are there
    "startup_s",  # the picture moves
    "loaded_s",  # the whole video is there
    "ended_s",  # it has been shown
    "stalls",  # how often it stood still for want of video, after it had begun to move
    "stall_s",  # and for how long in sum
    "mean_mbps",  # of the bitrates that were chosen, over the video that came
    "switches",  # segments of another bitrate than the one before
    "segments",  # that came whole
    "bytes",  # of video
)


def read_playback(trial: Trial, flow: str) -> dict[str, Any] | None:
    """A player's report; none if it left none."""
    return _read(trial, playback_file(flow))


def read_sizes(trial: Trial, flow: str) -> dict[str, int] | None:
    """How large each file is that the player asked for."""
    return _read(trial, sizes_file(flow))


def read_server(trial: Trial, flow: str) -> dict[str, int] | None:
    """What QUIC's server counted; over TCP that is the kernel's business."""
    return _read(trial, report_file(flow, "server"))


def _read(trial: Trial, name: str) -> dict[str, Any] | None:
    found: dict[str, Any] | None = read_json(trial.path, name)
    return found


def loads(playback: dict[str, Any]) -> list[dict[str, Any]]:
    """Every file that was asked for, in order: path, times, bytes that came."""
    return [*playback["page"], *(segment["load"] for segment in playback["segments"])]


def measures(trial: Trial, flow: str) -> dict[str, object] | None:
    """One video's row."""
    playback = read_playback(trial, flow)
    if playback is None:
        return None
    sums = playback["sums"]
    mean = sums["mean_bit_per_s"]
    return {
        "trial": trial.path.name,
        "flow": flow,
        "variant": trial.scenario.flow(flow).variant or "",
        **{name: playback[name] for name in COLUMNS[3:10]},
        **{name: sums[name] for name in ("stalls", "stall_s", "switches", "bytes")},
        "mean_mbps": None if mean is None else mean / 1e6,
        "segments": sum(each["load"]["last_byte_s"] is not None for each in playback["segments"]),
    }


def video_measures(trials: Iterable[Trial]) -> pd.DataFrame:
    """The rows of all their videos; what did not happen is NaN."""
    rows = [
        row
        for trial in trials
        for flow in trial.scenario.flows
        if flow.kind is FlowKind.VIDEO and (row := measures(trial, flow.name)) is not None
    ]
    frame = pd.DataFrame(rows, columns=list(COLUMNS))
    seconds = [name for name in COLUMNS if name.endswith("_s")]
    return frame.astype(dict.fromkeys([*seconds, "mean_mbps"], "float64"))
