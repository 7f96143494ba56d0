"""A guest that gdb holds: `testbed rewind`."""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import json
import os
import re
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from testbed.engine import Job
from testbed.errors import TestbedError
from testbed.guest.boot import GuestEnd, boot
from testbed.guest.engine import LEFT_BY_TRIALS, GuestEngine
from testbed.guest.worker import child_of
from testbed.machine import safe_files
from testbed.machine.atomic import workplace
from testbed.machine.process import Process, run_on_terminal

SCRIPT = Path(__file__).with_name("gdb_script.py")
GDB = ("gdb", "-nx", "-q", "-x", str(SCRIPT))
LAUNCHER = ("/bin/sh", "-c", 'read -r _ <"$0"; exec "$@"')  # waits for a word in a pipe, and …
REWIND_HINT = "an earlier second, or another function: testbed rewind --help"
LAUNCH_PATIENCE_S = 30.0  # in which the guest's launcher has to be there
DEFAULT_HZ = 250


@dataclass(frozen=True)
class CapturedPacket:
    """A packet, by the interface where it was captured and its number in that capture."""

    interface: str
    frame: int


@dataclass(frozen=True)
class DebuggerOrders:
    """Where gdb stops a guest, and what it shows of it (`gdb_script.py`)."""

    at_s: float
    epoch_ns: int  # the guest's clock at second 0
    src_ports: tuple[int, ...]  # of the flow whose sockets are shown
    dst_port: int
    packet: CapturedPacket | None = None  # to stop at, once `at_s` is there
    functions: tuple[str, ...] = ()  # whose calls are printed: names, or patterns as the shell's
    expressions: tuple[str, ...] = ()  # that are printed with each call; none: its arguments
    until_s: float | None = None  # of printing calls; None: to the trial's end
    interactive: bool = False


class DebuggedGuest(GuestEngine):
    """Boots a guest under gdb; when gdb lets it go, it runs to its end as any other."""

    def __init__(
        self, kernel_name: str, symbols: Path, orders: DebuggerOrders, output: Path | None = None
    ) -> None:
        """Take where to stop; what gdb shows goes to the terminal, or to the file `output`."""
        super().__init__(kernel_name)
        self._symbols, self._orders, self._output = symbols, orders, output
        self.back_s: float | None = None  # the second to which the user wants to go back

    def _boot(self, folder: Path, job: Job, patience_s: float, memory_mb: int) -> GuestEnd:
        """Run a guest that gdb takes before its kernel begins; wait until gdb lets it go."""
        with workplace("rewind") as place:
            go = place / "go"  # a pipe: the guest's kernel begins when something is written to it
            os.mkfifo(go)

            def started(process: Process) -> None:
                held = _wait_for_reader(go, process)
                with contextlib.closing(os.fdopen(held, "w")):
                    self._debug(place, go, child_of(process.pid))

            guest = dataclasses.replace(
                self._guest(job, patience_s, memory_mb),
                launcher=(*LAUNCHER, str(go)),
                started=started,
            )
            return boot(guest, folder, LEFT_BY_TRIALS)

    def _debug(self, place: Path, go: Path, pid: int) -> None:
        assert self.kernel is not None
        back, orders, why = (place / name for name in ("back", "orders", "why"))
        debug_orders: Mapping[str, object] = {
            **asdict(self._orders),
            "pid": pid,
            "go": str(go),
            "back": str(back),
            "why": str(why),
            "hz": self._hz(),
            "linux": str(self.kernel / "linux"),
            "symbols": str(self._symbols),
        }
        orders.write_text(json.dumps(debug_orders))
        options = () if self._orders.interactive else ("-batch",)
        environment = {**os.environ, "TESTBED_REWIND": str(orders)}
        status = run_on_terminal((*GDB, *options), environment, self._output)
        if status:
            reason = safe_files.tail(why) or f"gdb ended with status {status}"
            raise TestbedError(reason, REWIND_HINT)
        if back.exists():
            self.back_s = float(safe_files.tail(back))

    def _hz(self) -> int:
        """Return how many ticks the kernel has a second."""
        assert self.kernel is not None
        match = re.search(r"^CONFIG_HZ=(\d+)$", (self.kernel / "config").read_text(), re.MULTILINE)
        return int(match[1]) if match else DEFAULT_HZ


def _wait_for_reader(pipe: Path, process: Process) -> int:
    """Open a pipe for writing as soon as the guest's launcher reads it."""
    deadline = time.monotonic() + LAUNCH_PATIENCE_S
    while process.poll() is None and time.monotonic() < deadline:
        try:
            return os.open(pipe, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            time.sleep(0.005)
    raise TestbedError("the guest did not start", "`testbed check` boots a test guest")
