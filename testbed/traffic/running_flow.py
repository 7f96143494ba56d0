"""A running flow: its server and its client, and how a trial starts, stops and checks them."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from testbed.errors import TestbedError
from testbed.machine.netlink import listening
from testbed.machine.process import Place, Process, end, start
from testbed.plan.flows import FlowPlan
from testbed.store import FLOWS_FOLDER, errors_file, report_file

READY_S = 10.0


class RunningFlow:
    """A flow's two programs; the server starts when the object is made."""

    program = ""  # as messages and tables name it

    def __init__(self, plan: FlowPlan, server: Place, client: Place, folder: Path) -> None:
        self.plan = plan
        self._places = {"server": server, "client": client}
        self._folder = folder
        self._running: dict[str, Process] = {}
        (folder / FLOWS_FOLDER).mkdir(exist_ok=True)

    def wait_until_ready(self) -> None:
        """Return once the flow can begin."""
        raise NotImplementedError

    def begin(self) -> None:
        """Send the first packet now."""
        raise NotImplementedError

    def stop(self) -> None:
        """Stop the flow if it is still running."""
        raise NotImplementedError

    def collect(self) -> None:
        """Wait for both programs and check their reports."""
        raise NotImplementedError

    @property
    def processes(self) -> Iterator[tuple[str, str, int]]:
        """All processes of the flow, running or ended, as (name, node, process id)."""
        for role, process in sorted(self._running.items()):
            name = f"{self.program} {role} {self.plan.flow.name}".strip()
            yield name, self._places[role].name, process.pid

    @property
    def may_end(self) -> bool:
        """True if the flow may finish before its planned end."""
        return True

    @property
    def ended(self) -> bool:
        """True once the client has exited."""
        return "client" in self._running and self._running["client"].poll() is not None

    def done_ns(self) -> int | None:
        """Return the completion time on the monotonic clock; None if it runs until stopped."""
        raise NotImplementedError

    def seen(self) -> tuple[str, tuple[str, ...]]:
        """Return the congestion control and the TCP options that the programs report, if any.

        For other flows the samples of their sockets have them.
        """
        return "", ()

    def kill(self) -> None:
        """Kill both programs at once."""
        for _, process in sorted(self._running.items()):
            end(process, signal.SIGKILL)

    def _launch(self, role: str, argv: tuple[str, ...], env: dict[str, str] | None = None) -> None:
        """Start one of the programs, whose output is its report."""
        self._running[role] = start(
            argv,
            place=self._places[role],
            stdout=self._output(role),
            stderr=self._errors(role),
            env=env,
        )

    def _wait_until_it_listens(self, port: int) -> None:
        deadline = time.monotonic() + READY_S
        while not listening(self._places["server"].pid, port):
            if self._running["server"].poll() is not None or time.monotonic() > deadline:
                raise self._fault("server", "did not start")
            time.sleep(0.001)

    def _output(self, role: str) -> Path:
        return self._folder / report_file(self.plan.flow.name, role)

    def _errors(self, role: str) -> Path:
        return self._folder / errors_file(self.plan.flow.name, role)

    def _report(self, role: str) -> dict[str, Any]:
        """Parse a program's JSON output."""
        try:
            data: dict[str, Any] = json.loads(self._output(role).read_text())
        except json.JSONDecodeError as error:
            raise TestbedError(
                f"{self.plan.flow.name}: the {self.program} {role} ended without a report "
                f"({error})",
                f"see {report_file(self.plan.flow.name, role)} in the trial's folder",
            ) from error
        return data

    def _fault(self, role: str, what: str) -> TestbedError:
        """Describe what one of the programs did, with the last line that it printed."""
        errors = self._errors(role)
        said = errors.read_text(errors="replace").strip() if errors.exists() else ""
        text = f"{self.plan.flow.name}: the {self.program} {role} {what}"
        return TestbedError(f"{text}: {said.splitlines()[-1].strip()}" if said else text)
