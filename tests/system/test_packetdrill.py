"""Scripts in guests, with a program in place of packetdrill that looks at where it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.cli.entry import main
from testbed.guest.kernels import default_kernel

# says where it runs and what it finds there, and fails if the script has the word
PROGRAM = """#!/bin/sh
for script; do :; done
. ../common/shared.sh
[ "$(readlink /proc/self/ns/net)" = "$(readlink /proc/1/ns/net)" ] || echo "namespace: another"
echo "$script:1: preloaded: ${LD_PRELOAD:-nothing}"
grep -q crash $script && kill -KILL -1
if grep -q fail $script; then
    case "$*" in
    *--verbose*) ip link set lo up; ping -c 2 127.0.0.1 >/dev/null; echo packet ;;
    esac
    exit 1
fi
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder like that of Google's scripts, which refer to a file beside theirs."""
    files = {
        "packetdrill": PROGRAM,
        "common/shared.sh": "echo shared: yes",
        "tcp/crash.pkt": "--ip_version=ipv4\n// crash\n",
        "tcp/good.pkt": "--ip_version=ipv4\n",
        "tcp/bad.pkt": "--ip_version=ipv6\n// fail\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "packetdrill").chmod(0o755)
    return tmp_path


def test_each_script_runs_by_itself_and_a_failed_one_leaves_its_packets(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, xml = place / "out", place / "results.xml"
    argv = ["packetdrill", str(place / "tcp"), "--packetdrill", str(place / "packetdrill")]
    assert main([*argv, "--out", str(out), "--junit", str(xml), "--jobs", "1"]) == 1
    kernel = default_kernel()
    lines = capsys.readouterr().out.splitlines()
    kept = out / f"{kernel}-bad.pkt-ipv6"
    assert lines[:10] == [
        "KTAP version 1",
        "1..3",
        "# shared: yes",
        "# namespace: another",
        "# bad.pkt:1: preloaded: nothing",
        f"# packets: {kept}",
        f"not ok 1 {kernel} bad.pkt ipv6",
        "# the guest's machine was ended by what ran in it",
        f"not ok 2 {kernel} crash.pkt ipv4",
        f"ok 3 {kernel} good.pkt ipv4",
    ]
    assert (kept / "packets.txt").read_text().endswith("packet\n")
    assert (kept / "capture.pcap").stat().st_size > 2 * 84  # two echoes, and their answers
    assert xml.read_text().count("<failure") == 2
