"""What commands of tc, sysctl and iperf set and ask for, read from their words."""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from analysis.laboratory.observation import ExecutedCommand, Observation

AMOUNT = re.compile(r"([0-9.]{1,30})([a-z]*)", re.IGNORECASE)
PACKET_LIMIT = re.compile(r"[0-9]{1,10}")
MS_OF_TIMES = {"s": 1e3, "sec": 1e3, "secs": 1e3, "ms": 1.0, "msec": 1.0, "msecs": 1.0}
MS_OF_TIMES |= {"us": 1e-3, "usec": 1e-3, "usecs": 1e-3, "ns": 1e-6, "nsec": 1e-6, "nsecs": 1e-6}
MBIT_OF_RATES = {"bit": 1e-6, "kbit": 1e-3, "mbit": 1.0, "gbit": 1e3}
MBIT_OF_RATES |= {"bps": 8e-6, "kbps": 8e-3, "mbps": 8.0, "gbps": 8e3}
CONTROL_SETTING = re.compile(r"\btcp_congestion_control\s*=\s*['\"]?(\w+)")
MIN_UNLIMITED_PACKETS = 1000  # a limit in packets from which a queue is taken to be without one
SETTERS = ("tc", "ip", "ethtool", "sysctl")  # programs that set up networks
SORTERS = ("fq", "prio", "mq", "multiq", "mqprio", "drr", "ets", "qfq", "etf", "pfifo_fast")
IPERF3_CONTROLS = ("-C", "--congestion")
IPERF2_CONTROLS = ("-Z", "--tcp-congestion", "--linux-congestion")
IPERF_PORTS = {"iperf": "5001", "iperf3": "5201"}


@dataclass(frozen=True)
class QueueCommand:
    """A command that gives a device a queue discipline."""

    command: ExecutedCommand
    device: str
    kind: str
    arguments: Sequence[str]
    parent: str  # "root", or the class above

    @property
    def by_mininet(self) -> bool:
        """Whether Mininet's TCLink executed it, which is told from the handles that it gives."""
        handle = self.command.after("handle")
        return handle in ("5:0", "5:") or (
            handle in ("6:", "10:") and self.parent in ("root", "5:1", "6:")
        )

    def after(self, name: str) -> str:
        """Return the word after an argument's name, or nothing."""
        rest = self.arguments
        return rest[rest.index(name) + 1] if name in rest[:-1] else ""

    @property
    def discipline(self) -> tuple[str, ...]:
        """The queue discipline with its arguments."""
        return (self.kind, *self.arguments)

    @property
    def delay_ms(self) -> float:
        """The delay that it adds."""
        return time_ms(self.after("delay")) if self.kind == "netem" else 0.0

    @property
    def jitter(self) -> str:
        """The variation of its delay, in the command's words."""
        rest = self.arguments
        place = rest.index("delay") + 2 if "delay" in rest else len(rest)
        return rest[place] if place < len(rest) and rest[place][:1].isdigit() else ""

    @property
    def limit(self) -> int | None:
        """Return the packets that it may hold, if the command says so."""
        text = self.after("limit")
        counts = self.kind in ("netem", "pfifo") and PACKET_LIMIT.fullmatch(text)
        return int(text) if counts else None

    @property
    def shapes(self) -> bool:
        """Whether it limits something, so that it belongs where data pass.

        A delay's limit holds the packets on their way: it only delays them. What sorts or paces
        does nothing where little passes.
        """
        if self.kind in SORTERS:
            return "maxrate" in self.arguments
        counts = self.limit is not None and self.limit < MIN_UNLIMITED_PACKETS and not self.delay_ms
        return self.kind != "netem" or "rate" in self.arguments or counts


def queue_commands(observation: Observation) -> Iterator[QueueCommand]:
    """Yield the commands that gave a device a queue discipline."""
    for command in observation.of("tc"):
        if command.status == 0 and (queue := queue_command(command)):
            yield queue


