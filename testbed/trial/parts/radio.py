"""The running radio link: the medium, the access point, and the station that joins it."""

from __future__ import annotations

import signal
from pathlib import Path

from testbed.errors import TestbedError
from testbed.machine import json_files, safe_files
from testbed.machine.compiled import LIBRARIES
from testbed.plan.radio import CHANNEL_MHZ, NETWORK_NAME, PROGRAM
from testbed.runner.programme import HOME, Answers
from testbed.runner.recorded_netlink import IP
from testbed.store.names import RADIO_FILE
from testbed.store.writing import write_json
from testbed.trial.parts.part import Part, PlannedTrial

MEDIUM = LIBRARIES / PROGRAM  # built from medium/ by the Makefile
RADIO_FOLDER = "radio"
RADIO_READY_S = 10.0
JOIN_TRIES = 10
RADIO_INTERFACES = ("wlan0", "wlan1")  # the kernel's names, in the order they are made


class RadioLink(Part):
    """Two radios in their nodes, the medium between them, and the access point's program."""

    def __init__(self, trial: PlannedTrial) -> None:
        super().__init__(trial)
        assert trial.plan.radio is not None
        self._plan = trial.plan.radio

    @classmethod
    def wanted(cls, trial: PlannedTrial) -> bool:
        """Return whether the network has a radio link."""
        return trial.plan.radio is not None

    def _file(self, name: str) -> str:
        return f"{RADIO_FOLDER}/{name}"

    def place(self) -> None:
        """Start the medium, move each radio into its node, and rename its interface."""
        (self._trial.folder / RADIO_FOLDER).mkdir()
        argv = (str(MEDIUM), *self._plan.medium[1:])
        outputs = (self._file("medium.json"), self._file("medium-errors"))
        self._programme.start("medium", HOME, argv, *outputs)
        for end, name in zip(self._plan.ends, RADIO_INTERFACES, strict=True):
            condition = ("interface", name)
            fault = "the medium did not start"
            self._programme.await_program("medium", RADIO_READY_S, *condition, fault=fault)
            self._programme.run(HOME, (str(IP), "link", "set", name, "name", end.name))
            # `iw` knows a namespace by a process in it
            holder = f"holder of {end.node}"
            nowhere = ("/dev/null", "/dev/null")
            self._programme.start(holder, end.node, ("sleep", "infinity"), *nowhere)
            self._programme.run(HOME, ("iw", "phy", end.node, "set", "netns", f"{{pid:{holder}}}"))
            self._programme.end(holder, signal.SIGKILL, RADIO_READY_S)

    def join(self) -> None:
        """Start the access point and let the station associate."""
        (self._trial.folder / self._file("hostapd.conf")).write_text(self._plan.hostapd)
        ap, station = self._plan.ends
        log = self._file("hostapd.log")
        argv = ("hostapd", self._file("hostapd.conf"))
        self._programme.start("hostapd", ap.node, argv, log, self._file("hostapd-errors"))
        condition = ("says", log, "AP-ENABLED")
        fault = f"{ap.name}: no access point"
        self._programme.await_program("hostapd", RADIO_READY_S, *condition, fault=fault)
        power_save = ("iw", "dev", station.name, "set", "power_save", "off")
        self._programme.run(station.node, power_save)
        connect = ("iw", "dev", station.name, "connect", "-w", NETWORK_NAME, str(CHANNEL_MHZ))
        fault = f"{station.name} could not join: is its signal too weak, the air too busy?"
        self._programme.run(station.node, connect, tries=JOIN_TRIES, fault=fault)

    def close(self) -> None:
        """Record whether the station is still associated; stop the medium and access point."""
        station = self._plan.station
        self._link = self._programme.run(station.node, ("iw", "dev", station.name, "link"))
        self._ended = self._programme.end("medium", signal.SIGTERM, RADIO_READY_S)
        self._programme.end("hostapd", signal.SIGTERM, RADIO_READY_S)

    def check(self, answers: Answers) -> None:
        """Check that the medium ran to the end."""
        ended = answers.ended(self._ended)
        if ended is not None and ended.status:
            log = self._trial.folder / self._file("medium-errors")
            last = safe_files.tail(log).strip().splitlines()[-1:]
            what = f"the medium ended with status {ended.status}"
            raise TestbedError(": ".join((what, *last)))

    def write(self, folder: Path, answers: Answers) -> None:
        """Write the medium's counters together with its settings."""
        # the station does not rejoin by itself
        joined = answers.output(self._link)[1].startswith("Connected")
        radio = self._plan.radio
        settings = {"signal_dbm": radio.signal_dbm, "busy": radio.busy, "joined": joined}
        counters = json_files.read(folder / self._file("medium.json"))
        write_json(folder, RADIO_FILE, {**settings, **counters})

    def clean_up(self, folder: Path) -> None:
        """Remove the programs' files."""
        safe_files.remove_folder(folder / RADIO_FOLDER)
