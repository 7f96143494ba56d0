"""Faults that are planted in trials, as they arise in life: the table of `benchmarks.verdicts`.

A fault of the first kind is another scenario, which is obeyed in place of the one that the trial's
directory has: planned so from the start, so that all of the trial's records are of the other one;
or made so behind the planned settings' verification and undone before they are read again. Faults
of the second kind act in the programme while it runs, those of the third change what it left.
"""

from __future__ import annotations

import dataclasses
import functools
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from benchmarks.scenario_changes import SCENARIO_CHANGES, Dice, ScenarioChange
from testbed.errors import UsageError
from testbed.machine import json_files
from testbed.plan.commands import Command
from testbed.plan.plan import Plan, Task, make_plan
from testbed.runner.programme import LogEntry, Programme
from testbed.runner.recorded_netlink import netlink_of
from testbed.runs.sweep import with_files
from testbed.scenario.model import Flow, FlowKind, Scenario
from testbed.store.names import (
    QUEUE_SAMPLES,
    RECORD,
    SOCKET_SAMPLES,
    errors_file,
    report_file,
)
from testbed.store.records import Record
from testbed.traffic.iperf3.iperf3_flow import IPERF3
from testbed.trial.parts.part import Part, TrialTimeline

Act = Callable[[Programme], object]
ALL_TIME, MIDST = (0.0, 1.0), (0.3, 0.7)  # of the trial


@dataclass(frozen=True)
class Planting:
    """A trial with a fault in it: what is obeyed, what acts meanwhile, and what is left."""

    task: Task
    acts: tuple[tuple[float, Act], ...] = ()  # by their times
    leaves: Callable[[Path], None] | None = None
    hides: bool = False  # it hides what happened, and changes no packet

    @property
    def part(self) -> type[Part]:
        """The part of the trial that acts."""
        acts = self.acts

        class Acting(Part):
            def schedule(self, timeline: TrialTimeline) -> None:
                for at_s, act in acts:
                    timeline.at(at_s, functools.partial(self._act, act))

            def _act(self, act: Act, _at: int) -> None:
                act(self._programme)

        return Acting


Plant = Callable[[Dice, Scenario], Planting | None]


# Another scenario


def planned(change: ScenarioChange) -> Plant:
    """Let the trial be planned as another scenario than its directory will have."""

    def plant(dice: Dice, scenario: Scenario) -> Planting | None:
        plans = _both_plans(change, dice, scenario)
        return Planting(Task(scenario, plans[1])) if plans else None

    return plant


def made(change: ScenarioChange) -> Plant:
    """Make the other scenario's settings behind the verification, and undo them in time."""

    def plant(dice: Dice, scenario: Scenario) -> Planting | None:
        plans = _both_plans(change, dice, scenario)
        if plans is None:
            return None
        one, other = plans
        flows = tuple(
            dataclasses.replace(
                flow,
                **{name: getattr(bent, name) for name in ("server", "client", "client_env")},
                **{name: getattr(bent, name) for name in ("transfers", "datagrams")},
            )
            for flow, bent in zip(one.flows, other.flows, strict=True)
        )
        acts = _differing(dice, scenario, one, other)
        if acts is None or (not acts and flows == one.flows):
            return None
        return Planting(Task(scenario, dataclasses.replace(one, flows=flows)), acts)

    return plant


def _both_plans(change: ScenarioChange, dice: Dice, scenario: Scenario) -> tuple[Plan, Plan] | None:
    bent = change(dice, scenario)
    if bent is None or bent == scenario:
        return None
    try:
        plans = make_plan(scenario), make_plan(bent)
    except UsageError:
        return None
    return None if plans[0] == plans[1] else plans


