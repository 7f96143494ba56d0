"""Commands of `ip` and `tc` as the netlink messages that they send: the runner needs no process.

The programs themselves make the messages, with spoken_netlink.c preloaded, and send nothing. The
options of a discipline that tc does not know are added here.
"""

from __future__ import annotations

import functools
import os
import re
import socket
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from testbed.errors import TestbedError
from testbed.machine.compiled import LIBRARIES, require_built
from testbed.machine.netlink import RTM_NEWLINK, TCA_OPTIONS, attribute
from testbed.machine.process import run
from testbed.runner.programme import LogEntry, Programme

NETLINK_RECORDER = LIBRARIES / "testbed-spoken-netlink.so"  # built from spoken_netlink.c
IP, TC = LIBRARIES / "testbed-ip", LIBRARIES / "testbed-tc"  # built from Debian's source
PROGRAMS_OF_IPROUTE2 = {"ip": IP, "tc": TC}
FIRST_INDEX = 0x7EAD0000  # as in spoken_netlink.c
TOOL_PATIENCE_S = 10.0
_MESSAGE_HEAD = struct.Struct("=IHH8x")  # of a netlink message: length, type, flags
_LINK_BYTES = 32

LINK = "link"  # our own discipline: kernel/queues/sch_link.c
RECEIVE = "receive"  # and kernel/queues/sch_receive.c
LINK_RATE, LINK_PACKETS, LINK_TIME = 1, 2, 3
RECEIVE_HOLD, RECEIVE_COST, RECEIVE_WAKE = 1, 2, 3
PROTOCOL_NUMBERS = {"tcp": socket.IPPROTO_TCP, "udp": socket.IPPROTO_UDP}
_PROTOCOL = re.compile(r"\bipproto (tcp|udp)\b")
_OWN_COMMAND = re.compile(
    rf"(qdisc (?:add|change) .* (?:{LINK}|{RECEIVE}))((?: [a-z]+ [0-9]+(?:bit|ns)?)+)"
)
_OPTIONS = {  # the word of each option, with its attribute and its number's form
    "rate": (LINK_RATE, "=Q"),
    "packets": (LINK_PACKETS, "=I"),
    "time": (LINK_TIME, "=I"),
    "hold": (RECEIVE_HOLD, "=I"),
    "cost": (RECEIVE_COST, "=I"),
    "wake": (RECEIVE_WAKE, "=I"),
}


@dataclass(frozen=True)
class Message:
    """A netlink request: type, flags, content, and where indexes of interfaces belong."""

    kind: int
    flags: int
    content: bytes
    indexes: tuple[tuple[int, str], ...]  # offset and interface


@functools.lru_cache(maxsize=4096)
def netlink_of(tool: str, lines: Sequence[str]) -> tuple[Message, ...]:
    """Return the messages of these lines of `ip -batch` or `tc -batch`: one for each line."""
    for path in (NETLINK_RECORDER, PROGRAMS_OF_IPROUTE2[tool]):
        require_built(path)
    messages, names = os.memfd_create("messages"), os.memfd_create("names")
    try:
        done = run(
            (str(PROGRAMS_OF_IPROUTE2[tool]), "-batch", "-"),
            stdin="".join(f"{_known_to_tc(line)}\n" for line in lines),
            check=False,
            timeout_s=TOOL_PATIENCE_S,
            descriptors=(messages, names),
            env={
                "LD_PRELOAD": str(NETLINK_RECORDER),
                "SPOKEN_TO": str(messages),
                "SPOKEN_NAMES": str(names),
            },
        )
        if done.status:
            errors = (done.stderr or done.stdout).strip().splitlines()
            raise TestbedError(f"{tool} does not understand a command: {' '.join(errors[:1])}")
        interfaces = _content(names).decode().split()
        recorded = tuple(_messages(_content(messages), interfaces))
    finally:
        os.close(messages)
        os.close(names)
    if len(recorded) != len(lines):
        raise TestbedError(f"{tool} made {len(recorded)} messages of {len(lines)} commands")
    return tuple(map(_with_options, recorded, lines))


def send_command(programme: Programme, node: str, argv: Sequence[str], message: Message) -> None:
    """Add the message of a command to a programme, which logs it as the command."""
    places = (("index", offset, name) for offset, name in message.indexes)
    entry = LogEntry(node, tuple(argv))
    programme.send(node, message.kind, message.flags, message.content, *places, entry=entry)


def _known_to_tc(line: str) -> str:
    """Return a command without the options of a discipline that tc does not know.

    Nor does `ip` know a protocol's name where the machine has no /etc/protocols.
    """
    numbered = _PROTOCOL.sub(lambda match: f"ipproto {PROTOCOL_NUMBERS[match[1]]}", line)
    return _OWN_COMMAND.sub(r"\1", numbered)


def _with_options(message: Message, line: str) -> Message:
    """Return a command's message with the options that tc did not add."""
    if not (match := _OWN_COMMAND.fullmatch(line)):
        return message
    options = b""
    for word, number in re.findall(r"([a-z]+) ([0-9]+)", match[2]):
        kind, form = _OPTIONS[word]
        options += attribute(kind, struct.pack(form, int(number)))
    return replace(message, content=message.content + attribute(TCA_OPTIONS, options))


def _content(descriptor: int) -> bytes:
    return os.pread(descriptor, os.fstat(descriptor).st_size, 0)


def _messages(data: bytes, interfaces: Sequence[str]) -> Iterator[Message]:
    place = 0
    while place < len(data):
        length, kind, flags = _MESSAGE_HEAD.unpack_from(data, place)
        content = data[place + _MESSAGE_HEAD.size : place + length]
        place += (length + 3) & ~3
        # `ip` first asks whether the kernel knows the request, by an empty one
        if not (kind == RTM_NEWLINK and length == _LINK_BYTES and content == bytes(16)):
            yield Message(kind, flags, content, tuple(_indexes(content, interfaces)))


def _indexes(content: bytes, interfaces: Sequence[str]) -> Iterator[tuple[int, str]]:
    for offset in range(0, len(content) - 3, 4):
        (number,) = struct.unpack_from("=I", content, offset)
        if 0 <= number - FIRST_INDEX < len(interfaces):
            yield offset, interfaces[number - FIRST_INDEX]
