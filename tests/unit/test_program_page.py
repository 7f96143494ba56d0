"""The page of a whole program's run, from a folder of results written by hand."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from analysis.figures.figure import Curve
from analysis.figures.program_figure import program_figure
from analysis.laboratory.observed_network import built_networks
from analysis.laboratory.program_results import ProgramResults, open_program_run
from analysis.laboratory.samples import write_sample_tables
from analysis.report.program_page import write_program_page
from testbed.cli.entry import main
from testbed.errors import TestbedError
from testbed.store.names import (
    CAPTURES_FOLDER,
    LABORATORY_FINDINGS,
    MACHINE_OBSERVED,
    MACHINE_OUTPUT,
    MACHINE_RECORD,
)
from tests.pcap_writer import Endpoints, tcp, write_pcap

S = 10**9
BEGAN = [f"began {20 * S} {1020 * S}", "controls reno cubic"]
FINDING = {
    "rule": "a number without a unit",
    "place": "lab.py:6",
    "happened": "'delay 5' has no unit <b>",
    "instead": "write delay='5ms'",
    "times": 2,
}


def network(packets: int, rate: str = "1.5mbit") -> list[str]:
    """Lines of two hosts and a router, whose queue was set, and of their end."""
    return [
        f"command {20 * S} 7 2 cubic tc qdisc add dev r-eth0 root handle 1: htb default 1",
        f"exit {20 * S} 7 0",
        f"command {20 * S} 8 2 cubic tc class add dev r-eth0 parent 1: classid 1:1 htb rate {rate}",
        f"exit {20 * S} 8 0",
        f"command {20 * S} 9 2 cubic tc qdisc add dev r-eth0 parent 1:1 pfifo limit 20",
        f"exit {20 * S} 9 0",
        f"command {20 * S} 10 2 cubic tc qdisc add dev r-eth1 root netem delay 20ms",
        f"exit {20 * S} 10 0",
        f"command {21 * S} 11 4 cubic ping h1",
        f"exit {29 * S} 11 0",
        f"namespace {30 * S} 2 r",
        f"device 9 r-eth0 5 0 0 {packets} 0",
        f"device 10 r-eth1 6 0 0 {packets} 0",
        "qdisc 9 pfifo 900 9 7 20 0",
        f"namespace {30 * S} 3 h1",
        f"device 5 h1-eth0 9 0 0 {packets} 1",
        "address 5 10.0.0.1",
        f"namespace {30 * S} 4 h2",
        f"device 6 h2-eth0 10 0 0 {packets} 0",
        "address 6 10.0.0.2",
        f"command {30 * S} 12 2 cubic ip link del r-eth0",
        f"exit {30 * S} 12 0",
    ]


def write_run(folder: Path, *lines: str) -> ProgramResults:
    folder.mkdir(exist_ok=True)
    (folder / MACHINE_OBSERVED).write_text("".join(f"{line}\n" for line in (*BEGAN, *lines)))
    (folder / LABORATORY_FINDINGS).write_text(json.dumps([FINDING]))
    (folder / MACHINE_OUTPUT).write_text("said <i>\n")
    record = {"words": ["python3", "lab.py"], "folder": "/lab", "seed": 1, "kernel": "6.1"}
    record |= {"status": 3, "took_s": 10.0, "wall_s": 1.0, "deterministic": True, "notes": []}
    (folder / MACHINE_RECORD).write_text(json.dumps(record))
    return open_program_run(folder)


def test_a_network_has_what_tc_was_told(tmp_path: Path) -> None:
    [found] = built_networks(write_run(tmp_path, *network(9)).observation)
    assert found.nodes == {"r": True, "h1": False, "h2": False}
    (router, h1), (delaying, h2) = found.links
    assert (router.interface, h1.interface, h2.interface) == ("r-eth0", "h1-eth0", "h2-eth0")
    told = ("htb default 1", "class 1:1: htb rate 1.5mbit", "pfifo limit 20")
    assert (router.settings, router.rate_mbit, router.queue) == (told, 1.5, "pfifo limit 20")
    assert (router.sent_packets, router.drops, h1.addresses) == (9, 7, ("10.0.0.1",))
    assert (delaying.delay_ms, delaying.rate_mbit, h1.has_tso, h2.has_tso) == (20, 0, True, False)


def test_a_network_that_is_made_again_is_another(tmp_path: Path) -> None:
    run = write_run(tmp_path, *network(9), *network(4, "2mbit"))
    rates = [found.links[0][0].rate_mbit for found in built_networks(run.observation)]
    assert rates == [1.5, 2]


def test_ends_with_the_same_numbers_are_told_apart_by_the_command_that_made_them(
    tmp_path: Path,
) -> None:
    """Indices are unique in a namespace alone, and a chain's counters are alike."""
    made = [
        f"command {20 * S} {number} 1 cubic ip link add name {one} type veth peer name {other}"
        for number, (one, other) in enumerate((("r-eth1", "w1a"), ("h2-eth0", "w1b")), 50)
    ]
    chain = [
        f"namespace {30 * S} 2 r",
        "device 9 r-eth1 5 7 7 3 0",
        f"namespace {30 * S} 3 h2",
        "device 5 h2-eth0 9 7 7 3 0",
        f"namespace {30 * S} 4 wires",
        "device 5 w1a 9 7 7 3 0",
        "device 9 w1b 5 7 7 3 0",
    ]
    delay = [
        f"command {20 * S} 70 4 cubic tc qdisc add dev w1b root netem delay 20ms",
        f"exit {20 * S} 70 0",
    ]
    [found] = built_networks(write_run(tmp_path, *made, *delay, *chain).observation)
    [(one, other)] = found.links
    assert {one.interface: one.delay_ms, other.interface: other.delay_ms} == {
        "r-eth1": 20,
        "h2-eth0": 0,
    }
    assert list(found.nodes) == ["r", "h2"]


