"""An iperf3 flow: TCP, or UDP at a constant bit rate paced by pace.c."""

from __future__ import annotations

import json
import os
import re
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
from testbed.plan.flows import FlowPlan
from testbed.scenario.model import Flow
from testbed.store import FLOWS, errors_file, report_file

PRELOAD = Path(sys.prefix) / "lib" / "testbed-iperf3.so"  # built from *.c by setup.sh
ON_OFF = PRELOAD.with_name("testbed-on-off.so")  # from bursts/*.c
LIMIT = PRELOAD.with_name("testbed-limit.so")  # from threads/*.c, where iperf3 has threads
READY_S = 10.0
PATIENCE_S = 20.0


class Iperf3:
    """The server and the client of one flow."""

    def __init__(self, plan: FlowPlan, server: Place, client: Place, folder: Path) -> None:
        self.plan = plan
        self._server_place = server
        self._client_place = client
        self._folder = folder
        (folder / FLOWS).mkdir(exist_ok=True)
        self._client: Process | None = None
        self._server = self._launch("server", server, plan.server.argv, {})

    def _launch(
        self, role: str, place: Place, argv: tuple[str, ...], env: dict[str, str]
    ) -> Process:
        libraries = _preloaded(self.plan.flow)
        for each in libraries:
            require_built(each)
        return start(
            argv,
            place=place,
            stdout=self._output(role),
            stderr=self._errors(role),
            env={**os.environ, **env, "LD_PRELOAD": " ".join(map(as_started, libraries))},
        )

    def _output(self, role: str) -> Path:
        return self._folder / report_file(self.plan.flow.name, role)

    def _errors(self, role: str) -> Path:
        return self._folder / errors_file(self.plan.flow.name, role)

    def wait_until_ready(self) -> None:
        """Return once the server listens."""
        deadline = time.monotonic() + READY_S
        while not listening(self._server_place.pid, self.plan.dst_port):
            if self._server.poll() is not None or time.monotonic() > deadline:
                raise TestbedError(f"{self.plan.flow.name}: iperf3's server did not start")
            time.sleep(0.001)

    def begin(self) -> None:
        """Start the client, which sends the flow's first packet at once."""
        self._client = self._launch(
            "client", self._client_place, self.plan.client.argv, dict(self.plan.client_env)
        )

    @property
    def processes(self) -> Iterator[tuple[str, str, int]]:
        """All processes of the flow, running or ended, as (name, node, process id)."""
        name = self.plan.flow.name
        if self._client is not None:
            yield f"iperf3 client {name}", self._client_place.name, self._client.pid
        yield f"iperf3 server {name}", self._server_place.name, self._server.pid

    def stop(self) -> None:
        """Interrupt the client as ^C would: it stops sending, reports, and ends the server."""
        if self._client is not None and self._client.poll() is None:
            self._client.send_signal(signal.SIGINT)

    @property
    def ended(self) -> bool:
        """True once the client has exited."""
        return self._client is not None and self._client.poll() is not None

    @property
    def may_end(self) -> bool:
        """True for a flow with a fixed number of bytes, which may finish early."""
        return bool(self.plan.flow.bytes)

    def done_ns(self) -> int | None:
        """The time of the last byte's acknowledgement, as pace.c reports it."""
        said = self._errors("client")
        found = re.search(r"acknowledged (\d+)", said.read_text()) if said.exists() else None
        return int(found[1]) if found else None

    def collect(self) -> None:
        """Wait for both ends and check that their reports show a flow that ran."""
        assert self._client is not None
        for role, process in (("client", self._client), ("server", self._server)):
            end(process, signal.SIGTERM, PATIENCE_S)
            if not self._errors(role).stat().st_size:
                self._errors(role).unlink()
        report = self.report("client")
        error = str(report.get("error", ""))
        # iperf3 reports our own interrupt as an error
        if error and "interrupt" not in error and not self.plan.flow.bytes:
            raise TestbedError(
                f"{self.plan.flow.name}: iperf3: {error}",
                f"see {report_file(self.plan.flow.name, 'client')} in the trial's folder",
            )

    def report(self, role: str) -> dict[str, Any]:
        """Parse iperf3's JSON output."""
        try:
            data: dict[str, Any] = json.loads(self._output(role).read_text())
        except json.JSONDecodeError as error:
            raise TestbedError(
                f"{self.plan.flow.name}: iperf3's {role} ended without a report ({error})",
                f"see {report_file(self.plan.flow.name, role)} in the trial's folder",
            ) from error
        return data

    def seen(self) -> tuple[str, tuple[str, ...]]:
        """Nothing: the samples of its sockets know."""
        return "", ()

    def kill(self) -> None:
        """Kill both ends after a failed trial."""
        for process in (self._client, self._server):
            if process is not None:
                end(process, signal.SIGKILL)


def _preloaded(flow: Flow) -> tuple[Path, ...]:
    """The libraries that a flow's iperf3 is started with."""
    if flow.on_s:
        return ON_OFF, PRELOAD
    if flow.bytes and LIMIT.exists():
        return LIMIT, PRELOAD
    return (PRELOAD,)
