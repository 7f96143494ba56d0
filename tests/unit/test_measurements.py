"""Files of Flent and iperf3 beside each other: their numbers, and what is no such file."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from analysis.figures.measurement_figure import figure
from analysis.statistics.measurements import is_measurement, measurements_of
from experiments.command import main
from testbed.errors import TestbedError


def flent(folder: Path, name: str = "rrul.flent.gz", **changes: Any) -> Path:
    """Two uploads of 4 and 2 Mbit/s, the second for the last half, and a ping of 30 ms."""
    results = {
        "TCP upload BE": [4, 4, 4, 4],
        "TCP upload BE2": [None, None, 2, 2],
        "TCP upload sum": [4, 4, 6, 6],
        "TCP upload BE::tcp_cwnd": [10, 10, 10, 10],
        "Ping (ms) ICMP": [20, 20, 40, 40],
        "qdisc_stats_gw::delay": [1, 1, 1, 1],
    }
    about = {"TCP upload BE": {"UNITS": "Mbits/s"}, "Ping (ms) ICMP": {"UNITS": "ms"}}
    data: dict[str, Any] = {
        "results": results,
        "x_values": [0.0, 0.5, 1.0, 1.5],
        "metadata": {"FLENT_VERSION": "2.1", "NAME": "rrul", "SERIES_META": about},
    }
    path = folder / name
    path.write_bytes(gzip.compress(json.dumps({**data, **changes}).encode()))
    return path


def iperf3(folder: Path, **changes: Any) -> Path:
    """A stream of 8 Mbit/s whose first second is left out, with round trips of 25 ms."""
    intervals = [
        {
            "streams": [
                {
                    "socket": 5,
                    "start": at,
                    "end": at + 1,
                    "bits_per_second": 8e6 * (1 + 9 * (at == 0)),
                    "rtt": 25_000,
                    "omitted": at == 0,
                }
            ]
        }
        for at in range(3)
    ]
    path = folder / "iperf.json"
    data = {"start": {"version": "iperf 3.12"}, "intervals": intervals, "end": {}}
    path.write_text(json.dumps({**data, **changes}))
    return path


def test_what_flent_measured_without_what_it_adds_up(tmp_path: Path) -> None:
    (found,) = measurements_of(flent(tmp_path))
    names = {(each.name, each.quantity) for each in found.series}
    assert names == {
        ("TCP upload BE", "goodput"),
        ("TCP upload BE2", "goodput"),
        ("Ping (ms) ICMP", "delay"),
    }
    assert found.metrics() == pytest.approx(
        {"goodput_mbps": 5, "jain": 0.9, "rtt_mean_ms": 30, "rtt_p95_ms": 40}
    )
    assert found.tool == "Flent 2.1 rrul"


def test_what_iperf3_reported_without_what_it_omits(tmp_path: Path) -> None:
    (found,) = measurements_of(iperf3(tmp_path))
    assert found.metrics() == {"goodput_mbps": 8, "rtt_mean_ms": 25, "rtt_p95_ms": 25}
    assert found.tool == "iperf 3.12"


def test_a_folder_of_data_is_one_side(tmp_path: Path) -> None:
    for name in ("a.flent.gz", "b.flent.gz"):
        flent(tmp_path, name)
    assert is_measurement(tmp_path) and not is_measurement(tmp_path.parent / "none")
    assert [each.name for each in measurements_of(tmp_path)] == ["a.flent.gz", "b.flent.gz"]


def test_both_are_compared_and_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = [str(flent(tmp_path)), str(iperf3(tmp_path))]
    picture = tmp_path / "both.png"
    status = main(["compare", *paths, "--figure", str(picture)])
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert status == 1
    assert ["goodput_mbps", "5", "8", "+3", "2", "%", "or", "0.001", "beyond"] in lines
    assert picture.read_bytes().startswith(b"\x89PNG")
    (both,) = (measurements_of(Path(path)) for path in paths[:1])
    drawn = figure([both[0], both[0]], "x")
    assert drawn.title == "Goodput: 5 and 5 Mbit/s; delay: 30 and 30 ms"
    assert main(["compare", paths[0], paths[0]]) == 0
    wide = ["--metric", "goodput_mbps", "--tolerance", "goodput_mbps=3.5"]
    assert main(["compare", *paths, *wide]) == 0


def packed(data: bytes) -> bytes:
    """Compressed bytes that are the same at any time: tests are named by them."""
    return gzip.compress(data, mtime=0)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"no gzip", "incorrect header check"),
        (packed(b'{"results": {}}')[:-9], "too long, or not whole"),
        (packed(b" " * (1 << 25)), "too long, or not whole"),
        (packed(b"[" + b"1," * (1 << 23) + b"1]"), "more than 8388608 values"),
        (packed(b"[" * 100_000), "recursion"),
        (packed(b"{"), "not JSON"),
        (packed(b'{"runs": [1]}'), "neither Flent's data nor a report of iperf3"),
        (packed(b'{"results": {}, "x_values": [], "metadata": {}}'), "it has no values"),
        (packed(b'{"results": 1, "x_values": [1, 2], "metadata": {}}'), "damaged"),
        (
            packed(b'{"start": {}, "intervals": [], "error": "refused\\u001b[2J"}'),
            "iperf3 says: refused",
        ),
    ],
)
def test_what_is_neither_is_one_line(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "x.flent.gz"
    path.write_bytes(content)
    with pytest.raises(TestbedError) as caught:
        measurements_of(path)
    assert said in caught.value.message and "\n" not in caught.value.message
    assert "\x1b" not in caught.value.message and "iperf3 --json" in caught.value.hint