def test_a_queue_that_was_replaced_is_not_shown(tmp_path: Path) -> None:
    again = [
        f"command {20 * S} 5 2 cubic tc qdisc replace dev r-eth0 root pfifo limit 9",
        f"exit {20 * S} 5 0",
    ]
    lines = network(9)
    run = write_run(tmp_path, *lines[:8], *again, *lines[8:])
    [found] = built_networks(run.observation)
    assert found.links[0][0].settings == ("pfifo limit 9",)


def test_samples_become_tables(tmp_path: Path) -> None:
    lines = tmp_path / "lines"
    lines.write_text(
        f"queue {21 * S} r r-eth0 8002: pfifo 3028 2 1 9084 6\n"
        f"socket {22 * S} =h1 10.0.0.1 5001 10.0.0.2 80 10 7 20500 4 1 999\n"
        f"socket {24 * S} h1 fd00::1 5001 fd00::2 80 10 7 20500 4 1 999\n"
        f"queue {23 * S} - lo 1: pfifo 0 0 0 0 0\nqueue {24 * S} r r-eth0 80\n"
    )
    write_sample_tables(lines, 20 * S, tmp_path)
    queues, sockets = (
        (tmp_path / "samples" / name).read_text().splitlines()[1:]
        for name in ("queues.csv", "sockets.csv")
    )
    assert queues == ["1.0,r,r-eth0,8002:,pfifo,3028,2,1,9084,6",
                      "3.0,the machine itself,lo,1:,pfifo,0,0,0,0,0"]  # fmt: skip
    assert sockets == ["2.0,'=h1,10.0.0.1:5001,10.0.0.2:80,10,7,20.5,4,1,999",
                       "4.0,h1,[fd00::1]:5001,[fd00::2]:80,10,7,20.5,4,1,999"]  # fmt: skip


