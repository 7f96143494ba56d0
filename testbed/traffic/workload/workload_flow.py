"""A flow of many transfers: a server, a client, and the list of what the client asks for."""

from __future__ import annotations

import json
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from testbed.errors import TestbedError
from testbed.machine.compiled import as_started, require_built
from testbed.machine.netlink import listening
from testbed.machine.process import Place, Process, end, start
from testbed.plan.flows import WORKLOAD_PROGRAM, FlowPlan
from testbed.store import FLOWS, errors_file, planned_file, report_file

BUILT_PROGRAM = Path(sys.prefix) / "lib" / WORKLOAD_PROGRAM  # from *.c by setup.sh
READY_S = 10.0
PATIENCE_S = 20.0
OPTIONS = {"timestamps": 1, "sack": 2}  # TCPI_OPT_… of linux/tcp.h


class WorkloadFlow:
    """The server and the client of one flow; the list is written before either starts."""

    def __init__(self, plan: FlowPlan, server: Place, client: Place, folder: Path) -> None:
        self.plan = plan
        self._places = {"server": server, "client": client}
        self._folder = folder
        (folder / FLOWS).mkdir(exist_ok=True)
        self._list = folder / planned_file(plan.flow.name)
        with self._list.open("w") as file:
            for each in plan.transfers:
                file.write(f"{each.session} {each.at_ns} {each.size}\n")
        self._processes: dict[str, Process] = {}
        self._launch("server", plan.server.argv)

    def _launch(self, role: str, argv: tuple[str, ...]) -> None:
        require_built(BUILT_PROGRAM)
        self._processes[role] = start(
            (as_started(BUILT_PROGRAM), *argv[1:]),
            place=self._places[role],
            stdout=self._folder / report_file(self.plan.flow.name, role),
            stderr=self._folder / errors_file(self.plan.flow.name, role),
        )

    def wait_until_ready(self) -> None:
        """Return once the server listens on its last port."""
        deadline = time.monotonic() + READY_S
        while not listening(self._places["server"].pid, self.plan.src_ports[-1]):
            if self._processes["server"].poll() is not None or time.monotonic() > deadline:
                raise self._fault("server", "did not start")
            time.sleep(0.001)

    def begin(self) -> None:
        """Start the client, whose clock of arrivals starts with it."""
        self._launch("client", (*self.plan.client.argv, str(self._list)))

    @property
    def processes(self) -> Iterator[tuple[str, str, int]]:
        """All processes of the flow, running or ended, as (name, node, process id)."""
        for role, process in self._processes.items():
            yield f"workload {role} {self.plan.flow.name}", self._places[role].name, process.pid

    @property
    def may_end(self) -> bool:
        """Always true: the last transfer may end early."""
        return True

    @property
    def ended(self) -> bool:
        """True once the client has exited."""
        client = self._processes.get("client")
        return client is not None and client.poll() is not None

    def done_ns(self) -> int | None:
        """Return when the last transfer ended, by the monotonic clock; None while one runs."""
        if not self.ended:
            return None
        report = self._report("client")
        last_ns = max((end_ns for _, _, end_ns, _ in report["transfers"]), default=0)
        return int(report["zero_ns"]) + max(0, last_ns)

    def stop(self) -> None:
        """Interrupt the client; transfers in progress stay unfinished."""
        if (status := self._processes["server"].poll()) is not None:
            raise self._fault("server", f"ended early, with status {status}")
        if not self.ended:
            self._processes["client"].send_signal(signal.SIGTERM)

    def collect(self) -> None:
        """Wait for both ends, the client first, and check their exit statuses."""
        for role in ("client", "server"):
            if status := end(self._processes[role], signal.SIGTERM, PATIENCE_S):
                raise self._fault(role, f"ended with status {status}")
            (self._folder / errors_file(self.plan.flow.name, role)).unlink()

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

    def _fault(self, role: str, what: str) -> TestbedError:
        errors = self._folder / errors_file(self.plan.flow.name, role)
        said = errors.read_text(errors="replace").strip() if errors.exists() else ""
        name = self.plan.flow.name
        return TestbedError(f"{name}: the workload's {role} {what}" + (f": {said}" if said else ""))

    def _report(self, role: str) -> dict[str, Any]:
        """Parse a program's JSON output."""
        file = report_file(self.plan.flow.name, role)
        try:
            data: dict[str, Any] = json.loads((self._folder / file).read_text())
        except json.JSONDecodeError as error:
            raise TestbedError(
                f"{self.plan.flow.name}: the workload's {role} ended without a report ({error})",
                f"see {file} in the trial's folder",
            ) from error
        return data

    def kill(self) -> None:
        """Kill both ends after a failed trial."""
        for process in self._processes.values():
            end(process, signal.SIGKILL)
