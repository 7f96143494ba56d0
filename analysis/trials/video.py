"""The reports of video players and servers, and the players' measures, one row per video flow."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pandas as pd

from analysis.trials.documents import (
    FileSizes,
    PlayerReport,
    QuicReport,
    VideoLoad,
    read_trial_document,
)
from testbed.scenario.model import FlowKind
from testbed.store.names import playback_file, report_file, sizes_file
from testbed.store.reading import Trial

VIDEO_MEASURE_COLUMNS = (
    "trial",
    "flow",
    "variant",
    "transport",
    "rule",
    "why",  # empty, or the reason for an end before the video's
    "page_s",  # from the viewer's click until the page and everything on it are received
    "startup_s",  # until the picture moves
    "loaded_s",  # until the whole video is received
    "ended_s",  # until it has been shown
    "stalls",  # how often the picture stopped for lack of video, once it had begun to move
    "stall_s",  # and for how long in total
    "mean_mbps",  # of the chosen bitrates, over the video received
    "switches",  # segments whose bitrate differs from the one before
    "segments",  # received whole
    "bytes",  # of video
)


def read_playback(trial: Trial, flow: str) -> PlayerReport | None:
    """Read a player's report; None if it left none."""
    return read_trial_document(trial, playback_file(flow), PlayerReport)


def read_sizes(trial: Trial, flow: str) -> FileSizes | None:
    """Read the size of each file that the player requested."""
    return read_trial_document(trial, sizes_file(flow), FileSizes)


def read_server(trial: Trial, flow: str) -> QuicReport | None:
    """Read the QUIC server's counts; over TCP the kernel has them."""
    return read_trial_document(trial, report_file(flow, "server"), QuicReport)


def loads(playback: PlayerReport) -> list[VideoLoad]:
    """Every request in order: path, times, bytes received."""
    return [*playback["page"], *(segment["load"] for segment in playback["segments"])]


def measures(trial: Trial, flow: str) -> dict[str, object] | None:
    """Return the measures of one video."""
    playback = read_playback(trial, flow)
    if playback is None:
        return None
    mean = playback["sums"]["mean_bit_per_s"]
    known: Mapping[str, object] = {
        **playback,
        **playback["sums"],
        "trial": trial.path.name,
        "flow": flow,
        "variant": trial.scenario.flow(flow).variant or "",
        "mean_mbps": None if mean is None else mean / 1e6,
        "segments": sum(each["load"]["last_byte_s"] is not None for each in playback["segments"]),
    }
    return {name: known[name] for name in VIDEO_MEASURE_COLUMNS}


def video_measures(trials: Iterable[Trial]) -> pd.DataFrame:
    """Return the measures of all videos of the trials; NaN for what did not happen."""
    rows = [
        row
        for trial in trials
        for flow in trial.scenario.flows
        if flow.kind is FlowKind.VIDEO and (row := measures(trial, flow.name)) is not None
    ]
    frame = pd.DataFrame(rows, columns=list(VIDEO_MEASURE_COLUMNS))
    seconds = [name for name in VIDEO_MEASURE_COLUMNS if name.endswith("_s")]
    return frame.astype(dict.fromkeys([*seconds, "mean_mbps"], "float64"))
