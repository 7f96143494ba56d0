"""A flow of many transfers: a server, a client, and the list of what the client asks for."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

from testbed.machine.compiled import as_started, require_built
from testbed.machine.process import Place, end
from testbed.plan.flows import WORKLOAD_PROGRAM, FlowPlan
from testbed.store import planned_file
from testbed.traffic.running_flow import RunningFlow

BUILT_PROGRAM = Path(sys.prefix) / "lib" / WORKLOAD_PROGRAM  # from *.c
WORKLOAD_PATIENCE_S = 20.0
OPTIONS = {"timestamps": 1, "sack": 2}  # TCPI_OPT_… of linux/tcp.h


class WorkloadFlow(RunningFlow):
    """The server and the client of one flow; the list is written before either starts."""

    program = "workload"

    def __init__(self, plan: FlowPlan, server: Place, client: Place, folder: Path) -> None:
        super().__init__(plan, server, client, folder)
        self._list = folder / planned_file(plan.flow.name)
        with self._list.open("w") as file:
            for each in plan.transfers:
                file.write(f"{each.session} {each.at_ns} {each.size}\n")
        self._launch("server", plan.server.argv)

    def _launch(self, role: str, argv: tuple[str, ...], env: dict[str, str] | None = None) -> None:
        require_built(BUILT_PROGRAM)
        super()._launch(role, (as_started(BUILT_PROGRAM), *argv[1:]), env)

    def wait_until_ready(self) -> None:
        """Return once the server listens on its last port."""
        self._wait_until_it_listens(self.plan.src_ports[-1])

    def begin(self) -> None:
        """Start the client, whose clock of arrivals starts with it."""
        self._launch("client", (*self.plan.client.argv, str(self._list)))

    def done_ns(self) -> int | None:
        """Return when the last transfer ended, by the monotonic clock; None while one runs."""
        if not self.ended:
            return None
        report = self._report("client")
        last_ns = max((end_ns for _, _, end_ns, _ in report["transfers"]), default=0)
        return int(report["zero_ns"]) + max(0, last_ns)

    def stop(self) -> None:
        """Interrupt the client; transfers in progress stay unfinished."""
        if (status := self._running["server"].poll()) is not None:
            raise self._fault("server", f"ended early, with status {status}")
        if not self.ended:
            self._running["client"].send_signal(signal.SIGTERM)

    def collect(self) -> None:
        """Wait for both ends, the client first, and check their exit statuses."""
        for role in ("client", "server"):
            if status := end(self._running[role], signal.SIGTERM, WORKLOAD_PATIENCE_S):
                raise self._fault(role, f"ended with status {status}")
            self._errors(role).unlink()

    def seen(self) -> tuple[str, tuple[str, ...]]:
        """Return the congestion control and TCP options of all connections; empty without any."""
        used = [port for port in self._report("server")["ports"] if port["connections"]]
        controls = sorted({str(port["control"]) for port in used})
        names = (
            name
            for name, bit in OPTIONS.items()
            if used and all(port["options"] & bit for port in used)
        )
        return "+".join(controls), tuple(sorted(names))
