"""The profile that we ship: tshark knows every field, filter and preference that it names."""

from __future__ import annotations

import csv
import os
import re
from pathlib import Path

import pytest

from analysis.captures.inspection import (
    CONFIGURATION,
    FILTER_COLUMN,
    PROFILE,
    PROFILE_FOLDER,
    VARIABLE,
)
from testbed.machine.process import Completed, run, stream
from tests.pcap_writer import Frame, icmp_unreachable, tcp, udp, write_pcap
from tests.trial_writer import CBR, ISN, TCP, captures

CUSTOM = re.compile(r"%Cus:([^:\"]+)")


def filters() -> dict[str, str]:
    """Every display filter of the profile, by where it stands."""
    found = {}
    for line in entries("colorfilters"):
        _, name, condition, _ = line.split("@", 3)
        found[f"colour {name}"] = condition
    for row in csv.reader(entries("io_graphs")):
        found[f"graph {row[1]}"] = row[FILTER_COLUMN]
    for row in csv.reader(entries("dfilter_buttons")):
        found[f"button {row[1]}"] = row[2]
    return found


def entries(name: str) -> list[str]:
    """The lines of a file of the profile, without comments."""
    lines = (PROFILE_FOLDER / name).read_text().splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def accepted(condition: str, folder: Path) -> Completed:
    """What tshark says of a display filter."""
    capture = folder / "one.pcap"
    write_pcap(capture, [tcp(TCP, 0, seq=1)])
    return run(["tshark", "-r", str(capture), "-Y", condition], check=False)


def words(topic: str) -> str:
    """What `tshark -G` knows of a topic."""
    return run(["tshark", "-G", topic]).stdout


@pytest.mark.slow(but=4)
@pytest.mark.parametrize("where", filters())
def test_tshark_takes_the_filter(tmp_path: Path, where: str) -> None:
    done = accepted(filters()[where], tmp_path)
    assert done.status == 0, done.stderr


def test_a_filter_that_tshark_does_not_know(tmp_path: Path) -> None:
    assert accepted("tcp.analysis.slow_retransmission", tmp_path).status != 0


def test_all_kinds_of_filters_are_read() -> None:
    assert {name.split()[0] for name in filters()} == {"colour", "graph", "button"}
    assert len(filters()) > 20


def column_formats() -> list[str]:
    """The formats of the columns, in order."""
    text = (PROFILE_FOLDER / "preferences").read_text()
    block = re.search(r"^gui\.column\.format: *\n((?:\t.*\n)+)", text, re.MULTILINE)
    assert block
    return re.findall(r'"[^"]*", "([^"]*)"', block[1])


def test_columns_are_fields_that_tshark_knows() -> None:
    known = {line.split("\t")[2] for line in words("fields").splitlines() if line[:2] == "F\t"}
    named = [found[1] for each in column_formats() if (found := CUSTOM.match(each))]
    assert len(named) == 6
    assert set(named) <= known


def test_other_columns_are_formats_that_tshark_knows() -> None:
    known = {line.split("\t")[0] for line in words("column-formats").splitlines()}
    assert {each for each in column_formats() if not CUSTOM.match(each)} <= known


def test_every_column_has_a_width() -> None:
    widths = re.findall(r'^\t"?(%[^",]*)"?, \d+', "\n".join(entries("recent")), re.MULTILINE)
    assert widths == [re.sub(r":0:R$", "", each) for each in column_formats()]


def test_preferences_exist() -> None:
    known = set(re.findall(r"^#?([a-z0-9_.]+):", words("defaultprefs"), re.MULTILINE))
    named = re.findall(r"^([a-z0-9_.]+):", "\n".join(entries("preferences")), re.MULTILINE)
    assert len(named) > 10
    assert set(named) <= known


def marked(frame: Frame, *, ecn: int = 0, flags: int = 0) -> Frame:
    """The frame with ECN bits in its IP header, or more flags in its TCP header."""
    data = bytearray(frame.data)
    data[15] |= ecn
    data[47] |= flags
    return Frame(frame.time_ns, bytes(data))


def rules(path: Path) -> list[str]:
    """The name of the colour that each packet gets."""
    argv = ["tshark", "-r", str(path), "-C", PROFILE, "--color"]
    argv += ["-T", "fields", "-e", "frame.coloring_rule.name"]
    environment = {**os.environ, VARIABLE: str(CONFIGURATION)}
    with stream(argv, env=environment) as process:
        assert process.stdout
        return [line.strip() for line in process.stdout]


def test_packets_get_their_colours(tmp_path: Path) -> None:
    def data(number: int, *, later: int = 0) -> Frame:
        return tcp(TCP, number + later, seq=ISN + 1 + 100 * number, ack=1, payload=100)

    def ack(time_ns: int, number: int) -> Frame:
        return tcp(TCP.back, time_ns, seq=1, ack=ISN + 1 + 100 * number)

    expected = [
        (tcp(TCP, 0, seq=ISN, flags="S"), "SYN or FIN"),
        (tcp(TCP.back, 0, seq=0, ack=ISN + 1, flags="SA"), "SYN or FIN"),
        (data(0), "Data"),
        (marked(data(1), ecn=3), "CE mark"),
        (ack(10, 1), "ACK"),
        (marked(ack(11, 2), flags=0x40), "ECE or CWR"),
        (marked(data(2), flags=0x80), "ECE or CWR"),
        (data(3, later=20), "Data"),
        (ack(30, 2), "Duplicate ACK"),
        (ack(31, 2), "Duplicate ACK"),
        (ack(32, 2), "Duplicate ACK"),
        (data(2, later=40), "Fast retransmission"),
        (data(2, later=10**9), "Retransmission"),
        (ack(10**9 + 10, 4), "ACK"),
        (data(3, later=10**9 + 20), "Spurious retransmission"),
        (data(9, later=10**9 + 30), "Lost segment or out of order"),
        (udp(CBR, 10**9 + 40, payload=10), "UDP"),
        (tcp(TCP, 10**9 + 50, seq=ISN + 1001, flags="R"), "Reset"),
        (icmp_unreachable(CBR.back, 10**9 + 60, udp(CBR, 0, payload=1)), "ICMP error"),
    ]
    path = write_pcap(tmp_path / "x.pcap", [frame for frame, _ in expected])
    assert rules(path) == [rule for _, rule in expected]


def test_a_zero_window_is_seen(tmp_path: Path) -> None:
    frame = bytearray(tcp(TCP, 0, seq=1, ack=1).data)
    frame[48:50] = bytes(2)
    assert rules(write_pcap(tmp_path / "x.pcap", [Frame(0, bytes(frame))])) == [
        "Zero window or window full"
    ]


def test_every_packet_of_a_trial_has_a_rule(tmp_path: Path) -> None:
    frames = captures()["receiver-eth0"]
    found = rules(write_pcap(tmp_path / "x.pcap", frames))
    assert len(found) == len(frames) > 0
    assert all(found)
