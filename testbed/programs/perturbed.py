"""In a guest: run a command on a machine that is at times slow, as a seed has it.

    python3 perturbed.py ORDERS COMMAND…

Packets of the loopback are late, and lost; and now and then one of the command's processes rests,
as on a host with other work. All of it follows from the orders (JSON, `Perturbation`) and virtual
time, so that it is the same each time. What rested when and for how long is in `RESTS_FILE` then.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

RESTS_FILE = ".testbed-rests"  # in the command's working folder
MAX_RESTS = 100_000  # that are written down
PR_SET_CHILD_SUBREAPER = 36


def rests(seed: int, every_ms: float, at_most_ms: float) -> Iterator[tuple[float, float, float]]:
    """Yield when a process rests (s), for how long (s), and which of those there are (0 to 1)."""
    draw, at_s = random.Random(seed), 0.0
    while True:
        at_s += draw.expovariate(1e3 / every_ms)
        yield round(at_s, 6), round(draw.uniform(0, at_most_ms) / 1e3, 6), draw.random()


def main(orders: dict[str, Any], command: list[str]) -> int:
    """Run the command and return its exit status, as a shell has it."""
    _disturb_packets(orders)
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # orphans stay below us
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
    process = os.posix_spawnp(command[0], command, os.environ, setsigmask=[])
    rested: list[tuple[float, float, float, str]] = []
    status = _run(process, orders, rested)
    Path(RESTS_FILE).write_text(json.dumps(rested[:MAX_RESTS]))
    return status


def _disturb_packets(orders: dict[str, Any]) -> None:
    arguments = []
    if orders["delay_ms"]:
        arguments += ["delay", f"{orders['delay_ms']}ms", f"{orders['jitter_ms']}ms"]
    if orders["loss_percent"]:
        arguments += ["loss", f"{orders['loss_percent']}%"]
    if arguments:
        tc = ["tc", "qdisc", "add", "dev", "lo", "root", "netem", "limit", "100000", *arguments]
        subprocess.run(tc, check=True)


def _run(
    process: int, orders: dict[str, Any], rested: list[tuple[float, float, float, str]]
) -> int:
    began_s = time.monotonic()
    drawn: Iterable[tuple[float, float, float]] = orders["rests"] or ()
    if orders["rests"] is None and orders["rest_ms"]:
        drawn = rests(orders["seed"], orders["every_ms"], orders["rest_ms"])
    for at_s, for_s, which in drawn:
        status = _ended(process, began_s + at_s)
        if status is not None:
            return status
        if resting := _pick(which):
            pid, name = resting
            rested.append((at_s, for_s, which, name))
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)
                status = _ended(process, time.monotonic() + for_s)
                os.kill(pid, signal.SIGCONT)
            if status is not None:
                return status
    status = _ended(process, None)
    assert status is not None
    return status


def _ended(process: int, until_s: float | None) -> int | None:
    """Wait until an instant, or for ever; return the command's status if it has ended."""
    while True:
        status = None
        with contextlib.suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                if ended[0] == process:
                    code = os.waitstatus_to_exitcode(ended[1])
                    status = code if code >= 0 else 128 - code
        if status is not None:
            return status
        if until_s is None:
            signal.sigwait([signal.SIGCHLD])
        elif (left_s := until_s - time.monotonic()) <= 0:
            return None
        else:
            signal.sigtimedwait([signal.SIGCHLD], left_s)


def _pick(which: float) -> tuple[int, str] | None:
    """Return one of our descendants, by its number and name."""
    parents, names = dict[int, int](), dict[int, str]()
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError, IndexError):
                head, _, tail = (folder / "stat").read_text().rpartition(")")
                parents[int(folder.name)] = int(tail.split()[1])
                names[int(folder.name)] = head.partition("(")[2]
    ours, below = {os.getpid()}, list[int]()
    while deeper := [pid for pid, parent in parents.items() if parent in ours and pid not in ours]:
        ours.update(deeper)
        below += deeper
    if not below:
        return None
    pid = sorted(below)[int(which * len(below))]
    return pid, names[pid]


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1]), sys.argv[2:]))
