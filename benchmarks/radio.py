"""What one flow gets over the radio, by signal and by what other stations take of the air.

    .venv/bin/python -m benchmarks.radio [--seconds N]

prints docs/video.md's table: iperf3 (Cubic) from the server to the station over the whole way,
in the guest. Not how fast the testbed is, but what its radio gives: the same on every machine.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import tempfile
from pathlib import Path
from typing import Any

from experiments.access_settings import NETWORKS
from testbed.engines.choice import choose
from testbed.plan.task import tasks
from testbed.runs.sweep import run_all
from testbed.scenario.model import Flow, FlowKind, Radio, Scenario
from testbed.store import Trial, trials_in

RADIOS = (Radio(-40), Radio(-60), Radio(-64), Radio(-75), Radio(-80), Radio(-80, busy=0.5))


def scenario(radio: Radio, seconds: float) -> Scenario:
    """The paper's good WiFi with another radio."""
    topology = NETWORKS["wifi-good"]
    way = dataclasses.replace(topology.links["ap-station"], radio=radio)
    return Scenario(
        experiment="radio",
        label=f"{-radio.signal_dbm:g}-{radio.busy:g}",
        topology=dataclasses.replace(topology, links={**topology.links, "ap-station": way}),
        flows=(Flow("tcp", FlowKind.TCP, "server", "station", variant="cubic"),),
        duration_s=seconds,
    )


def line(trial: Trial) -> str:
    """A row of the table."""
    told: dict[str, Any] = json.loads((trial.path / "flows" / "tcp.server.json").read_text())
    medium: dict[str, Any] = json.loads((trial.path / "samples" / "radio.json").read_text())
    point = medium["radios"][0]
    cells = (
        f"{medium['signal_dbm']:g} dBm" + (f", {medium['busy']:g}" if medium["busy"] else ""),
        f"{told['end']['sum_received']['bits_per_second'] / 1e6:.1f}",
        f"{100 * point['lost'] / point['frames']:.2g} %",
        f"{100 * point['failed'] / point['attempts']:.0f} %",
    )
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Run them, and print the table."""
    parser = argparse.ArgumentParser(description="What iperf3 gets over the radio.")
    parser.add_argument("--seconds", type=float, default=10.0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="testbed-benchmark-") as name:
        out = Path(name) / "out"
        wanted = [scenario(radio, options.seconds) for radio in RADIOS]
        run_all(tasks(wanted), choose("guest", ()), out, lambda _event: None)
        lines = {trial.scenario.label: line(trial) for trial in trials_in(out)}
        print("| signal, others' share | Mbit/s | frames lost for good | attempts that failed |")
        print("|---|---|---|---|")
        for each in wanted:
            print(lines[each.label])


if __name__ == "__main__":
    main()
