"""The library that ends an iperf3 with threads: exact, told once, and never turning round."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from testbed.runs.sources import PROJECT
from tests.lab import PATIENCE_S

# Two threads write blocks until they are ended, as iperf3's do; what arrives is counted.
SENDERS = """
import ctypes, signal, socket, threading
signal.signal(signal.SIGINT, signal.default_int_handler)  # what runs the tests may ignore it
libc, block, got = ctypes.CDLL(None), bytes(131072), [0, 0]
pairs = [socket.socketpair() for _ in got]
def receive(place):
    while part := pairs[place][1].recv(1 << 16):
        got[place] += len(part)
def send(place):
    while libc.write(pairs[place][0].fileno(), block, len(block)) == len(block):
        pass
readers = [threading.Thread(target=receive, args=(place,)) for place in range(2)]
writers = [threading.Thread(target=send, args=(place,), daemon=True) for place in range(2)]
try:
    for each in readers + writers:
        each.start()
    for each in writers:
        each.join()
except KeyboardInterrupt:
    pass
for sender, _ in pairs:
    sender.shutdown(socket.SHUT_WR)
for each in readers:
    each.join()
print(sum(got))
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compiled here: setup.sh does so only where iperf3 has threads."""
    made = tmp_path_factory.mktemp("library") / "limit.so"
    source = PROJECT / "testbed" / "traffic" / "iperf3" / "limit.c"
    flags = "-O2 -Wall -Wextra -Werror -shared -fPIC".split()
    subprocess.run(["gcc", *flags, "-o", made, source], check=True)
    return made


@pytest.mark.parametrize("limit", [1, 131072, 2 * 131072, 500_003])
def test_all_threads_together_send_exactly_the_limit(library: Path, limit: int) -> None:
    env = {**os.environ, "LD_PRELOAD": str(library), "LIMIT_BYTES": str(limit)}
    argv = [sys.executable, "-c", SENDERS]
    done = subprocess.run(
        argv, capture_output=True, text=True, env=env, check=True, timeout=PATIENCE_S
    )
    assert int(done.stdout) == limit
    told, at_ns = done.stderr.split()
    assert told == "acknowledged" and int(at_ns) > 0
