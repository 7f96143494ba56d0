"""Command flows: programs of the user, each in a folder with copies of the flow's files.

The server runs throughout, the client from the flow's start on.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from types import MappingProxyType

from testbed.errors import UsageError
from testbed.machine import safe_files
from testbed.machine.process import User, sudo_user
from testbed.runner.programme import Answers
from testbed.scenario.model import Flow
from testbed.scenario.programs import EVERY_PORT, PROGRAM_PATH, Programs, Transmission
from testbed.store.names import errors_file, output_file, program_folder, programs_file
from testbed.store.records import ProgramRecord
from testbed.store.writing import write_json
from testbed.traffic.flow_programs import FlowPrograms

ROLES = ("server", "client")
COMMAND_PATIENCE_S = 5.0
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
                program_place = trial / program_folder(flow.name, role)
                program_place.mkdir(parents=True)
                for name in flow.command.files:
                    shutil.copy(name, program_place)


def hand_over(folder: Path, user: User) -> None:
    """Give a folder and its files to the user whose program runs there."""
    for path in (folder, *folder.iterdir()):
        os.chown(path, user.uid, user.gid, follow_symlinks=False)


def remove(flow: Flow, trial: Path) -> None:
    """Delete the programs' folders; their output stays."""
    for role in ROLES:
        safe_files.remove_folder(trial / program_folder(flow.name, role))


class CommandFlow(FlowPrograms):
    """The server and the client of one flow."""

    @property
    def _command(self) -> Programs:
        assert self.plan.flow.command is not None
        return self.plan.flow.command

    def open(self) -> None:
        """Start the server, if the flow has one."""
        if self._command.server:
            self._start("server", self.plan.server.argv)

    def _start(self, role: str, argv: tuple[str, ...]) -> None:
        user = None if self._virtual_time else sudo_user()  # a guest has its own root
        folder = program_folder(self.plan.flow.name, role)
        if user:
            hand_over(self._folder / folder, user)
        self._begun.append(role)
        self._programme.start(
            self._name(role),
            self._node(role),
            argv,
            output_file(self.plan.flow.name, role),
            errors_file(self.plan.flow.name, role),
            folder,
            dict(ENVIRONMENT),
            (user.uid, user.groups) if user else (0, (0,)),
        )

    def wait_until_ready(self) -> None:
        """Wait until the server listens, if that shows: on a known port of TCP."""
        if "server" not in self._begun or self._command.protocol is Transmission.UDP:
            return
        port = self._command.listens_on(max((*self.plan.src_ports, self.plan.dst_port)))
        if port != EVERY_PORT:
            self._await_port(port, f"its server does not listen on port {port}")

    def begin(self) -> None:
        """Start the client."""
        self._start("client", self.plan.client.argv)

    def done_s(self, answers: Answers) -> float | None:
        """Return when the client exited; None if it was ended."""
        ended = answers.ended(self._ended["client"])
        return ended.time_s if ended and not ended.was_ended else None

    def collect(self) -> None:
        """End both programs, and what they have started."""
        if "server" in self._begun:  # whether it ended before its client did
            self._server_ran = self._programme.add("signal", self._name("server"), 0)
        for role in ("client", "server"):
            if role in self._begun:
                self._end(role, COMMAND_PATIENCE_S, group=True)

    def check(self, answers: Answers) -> None:
        """Accept any end: the verdict judges it."""

    def write(self, answers: Answers) -> None:
        """Record how both programs ended."""
        records = {}
        for role, number in self._ended.items():
            if (ended := answers.ended(number)) is not None:
                early = (
                    answers.numbers(self._server_ran)[0] == 0
                    if role == "server"
                    else bool(self._command.stack) and self.ended_before(answers)
                )
                records[role] = ProgramRecord(ended.status, ended.was_ended, early)
        name = programs_file(self.plan.flow.name)
        write_json(self._folder, name, {role: asdict(each) for role, each in records.items()})

    def clean_up(self) -> None:
        """Delete the programs' folders; their output stays."""
        remove(self.plan.flow, self._folder)
