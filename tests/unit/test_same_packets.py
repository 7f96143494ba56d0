"""The comparison by packets."""

from __future__ import annotations

import dataclasses
import json
import math
import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from analysis.statistics.packet_comparison import (
    compare_packets,
    compare_pairs,
    first_difference,
    read_files,
)
from experiments.command import main
from testbed.errors import TestbedError
from testbed.machine import json_files
from testbed.store.names import RECORD, REDUCED, SCENARIO, SOCKET_SAMPLES, VERDICT_FILE
from testbed.store.reading import open_trial
from testbed.store.records import Record
from testbed.trial.parts.pcapng import Source, convert
from tests.sealing import seal
from tests.trial_writer import write_trial

CAPTURE = "sender1-eth0.pcapng"


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A results folder with one trial, whose captures are pcapng."""
    folder = tmp_path_factory.mktemp("a")
    write_trial(folder / "one", samples=True)
    record = Record.from_json(json_files.read_record(folder / "one" / RECORD))
    for capture in record.captures:
        path = folder / "one" / capture.file
        source = Source(capture.interface, capture.node, "tcpdump 4.99")
        convert(path, path.with_suffix(".pcapng"), source, threading.Event())
        path.unlink()
    captures = [
        dataclasses.replace(each, file=str(Path(each.file).with_suffix(".pcapng")))
        for each in record.captures
    ]
    changed = dataclasses.replace(record, captures=tuple(captures))
    (folder / "one" / RECORD).write_text(changed.to_json())
    seal(folder / "one")
    return folder


def copied(original: Path, tmp_path: Path, name: str = "other-hash-guest") -> Path:
    cached = shutil.ignore_patterns(REDUCED, VERDICT_FILE)
    shutil.copytree(original / "one", tmp_path / "b" / name, ignore=cached)
    return tmp_path / "b" / name


def test_a_copy_under_another_name_is_the_same(original: Path, tmp_path: Path) -> None:
    copied(original, tmp_path)
    report = compare_packets(original, tmp_path / "b")
    assert report.agrees and report.trials == 1 and report.captures > 0
    assert main(["compare", "--packets", str(original), str(tmp_path / "b")]) == 0


def later(trial: Path) -> None:
    """Shift the third packet by a nanosecond."""
    path = trial / "captures" / CAPTURE
    data = bytearray(path.read_bytes())
    at, packets = 0, 0
    while at < len(data):
        packets += data[at : at + 4] == b"\x06\0\0\0"
        if packets == 3:
            data[at + 16] ^= 1
            break
        at += int.from_bytes(data[at + 4 : at + 8], "little")
    path.write_bytes(data)
    seal(trial)


def encrypted(trial: Path) -> None:
    """Change a byte of the third packet, but not its time and length."""
    path = trial / "captures" / CAPTURE
    data = bytearray(path.read_bytes())
    at, packets = 0, 0
    while packets < 3:
        packets += data[at : at + 4] == b"\x06\0\0\0"
        if packets < 3:
            at += int.from_bytes(data[at + 4 : at + 8], "little")
    data[at + 28] ^= 1  # the receiver's address of Ethernet
    path.write_bytes(data)
    seal(trial)


def shorter(trial: Path) -> None:
    """Drop a capture's last packet."""
    path = trial / "captures" / CAPTURE
    data = path.read_bytes()
    path.write_bytes(data[: -int.from_bytes(data[-4:], "little")])
    seal(trial)


def resampled(trial: Path) -> None:
    path = trial / SOCKET_SAMPLES.file
    path.write_text(path.read_text().rstrip()[:-1] + "7\n")
    seal(trial)


def damaged(trial: Path) -> None:
    path = trial / SOCKET_SAMPLES.file
    path.write_text(path.read_text().rpartition("2.01")[0])


def damaged_where_packets_differ(trial: Path) -> None:
    later(trial)
    path = trial / "captures" / CAPTURE
    path.write_bytes(path.read_bytes()[:-4])


def failed(trial: Path) -> None:
    path = trial / RECORD
    path.write_text(path.read_text().replace('"status": "ok"', '"status": "failed"'))


