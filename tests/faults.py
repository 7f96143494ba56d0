"""Every way in which trials are broken on purpose, and the verdict on each.

    .venv/bin/python -m tests.faults [--host]

prints the table of docs/verdicts.md: trials that really run broken, in the guest (and, with
`--host` and as root, one on a host whose cores are busy), then a recorded one that is doctored.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from analysis.verdict.verdict import Verdict, judge
from testbed.host.engine import HostEngine
from testbed.plan.plan import tasks
from testbed.runs.engine_choice import choose
from testbed.runs.sweep import run_all
from testbed.scenario.model import Scenario
from testbed.scenario.network import Queue
from testbed.store.names import trial_folder
from testbed.store.reading import open_trial
from tests.doctored import SABOTAGES, SOUND
from tests.sabotage import run_sabotaged
from tests.scenarios import router
from tests.workloads import evenly, workload_scenario

# Faults of tests/sabotage.py, and what the verdict has to say first.
FAULTS = {
    "wrong-variant": "variant of tcp: 'reno', not 'cubic'",
    "offloads": "offloads of sender1-eth0: 2962, expected 1514",
    "hidden-loss": "loss of tcp sender1-eth0 to router-eth1",
    "slow-rate": "rate of router-eth0: 9.8",
    "small-buffer": "tail drop of router-eth0: 11, expected 21",
    "changed-sysctl": "configuration of sender1: sysctl net.ipv4.tcp_sack",
    "slow-path": "idle RTT of tcp: 32.1568, expected 30.1568",
    "late-start": "start of tcp: 0.05, expected 0",
    "lagging-samples": "sampling of queues: 90, expected 10",
    "shortened-capture": "capture gaps of router-eth1",
    "lost-transfer": "transfers of web log: 5",
}


def broken(fault: str = "") -> Scenario:
    """What they are worked on: a flow through a router, or a workload."""
    if fault == "lost-transfer":
        return workload_scenario(evenly(count=10))
    return router(
        variant="cubic", rate_mbit=10, queue=Queue("pfifo", limit_packets=20), delay_ms=15
    )


def verdict(path: Path) -> Verdict:
    """On a trial that ran."""
    found = judge(open_trial(path))
    assert found is not None
    return found


def run_broken(fault: str, out: Path) -> Verdict:
    """In the guest."""
    return verdict(run_sabotaged(fault, broken(fault), out).path)


@contextlib.contextmanager
def busy_cores() -> Iterator[None]:
    """A loop on every core, above the trial's own priority."""
    loop = [sys.executable, "-c", "import os; os.nice(-5)\nwhile True: pass"]
    spinning = [subprocess.Popen(loop) for _ in range(os.cpu_count() or 1)]
    try:
        yield
    finally:
        for each in spinning:
            each.kill()
            each.wait()


def run_busy(out: Path) -> Verdict:
    """On a host without a core to spare."""
    scenario = router(variant="cubic", rate_mbit=5, duration_s=4)
    with busy_cores():
        run_all(tasks([scenario]), choose("host", ()), out, lambda _event: None)
    return verdict(out / trial_folder(scenario, HostEngine.name))


def main() -> None:
    """Print them all."""
    parser = argparse.ArgumentParser(description="What the verdict says of broken trials.")
    parser.add_argument("--host", action="store_true", help="one on this machine's kernel too")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        print("| broken while it ran | verdict | its reason |\n|---|---|---|")
        for fault in FAULTS:
            _line(fault.replace("-", " "), run_broken(fault, out / fault))
        if options.host:
            _line("busy cores (on the host)", run_busy(out / "busy"))
        print("\n| doctored in a recorded trial | verdict | its reason |\n|---|---|---|")
        for number, (name, (act, _)) in enumerate(SABOTAGES.items()):
            path = Path(shutil.copytree(SOUND, out / "doctored" / str(number)))
            act(path)
            _line(name, verdict(path))


def _line(name: str, found: Verdict) -> None:
    print(f"| {name} | {found.verdict} | {found.why} |", flush=True)


if __name__ == "__main__":
    main()
