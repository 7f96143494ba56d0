"""From a plan to a programme, and from its answers to a trial's files and record, part by part."""

from __future__ import annotations

import itertools
import math
import struct
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from testbed.engine import ProcessOutcome
from testbed.errors import TestbedError
from testbed.machine import safe_files
from testbed.machine.compiled import LIBRARIES
from testbed.machine.journal import JOURNAL
from testbed.machine.netlink import NLM_F_CREATE, RTM_NEWLINK, attribute
from testbed.machine.sysctl_guard import ALLOWED
from testbed.plan.commands import Command, Veth
from testbed.plan.plan import NO_OFFLOADS, Task
from testbed.runner.programme import BOOT_NS, HOME, NS, Answers, LogEntry, Programme
from testbed.runner.recorded_netlink import netlink_of, send_command
from testbed.scenario.programs import PROGRAM_PATH
from testbed.store.names import ANSWERS, NETWORK_UP, PROGRAMME
from testbed.store.records import DAMAGED, Record, Status
from testbed.trial.parts.capture import GuestCaptures, HostCaptures
from testbed.trial.parts.cpu_load import CpuLoad
from testbed.trial.parts.flow_traffic import FlowTraffic
from testbed.trial.parts.idle_rtt import IdleRtt
from testbed.trial.parts.kernel_state import KernelState
from testbed.trial.parts.link_changes import LinkChanges
from testbed.trial.parts.losses import DeliberateLosses
from testbed.trial.parts.part import Part, PlannedTrial, TrialTimeline
from testbed.trial.parts.radio import RadioLink
from testbed.trial.parts.receivers import MisbehavingReceivers
from testbed.trial.parts.sampling import Sampling
from testbed.trial.parts.session_delays import SessionRoundTrips
from testbed.trial.parts.snapshot import sysctl_file

PARTS: tuple[type[Part], ...] = (
    KernelState,  # before any other program runs
    IdleRtt,
    FlowTraffic,
    SessionRoundTrips,
    DeliberateLosses,
    MisbehavingReceivers,
    GuestCaptures,
    HostCaptures,
    Sampling,  # rehearses once all other programs are ready
    LinkChanges,
    CpuLoad,
    RadioLink,  # ends the medium once the kernel's final state has been read
)

