"""`testbed inspect`: the right packets of the right capture, and nothing left behind."""

from __future__ import annotations

import os
import shutil
import tempfile
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from analysis.captures import inspection
from experiments.command import main
from testbed.errors import TestbedError
from testbed.machine.process import User, end, start
from testbed.store.reading import open_trial
from testbed.store.records import FlowRecord, Record, Status
from tests.lab import PATIENCE_S
from tests.trial_writer import CBR, TCP, captures, flow_record, write_trial

FLOW = flow_record("tcp", TCP, "tcp")
FILTER = "ip.addr == 10.0.1.2 && ip.addr == 10.0.0.2 && tcp.port == 5201 && tcp.port == 40001"


@pytest.fixture
def trial(tmp_path: Path) -> Path:
    return write_trial(tmp_path / "trial")


@pytest.fixture(autouse=True)
def no_display(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in inspection.DISPLAYS:
        monkeypatch.delenv(name, raising=False)


def said(capsys: pytest.CaptureFixture[str], *arguments: object) -> list[str]:
    assert main(["inspect", *map(str, arguments)]) == 0
    return capsys.readouterr().out.splitlines()


def test_without_a_display(trial: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capture = trial / "captures/sender1-eth0.pcap"
    assert said(capsys, trial) == [
        "view: flow tcp at sender",
        f"display filter: {FILTER}",
        f"command: wireshark -C TCP-testbed -r {capture} -Y '{FILTER}'",
        "not opened here: no display (DISPLAY and WAYLAND_DISPLAY are not set)",
        f"profile: copy {inspection.PROFILE_FOLDER} into Wireshark's profiles folder"
        " (~/.config/wireshark/profiles)",
    ]


def test_without_wireshark(
    trial: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setattr("shutil.which", lambda _name, **_keys: None)
    assert "not opened here: wireshark is not installed (apt install wireshark)" in said(
        capsys, trial
    )


@pytest.mark.parametrize(
    ("point", "capture"),
    [
        ("sender", "sender1-eth0"),
        ("receiver", "receiver-eth0"),
        ("bottleneck-in", "router-eth1"),
        ("bottleneck-out", "router-eth0"),
    ],
)
def test_each_point(
    trial: Path, capsys: pytest.CaptureFixture[str], point: str, capture: str
) -> None:
    lines = said(capsys, trial, "--point", point, "--print")
    assert lines[0] == f"view: flow tcp at {point}"
    assert f"{capture}.pcap" in lines[2]
    assert not any("not opened" in line for line in lines)


def test_another_flow(trial: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = said(capsys, trial, "--flow", "cbr", "--point", "receiver")
    assert lines[1].endswith("udp.port == 5202 && udp.port == 40065")


def failing(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, list[str]]:
    status = main(["inspect", *map(str, arguments)])
    return status, capsys.readouterr().err.splitlines()


def test_wrong_requests(trial: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert failing(capsys, trial, "--flow", "tpc") == (
        2,
        [f"testbed: {trial}: no flow 'tpc'", "    hint: did you mean 'tcp'?"],
    )
    assert failing(capsys, trial, "--point", "reciever") == (
        2,
        ["testbed: unknown point 'reciever'", "    hint: did you mean 'receiver'?"],
    )
    assert failing(capsys, trial, "--packets", "0")[0] == 2
    assert failing(capsys, trial, "--packets", "1", "--print")[0] == 2


def test_no_such_trial(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, lines = failing(capsys, tmp_path / "nowhere")
    assert (status, len(lines)) == (2, 2)
    assert "nowhere: not a trial: no such folder" in lines[0]
    write_trial(tmp_path / "trial")
    status, lines = failing(capsys, tmp_path)
    assert "is missing" in lines[0]
    assert lines[1] == f"    hint: name one of those in it: {tmp_path / 'trial'}"


def test_a_point_without_a_capture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trial = write_trial(tmp_path / "trial", without=("router-eth1",))
    assert failing(capsys, trial, "--point", "bottleneck-in") == (
        1,
        [
            f"testbed: {trial}: flow tcp was not captured at bottleneck-in",
            "    hint: captured: sender, receiver, bottleneck-out",
        ],
    )


def test_a_capture_that_is_gone(trial: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (trial / "captures/sender1-eth0.pcap").unlink()
    status, lines = failing(capsys, trial)
    assert (status, len(lines)) == (1, 2)
    assert "sender1-eth0.pcap: missing: the trial recorded it" in lines[0]


def test_a_trial_that_failed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = Record(Status.FAILED, reason="the router fell over", hint="pick it up")
    trial = write_trial(tmp_path / "trial", record=record)
    assert failing(capsys, trial) == (
        1,
        [
            f"testbed: {trial}: no flow ran (failed: the router fell over)",
            "    hint: pick it up",
        ],
    )


def count(flow: FlowRecord, trial: Path, capture: str) -> int:
    """How many packets of a capture the flow's filter lets through."""
    view = inspection.View(trial / f"captures/{capture}.pcap", inspection.flow_filter(flow))
    return len(inspection.packet_table(view, 1000)) - 1


def test_the_filter_is_the_flow_in_both_directions(trial: Path) -> None:
    frames = len(captures()["receiver-eth0"])
    cbr = count(flow_record("cbr", CBR, "udp"), trial, "receiver-eth0")
    assert cbr == 4
    assert count(FLOW, trial, "receiver-eth0") == frames - cbr
    assert count(replace(FLOW, src_ports=(40001, 40002)), trial, "receiver-eth0") == frames - cbr
    assert count(replace(FLOW, src_ports=(40002, 40003)), trial, "receiver-eth0") == 0
    assert count(replace(FLOW, src_ports=()), trial, "receiver-eth0") == frames - cbr


def test_the_filter_of_ipv6() -> None:
    flow = replace(FLOW, src_address="fd00::1", dst_address="fd00::2")
    assert inspection.flow_filter(flow).startswith("ipv6.addr == fd00::1 && ipv6.addr == fd00::2")


def test_packets_as_the_profile_shows_them(trial: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = said(capsys, trial, "--packets", "5")
    assert len(lines) == 6
    assert lines[0].split()[:4] == ["No.", "Time", "[s]", "Delta"]
    assert lines[4].split()[:11] == [
        *("4", "1.000000000", "0.899000000", "10.0.1.2", "10.0.0.2"),
        *("1054", "1", "1", "1000", "8192", "1000"),
    ]
    assert lines[2].endswith("5201 → 40001 [SYN, ACK] Seq=0 Ack=1 Win=8192 Len=0")


def test_fewer_packets_than_asked(trial: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = (trial, "--flow", "cbr", "--packets", "100")
    assert len(said(capsys, *arguments)) == 1 + 5


def test_the_users_own_settings_change_nothing(
    trial: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = said(capsys, trial, "--packets", "9")
    (tmp_path / "own").mkdir()
    (tmp_path / "own/preferences").write_text("tcp.relative_sequence_numbers: FALSE\n")
    monkeypatch.setenv(inspection.VARIABLE, str(tmp_path / "own"))
    assert said(capsys, trial, "--packets", "9") == before


# --- the window, with a program of Wireshark's name that notes how it was called


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A wireshark that leaves its arguments, and a copy of its configuration, in this folder."""
    notes = tmp_path / "notes"
    notes.mkdir()
    program = tmp_path / "bin/wireshark"
    program.parent.mkdir()
    program.write_text(
        "#!/bin/sh\n"
        f'printf "%s\\n" "$@" >{notes}/arguments\n'
        f"echo ${inspection.VARIABLE} >{notes}/folder\n"
        f"cp -R ${inspection.VARIABLE} {notes}/configuration\n"
        f"echo recent >${inspection.VARIABLE}/recent\n"
        f"test ! -e {notes}/fails || {{ echo could not connect to display; echo bye; exit 3; }}"
        " >&2\n"
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("DISPLAY", ":0")
    for name in ("SUDO_UID", "SUDO_GID"):
        monkeypatch.delenv(name, raising=False)
    return notes


def shipped() -> dict[str, bytes]:
    """Every file of the configuration that we ship."""
    return {
        str(path.relative_to(inspection.CONFIGURATION)): path.read_bytes()
        for path in inspection.CONFIGURATION.rglob("*")
        if path.is_file()
    }


def test_the_window(trial: Path, fake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = shipped()
    said(capsys, trial, "--point", "receiver")
    assert (fake / "arguments").read_text().splitlines() == [
        *("-C", "TCP-testbed", "-r", f"{trial}/captures/receiver-eth0.pcap", "-Y", FILTER)
    ]
    folder = Path((fake / "folder").read_text().strip())
    assert folder != inspection.CONFIGURATION
    assert not folder.exists()
    assert shipped() == before
    given = {
        str(path.relative_to(fake / "configuration")): path.read_bytes()
        for path in (fake / "configuration").rglob("*")
        if path.is_file() and path.name != "said"
    }
    graphs = f"profiles/{inspection.PROFILE}/{inspection.IO_GRAPHS}"
    assert given.keys() == before.keys()
    assert {name for name in given if given[name] != before[name]} == {graphs}


def test_graphs_count_the_flow_only(trial: Path, fake: Path) -> None:
    view = inspection.view_of(open_trial(trial))
    inspection.open_window(view)
    folder = fake / "configuration/profiles" / inspection.PROFILE
    text = (folder / inspection.IO_GRAPHS).read_text()
    assert f'"({FILTER}) && (tcp.analysis.retransmission)"' in text
    assert f'"{FILTER}"' in text  # the graph of all packets


def test_a_window_that_does_not_open(
    trial: Path, fake: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (fake / "fails").touch()
    status, lines = failing(capsys, trial)
    assert status == 1
    assert lines == [
        "testbed: wireshark ended with status 3: could not connect to display",
        "    hint: `testbed inspect … --print` gives the command and the display filter",
    ]
    assert not Path((fake / "folder").read_text().strip()).exists()


def test_a_read_only_installation(
    tmp_path: Path, fake: Path, trial: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = tmp_path / "installed"
    shutil.copytree(inspection.CONFIGURATION, copy)
    for path in (*copy.rglob("*"), copy):
        path.chmod(0o555 if path.is_dir() else 0o444)
    monkeypatch.setattr(inspection, "CONFIGURATION", copy)
    inspection.open_window(inspection.view_of(open_trial(trial)))
    assert (fake / "arguments").exists()
    for path in (copy, *copy.rglob("*")):
        path.chmod(0o755)


@pytest.fixture
def public() -> Iterator[Path]:
    """A folder that all users may enter, which pytest's are not."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.mark.root("acts as two users")
@pytest.mark.usefixtures("fake")
def test_through_sudo_the_window_is_the_users(
    trial: Path, public: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes, program = public / "notes", public / "wireshark"
    notes.touch()
    notes.chmod(0o666)
    owners = f"find ${inspection.VARIABLE} ! -name said -printf '%u\\n' | sort -u"
    program.write_text(f"#!/bin/sh\n(id -u; id -g; echo $HOME; {owners}) >{notes}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{public}:{os.environ['PATH']}")
    monkeypatch.setenv("SUDO_UID", "65534")
    monkeypatch.setenv("SUDO_GID", "65534")
    inspection.open_window(inspection.view_of(open_trial(trial)))
    assert notes.read_text().split() == ["65534", "65534", "/nonexistent", "nobody"]


@pytest.mark.root("acts as two users")
def test_another_user_dies_with_us_too() -> None:
    """The kernel forgets the signal when the user changes, so the order matters."""
    read = "import ctypes; n = ctypes.c_int(); ctypes.CDLL(None).prctl(2, ctypes.byref(n));"
    argv = ["/usr/bin/python3", "-c", f"{read} import sys; sys.exit(n.value)"]
    process = start(argv, user=User(65534, 65534))
    try:
        assert process.wait(PATIENCE_S) == 9
    finally:
        end(process)


def test_two_filters_are_both_meant() -> None:
    assert inspection.conjunction("a || b", "c") == "(a || b) && (c)"
    assert inspection.conjunction("", "c") == inspection.conjunction("c", "") == "c"


def test_a_view_can_be_narrowed(trial: Path) -> None:
    view = inspection.view_of(open_trial(trial)).narrowed("tcp.len > 0")
    titles, *rows = inspection.packet_table(view, 100)
    assert {row[titles.index("Len")] for row in rows} == {"1000"}
    with pytest.raises(TestbedError, match=r"tcp\.nonsense"):
        inspection.packet_table(view.narrowed("tcp.nonsense"), 1)


def test_the_profile_is_installed_with_the_package(root: Path) -> None:
    data = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["setuptools"]
    patterns = data["package-data"]["analysis"]
    folder = root / "analysis"
    covered = {path for pattern in patterns for path in folder.glob(pattern)}
    assert {path for path in inspection.CONFIGURATION.rglob("*") if path.is_file()} <= covered
