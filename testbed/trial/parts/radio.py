"""The running radio link: the medium, the access point, and the station that joins it."""

from __future__ import annotations

import json
import shutil
import signal
import time
from pathlib import Path

from testbed.errors import TestbedError
from testbed.machine.compiled import LIBRARIES, as_started, require_built
from testbed.machine.process import ON_HOST, Place, Process, end, run, start
from testbed.plan.plan import Plan
from testbed.plan.radio import CHANNEL_MHZ, NETWORK_NAME, PROGRAM
from testbed.store import RADIO_FILE, write_json
from testbed.trial.parts.part import Part, RunningTrial

MEDIUM = LIBRARIES / PROGRAM  # built from medium/ by the Makefile
FOLDER = "radio"
RADIO_READY_S = 10.0
LOOK_S = 0.01
JOIN_TRIES = 10


class RadioLink(Part):
    """Two radios in their nodes, the medium between them, and the access point's program."""

    def __init__(self, trial: RunningTrial) -> None:
        super().__init__(trial)
        assert trial.plan.radio is not None
        self._plan = trial.plan.radio
        self._places = trial.places
        self._folder = trial.folder / FOLDER
        self._report = self._folder / "medium.json"
        self._log = trial.places[self._plan.station.node].log
        self._access_point: Process | None = None
        self._medium: Process | None = None

    @classmethod
    def wanted(cls, plan: Plan) -> bool:
        """Return whether the network has a radio link."""
        return plan.radio is not None

    def place(self) -> None:
        """Start the medium, move each radio into its node, and rename its interface."""
        require_built(MEDIUM)
        self._folder.mkdir()
        self._medium = start(
            (as_started(MEDIUM), *self._plan.medium[1:]),
            place=Place(log=self._log),
            stdout=self._report,
            stderr=self._report.with_suffix(".err"),
        )
        self._place_radios(self._medium)

    def _place_radios(self, medium: Process) -> None:
        deadline = time.monotonic() + RADIO_READY_S
        while not (names := self._names()):
            if medium.poll() is not None or time.monotonic() > deadline:
                raise self._fault("the medium did not start", self._report.with_suffix(".err"))
            time.sleep(LOOK_S)
        here = Place(log=self._log)
        for each, name in zip(self._plan.ends, names, strict=True):
            pid = self._places[each.node].pid
            run(("ip", "link", "set", name, "name", each.name), place=here)
            run(("iw", "phy", each.node, "set", "netns", str(pid)), place=here)

    def _names(self) -> list[str]:
        """Return the kernel's names of the radios' interfaces; empty while one is missing."""
        links = json.loads(run(("ip", "-json", "link", "show"), place=ON_HOST).stdout)
        found = {link["address"]: link["ifname"] for link in links if "address" in link}
        names = [found.get(each.mac) for each in self._plan.ends]
        return [name for name in names if name] if all(names) else []

    def join(self) -> None:
        """Start the access point and let the station associate."""
        settings = self._folder / "hostapd.conf"
        settings.write_text(self._plan.hostapd)
        log = self._folder / "hostapd.log"
        ap, station = (self._places[each.node] for each in self._plan.ends)
        self._access_point = start(("hostapd", str(settings)), place=ap, stdout=log)
        name = self._plan.access_point.name
        deadline = time.monotonic() + RADIO_READY_S
        while "AP-ENABLED" not in log.read_text(errors="replace"):
            if self._access_point.poll() is not None or time.monotonic() > deadline:
                raise self._fault(f"{name}: no access point", log)
            time.sleep(LOOK_S)
        name = self._plan.station.name
        run(("iw", "dev", name, "set", "power_save", "off"), place=station)
        connect = ("iw", "dev", name, "connect", "-w", NETWORK_NAME, str(CHANNEL_MHZ))
        for _ in range(JOIN_TRIES):
            if run(connect, place=station, check=False).status == 0:
                return
        raise TestbedError(f"{name} could not join: is its signal too weak, the air too busy?")

    def _joined(self) -> bool:
        """Return whether the station is still associated; it does not rejoin by itself."""
        argv = ("iw", "dev", self._plan.station.name, "link")
        place = self._places[self._plan.station.node]
        return run(argv, place=place).stdout.startswith("Connected")

    def write(self, folder: Path) -> None:
        """End the medium, and write its counters together with its settings."""
        assert self._medium is not None
        joined = self._joined()
        if status := end(self._medium, signal.SIGTERM):
            raise self._fault(f"the medium ended with status {status}", self._report)
        radio = self._plan.radio
        asked = {"signal_dbm": radio.signal_dbm, "busy": radio.busy, "joined": joined}
        found = {**asked, **json.loads(self._report.read_text())}
        write_json(folder, RADIO_FILE, found)

    def _fault(self, what: str, log: Path) -> TestbedError:
        lines = log.read_text(errors="replace").strip().splitlines()
        return TestbedError(what + (f": {lines[-1]}" if lines else ""))

    def close(self) -> None:
        """End both programs and remove their files."""
        for process in (self._access_point, self._medium):
            if process is not None:
                end(process, signal.SIGKILL)
        shutil.rmtree(self._folder, ignore_errors=True)
