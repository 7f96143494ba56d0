"""A call's flow: a sender of datagrams at planned times, and their receiver."""

from __future__ import annotations

from testbed.machine.compiled import LIBRARIES
from testbed.plan.flows import CALL_PROGRAM
from testbed.runner.programme import Answers
from testbed.store.names import datagrams_file, errors_file
from testbed.traffic.flow_programs import READY_S, FlowPrograms

BUILT_CALL = LIBRARIES / CALL_PROGRAM  # from call.c
LISTENING = "ready"  # on the receiver's standard error


class CallFlow(FlowPrograms):
    """The sender and the receiver of one call; the table is written before either starts."""

    program = "call"

    def open(self) -> None:
        """Write the table, and start the receiver."""
        with (self._folder / datagrams_file(self.plan.flow.name)).open("w") as file:
            for each in self.plan.datagrams:
                file.write(f"{each.at_ns} {each.payload} {each.ticks} {each.ends_frame:d}\n")
        self._launch("server", (str(BUILT_CALL), *self.plan.server.argv[1:]))

    def wait_until_ready(self) -> None:
        """Wait until the receiver has its port."""
        condition = ("says", errors_file(self.plan.flow.name, "server"), LISTENING)
        fault = f"{self.plan.flow.name}: the call's receiver did not start"
        self._programme.await_program(self._name("server"), READY_S, *condition, fault=fault)

    def begin(self) -> None:
        """Start the sender, whose clock starts with it."""
        words = (*self.plan.client.argv[1:], datagrams_file(self.plan.flow.name))
        self._launch("client", (str(BUILT_CALL), *words))

    @property
    def may_end(self) -> bool:
        """False: a call lasts until it is stopped."""
        return False

    def done_s(self, answers: Answers) -> float | None:
        """Return None: a call lasts until it is stopped."""
        return None

    def check(self, answers: Answers) -> None:
        """Check that both programs ended well, and reported."""
        for role in ("client", "server"):
            ended = answers.ended(self._ended[role])
            if ended is not None and ended.status:
                raise self._fault(role, f"ended with status {ended.status}")
            self._report(role)

    def write(self, answers: Answers) -> None:
        """Remove the error outputs, which say nothing more."""
        for role in ("client", "server"):
            self._errors(role).unlink()
