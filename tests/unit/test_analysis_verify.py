"""Our reader says what tshark says: of random and adversarial conversations, and of every way
in which a packet may be wrapped."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from analysis.captures import tshark
from analysis.captures.tcp import CAPTURE_COLUMNS, Packets, read_capture
from analysis.captures.tshark import TsharkComparison, verify
from experiments.command import main
from tests.conversations import conversations
from tests.installed import followed_wireshark
from tests.pcap_writer import ETHERNET, pcap, write_pcap
from tests.wrappings import frames, write_all


def changed(packets: Packets, **tables: pd.DataFrame) -> Packets:
    """Replace tables of a capture by others."""
    vars(packets).update(tables)
    return packets


@pytest.mark.parametrize("count", [200, pytest.param(1000, marks=pytest.mark.slow)])
def test_random_and_adversarial_conversations(tmp_path: Path, count: int) -> None:
    path = write_pcap(tmp_path / "x.pcap", conversations(20261121, count))
    verdict = verify(path)
    assert not verdict.differences, "\n".join(map(str, verdict.differences[:10]))
    assert verdict.packets > 20 * count
    marked = read_capture(path).rows.select_dtypes("bool").any()
    assert marked.all(), f"no packet is {list(marked[~marked].index)}"


@pytest.fixture(scope="module")
def wrapped(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A capture of every format and link type."""
    return write_all(tmp_path_factory.mktemp("wrapped"), seed=7)


@pytest.mark.slow
def test_every_wrapping(wrapped: list[Path]) -> None:
    total = TsharkComparison()
    for path in wrapped:
        total += verify(path)
    assert not total.differences, "\n".join(map(str, total.differences[:10]))
    assert total.packets > 500


def test_a_difference_is_told(
    wrapped: list[Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def wrong(path: Path, *, tunnels: bool) -> object:
        packets = read_capture(path, tunnels=tunnels)
        payload = packets.rows["payload"].to_numpy(copy=True)
        payload[3] += 1
        rows = packets.rows.assign(payload=payload).drop(index=5)
        return changed(packets, rows=rows)

    monkeypatch.setattr(tshark, "read_capture", wrong)
    path = wrapped[0]
    rows = read_capture(path).rows
    assert main(["reduce", "--verify", str(path)]) == 1
    said = capsys.readouterr().out
    frame, payload, lost = rows["frame"][3], rows["payload"][3], rows["frame"][5]
    assert f"frame {frame}: payload: ours {payload + 1}, tshark's {payload}" in said
    assert f"frame {lost}: frame: ours none, tshark's a packet" in said
    assert f"{len(rows) - 1} packets, {(len(rows) - 1) * len(CAPTURE_COLUMNS)} fields" in said


def test_no_difference_is_a_success(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = []
    for number in range(2):
        paths.append(tmp_path / f"{number}.pcap")
        paths[-1].write_bytes(pcap(frames(ETHERNET, number), ETHERNET))
    assert main(["reduce", "--verify", *map(str, paths)]) == 0
    assert "2 captures: " in capsys.readouterr().out


@pytest.mark.parametrize(("column", "status"), [("duplicate_ack_number", 0), ("flags", 1)])
def test_another_wireshark_may_judge_otherwise_but_not_read(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    column: str,
    status: int,
) -> None:
    def wrong(path: Path, *, tunnels: bool) -> object:
        packets = read_capture(path, tunnels=tunnels)
        return changed(packets, rows=packets.rows.assign(**{column: packets.rows[column] + 1}))

    monkeypatch.setattr(tshark, "read_capture", wrong)
    monkeypatch.setattr(tshark, "version", lambda: "9.8.7")
    path = tmp_path / "x.pcap"
    path.write_bytes(pcap(frames(ETHERNET, 1), ETHERNET))
    assert main(["reduce", "--verify", str(path)]) == status
    said = capsys.readouterr().out
    assert ("0 differences" in said) is (status == 0)
    assert ("judged by tshark 9.8.7 otherwise" in said) is (status == 0)
    assert (column in said) is True


@followed_wireshark
def test_sack_blocks_that_differ_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_pcap(tmp_path / "x.pcap", conversations(3, 100))
    blocks = read_capture(path).sacks
    second = int(blocks["frame"].duplicated().to_numpy().argmax())  # of a packet that has two
    assert second

    def wrong(path: Path, *, tunnels: bool) -> object:
        packets = read_capture(path, tunnels=tunnels)
        left = packets.sacks["left"].to_numpy(copy=True)
        left[second] ^= 1
        sacks = packets.sacks.assign(left=left)
        ours = pd.DataFrame({"frame": [10**6], "left": [1], "right": [2]})
        last = sacks["frame"].iloc[-1]
        sacks = pd.concat([sacks[sacks["frame"] != last], ours], ignore_index=True)
        return changed(packets, sacks=sacks)

    monkeypatch.setattr(tshark, "read_capture", wrong)
    first, last = int(blocks["frame"][second]), int(blocks["frame"].iloc[-1])
    found = verify(path).differences
    assert [(each.frame, each.field) for each in found] == [
        (first, "sacks"),
        (last, "sacks"),
        (10**6, "sacks"),
    ]
    assert found[1].ours == "[]" and found[2].theirs == "none"
