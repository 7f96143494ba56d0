"""A flow's programs: how a programme starts, stops and ends its server and its client."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from testbed.errors import TestbedError
from testbed.machine import json_files, safe_files
from testbed.plan.flows import FlowPlan
from testbed.runner.programme import Answers, Programme
from testbed.store.names import errors_file, report_file

READY_S = 10.0
FLOW_PATIENCE_S = 20.0


def program_name(role: str, flow: str) -> str:
    """Return what a programme calls a flow's program."""
    return f"{role} {flow}"


class FlowPrograms:
    """A flow's server and client; a subclass for each kind of traffic."""

    program = ""  # as messages and tables name it

    def __init__(
        self, plan: FlowPlan, programme: Programme, folder: Path, *, virtual_time: bool
    ) -> None:
        self.plan = plan
        self._virtual_time = virtual_time
        self._programme = programme
        self._folder = folder
        self._begun: list[str] = []  # roles whose programs have been started
        self._signalled = -1  # the instruction that stops the client
        self._ended: dict[str, int] = {}  # role → the instruction that says how it ended

    def open(self) -> None:
        """Start the server."""
        self._launch("server", self.plan.server.argv)

    def wait_until_ready(self) -> None:
        """Wait until the flow can begin."""
        raise NotImplementedError

    def begin(self) -> None:
        """Send the first packet now."""
        raise NotImplementedError

    def stop(self) -> None:
        """Stop the client if it still runs."""
        self._signalled = self._programme.add("signal", self.client, int(self.stops_by))

    stops_by = signal.SIGTERM

    def collect(self) -> None:
        """Wait for both programs, the client first."""
        for role in ("client", "server"):
            self._end(role)

    def check(self, answers: Answers) -> None:
        """Check both programs' reports; raise if the flow did not run."""
        raise NotImplementedError

    def write(self, answers: Answers) -> None:
        """Write what the programs have left."""

    def clean_up(self) -> None:
        """Remove files that only the programs needed."""

    @property
    def client(self) -> str:
        """The client's name in the programme."""
        return self._name("client")

    @property
    def processes(self) -> Iterator[tuple[str, str, str]]:
        """The programs that were started, as (name in tables, node, name in the programme)."""
        for role in sorted(self._begun):
            name = f"{self.program} {role} {self.plan.flow.name}".strip()
            yield name, self._node(role), self._name(role)

    @property
    def may_end(self) -> bool:
        """True if the flow may finish before its planned end."""
        return True

    def ended_before(self, answers: Answers) -> bool:
        """Return whether the client ended before it was stopped."""
        return answers.numbers(self._signalled)[:1] != (1,)

    def done_s(self, answers: Answers) -> float | None:
        """Return when the flow was complete; None if it ran until it was stopped."""
        raise NotImplementedError

    def seen(self) -> tuple[str, tuple[str, ...]]:
        """Return the congestion control and the TCP options that the programs report, if any.

        For other flows the samples of their sockets have them.
        """
        return "", ()

    def _name(self, role: str) -> str:
        return program_name(role, self.plan.flow.name)

    def _node(self, role: str) -> str:
        return (self.plan.server if role == "server" else self.plan.client).node

    def _launch(
        self, role: str, argv: tuple[str, ...], environment: Mapping[str, str] | None = None
    ) -> None:
        """Start one of the programs, whose output is its report."""
        self._begun.append(role)
        files = (report_file(self.plan.flow.name, role), errors_file(self.plan.flow.name, role))
        self._start_program(self._name(role), self._node(role), argv, files, environment or {})

    def _start_program(
        self,
        name: str,
        node: str,
        argv: tuple[str, ...],
        files: tuple[str, str],
        environment: Mapping[str, str],
    ) -> None:
        """Start a program, by the name that the programme knows it by."""
        self._programme.start(name, node, argv, *files, environment=environment)

    def _await_port(self, port: int, otherwise: str = "") -> None:
        """Wait until the server listens; `otherwise` is what it means that it does not."""
        fault = f"{self.plan.flow.name}: {otherwise or f'the {self.program} server did not start'}"
        condition = ("listens", self._node("server"), port)
        self._programme.await_program(self._name("server"), READY_S, *condition, fault=fault)

    def _end(self, role: str, patience_s: float = FLOW_PATIENCE_S, group: bool = False) -> None:
        self._ended[role] = self._programme.end(
            self._name(role), signal.SIGTERM, patience_s, with_children=group
        )

    def _errors(self, role: str) -> Path:
        return self._folder / errors_file(self.plan.flow.name, role)

    def _report(self, role: str) -> dict[str, Any]:
        """Parse a program's JSON output."""
        name = report_file(self.plan.flow.name, role)
        try:
            data: dict[str, Any] = json_files.read(self._folder / name)
        except (OSError, ValueError) as error:
            raise TestbedError(
                f"{self.plan.flow.name}: the {self.program} {role} ended without a report "
                f"({error})",
                f"see {name} in the trial's folder",
            ) from error
        return data

    def _fault(self, role: str, what: str) -> TestbedError:
        """Describe what one of the programs did, with the last line that it printed."""
        errors = safe_files.tail(self._errors(role)).strip()
        text = f"{self.plan.flow.name}: the {self.program} {role} {what}"
        return TestbedError(f"{text}: {errors.splitlines()[-1].strip()}" if errors else text)
