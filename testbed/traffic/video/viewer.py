"""The player as a process of a trial: loaded beforehand, begun to the instant, read at the end."""

from __future__ import annotations

import os
import signal
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from testbed.errors import TestbedError
from testbed.process import Place, Process, end, start
from testbed.traffic.video.playback import Thresholds
from testbed.traffic.video.result import Result
from testbed.traffic.video.server import READY_S
from testbed.traffic.video.transfer import Site, Transport

PATIENCE_S = 20.0


@dataclass(frozen=True)
class Watching:
    """What is watched, and how."""

    transport: Transport
    site: Site
    rule: str = "throughput"  # or `buffer`, or a rung's name
    thresholds: Thresholds = field(default_factory=Thresholds)
    deadline_s: float = 3600.0

    @property
    def words(self) -> tuple[str, ...]:
        """The player's command line, but for files."""
        return (
            *("--transport", self.transport.value, "--rule", self.rule),
            *("--address", self.site.address, "--port", f"{self.site.port}"),
            *(("--authority", self.site.authority) if self.site.authority else ()),
            *("--start-s", f"{self.thresholds.start_s}"),
            *("--resume-s", f"{self.thresholds.resume_s}"),
            *("--cap-s", f"{self.thresholds.cap_s}", "--deadline-s", f"{self.deadline_s}"),
        )


class Viewer:
    """A player in a place; its result is written to `output`."""

    def __init__(self, watching: Watching, place: Place, output: Path) -> None:
        self._output = output
        self._ready = output.with_suffix(".ready")
        argv = [sys.executable, "-m", "testbed.traffic.video.player", *watching.words]
        argv += ["--ready", f"{self._ready}", f"{output}"]
        self._process: Process = start(argv, place=place, stderr=self._errors, env=dict(os.environ))

    @property
    def _errors(self) -> Path:
        return self._output.with_suffix(".err")

    @property
    def pid(self) -> int:
        """Of its one process."""
        return self._process.pid

    @property
    def ended(self) -> bool:
        """Whether there is nothing more to see."""
        return self._process.poll() is not None

    def wait_until_ready(self) -> None:
        """Return once it only waits to be told."""
        deadline = time.monotonic() + READY_S
        while not self._ready.exists():
            if self.ended or time.monotonic() > deadline:
                raise TestbedError(f"the player did not start: {self._said}")
            time.sleep(0.001)
        self._ready.unlink()

    def begin(self) -> None:
        """Its first packet leaves now."""
        self._process.send_signal(signal.SIGUSR1)

    def collect(self) -> Result:
        """End it, if it has not ended, and read what it saw."""
        end(self._process, signal.SIGTERM, PATIENCE_S)
        if not self._output.exists():
            raise TestbedError(f"the player left no result: {self._said}")
        if not self._errors.read_text():
            self._errors.unlink()
        return Result.from_json(self._output.read_text())

    def kill(self) -> None:
        """End it without ceremony, when the trial failed."""
        end(self._process, signal.SIGKILL)

    @property
    def _said(self) -> str:
        return " ".join(self._errors.read_text().strip().splitlines()[-1:])