def without_a_capture(trial: Path) -> None:
    record = Record.from_json(json_files.read_record(trial / RECORD))
    record = dataclasses.replace(record, captures=record.captures[1:])
    (trial / RECORD).write_text(record.to_json())


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (later, "packet 3 differs"),
        (encrypted, "1 packets have other bytes, but all times and lengths are the same"),
        (shorter, "B ends before packet"),
        (resampled, "sockets.csv: line 4 differs"),
        (damaged, "in A, invalid in B (samples/sockets.csv: damaged: "),
        (damaged_where_packets_differ, f"captures/{CAPTURE} in B: damaged: "),
        (failed, "ok in A, failed in B"),
        (without_a_capture, "captured only in A"),
    ],
)
def test_a_difference_is_named(
    original: Path,
    tmp_path: Path,
    change: Callable[[Path], None],
    sentence: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    trial = copied(original, tmp_path)
    change(trial)
    assert main(["compare", "--packets", str(original), str(tmp_path / "b")]) == 1
    assert sentence in capsys.readouterr().out
    assert main(["compare", "--packets", str(original / "one"), str(trial)]) == 1


def test_where_captures_part_first(original: Path, tmp_path: Path) -> None:
    whole, changed, cut = (
        open_trial(copied(original, tmp_path, name)) for name in ("whole", "changed", "cut")
    )
    assert first_difference(open_trial(original / "one"), whole) is None
    encrypted(changed.path)
    third = first_difference(whole, open_trial(changed.path))
    assert third and (third.interface, third.number) == ("sender1-eth0", 3)
    assert third.time_s[0] == third.time_s[1] == third.earliest_s
    shorter(cut.path)
    last = first_difference(whole, open_trial(cut.path))
    assert last and last.number == whole.record.captures[0].packets
    assert math.isnan(last.time_s[1]) and last.earliest_s == last.time_s[0]


def test_another_writer_of_the_file_is_no_difference(original: Path, tmp_path: Path) -> None:
    """The first block names the version of tcpdump."""
    trial = copied(original, tmp_path)
    path = trial / "captures" / CAPTURE
    data = bytearray(path.read_bytes())
    data[int.from_bytes(data[4:8], "little") - 9] ^= 1  # in the first block's last option
    path.write_bytes(data)
    seal(trial)
    assert compare_packets(original, tmp_path / "b").agrees


def test_numbers_and_verdicts_are_compared(original: Path, tmp_path: Path) -> None:
    """The samples say that a window was another one, and so do the checks and columns."""
    trial = copied(original, tmp_path)
    shutil.rmtree(trial / "samples")
    seal(trial)
    (sentences,) = compare_packets(original, tmp_path / "b").differences.values()
    assert any(s.startswith("check ") for s in sentences)
    assert any(" of flow tcp: " in s for s in sentences)


def test_trials_without_a_counterpart_are_listed(original: Path, tmp_path: Path) -> None:
    copied(original, tmp_path)
    twin = copied(original, tmp_path, "twin")
    scenario = dataclasses.replace(open_trial(twin).scenario, seed=9)
    (twin / SCENARIO).write_text(scenario.to_json())
    seal(twin)
    report = compare_packets(original, tmp_path / "b")
    assert report.only_b == ("twin",) and not report.agrees
    assert "twin: only in B" in list(report.lines())
    shutil.rmtree(tmp_path / "b" / "other-hash-guest")
    with pytest.raises(TestbedError, match="no trial in common"):
        compare_packets(original, tmp_path / "b")


def test_given_pairs_need_not_match(original: Path, tmp_path: Path) -> None:
    """As those of two kernels, whose labels differ."""
    trial = copied(original, tmp_path)
    scenario = dataclasses.replace(open_trial(trial).scenario, label="kernel-6.12")
    (trial / SCENARIO).write_text(scenario.to_json())
    seal(trial)
    assert compare_pairs([(read_files(original / "one"), read_files(trial))]).agrees


def test_trials_of_another_version_are_compared_by_their_packets(
    original: Path, tmp_path: Path
) -> None:
    """As before and after a change of a scenario's form, which this version does not read."""
    trial = copied(original, tmp_path)
    scenario = json.loads((trial / SCENARIO).read_text())
    (trial / SCENARIO).write_text(json.dumps({**scenario, "of_old": 1}))
    seal(trial)
    report = compare_packets(original, tmp_path / "b")
    assert report.agrees and "of_old" in report.unread
    *_, sentence, summary = report.lines()
    assert "of_old" in sentence and summary.startswith("same packets, samples: all 1 trials")
    resampled(trial)
    assert not compare_packets(original, tmp_path / "b").agrees


def test_a_captures_name_leads_nowhere_else(original: Path, tmp_path: Path) -> None:
    trial = copied(original, tmp_path)
    record = (trial / RECORD).read_text()
    (trial / RECORD).write_text(record.replace("captures/", "../../"))
    files = {capture.file for capture in read_files(trial).captures.values()}
    assert files and not any("/" in file for file in files)
