"""The figure of videos that were watched, from metrics made up by hand."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from analysis.figures import plots
from analysis.metrics.axes import write_axes
from analysis.metrics.columns import COLUMNS, NUMBERS


def watched(network: str, variant: str, loaded_s: float, **changes: str) -> dict[str, object]:
    """A video that came."""
    axes = {
        "network": network,
        "variant": variant,
        "transport": "https",
        "setting": "sender",
        "rule": "240p",
        **changes,
    }
    return {
        "experiment": "video-access",
        "kind": "video",
        "status": "ok",
        "verdict": "valid",
        "axes": write_axes(axes),
        "seed": 1,
        "page_s": 0.3,
        "loaded_s": loaded_s,
        "stall_s": 0.0,
    }


def table(*rows: dict[str, object]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=list(COLUMNS)).astype(dict.fromkeys(NUMBERS, "float64"))


SOME = (
    watched("ethernet", "cubic", 120),
    watched("shaped", "cubic", 130),
    watched("shaped", "veno", 140),
    watched("shaped", "veno", 150, setting="receiver"),
    watched("shaped", "reno", 160, transport="quic"),
    watched("shaped", "cubic", 170, rule="buffer"),
)


def test_a_column_for_whose_variant_it_is(tmp_path: Path) -> None:
    png, svg = plots.video_access(tmp_path, table(*SOME))
    assert png.stat().st_size > 10_000
    said = svg.read_text()  # its texts are comments
    for expected in ("TCP,", "QUIC,", "laptop's", "bitrate 240p"):
        assert expected in said
    assert said.count("laptop's") == 1  # of TCP alone


def test_no_videos_no_figure(tmp_path: Path) -> None:
    assert plots.video_access(tmp_path, table(watched("shaped", "veno", 1) | {"kind": "tcp"})) == []
    assert (
        plots.video_access(tmp_path, table(watched("shaped", "veno", 1) | {"status": "failed"}))
        == []
    )
