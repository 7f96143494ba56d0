"""What is preloaded into iperf3 and tcpdump to make them start faster and take less memory."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from testbed.traffic.iperf3 import PRELOAD as INTO_IPERF3
from testbed.trial.parts.capture import PRELOADED as INTO_TCPDUMP

STAND_INS = INTO_IPERF3.with_name("stand-ins")


def preloading(*libraries: Path) -> dict[str, str]:
    return {**os.environ, "LD_PRELOAD": " ".join(map(str, libraries))}


def loaded(program: str, libraries: Iterable[Path]) -> dict[str, str]:
    """The file of each library that a program loads: nothing of it runs."""
    path = shutil.which(program)
    assert path
    env = {**preloading(*libraries), "LD_TRACE_LOADED_OBJECTS": "1"}
    done = subprocess.run([path], capture_output=True, text=True, env=env, check=True)
    found = re.findall(r"^\s*(?:\S+ => )?(/\S+)", done.stdout, flags=re.MULTILINE)
    return {Path(file).name: file for file in found}


@pytest.mark.parametrize(
    ("program", "libraries", "names"),
    [
        ("iperf3", [INTO_IPERF3], ["libcrypto.so.3"]),
        ("tcpdump", INTO_TCPDUMP, ["libcrypto.so.3", "libdbus-1.so.3"]),
    ],
)
def test_stand_ins_take_the_place_of_large_libraries(
    program: str, libraries: Iterable[Path], names: list[str]
) -> None:
    files = loaded(program, libraries)
    for name in names:
        assert files[name] == str(STAND_INS / name)
    # what only those would need is not there either
    assert not {"libsystemd.so.0", "libgcrypt.so.20"} & files.keys()


def test_all_functions_are_there_when_a_program_starts() -> None:
    """Bound at once, as Debian builds them: a function that is missing would end them."""
    for argv, libraries in (
        (["iperf3", "--version"], [INTO_IPERF3]),
        (["tcpdump", "-r", "/dev/null"], INTO_TCPDUMP),
    ):
        env = {**preloading(*libraries), "LD_BIND_NOW": "1"}
        done = subprocess.run(argv, capture_output=True, text=True, env=env, check=False)
        assert "symbol" not in done.stderr and "stand-in" not in done.stderr
        assert done.returncode >= 0  # not by a signal


def test_a_stand_in_that_is_called_says_so() -> None:
    script = f"import ctypes; ctypes.CDLL({str(STAND_INS / 'libcrypto.so.3')!r}).BIO_new()"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode < 0
    assert "testbed: BIO_new is only a stand-in" in done.stderr


def test_captures_are_written_in_large_pieces() -> None:
    """Each write is a datagram: the numbers of seq, which writes by stdio as tcpdump does."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    theirs.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
    env = preloading(*INTO_TCPDUMP)
    with ours, theirs:
        subprocess.run(["seq", "20000"], stdout=theirs.fileno(), env=env, check=True)
        whole = "".join(f"{number}\n" for number in range(1, 20001)).encode()
        assert ours.recv(1 << 20) == whole