def _differing(
    dice: Dice, scenario: Scenario, one: Plan, other: Plan
) -> tuple[tuple[float, Act], ...] | None:
    """Return what makes the other plan's settings and undoes them; None if it cannot be."""
    if len(one.setup) != len(other.setup):
        return None
    pairs = [pair for pair in zip(one.setup, other.setup, strict=True) if pair[0] != pair[1]]
    if not all(_can_change(*pair) for pair in pairs):
        return None
    settings = [
        (node, name, value, dict(now)[name])
        for (node, before), (_, now) in zip(one.sysctls, other.sysctls, strict=True)
        for name, value in before
        if dict(now).get(name, value) != value
    ]
    if not pairs and not settings:
        return ()

    def act(programme: Programme, *, begin: bool) -> None:
        for node, name, before, now in settings:
            programme.run(node, ("sysctl", "-w", f"{name}={now if begin else before}"))
        obey(programme, [_as_change(pair[begin]) for pair in pairs])

    during = ALL_TIME if settings else dice.choice((ALL_TIME, MIDST))
    times = (part * scenario.duration_s for part in during)
    return tuple(
        (at_s, functools.partial(act, begin=begin))
        for at_s, begin in zip(times, (True, False), strict=True)
    )


def _can_change(one: Command, other: Command) -> bool:
    """Say whether both commands are about one discipline or class, with other numbers."""
    kinds = {one.argv[1], other.argv[1]}
    arguments = [set(command.argv[: command.argv.index("handle") + 3]) for command in (one, other)
             if "handle" in command.argv]  # fmt: skip
    return one.node == other.node and kinds <= {"qdisc", "class"} and arguments[:1] == arguments[1:]


def _as_change(command: Command) -> Command:
    argv = tuple("change" if word == "add" else word for word in command.argv)
    return Command(command.node, argv)


def obey(programme: Programme, commands: Sequence[Command]) -> None:
    """Have commands of tc obeyed, also those of disciplines that tc does not know."""
    for each in commands:
        (message,) = netlink_of(each.argv[0], (" ".join(each.argv[1:]),))
        places = (("index", offset, name) for offset, name in message.indexes)
        entry = LogEntry(each.node, each.argv)
        content = (message.kind, message.flags, message.content)
        programme.send(each.node, *content, *places, entry=entry)


# While it runs


def over(dice: Dice, scenario: Scenario, begin: Act, end: Act) -> tuple[tuple[float, Act], ...]:
    """Begin something, and end it."""
    times = (part * scenario.duration_s for part in dice.choice((ALL_TIME, MIDST)))
    return tuple(zip(times, (begin, end), strict=True))


def command(node: str, *argv: str) -> Act:
    """Run a command in a node."""
    return lambda programme: programme.run(node, argv)


def pause(seconds: float) -> Act:
    """Let the runner wait, as a program that sleeps."""
    return command("-", "sleep", f"{seconds}")


def interface(*arguments: str, undone: Sequence[str]) -> Plant:
    """Change an interface of the path, and change it back."""

    def plant(dice: Dice, scenario: Scenario) -> Planting:
        plan = make_plan(scenario)
        path = [(capture.node, capture.interface) for capture in plan.captures]
        node, name = dice.choice(path)
        begin, end = (
            command(node, *(name if word == "NAME" else word for word in each))
            for each in (arguments, undone)
        )
        return Planting(Task(scenario, plan), over(dice, scenario, begin, end))

    return plant


def on_the_wire(*arguments: str) -> Plant:
    """Let a link's netem do something else besides, and no more before the end."""

    def plant(dice: Dice, scenario: Scenario) -> Planting | None:
        plan = make_plan(scenario)
        netems = [each for each in plan.setup if "netem" in each.argv and "loss" not in each.argv]
        if not netems:
            return None
        before = _as_change(dice.choice(netems))
        no = tuple("0%" if word.endswith("%") else word for word in arguments)
        begin, end = (Command(before.node, (*before.argv, *each)) for each in (arguments, no))
        acts = over(
            dice,
            scenario,
            lambda programme: obey(programme, [begin]),
            lambda programme: obey(programme, [end]),
        )
        return Planting(Task(scenario, plan), acts)

    return plant


def iperf3_flows(scenario: Scenario) -> list[Flow]:
    """Return the flows over TCP that iperf3 makes, from beginning to end."""
    whole = (each for each in scenario.flows if not (each.bytes or each.duration_s))
    return [each for each in whole if each.kind is FlowKind.TCP]