def test_the_figure_has_flows_sockets_queues_and_commands(tmp_path: Path) -> None:
    write_run(tmp_path, *network(9))
    (tmp_path / "lines").write_text(
        f"queue {21 * S} r r-eth0 1: htb 3028 2 1 9084 6\n"
        f"queue {21 * S} r r-eth0 8002: pfifo 3028 2 1 9084 6\n"
        f"queue {22 * S} r r-eth0 8004: codel 3028 3 1 9084 6\n"
        f"socket {22 * S} h1 10.0.0.1 5001 10.0.0.2 80 10 7 20500 4 1 999\n"
    )
    write_sample_tables(tmp_path / "lines", 20 * S, tmp_path)
    write_capture(tmp_path / CAPTURES_FOLDER)
    figure = program_figure(open_program_run(tmp_path))
    panels = {panel.y.label or panel.title: panel for panel in figure.all_panels}
    assert list(panels) == ["throughput (Mbit/s)", "window (packets)", "smoothed RTT (ms)",
                            "queue (packets)", "commands"]  # fmt: skip
    series = {name: [mark.series for mark in panel.marks if isinstance(mark, Curve)]
              for name, panel in panels.items()}  # fmt: skip
    assert series["throughput (Mbit/s)"] == series["window (packets)"] == ["h1:5001 → h2:80"]
    assert series["queue (packets)"] == ["r-eth0, pfifo", "r-eth0, codel"]  # which replaced it
    ends = [np.max(mark.x) for mark in panels["queue (packets)"].marks if isinstance(mark, Curve)]
    assert ends == [1, 10]
    [rate, *_] = panels["throughput (Mbit/s)"].marks
    assert isinstance(rate, Curve)
    assert np.min(rate.x) == pytest.approx(2.0)  # 1022 s of the wall clock
    assert list(panels["commands"].y.names) == ["r: set up", "h2: ping"]


def write_capture(folder: Path) -> None:
    """Two captures of a flow: the one behind a drop has a packet less."""
    folder.mkdir()
    ends = Endpoints("10.0.0.1", 5001, "10.0.0.2", 80)
    for name, packets in (("h1-eth0", 3), ("h2-eth0", 2)):
        frames = [
            tcp(ends, (1022 + number) * S, seq=1 + 1000 * number, payload=1000)
            for number in range(packets)
        ]
        write_pcap(folder / f"{name}.pcapng", frames)


def test_the_page_shows_all_of_it_and_nothing_unescaped(tmp_path: Path) -> None:
    folder = tmp_path / "lab"
    write_run(folder, *network(9))
    page = write_program_page(folder, folder / "report.html").read_text()
    for words in ("status 3", "1 finding", "lab.py:6", "1.5 Mbit/s", "20 ms one way",
                  "pfifo limit 20", "h2: ping", "said &lt;i&gt;", "machine.json"):  # fmt: skip
        assert words in page
    assert "<b>" not in page and 'href="report.html"' not in page


@pytest.mark.filterwarnings("error")
def test_a_device_without_another_end_is_no_network(tmp_path: Path) -> None:
    """A VLAN names the device below it as a veth names its peer."""
    vlan = [f"namespace {30 * S} 2 r", "device 9 eth0 0 0 0 9 0", "device 10 v10 9 0 0 9 0"]
    folder = tmp_path / "lab"
    run = write_run(folder, *vlan)
    assert built_networks(run.observation) == []
    page = write_program_page(folder, folder / "report.html").read_text()
    assert "The network as it was built" not in page


def test_testbed_report_takes_the_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_run(tmp_path, *network(9))
    assert main(["report", str(tmp_path)]) == 0
    assert (tmp_path / "report.html").exists()
    assert main(["report", "--claims", str(tmp_path)]) == 2
    assert "leave out all options but --out" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["status", "seed", "kernel", "took_s", "wall_s", "words", "notes"])
@pytest.mark.parametrize("value", [None, "nan", 1e99, -5])
def test_a_record_with_odd_values_is_one_line_or_a_page(
    tmp_path: Path, name: str, value: object, capsys: pytest.CaptureFixture[str]
) -> None:
    write_run(tmp_path, *network(9))
    record = json.loads((tmp_path / MACHINE_RECORD).read_text())
    (tmp_path / MACHINE_RECORD).write_text(json.dumps({**record, name: value}))
    status = main(["report", str(tmp_path)])
    assert status == 0 or "damaged" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["a,b\n1,2\n", "time_s,node\nx,y\n"])
def test_damaged_samples_are_one_line(tmp_path: Path, text: str) -> None:
    write_run(tmp_path)
    (tmp_path / "samples").mkdir()
    (tmp_path / "samples" / "queues.csv").write_text(text)
    with pytest.raises(TestbedError, match="damaged"):
        open_program_run(tmp_path)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"folder": 1}', '{"took_s": "x"}'])
def test_a_damaged_record_is_one_line(tmp_path: Path, text: str) -> None:
    write_run(tmp_path)
    (tmp_path / MACHINE_RECORD).write_text(text)
    with pytest.raises(TestbedError, match="damaged"):
        open_program_run(tmp_path)
