"""The player as a process of a trial: loaded in advance, started exactly on time."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from testbed.errors import TestbedError
from testbed.machine.process import Place, Process, end, start
from testbed.plan.video_commands import Watching, executable
from testbed.traffic.video.result import Result

READY_S = 30.0  # a browser starts slowly
PATIENCE_S = 20.0


class Viewer:
    """A player process that writes its result to `output` and runs in `folder`."""

    def __init__(self, watching: Watching, place: Place, output: Path, folder: Path) -> None:
        self._output = output.resolve()
        self._ready = self._output.with_suffix(".ready")
        argv = [*executable(watching.words), "--ready", f"{self._ready}", f"{self._output}"]
        self._process: Process = start(
            argv, place=place, stderr=self._errors, env=dict(os.environ), cwd=folder
        )

    @property
    def _errors(self) -> Path:
        return self._output.with_suffix(".err")

    @property
    def pid(self) -> int:
        """The player's process id."""
        return self._process.pid

    @property
    def ended(self) -> bool:
        """True once the player has exited."""
        return self._process.poll() is not None

    def wait_until_ready(self) -> None:
        """Return once the player waits for its start signal."""
        deadline = time.monotonic() + READY_S
        while not self._ready.exists():
            if self.ended or time.monotonic() > deadline:
                raise TestbedError(f"the player did not start: {self._said}")
            time.sleep(0.001)
        self._ready.unlink()

    def begin(self) -> None:
        """Let the player send its first packet now."""
        self._process.send_signal(signal.SIGUSR1)

    def stop(self) -> None:
        """Ask the player to stop if it is still running."""
        if not self.ended:
            self._process.send_signal(signal.SIGTERM)

    def collect(self) -> Result:
        """End the player if necessary, and read its result."""
        end(self._process, signal.SIGTERM, PATIENCE_S)
        if not self._output.exists():
            raise TestbedError(f"the player left no result: {self._said}")
        if not self._errors.read_text():
            self._errors.unlink()
        return Result.from_json(self._output.read_text())

    def kill(self) -> None:
        """End the player after a failed trial; not by SIGKILL, as it must end its browser."""
        end(self._process, signal.SIGINT)

    @property
    def _said(self) -> str:
        return " ".join(self._errors.read_text().strip().splitlines()[-1:])
