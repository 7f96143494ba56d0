"""iperf3 flows: TCP, or UDP at a constant bit rate paced by pace.c."""

from __future__ import annotations

import os
import re
import signal
import sys
from pathlib import Path

from testbed.errors import TestbedError
from testbed.machine.compiled import as_started, require_built
from testbed.machine.process import Place, end
from testbed.plan.flows import FlowPlan
from testbed.scenario.model import Flow
from testbed.store import report_file
from testbed.traffic.running_flow import RunningFlow

PRELOAD = Path(sys.prefix) / "lib" / "testbed-iperf3.so"  # from pace.c and combined_calls.c
ON_OFF = PRELOAD.with_name("testbed-on-off.so")
LIMIT = PRELOAD.with_name("testbed-limit.so")  # where iperf3 has threads
IPERF3_PATIENCE_S = 20.0


class Iperf3Flow(RunningFlow):
    """The server and the client of one flow."""

    program = "iperf3"

    def __init__(self, plan: FlowPlan, server: Place, client: Place, folder: Path) -> None:
        super().__init__(plan, server, client, folder)
        self._launch("server", plan.server.argv)

    def _launch(self, role: str, argv: tuple[str, ...], env: dict[str, str] | None = None) -> None:
        libraries = _preloaded(self.plan.flow)
        for each in libraries:
            require_built(each)
        preload = " ".join(map(as_started, libraries))
        super()._launch(role, argv, {**os.environ, **(env or {}), "LD_PRELOAD": preload})

    def wait_until_ready(self) -> None:
        """Return once the server listens."""
        self._wait_until_it_listens(self.plan.dst_port)

    def begin(self) -> None:
        """Start the client, which sends the flow's first packet at once."""
        self._launch("client", self.plan.client.argv, dict(self.plan.client_env))

    def stop(self) -> None:
        """Interrupt the client as ^C would: it stops sending, reports, and ends the server."""
        if "client" in self._running and not self.ended:
            self._running["client"].send_signal(signal.SIGINT)

    @property
    def may_end(self) -> bool:
        """True for a flow with a fixed number of bytes, which may finish early."""
        return bool(self.plan.flow.bytes)

    def done_ns(self) -> int | None:
        """Return the time of the last byte's acknowledgement, as pace.c reports it."""
        said = self._errors("client")
        found = re.search(r"acknowledged (\d+)", said.read_text()) if said.exists() else None
        return int(found[1]) if found else None

    def collect(self) -> None:
        """Wait for both ends and check that their reports show a flow that ran."""
        for role in ("client", "server"):
            end(self._running[role], signal.SIGTERM, IPERF3_PATIENCE_S)
            if not self._errors(role).stat().st_size:
                self._errors(role).unlink()
        error = str(self._report("client").get("error", ""))
        # iperf3 reports our own interrupt as an error
        if error and "interrupt" not in error and not self.plan.flow.bytes:
            raise TestbedError(
                f"{self.plan.flow.name}: iperf3: {error}",
                f"see {report_file(self.plan.flow.name, 'client')} in the trial's folder",
            )


def _preloaded(flow: Flow) -> tuple[Path, ...]:
    """Return the libraries that a flow's iperf3 is started with."""
    if flow.on_s:
        return ON_OFF, PRELOAD
    if flow.bytes and LIMIT.exists():
        return LIMIT, PRELOAD
    return (PRELOAD,)
