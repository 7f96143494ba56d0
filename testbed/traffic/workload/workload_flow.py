"""A flow of many transfers: a server, a client, and the list of what the client asks for."""

from __future__ import annotations

from testbed.machine.compiled import LIBRARIES
from testbed.plan.flows import WORKLOAD_PROGRAM
from testbed.runner.programme import NS, Answers
from testbed.store.names import planned_file
from testbed.traffic.flow_programs import FlowPrograms

BUILT_PROGRAM = LIBRARIES / WORKLOAD_PROGRAM  # from *.c
OPTIONS = {"timestamps": 1, "sack": 2}  # TCPI_OPT_… of linux/tcp.h


class WorkloadFlow(FlowPrograms):
    """The server and the client of one flow; the list is written before either starts."""

    program = "workload"

    def open(self) -> None:
        """Write the list, and start the server."""
        with (self._folder / planned_file(self.plan.flow.name)).open("w") as file:
            for each in self.plan.transfers:
                file.write(f"{each.session} {each.at_ns} {each.size}\n")
        self._launch("server", (str(BUILT_PROGRAM), *self.plan.server.argv[1:]))

    def wait_until_ready(self) -> None:
        """Wait until the server listens on its last port."""
        self._await_port(self.plan.src_ports[-1])

    def begin(self) -> None:
        """Start the client, whose clock of arrivals starts with it."""
        words = (*self.plan.client.argv[1:], planned_file(self.plan.flow.name))
        self._launch("client", (str(BUILT_PROGRAM), *words))

    def done_s(self, answers: Answers) -> float | None:
        """Return when the last transfer ended; None if the client was stopped before."""
        if not self.ended_before(answers):
            return None
        report = self._report("client")
        last_ns = max((end_ns for _, _, end_ns, _ in report["transfers"]), default=0)
        return (int(report["zero_ns"]) + max(0, last_ns) - answers.zero_ns) / NS

    def check(self, answers: Answers) -> None:
        """Check both exit statuses; transfers in progress when it was stopped stay unfinished."""
        for role in ("client", "server"):
            ended = answers.ended(self._ended[role])
            if ended is not None and role == "server" and not ended.was_ended:
                raise self._fault(role, f"ended early, with status {ended.status}")
            if ended is not None and ended.status:
                raise self._fault(role, f"ended with status {ended.status}")

    def write(self, answers: Answers) -> None:
        """Remove the error outputs, which say nothing."""
        for role in ("client", "server"):
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
