"""Command flows: programs of the user, each in a folder with copies of the flow's files.

The server runs throughout, the client from the flow's start on.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import threading
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from types import MappingProxyType

from testbed.errors import TestbedError, UsageError
from testbed.machine.netlink import listening
from testbed.machine.process import Place, Process, User, end, end_all, start, sudo_user
from testbed.machine.timer import SETUP_CLOCK
from testbed.plan.flows import FlowPlan
from testbed.scenario.model import Flow
from testbed.scenario.programs import EVERY_PORT, PROGRAM_PATH
from testbed.store import (
    ProgramRecord,
    errors_file,
    output_file,
    program_folder,
    programs_file,
    write_json,
)
from testbed.traffic.running_flow import READY_S, RunningFlow

ROLES = ("server", "client")
PROGRAM_PATIENCE_S = 5.0
# no proxies, no configuration of the user's: what a program does follows from its words
ENVIRONMENT = MappingProxyType(
    {"PATH": PROGRAM_PATH, "LANG": "C.UTF-8", "HOME": ".", "TMPDIR": "."}
)


def require_files(flows: Iterable[Flow]) -> None:
    """Raise an error for the first missing file of a command flow."""
    for flow in flows:
        for name in flow.command.files if flow.command else ():
            if not Path(name).is_file():
                why = "not a file" if Path(name).exists() else "no such file"
                raise UsageError(f"flow {flow.name}: {name}: {why}", "correct its `files`")


def prepare_folders(flows: Iterable[Flow], trial: Path) -> None:
    """Make the folders of all command flows in a trial's directory, with copies of their files."""
    for flow in flows:
        if flow.command is not None:
            for role in ROLES:
                own = trial / program_folder(flow.name, role)
                own.mkdir(parents=True)
                for name in flow.command.files:
                    shutil.copy(name, own)


def hand_over(folder: Path, user: User) -> None:
    """Give a folder and its files to the user whose program runs there."""
    for path in (folder, *folder.iterdir()):
        os.chown(path, user.uid, user.gid, follow_symlinks=False)


def remove(flow: Flow, trial: Path) -> None:
    """Delete the programs' folders; their output stays."""
    for role in ROLES:
        shutil.rmtree(trial / program_folder(flow.name, role), ignore_errors=True)


@dataclass
class _Running:
    """A program, and when it ended."""

    process: Process
    ended_ns: int | None = None
    was_ended: bool = False  # by the trial

    def watch(self) -> None:
        """Note the time when it ends."""
        threading.Thread(target=self._wait, daemon=True).start()

    def _wait(self) -> None:
        self.process.wait()
        self.ended_ns = time.monotonic_ns()

    @property
    def runs(self) -> bool:
        """Whether it is running."""
        return self.process.poll() is None

    def tell_to_end(self) -> None:
        """Ask it to end if it still runs, without waiting: other flows are on time."""
        if self.runs:
            self.was_ended = True
            self.process.send_signal(signal.SIGTERM)

    def stop(self) -> None:
        """End it and the processes that it started."""
        self.tell_to_end()
        end(self.process, signal.SIGTERM, PROGRAM_PATIENCE_S)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)


class CommandFlow(RunningFlow):
    """The server and the client of one flow."""

    def __init__(self, plan: FlowPlan, server: Place, client: Place, folder: Path) -> None:
        assert plan.flow.command is not None
        super().__init__(plan, server, client, folder)
        self._command = plan.flow.command
        self._programs: dict[str, _Running] = {}
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
        self._running[role] = process
        self._programs[role] = _Running(process)

    def wait_until_ready(self) -> None:
        """Return once the server listens, if its port is known."""
        if "server" not in self._programs:
            return
        port = self._command.listens_on(max((*self.plan.src_ports, self.plan.dst_port)))
        if port != EVERY_PORT:
            self._wait_for_server(port)
        SETUP_CLOCK.begin_step()

    def _wait_for_server(self, port: int) -> None:
        deadline = time.monotonic() + READY_S
        while not listening(self._places["server"].pid, port):
            if not self._programs["server"].runs or time.monotonic() > deadline:
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
        self._programs["client"].watch()

    def done_ns(self) -> int | None:
        """Return when the client exited, on the monotonic clock; None while it runs."""
        client = self._programs.get("client")
        return client.ended_ns if client else None

    def stop(self) -> None:
        """End the client if it is still running."""
        if "client" in self._programs:
            self._programs["client"].tell_to_end()

    def collect(self) -> None:
        """End the server, and record how both ended."""
        found = {}
        for role in ("client", "server"):
            if (each := self._programs.get(role)) is not None:
                early = role == "server" and not each.runs
                each.stop()
                found[role] = ProgramRecord(each.process.returncode, each.was_ended, early)
        name = self.plan.flow.name
        write_json(self._folder, programs_file(name), {k: asdict(v) for k, v in found.items()})
        remove(self.plan.flow, self._folder)

    def kill(self) -> None:
        """End both programs at once."""
        for process in self._running.values():
            end_all(process)
        remove(self.plan.flow, self._folder)
