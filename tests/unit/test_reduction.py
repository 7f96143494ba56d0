"""`testbed reduce`: its tables in every form, of captures of our own and of others."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pandas as pd
import pytest

from analysis.captures.flow_tables import HEADINGS
from experiments.command import main
from testbed.machine.process import run
from tests.trial_writer import captures, write_trial


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Two captures of the trial made by hand."""
    folder = write_trial(tmp_path_factory.mktemp("reduce") / "trial") / "captures"
    return [str(folder / f"{name}.pcap") for name in ("sender1-eth0", "sender2-eth0")]


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["reduce", *arguments]) == 0
    return capsys.readouterr().out


def table(text: str) -> pd.DataFrame:
    return pd.read_csv(io.StringIO(text))


def test_flows_as_a_table(capsys: pytest.CaptureFixture[str], paths: list[str]) -> None:
    lines = said(capsys, *paths).splitlines()
    assert len(lines) == 3
    assert "10.0.1.2:40001" in lines[1] and "10.0.2.2:40065" in lines[2]
    assert all(HEADINGS.values())
    assert "…" not in "".join(lines)


@pytest.mark.parametrize("arguments", [[], ["--packets"], ["--bin", "1s"], ["--lengths"]])
def test_all_forms_say_the_same(
    capsys: pytest.CaptureFixture[str], paths: list[str], tmp_path: Path, arguments: list[str]
) -> None:
    csv = table(said(capsys, *paths, *arguments, "--format", "csv"))
    parsed = pd.DataFrame(json.loads(said(capsys, *paths, *arguments, "--format", "json")))
    out = tmp_path / "out"
    assert said(capsys, *paths, *arguments, "--format", "parquet", "--out", str(out)) == ""
    parquet = pd.read_parquet(out)
    assert list(csv.columns) == list(parsed.columns) == list(parquet.columns)
    assert len(csv) == len(parsed) == len(parquet) >= 2
    for name in csv.columns:
        if pd.api.types.is_numeric_dtype(csv[name]) and name != "unread":  # empty: a text
            for other in (parsed, parquet):
                pd.testing.assert_series_equal(
                    csv[name].astype("float64"),
                    other[name].astype("float64"),
                    rtol=1e-8,
                )
    assert said(capsys, *paths, *arguments, "--format", "csv", "--out", str(out)) == ""
    assert table(out.read_text()).equals(csv)


def test_a_row_a_packet(capsys: pytest.CaptureFixture[str], paths: list[str]) -> None:
    rows = table(said(capsys, paths[0], "--packets", "--format", "csv"))
    assert len(rows) == len(captures()["sender1-eth0"])
    assert list(rows["frame"]) == list(range(1, len(rows) + 1))
    assert rows["retransmission"].sum() == 2


def test_packets_for_people(capsys: pytest.CaptureFixture[str], paths: list[str]) -> None:
    lines = said(capsys, paths[0], "--packets").splitlines()
    assert len(lines) == 1 + len(captures()["sender1-eth0"])
    assert sum("fast retransmission" in line for line in lines) == 1


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        (["--format", "parquet"], "needs a file", "--out"),
        (["--out", "x"], "takes csv, json or parquet", "--format csv"),
        (["--bin", "never"], "is not a bin width", "100ms"),
        (["--bin", "1s", "--packets"], "only one of them", "leave out --packets"),
        (["--packets", "--verify"], "only one of them", "leave out --verify"),
    ],
)
def test_wrong_requests(
    capsys: pytest.CaptureFixture[str],
    paths: list[str],
    arguments: list[str],
    message: str,
    hint: str,
) -> None:
    assert main(["reduce", paths[0], *arguments]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    assert message in lines[0] and hint in lines[1]


@pytest.mark.parametrize("arguments", [[], ["--packets"], ["--bin", "1s"], ["--lengths"]])
def test_a_folder_is_all_its_captures(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, arguments: list[str]
) -> None:
    """Files of two trials have the same names: what tells them apart is the trial's."""
    for name in ("one", "two"):
        write_trial(tmp_path / name, without=("router-eth0", "router-eth1", "router-eth2"))
    form = (*arguments, "--format", "csv")
    of_one = table(said(capsys, str(tmp_path / "one"), *form))
    files = ("sender1-eth0.pcap", "sender2-eth0.pcap", "receiver-eth0.pcap")
    assert set(of_one["file"]) == set(files)
    of_all = table(said(capsys, str(tmp_path), *form))
    assert set(of_all["file"]) == {f"{name}/{file}" for name in ("one", "two") for file in files}
    assert len(of_all) == 2 * len(of_one)
    assert not arguments or "two/sender1-eth0.pcap" in said(capsys, str(tmp_path), *arguments)


def test_one_bad_capture_among_good_ones(
    capsys: pytest.CaptureFixture[str], paths: list[str], tmp_path: Path
) -> None:
    bad = tmp_path / "bad.pcap"
    bad.write_text("nothing")
    assert main(["reduce", paths[0], str(bad)]) == 1
    assert "bad.pcap: not a pcap or pcapng capture" in capsys.readouterr().err


def test_a_disk_that_is_full(capsys: pytest.CaptureFixture[str], paths: list[str]) -> None:
    assert main(["reduce", paths[0], "--format", "csv", "--out", "/dev/full"]) == 1
    assert "No space left" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [[], ["--bin", "1s"], ["--format", "csv"]])
def test_pandas_is_not_loaded_for_flows(paths: list[str], arguments: list[str]) -> None:
    """It takes longer to load than a small capture to read."""
    words = ["reduce", paths[0], *arguments]
    program = (
        "import sys; from experiments.command import main; "
        f"status = main({words!r}); print(status, 'pandas' in sys.modules)"
    )
    said = run([sys.executable, "-c", program]).stdout
    assert said.splitlines()[-1] == "0 False"