def signalled(role: str, times: Callable[[float], Iterable[tuple[float, float]]]) -> Plant:
    """Stop one of a flow's programs for a while, and let it go on."""

    def plant(dice: Dice, scenario: Scenario) -> Planting | None:
        flows = iperf3_flows(scenario)
        if not flows:
            return None
        name = dice.choice(flows).name

        def send(signal: str) -> Act:
            return command("-", "kill", f"-{signal}", f"{{pid:{role} {name}}}")

        acts = [
            act
            for begin, end in times(scenario.duration_s)
            for act in ((begin, send("STOP")), (end, send("CONT")))
        ]
        return Planting(Task(scenario, make_plan(scenario)), tuple(acts))

    return plant


def _slow_reads(duration_s: float) -> Iterator[tuple[float, float]]:
    for number in range(2, int(10 * duration_s) - 2):
        yield number / 10, number / 10 + 0.09


def told(*arguments: str) -> Plant:
    """Tell a flow's client something else besides; `RATE` stands for half its share of the link."""

    def plant(dice: Dice, scenario: Scenario) -> Planting | None:
        flows = iperf3_flows(scenario)
        if not flows:
            return None
        name, plan = dice.choice(flows).name, make_plan(scenario)
        rate = round(scenario.network.bottleneck_mbit / 2 / len(scenario.flows) * 1e6)
        more = (f"{rate}" if word == "RATE" else word for word in arguments)
        old = plan.flow(name)
        client = Command(old.client.node, (*old.client.argv, *more))
        other = dataclasses.replace(old, client=client)
        changed = tuple(other if each is old else each for each in plan.flows)
        return Planting(Task(scenario, dataclasses.replace(plan, flows=changed)))

    return plant


def at_times(act: Act, parts: Sequence[float], *, hides: bool = False) -> Plant:
    """Do something at parts of the trial's time."""

    def plant(_dice: Dice, scenario: Scenario) -> Planting:
        acts = tuple((part * scenario.duration_s, act) for part in parts)
        return Planting(Task(scenario, make_plan(scenario)), acts, hides=hides)

    return plant


def late_start(_dice: Dice, scenario: Scenario) -> Planting:
    """Have the runner do something else when the first flow is due."""
    plan = make_plan(scenario)
    at_s = min(each.start_s for each in plan.flows)
    return Planting(Task(scenario, plan), ((at_s, pause(0.02)),))


PLANTED_CLOCK = "import time; time.clock_settime(time.CLOCK_REALTIME, time.time() + 0.05)"
PLANTED_DATAGRAMS = """import socket, sys
s = socket.socket(socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET, socket.SOCK_DGRAM)
for _ in range(20):
    s.sendto(bytes(500), (sys.argv[1], 9))
"""


def foreign_datagrams(dice: Dice, scenario: Scenario) -> Planting:
    """Send datagrams that nobody asked for."""
    plan = make_plan(scenario)
    crossed = dice.choice(plan.flows)
    act = command(crossed.flow.src, "python3", "-c", PLANTED_DATAGRAMS, crossed.dst_address)
    times = (part * scenario.duration_s for part in (0.3, 0.4, 0.5))
    return Planting(Task(scenario, plan), tuple((at_s, act) for at_s in times))


def foreign_connection(dice: Dice, scenario: Scenario) -> Planting:
    """Send 100 kB over TCP that nobody asked for."""
    plan = make_plan(scenario)
    crossed = dice.choice(plan.flows)
    port, size = ("--port", "7000"), ("--bytes", "100000")
    server = (str(IPERF3), "--server", *port)
    client = (str(IPERF3), "--client", crossed.dst_address, *port, *size)

    def start(node: str, argv: Sequence[str]) -> Act:
        name = f"foreign-{argv[1][2:]}"
        files = (report_file("foreign", argv[1][2:]), errors_file("foreign", argv[1][2:]))
        return lambda programme: programme.start(name, node, argv, *files)

    acts = ((0.0, start(crossed.flow.dst, server)), (0.5, start(crossed.flow.src, client)))
    return Planting(Task(scenario, plan), acts)


