"""Running background traffic: one program at each end serves all sessions."""

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
from testbed.plan.background import FIRST_PORT, PROGRAM, BackgroundPlan
from testbed.scenario.variants import variant
from testbed.store import (
    BACKGROUND,
    BACKGROUND_FLOW,
    SESSIONS,
    FlowRecord,
    errors_file,
    report_file,
    write_json,
)
from testbed.traffic.background.tally import Tally, session_rows

BACKGROUND_PROGRAM = Path(sys.prefix) / "lib" / PROGRAM  # built from background/ by setup.sh
READY_S = 10.0
PATIENCE_S = 20.0
INTERVAL_S = 1.0  # between two rows of counts


class Sessions:
    """The server, the client, and the packet counts of their interfaces."""

    def __init__(self, plan: BackgroundPlan, server: Place, client: Place, folder: Path) -> None:
        self.plan = plan
        self._places = {"server": server, "client": client}
        self._folder = folder
        self._table = folder / SESSIONS
        self._table.parent.mkdir(exist_ok=True)
        self._table.write_text(plan.table())
        self.tally = Tally(plan, server, client)
        self._stopped_s = 0.0
        self._processes: dict[str, Process] = {}
        self._launch("server", plan.server.argv)

    def _launch(self, role: str, argv: tuple[str, ...]) -> None:
        require_built(BACKGROUND_PROGRAM)
        self._processes[role] = start(
            (as_started(BACKGROUND_PROGRAM), *argv[1:]),
            place=self._places[role],
            stdout=self._output(role),
            stderr=self._errors(role),
        )

    def _output(self, role: str) -> Path:
        return self._folder / report_file(BACKGROUND_FLOW, role)

    def _errors(self, role: str) -> Path:
        return self._folder / errors_file(BACKGROUND_FLOW, role)

    def wait_until_ready(self) -> None:
        """Return once the server listens on its last port."""
        deadline = time.monotonic() + READY_S
        last = FIRST_PORT + len(self.plan.sessions) - 1
        while not listening(self._places["server"].pid, last):
            if self._processes["server"].poll() is not None or time.monotonic() > deadline:
                raise self._fault("server", "did not start")
            time.sleep(0.001)

    def begin(self, time_s: float) -> None:
        """Start the client and the packet counts."""
        self.tally.begin(time_s)
        self._launch("client", (*self.plan.client.argv, str(self._table)))

    @property
    def processes(self) -> Iterator[tuple[str, str, int]]:
        """All processes, running or ended, as (name, node, process id)."""
        for role, process in self._processes.items():
            yield f"{BACKGROUND_FLOW} {role}", self._places[role].name, process.pid

    def count(self, time_s: float) -> None:
        """Record what has been sent and delivered, at most once per instant."""
        if not self.tally.rows or time_s - self.tally.rows[-1].time_s > 1e-6:
            self.tally.count(time_s)

    def stop(self, time_s: float) -> None:
        """Stop both programs; transfers in progress are abandoned."""
        self._stopped_s = time_s
        self.count(time_s)
        for role, process in self._processes.items():
            if (status := process.poll()) is not None:
                raise self._fault(role, f"ended early, with status {status}")
        for process in self._processes.values():
            process.send_signal(signal.SIGTERM)

    def collect(self) -> None:
        """Wait for both ends and check their exit statuses."""
        for role, process in self._processes.items():
            if status := end(process, signal.SIGTERM, PATIENCE_S):
                raise self._fault(role, f"ended with status {status}")
            self._errors(role).unlink()

    def _fault(self, role: str, what: str) -> TestbedError:
        errors = self._errors(role)
        said = errors.read_text(errors="replace").strip() if errors.exists() else ""
        return TestbedError(f"{BACKGROUND_FLOW}: the {role} {what}" + (f": {said}" if said else ""))

    def _report(self, role: str) -> dict[str, Any]:
        """Parse a program's JSON output."""
        try:
            data: dict[str, Any] = json.loads(self._output(role).read_text())
        except json.JSONDecodeError as error:
            raise TestbedError(
                f"{BACKGROUND_FLOW}: the {role} ended without a report ({error})",
                f"see {report_file(BACKGROUND_FLOW, role)} in the trial's folder",
            ) from error
        return data

    def write(self, folder: Path, rate_mbit: float) -> None:
        """Write the counts and one report entry per session."""
        self.tally.write(folder)
        rows = session_rows(self.plan, self._report("client"), self._report("server"))
        totals = self.tally.totals(self._stopped_s, rate_mbit)
        write_json(folder, BACKGROUND, {**totals, "sessions": rows})

    def record(self) -> FlowRecord:
        """Describe all sessions as one flow without fixed ports."""
        plan = self.plan
        controls = {s["control"] for s in self._report("server")["sessions"] if s["control"]}
        return FlowRecord(
            name=BACKGROUND_FLOW,
            protocol="tcp",
            src_address=plan.src_address,
            dst_address=plan.dst_address,
            src_ports=(),
            dst_port=0,
            started_s=self.tally.rows[0].time_s,
            stopped_s=self._stopped_s,
            planned_start_s=0.0,
            planned_stop_s=plan.stop_s,
            control=variant(plan.flow.variant or "").control,
            variant_seen="+".join(sorted(controls)),
        )

    def kill(self) -> None:
        """Kill both programs and close the counters."""
        for process in self._processes.values():
            end(process, signal.SIGKILL)
        self.tally.close()