RUNNER = LIBRARIES / "testbed-runner"  # built from runner/
# The guest's four beginnings; each part of a set-up takes far less than 100 s. On the host there
# are none, and second 0 follows after the lead.
BEGINNINGS_NS = tuple(BOOT_NS + seconds * NS for seconds in (100, 200, 300, 400))
LEAD_NS = 100_000_000
PROGRAM_ENVIRONMENT = MappingProxyType(
    {
        "PATH": f"/usr/local/sbin:/usr/local/bin:{PROGRAM_PATH}",
        "HOME": "/run/home",
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
)
_IFLA_ADDRESS, _IFLA_IFNAME, _IFLA_LINKINFO, _IFLA_NET_NS_FD = 1, 3, 18, 28
_IFLA_INFO_KIND, _IFLA_INFO_DATA, _VETH_INFO_PEER = 1, 2, 1
_LINK = struct.Struct("=BxHiII")  # struct ifinfomsg


class TrialProgramme:
    """A trial's programme, and its parts, which read the answers."""

    def __init__(
        self,
        task: Task,
        folder: Path,
        *,
        virtual_time: bool,
        controls: Iterable[str] = (),
        namespaces: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Write the programme; `namespaces` has those nodes that exist already."""
        self.trial = PlannedTrial(task.scenario, task.plan, folder, virtual_time)
        self._controls = controls
        self._namespaces = namespaces
        for kind in PARTS:
            if kind.wanted(self.trial):
                self.trial.parts.append(kind(self.trial))
        self._set_up()
        self._zero = self._run()

    def store(self) -> None:
        """Write the programme into the trial's folder, where the runner finds it."""
        (self.trial.folder / PROGRAMME).write_text(self.trial.programme.text)

    def _set_up(self) -> None:
        programme, plan = self.trial.programme, self.trial.plan
        environment = dict(PROGRAM_ENVIRONMENT)
        if self.trial.virtual_time:  # TLS and QUIC take their keys from the trial's seed
            environment["TESTBED_LIBRARIES"] = str(LIBRARIES)  # for what the next one names
            environment["OPENSSL_CONF"] = str(LIBRARIES / "testbed-openssl.cnf")
        else:  # `testbed clean` knows by it what a killed run has left
            environment |= JOURNAL.marker
        programme.add("environment", *(f"{key}={text}" for key, text in environment.items()))
        for node in plan.nodes:
            programme.add("node", node, *filter(None, [self._namespaces.get(node)]))
        if self._controls:  # namespaces may set only those that the first one allows
            programme.add("write", HOME, str(ALLOWED), " ".join(self._controls))
        for veth in plan.veths:
            add_veth(programme, veth)
        for part in self.trial.parts:
            part.place()
        apply(programme, self.trial)
        self._begin(1)
        for part in self.trial.parts:
            part.join()
        programme.add("touch", NETWORK_UP)

    def _begin(self, number: int) -> None:
        if self.trial.virtual_time:
            self.trial.programme.add("begin", number, BEGINNINGS_NS[number - 1])

    def _run(self) -> int:
        trial, programme = self.trial, self.trial.programme
        self._begin(2)
        for part in trial.parts:
            part.watch()
        self._begin(3)
        for part in trial.parts:
            part.open()
        for part in trial.parts:
            part.wait_until_ready()
        epoch_ns = BEGINNINGS_NS[-1] if trial.virtual_time else 0
        zero = programme.add("zero", epoch_ns, LEAD_NS)
        for part in trial.parts:
            part.schedule(trial.timeline)
        end = TrialTimeline()
        for part in trial.parts:
            part.schedule_end(end, trial.plan.end_s)
        self._begin(4)
        checks = self._checks()
        trial.timeline.write(programme)
        for number in checks:
            programme.replace(number, "ended", programme.length, *checks[number])
        end.write(programme)
        for part in trial.parts:
            part.collect()
        for part in trial.parts:
            part.close()
        return zero

    def _checks(self) -> dict[int, Sequence[object]]:
        """Look every second whether all flows have ended, and return the words of what looks.

        The end then begins: what was planned for the last flow's stop, and from there on.
        """
        trial = self.trial
        checks: dict[int, Sequence[object]] = {}
        programs = [program for part in trial.parts for program in part.ends_with]
        if programs:
            first_s = math.ceil(max(flow.start_s for flow in trial.plan.flows))
            last_s = max(flow.stop_s for flow in trial.plan.flows)
            words = (round(last_s * NS), *programs)

            def check(_at: int) -> None:
                checks[trial.programme.add("ended")] = words

            for second in range(first_s, math.ceil(last_s)):
                trial.timeline.at(second, check)
        return checks

    def finish(self, outcome: ProcessOutcome) -> Record:
        """Read the answers, write the trial's files, and return its record.

        A hostile program in the guest may have written the answers.
        """
        try:
            return self._finish(outcome)
        except (*DAMAGED, struct.error, OverflowError, MemoryError) as error:
            why = f"{type(error).__name__}: {error}"
            raise TestbedError(f"the trial's answers cannot be read: {why}") from error
        finally:
            self.clean_up()

    def _finish(self, outcome: ProcessOutcome) -> Record:
        trial, folder = self.trial, self.trial.folder
        path = folder / ANSWERS
        answers = Answers(safe_files.read_bytes(path) if path.exists() else b"", self._zero)
        trial.programme.log(folder, answers)
        if fault := trial.programme.fault(answers, folder):
            raise fault
        if outcome.status:
            raise outcome.death()
        for part in trial.parts:
            part.check(answers)
        for part in trial.parts:
            part.write(folder, answers)
        self._zero_ns = answers.zero_ns
        record = Record(
            status=Status.OK,
            seed=trial.scenario.seed,
            epoch_s=answers.epoch_s,
            warnings=trial.plan.warnings,
        )
        for part in trial.parts:
            record = part.describe(record, answers)
        return record

    def clock(self, monotonic_ns: int) -> float:
        """Convert CLOCK_MONOTONIC to the trial's seconds, once the trial has been finished."""
        return (monotonic_ns - self._zero_ns) / NS

    def clean_up(self) -> None:
        """Remove all files that only the trial needed, however it ended."""
        for part in self.trial.parts:
            part.clean_up(self.trial.folder)
        for name in (PROGRAMME, ANSWERS):
            (self.trial.folder / name).unlink(missing_ok=True)


def add_veth(programme: Programme, veth: Veth) -> None:
    """Create a veth pair, with each end in its node from the start."""
    peer = _LINK.pack(0, 0, 0, 0, 0) + _end(veth.name2, veth.mac2)
    data = attribute(_IFLA_INFO_DATA, attribute(_VETH_INFO_PEER, peer))
    kind = attribute(_IFLA_INFO_KIND, b"veth")
    head = _LINK.pack(0, 0, 0, 0, 0) + _end(veth.name1, veth.mac1)
    message = head + attribute(_IFLA_LINKINFO, kind + data)
    # each end's namespace is the last of its attributes
    places = (("node", len(head) - 4, veth.node1), ("node", len(message) - 4, veth.node2))
    ends = (
        f"link add name {veth.name1} address {veth.mac1} netns {veth.node1} type veth",
        f"peer name {veth.name2} address {veth.mac2} netns {veth.node2}",
    )
    entry = LogEntry(HOME, ("ip", *" ".join(ends).split()))
    programme.send(HOME, RTM_NEWLINK, NLM_F_CREATE, message, *places, entry=entry)


def _end(name: str, mac: str) -> bytes:
    address = attribute(_IFLA_ADDRESS, bytes.fromhex(mac.replace(":", "")))
    return (
        attribute(_IFLA_IFNAME, f"{name}\0".encode())
        + address
        + attribute(_IFLA_NET_NS_FD, bytes(4))
    )


def apply(programme: Programme, trial: PlannedTrial) -> None:
    """Apply the plan's settings and commands; tc and ip make their messages."""
    for node, settings in trial.plan.sysctls:
        for name, value in settings:
            _set(programme, node, name, value)
    for each in trial.plan.parameters:
        fault = f"{each.control}: cannot set {each.name} to {each.value}"
        programme.add("write", HOME, each.file, each.value, fault=fault)
    groups = itertools.groupby(trial.plan.setup, lambda command: (command.node, command.argv[0]))
    for (node, tool), commands in groups:
        _add_group(programme, node, tool, list(commands))


def _set(programme: Programme, node: str, name: str, value: str) -> None:
    entry = LogEntry(
        node,
        ("sysctl", "-w", f"{name}={value}"),
        fault=f"{node}: cannot set {name} to {value!r}",
    )
    programme.add("write", node, sysctl_file(name), value, entry=entry)


def _add_group(programme: Programme, node: str, tool: str, commands: list[Command]) -> None:
    if tool == "ethtool":
        for command in commands:
            _, _, interface, *words = command.argv
            what = "off" if tuple(words) == NO_OFFLOADS else "off-udp"
            fault = f"{node}: cannot switch off the offloads of {interface}"
            entry = LogEntry(node, command.argv, fault=fault)
            programme.add("offloads", node, what, interface, entry=entry)
        return
    lines = tuple(" ".join(command.argv[1:]) for command in commands)
    for command, message in zip(commands, netlink_of(tool, lines), strict=True):
        send_command(programme, node, command.argv, message)