def left_setting(dice: Dice, scenario: Scenario) -> Planting:
    """Change a setting of TCP's, as a person might, and leave it so."""
    plan = make_plan(scenario)
    node = dice.choice(scenario.flows).src
    act = command(node, "sysctl", "-w", "net.ipv4.tcp_slow_start_after_idle=0")
    return Planting(Task(scenario, plan), ((0.3 * scenario.duration_s, act),))


# What it leaves

EPB_TYPE, EPB_HEAD = (
    6,
    struct.Struct("=IIIII"),
)  # of pcapng: type, length, interface, time
Blocks = list[bytes]


def left(change: Callable[[Dice, Path, Record], Record]) -> Plant:
    """Change what a trial left, as if itself had left it so."""

    def plant(dice: Dice, scenario: Scenario) -> Planting:
        def leaves(path: Path) -> None:
            record = Record.from_json(json_files.read_record(path / RECORD))
            record = with_files(change(dice, path, record), path)
            (path / RECORD).write_text(record.to_json())

        return Planting(Task(scenario, make_plan(scenario)), leaves=leaves, hides=True)

    return plant


def capture(change: Callable[[Dice, Blocks], Blocks]) -> Plant:
    """Change the packets of one capture; the record has their number."""

    def edit(dice: Dice, path: Path, record: Record) -> Record:
        captures = list(record.captures)
        number = max(range(len(captures)), key=lambda n: (captures[n].packets > 20, dice.random()))
        file = path / captures[number].file
        head, blocks = _blocks(file.read_bytes())
        blocks = change(dice, blocks) if blocks else blocks
        file.write_bytes(head + b"".join(blocks))
        captures[number] = dataclasses.replace(captures[number], packets=len(blocks))
        return dataclasses.replace(record, captures=tuple(captures))

    return left(edit)


def _blocks(content: bytes) -> tuple[bytes, Blocks]:
    head, blocks, at = b"", Blocks(), 0
    while at < len(content):
        kind, size, *_ = struct.unpack_from("=II", content, at)
        block = content[at : at + size]
        if kind == EPB_TYPE:
            blocks.append(block)
        else:
            head += block
        at += size
    return head, blocks


def _later(block: bytes, by_ns: int) -> bytes:
    kind, size, number, high, low = EPB_HEAD.unpack_from(block)
    time_ns = (high << 32 | low) + by_ns
    return (
        EPB_HEAD.pack(kind, size, number, time_ns >> 32, time_ns & 0xFFFFFFFF)
        + block[EPB_HEAD.size :]
    )


def _few_missing(dice: Dice, blocks: Blocks) -> Blocks:
    missing = {dice.randrange(len(blocks)) for _ in range(dice.choice((1, 1, 3)))}
    return [block for number, block in enumerate(blocks) if number not in missing]