def queue_command(command: ExecutedCommand) -> QueueCommand | None:
    """Return what a command of tc gives a device, unless it does something else."""
    arguments = command.words
    if "qdisc" not in arguments or not {"add", "replace", "change"} & set(arguments):
        return None
    rest, parent = list(arguments[arguments.index("qdisc") + 2 :]), "root"
    while rest:
        word = rest.pop(0)
        if word in ("dev", "handle", "parent") and rest:
            parent = rest.pop(0) if word == "parent" else (rest.pop(0), parent)[1]
        elif word != "root":
            return QueueCommand(command, command.after("dev"), word, rest, parent)
    return None


def _amount(text: str, units: dict[str, float], without: float) -> float:
    amount = AMOUNT.fullmatch(text)
    if not amount:
        return 0.0
    try:
        return float(amount[1]) * (units.get(amount[2].lower(), 0.0) if amount[2] else without)
    except ValueError:
        return 0.0


def time_ms(text: str) -> float:
    """Return a time as tc reads it: without a unit in microseconds."""
    return _amount(text, MS_OF_TIMES, 1e-3)


def rate_mbit(text: str) -> float:
    """Return a rate as tc reads it: without a unit in bits a second."""
    return _amount(text, MBIT_OF_RATES, 1e-6)


def rate_of(queue: QueueCommand, observation: Observation) -> float:
    """Return the rate at which a queue is emptied, in Mbit/s; 0 if no command says it."""
    if rate := rate_mbit(queue.after("rate")):
        return rate
    order, last = queue.command.order, []
    for word in (queue.parent, "tbf"):
        commands = observation.rates.get((queue.command.namespace, queue.device, word), ())
        if place := bisect.bisect_right(commands, order, key=lambda each: each.order):
            last.append(commands[place - 1])
    latest = max(last, key=lambda each: each.order, default=None)
    return rate_mbit(latest.after("rate")) if latest else 0.0


def pair_of(command: ExecutedCommand) -> frozenset[str] | None:
    """Return the names of the two devices that a command of ip makes as a pair, or nothing."""
    arguments = list(command.words)
    if not {"link", "add", "peer"} <= set(arguments):
        return None
    behind = [arguments[arguments.index(word) + 1 :] for word in ("add", "peer")]
    names = [rest[rest[0] == "name"] for rest in behind if len(rest) > 1]
    return frozenset(names)


def control_set(command: ExecutedCommand) -> str:
    """Return the congestion control that a command of sysctl sets, or nothing."""
    setting = CONTROL_SETTING.search(" ".join(command.words))
    return setting[1] if setting else ""


def control_option(client: ExecutedCommand) -> str:
    """Return the congestion control that a client of iperf's asks for, or nothing."""
    return _option(client, *(IPERF3_CONTROLS if client.program == "iperf3" else IPERF2_CONTROLS))


def is_client(command: ExecutedCommand) -> bool:
    """Tell whether a command is a client of iperf's."""
    return command.program in IPERF_PORTS and bool(server_of(command))


def server_of(command: ExecutedCommand) -> str:
    """Return the host that a client of iperf's sends to, or nothing."""
    return _option(command, "-c", "--client")


def port_of(command: ExecutedCommand) -> str:
    """Return the port of a client or server of iperf's."""
    return _option(command, "-p", "--port") or IPERF_PORTS[command.program]


def is_udp(client: ExecutedCommand) -> bool:
    """Tell whether a client of iperf's sends over UDP."""
    return bool({"-u", "--udp"} & set(client.words))


def _option(command: ExecutedCommand, *names: str) -> str:
    """Return the value of an option, `-p 1`, `-p1`, `--port 1` or `--port=1`, or nothing."""
    for name in names:
        if value := command.after(name):
            return value
        beginning = f"{name}=" if name.startswith("--") else name
        for word in command.words[1:]:
            if word.startswith(beginning) and word != beginning:
                return word.removeprefix(beginning)
    return ""
