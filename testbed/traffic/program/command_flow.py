"""A command flow: a server that runs throughout, and a client from the flow's start on."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from testbed.errors import TestbedError
from testbed.machine.netlink import listening
from testbed.machine.process import Place, Process, end, end_all, start, sudo_user
from testbed.machine.timer import SETUP_CLOCK
from testbed.plan.flows import FlowPlan
from testbed.scenario.program.programs import ANY_PORT, PATH
from testbed.store import (
    ProgramRecord,
    errors_file,
    output_file,
    program_folder,
    programs_file,
    write_json,
)
from testbed.traffic.program.folders import hand_over, remove

READY_S = 10.0
PATIENCE_S = 5.0
# no proxies, no configuration of the user's: what a program does follows from its words
ENVIRONMENT = MappingProxyType({"PATH": PATH, "LANG": "C.UTF-8", "HOME": ".", "TMPDIR": "."})


@dataclass
class _Running:
    """A program that was started, and when it ended."""

    process: Process
    ended_ns: int | None = None
    was_ended: bool = False  # by us

    def watch(self) -> None:
        """Note the time when it ends."""
        threading.Thread(target=self._wait, daemon=True).start()

    def _wait(self) -> None:
        self.process.wait()
        self.ended_ns = time.monotonic_ns()

    @property
    def runs(self) -> bool:
        """Whether it has not ended by itself or by us."""
        return self.process.poll() is None

    def tell_to_end(self) -> None:
        """Ask it to end, if it still runs; other flows' times do not wait for it."""
        if self.runs:
            self.was_ended = True
            self.process.send_signal(signal.SIGTERM)

    def stop(self) -> None:
        """End it and all that it started."""
        self.tell_to_end()
        end(self.process, signal.SIGTERM, PATIENCE_S)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)


class CommandFlow:
    """The server and the client of one flow."""

    def __init__(self, plan: FlowPlan, server: Place, client: Place, folder: Path) -> None:
        assert plan.flow.command is not None
        self.plan = plan
        self._command = plan.flow.command
        self._places = {"server": server, "client": client}
        self._folder = folder
        self._running: dict[str, _Running] = {}
        if self._command.server:
            self._start("server", plan.server.argv)

    def _start(self, role: str, argv: tuple[str, ...]) -> None:
        user = sudo_user()
        own = self._folder / program_folder(self.plan.flow.name, role)
        if user:
            hand_over(own, user)
        first = str(own.absolute() / argv[0]) if argv[0].startswith("./") else argv[0]
        process = start(
            (first, *argv[1:]),
            place=self._places[role],
            stdout=self._folder / output_file(self.plan.flow.name, role),
            stderr=self._folder / errors_file(self.plan.flow.name, role),
            env=dict(ENVIRONMENT),
            cwd=own,
            user=user,
        )
        self._running[role] = _Running(process)

    def wait_until_ready(self) -> None:
        """Return once the server listens; one that may do so on any port is taken at its word."""
        if "server" not in self._running:
            return
        port = self._command.listens_on(max((*self.plan.src_ports, self.plan.dst_port)))
        if port != ANY_PORT:
            self._wait_until_it_listens(port)
        SETUP_CLOCK.begin_step()

    def _wait_until_it_listens(self, port: int) -> None:
        deadline = time.monotonic() + READY_S
        while not listening(self._places["server"].pid, port):
            if not self._running["server"].runs or time.monotonic() > deadline:
                raise TestbedError(
                    f"{self.plan.flow.name}: its server does not listen on port {port}"
                    f"{self._last_words('server')}",
                    f"it ran as: {' '.join(self.plan.server.argv)}",
                )
            time.sleep(0.01)

    def _last_words(self, role: str) -> str:
        said = (self._folder / errors_file(self.plan.flow.name, role)).read_text(errors="replace")
        lines = [line.strip() for line in said.splitlines() if line.strip()]
        return f": {lines[-1]}" if lines else ""

    def begin(self) -> None:
        """Start the client."""
        self._start("client", self.plan.client.argv)
        self._running["client"].watch()

    @property
    def processes(self) -> Iterator[tuple[str, str, int]]:
        """All processes of the flow, running or ended, as (name, node, process id)."""
        for role, each in self._running.items():
            yield f"{role} {self.plan.flow.name}", self._places[role].name, each.process.pid

    @property
    def may_end(self) -> bool:
        """Always true: a program may be done before its time."""
        return True

    @property
    def ended(self) -> bool:
        """True once the client has exited."""
        return "client" in self._running and not self._running["client"].runs

    def done_ns(self) -> int | None:
        """When the client exited, on the monotonic clock; None while it runs."""
        client = self._running.get("client")
        return client.ended_ns if client else None

    def stop(self) -> None:
        """End the client if it is still running."""
        if "client" in self._running:
            self._running["client"].tell_to_end()

    def collect(self) -> None:
        """End the server, and keep how both ended."""
        found = {}
        for role in ("client", "server"):
            if (each := self._running.get(role)) is not None:
                early = role == "server" and not each.runs
                each.stop()
                found[role] = ProgramRecord(each.process.returncode, each.was_ended, early)
        name = self.plan.flow.name
        write_json(self._folder, programs_file(name), {k: v.as_json() for k, v in found.items()})
        remove(self.plan.flow, self._folder)

    def seen(self) -> tuple[str, tuple[str, ...]]:
        """Nothing: the programs' sockets come and go."""
        return "", ()

    def kill(self) -> None:
        """End both programs at once."""
        for each in self._running.values():
            end_all(each.process)
        remove(self.plan.flow, self._folder)
