"""Flows of iperf3: TCP without end or of a number of bytes, and a constant bit rate by UDP."""

from __future__ import annotations

import re
import signal
from collections.abc import Mapping
from pathlib import Path

from testbed.errors import TestbedError
from testbed.machine import safe_files
from testbed.machine.compiled import LIBRARIES
from testbed.runner.programme import NS, Answers
from testbed.scenario.model import Flow
from testbed.store.names import report_file
from testbed.traffic.flow_programs import FlowPrograms

IPERF3 = LIBRARIES / "testbed-iperf3"  # built from Debian's source
PRELOAD = LIBRARIES / "testbed-iperf3.so"  # from pace.c and combined_calls.c
ON_OFF = PRELOAD.with_name("testbed-on-off.so")
CONTROL_BY_IPV4 = PRELOAD.with_name("testbed-control.so")  # of flows over IPv6


class Iperf3Flow(FlowPrograms):
    """The server and the client of one flow."""

    program = "iperf3"
    stops_by = signal.SIGINT  # as ^C would: it stops sending, reports, and ends the server

    def open(self) -> None:
        """Start the server."""
        self._launch("server", self.plan.server.argv)

    def wait_until_ready(self) -> None:
        """Wait until the server listens."""
        self._await_port(self.plan.dst_port)

    def begin(self) -> None:
        """Start the client, which sends the flow's first packet at once."""
        self._launch("client", self.plan.client.argv, dict(self.plan.client_env))

    def _start_program(
        self,
        name: str,
        node: str,
        argv: tuple[str, ...],
        files: tuple[str, str],
        environment: Mapping[str, str],
    ) -> None:
        """Start iperf3, or copy one that is loaded."""
        options = (CONTROL_BY_IPV4,) if self.plan.is_ipv6 else ()
        libraries = " ".join(map(str, (*options, *preloaded(self.plan.flow))))
        argv = (str(IPERF3), *argv[1:])
        if self.plan.copied:
            self._programme.copy(name, node, argv, *files, libraries, environment)
        else:
            loaded = {**environment, "LD_PRELOAD": libraries}
            self._programme.start(name, node, argv, *files, environment=loaded)

    @property
    def may_end(self) -> bool:
        """True for a flow with a fixed number of bytes, which may finish early."""
        return bool(self.plan.flow.bytes)

    def done_s(self, answers: Answers) -> float | None:
        """Return the time of the last byte's acknowledgement, as pace.c reports it."""
        return self._done_s

    def check(self, answers: Answers) -> None:
        """Check that both reports show a flow that ran."""
        errors = safe_files.tail(self._errors("client"))
        done = re.search(r"acknowledged (\d+)", errors)
        self._done_s = (int(done[1]) - answers.zero_ns) / NS if done else None
        error = str(self._report("client").get("error", ""))
        # iperf3 reports our own interrupt as an error
        if error and "interrupt" not in error and not self.plan.flow.bytes:
            raise TestbedError(
                f"{self.plan.flow.name}: iperf3: {error}",
                f"see {report_file(self.plan.flow.name, 'client')} in the trial's folder",
            )

    def write(self, answers: Answers) -> None:
        """Remove the error outputs without content."""
        for role in ("client", "server"):
            if not self._errors(role).stat().st_size:
                self._errors(role).unlink()


def preloaded(flow: Flow) -> tuple[Path, ...]:
    """Return the libraries that a flow's iperf3 is started with."""
    return (ON_OFF, PRELOAD) if flow.on_s else (PRELOAD,)