def _stretch_missing(dice: Dice, blocks: Blocks) -> Blocks:
    begin = dice.randrange(len(blocks))
    return blocks[:begin] + blocks[begin + max(5, len(blocks) // 20) :]


def _clock_of_one(dice: Dice, blocks: Blocks) -> Blocks:
    begin = dice.randrange(len(blocks) // 2 + 1)
    return blocks[:begin] + [_later(block, 1_000_000) for block in blocks[begin:]]


def _twice(dice: Dice, blocks: Blocks) -> Blocks:
    at = dice.randrange(len(blocks))
    return [*blocks[: at + 1], *blocks[at:]]


def _swapped_files(_dice: Dice, path: Path, record: Record) -> Record:
    """Let two captures change their names."""
    one, other, *rest = record.captures
    first, second = (path / each.file for each in (one, other))
    content = first.read_bytes()
    first.write_bytes(second.read_bytes())
    second.write_bytes(content)
    both = (
        dataclasses.replace(one, packets=other.packets),
        dataclasses.replace(other, packets=one.packets),
    )
    return dataclasses.replace(record, captures=(*both, *rest))


def samples(change: Callable[[Dice, pd.DataFrame], pd.DataFrame]) -> Plant:
    """Change the samples of sockets or of queues."""

    def edit(dice: Dice, path: Path, record: Record) -> Record:
        files = [path / each.file for each in (SOCKET_SAMPLES, QUEUE_SAMPLES)]
        file = dice.choice([each for each in files if each.stat().st_size])
        change(dice, pd.read_csv(file)).to_csv(file, index=False)
        return record

    return left(edit)


def _gap(dice: Dice, table: pd.DataFrame) -> pd.DataFrame:
    times = table["time_s"]
    begin = times.quantile(dice.uniform(0.1, 0.7))
    return table[~times.between(begin, begin + 0.3)]


def _clock_of_samples(_dice: Dice, table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(time_s=table["time_s"] + 0.05 * (table["time_s"] > 1))


def cut_file(dice: Dice, scenario: Scenario) -> Planting:
    """Cut a file after the trial, as a full disk would."""

    def leaves(path: Path) -> None:
        files = sorted((path / "captures").iterdir()) + sorted((path / "samples").iterdir())
        file = dice.choice([each for each in files if each.stat().st_size > 100])
        file.write_bytes(file.read_bytes()[: -dice.randrange(1, 100)])

    return Planting(Task(scenario, make_plan(scenario)), leaves=leaves, hides=True)


FAULTS_MADE = (
    *("rate", "delay", "queue's limit", "queue's options", "ECN", "control", "segments' size"),
    *("CBR's rate", "CBR's packets", "sizes of transfers"),
)
PLANTED_FAULTS: Mapping[str, Plant] = {
    **{f"{name}, as planned": planned(change) for name, change in SCENARIO_CHANGES.items()},
    **{name: made(SCENARIO_CHANGES[name]) for name in FAULTS_MADE},
    "losses on a wire": on_the_wire("loss", "1%"),
    "duplicates on a wire": on_the_wire("duplicate", "1%"),
    "damage on a wire": on_the_wire("corrupt", "1%"),
    "offloads left on": interface(
        *("ethtool", "-K", "NAME", "tso", "on", "gso", "on"),
        undone=("ethtool", "-K", "NAME", "tso", "off", "gso", "off"),
    ),
    "MTU": interface(
        *("ip", "link", "set", "NAME", "mtu", "1000"),
        undone=("ip", "link", "set", "NAME", "mtu", "1500"),
    ),
    "setting that stays": left_setting,
    "reader that stops": signalled("server", lambda s: ((0.3 * s, 0.7 * s),)),
    "slow reader": signalled("server", _slow_reads),
    "sender that stops": signalled("client", lambda s: ((0.3 * s, 0.4 * s),)),
    "paced sender": told("--fq-rate", "RATE"),
    "sender with little to send": told("--bitrate", "RATE"),
    "socket of another control": told("--congestion", "reno"),
    "late start": late_start,
    "late sampler": at_times(pause(0.15), (0.31, 0.55), hides=True),
    "clock that jumps": at_times(command("-", "python3", "-c", PLANTED_CLOCK), (0.4,)),
    "datagrams of others": foreign_datagrams,
    "connection of others": foreign_connection,
    "a few packets not captured": capture(_few_missing),
    "a stretch not captured": capture(_stretch_missing),
    "capture that ends early": capture(lambda _dice, blocks: blocks[: -len(blocks) // 5]),
    "capture that begins late": capture(lambda _dice, blocks: blocks[len(blocks) // 5 :]),
    "packet captured twice": capture(_twice),
    "clock of one capture": capture(_clock_of_one),
    "swapped captures": left(_swapped_files),
    "samples missing": samples(_gap),
    "samples that end early": samples(
        lambda _dice, table: table[table["time_s"] < 0.4 * table["time_s"].max()]
    ),
    "clock of samples": samples(_clock_of_samples),
    "file cut afterwards": cut_file,
}
