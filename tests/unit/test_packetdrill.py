"""`testbed packetdrill`: which runs a script has, what is printed, and the calls in C."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tarfile
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from testbed.cli.packetdrill import junit, summary
from testbed.errors import UsageError
from testbed.guest import kernels
from testbed.kernels.packetdrill import (
    PACKETDRILL_CALLS,
    PACKETDRILL_TESTS,
    PacketdrillTool,
    ScriptEnd,
    ScriptRun,
    find_packetdrill,
    script_runs,
)
from testbed.kernels.selftests import SELFTESTS, selftests

# prints an option's length, whether anything is behind what kernels know, and whether programs
# that it starts would have the library
ASK = """
import os, socket, sys
with socket.socket() as end:
    os.times()
    value = end.getsockopt(socket.IPPROTO_TCP, int(sys.argv[1]), 1000)
    print(len(value), any(value[900:]), "LD_PRELOAD" in os.environ)
"""


def scripts(folder: Path) -> Path:
    (folder / "sub").mkdir(parents=True)
    (folder / "b.pkt").write_text("// all\n0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n")
    (folder / "sub" / "a.pkt").write_text("--ip_version=ipv6\n--tolerance_usecs=1\n")
    (folder / "defaults.sh").touch()
    return folder


def test_a_script_has_a_run_for_each_kernel_and_version_of_ip(tmp_path: Path) -> None:
    runs = script_runs([scripts(tmp_path / "x")], ["6.1", "6.12"])
    families = ("ipv4", "ipv6", "ipv4-mapped-ipv6")
    assert [run.name for run in runs] == [
        f"{kernel} {name}"
        for kernel in ("6.1", "6.12")
        for name in (*(f"b.pkt {family}" for family in families), "sub/a.pkt ipv6")
    ]


def test_the_command_of_a_run(tmp_path: Path) -> None:
    run = script_runs([scripts(tmp_path / "x") / "sub" / "a.pkt"], ["6.1"])[0]
    words = PacketdrillTool(Path("/pd"), 1).words(run)
    assert words[:3] == ["env", f"LD_PRELOAD={PACKETDRILL_CALLS}", "/pd"]
    assert words[-2:] == ["--tolerance_usecs=1", "a.pkt"]
    assert "--ip_version=ipv6" in words and "--mtu=1520" in words
    assert not any("tolerance" in word for word in PacketdrillTool(Path("/pd")).words(run))


@pytest.mark.parametrize("what", ["missing", "missing.pkt"])
def test_no_scripts(tmp_path: Path, what: str) -> None:
    with pytest.raises(UsageError, match=r"no such script or folder"):
        script_runs([tmp_path / what], ["6.1"])
    with pytest.raises(UsageError, match=r"no \*.pkt in it"):
        script_runs([tmp_path], ["6.1"])


def test_names_of_scripts_are_fit_for_xml_and_pipes_are_no_scripts(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.pkt")
    (tmp_path / "a\nok 2 b\x1b[2J.pkt").write_text("")
    runs = script_runs([tmp_path], ["6.1"])
    assert {run.shown_name for run in runs} == {r"a\nok 2 b\x1b[2J.pkt"}
    ends = [ScriptEnd(run, False, 0.5, ("no",)) for run in runs]
    assert len(ET.fromstring(junit(ends)).findall(".//failure")) == 3


def test_the_program_is_the_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match="packetdrill is not installed") as caught:
        find_packetdrill(None)
    assert "--packetdrill FILE" in caught.value.hint
    program = tmp_path / "packetdrill"
    program.touch()
    with pytest.raises(UsageError, match="no program"):
        find_packetdrill(program)
    program.chmod(0o755)
    assert find_packetdrill(None) == find_packetdrill(program) == program.resolve()


def test_selftests_of_an_unknown_kernel() -> None:
    with pytest.raises(UsageError, match=r"6\.99: no such kernel"):
        selftests("6.99", "net/packetdrill")


def test_selftests_are_unpacked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = tmp_path / "linux-source-6.1"
    scripts(tree / SELFTESTS / PACKETDRILL_TESTS)
    with tarfile.open(tmp_path / "linux.tar.xz", "w:xz") as archive:
        archive.add(tree, tree.name)
    monkeypatch.setattr(kernels, "source_archive", lambda _version: tmp_path / "linux.tar.xz")
    monkeypatch.setattr("testbed.kernels.selftests.cache_folder", lambda: tmp_path / "cache")
    folder = selftests("6.1", PACKETDRILL_TESTS)
    names = ["b.pkt", "defaults.sh", "sub", "sub/a.pkt"]
    assert sorted(str(path.relative_to(folder)) for path in folder.rglob("*")) == names
    (folder / "b.pkt").unlink()
    assert selftests("6.1", PACKETDRILL_TESTS) == folder and not (folder / "b.pkt").exists()
    with pytest.raises(UsageError, match=r"Linux 6\.1 has no tools/testing/selftests/tc-testing"):
        selftests("6.1", "tc-testing")


@pytest.fixture
def ends() -> list[ScriptEnd]:
    def end(kernel: str, family: str, *said: str) -> ScriptEnd:
        run = ScriptRun(kernel, Path("/s/x.pkt"), "x.pkt", family)
        return ScriptEnd(run, not said, 0.5, said)

    return [
        end("6.1", "ipv4"),
        end("6.1", "ipv6", "sysctl: no such file", "x.pkt:3: bad <value>", "script packet: 1"),
        end("6.12", "ipv4"),
        end("6.12", "ipv6"),
    ]


def test_the_summary(ends: list[ScriptEnd]) -> None:
    assert list(summary(ends)) == [
        "6.1: pass:1 fail:1, scripts that pass: 0 of 1; 1.0 s of virtual time",
        "6.12: pass:2 fail:0, scripts that pass: 1 of 1; 1.0 s of virtual time",
        "differs: x.pkt ipv6: 6.1 not ok, 6.12 ok",
    ]


def test_junit(ends: list[ScriptEnd]) -> None:
    suites = ET.fromstring(junit(ends))
    assert [suite.get("name") for suite in suites] == ["packetdrill 6.1", "packetdrill 6.12"]
    assert len(suites.findall(".//testcase")) == 4
    (failure,) = suites.findall(".//failure")
    assert failure.get("message") == "x.pkt:3: bad <value>"
    assert failure.text == "sysctl: no such file\nx.pkt:3: bad <value>\nscript packet: 1"


def test_the_reason_of_a_failure_without_a_place(ends: list[ScriptEnd]) -> None:
    run = ends[0].run
    assert ScriptEnd(run, False, 0, ("a", "assertion failed")).reason == "assertion failed"
    assert ScriptEnd(run, False, 0).reason == "it printed nothing"


def test_tcp_info_of_an_older_kernel_is_filled_with_zeros() -> None:
    """The kernel's own answer is shorter than what is asked for; other options are left alone."""
    environment = {**os.environ, "LD_PRELOAD": str(PACKETDRILL_CALLS)}

    def asked(option: int) -> str:
        argv = [sys.executable, "-c", ASK, str(option)]
        return subprocess.run(
            argv, env=environment, capture_output=True, text=True, check=True
        ).stdout

    assert asked(socket.TCP_INFO) == "1000 False False\n"
    assert asked(socket.TCP_MAXSEG).startswith("4 ")
