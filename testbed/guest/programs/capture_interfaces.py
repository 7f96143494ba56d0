"""Capture Mininet's interfaces from when they are made (`testbed mininet --capture`).

`prepare` has Mininet's link.py import this. The guest's kernel writes the packets behind the
beginning of a pcapng file, for as long as the script has /proc/capture open.
"""

import atexit
import ctypes
import os
import struct
from pathlib import Path
from typing import Any

WANTED = os.environ["TESTBED_CAPTURE"].split(",")
SNAPLEN = 65535  # whole packets
CLONE_NEWNET = 0x40000000
C_LIBRARY = ctypes.CDLL(None, use_errno=True)

captured: dict[str, int] = {}  # interface → how many with this name were captured
unused = set(WANTED) - {"all"}
seen: list[str] = []


def watch_interfaces(kind: Any) -> None:
    """Capture each wanted interface that Mininet makes from now on."""
    original = kind.__init__

    def make(self: Any, *arguments: Any, **options: Any) -> None:
        original(self, *arguments, **options)
        if self.node and self.name != "lo":
            take_up(self.name, self.node)

    kind.__init__ = make


def take_up(name: str, node: Any) -> None:
    """Capture an interface if it is wanted by its name, its node or its node's port."""
    port = name.removeprefix(f"{node.name}-eth")
    names = {name, node.name, f"{node.name}:{port}"}
    seen.append(name)
    if "all" in WANTED or names.intersection(WANTED):
        unused.difference_update(names)
        try:
            capture(name, node)
        except OSError as error:
            note(f"{name} is not captured: {error.strerror}")


def capture(name: str, node: Any) -> None:
    """Let the kernel write an interface's packets; the file is never closed by us."""
    captured[name] = captured.get(name, 0) + 1
    again = f"-{captured[name]}" if captured[name] > 1 else ""
    # on the host, in the folder where the guest's kernel was started
    line = f"{name} {SNAPLEN} captures/{name}{again}.pcapng\n"
    ours, its = (os.open(f"/proc/{pid}/ns/net", os.O_RDONLY) for pid in ("self", node.pid))
    try:
        enter(its)
        try:
            file = os.open("/proc/capture", os.O_RDWR | os.O_CLOEXEC)
            os.write(file, line.encode() + beginning(name, node.name))
        finally:
            enter(ours)
    finally:
        os.close(ours)
        os.close(its)


def enter(namespace: int) -> None:
    """Go into a network namespace; all processes that the script starts stay where they are."""
    if C_LIBRARY.setns(namespace, CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def beginning(name: str, node: str) -> bytes:
    """Return what precedes the packets in pcapng: a section and its interface, with ns."""
    section = block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))
    options = option(2, name.encode()) + option(3, f"{name} of {node}".encode())
    options += option(9, b"\x09") + option(0, b"")
    return section + block(1, struct.pack("<HHI", 1, 0, SNAPLEN) + options)


def option(code: int, value: bytes) -> bytes:
    """Return an option of a block."""
    return struct.pack("<HH", code, len(value)) + value + bytes(-len(value) % 4)


def block(kind: int, body: bytes) -> bytes:
    """Return a block of pcapng."""
    size = struct.pack("<I", len(body) + 12)
    return struct.pack("<I", kind) + size + body + size


def note(line: str) -> None:
    """Leave a line for whoever started the guest."""
    with Path("/run/notes").open("a") as notes:
        notes.write(f"{line}\n")


@atexit.register
def tell_unused() -> None:
    """Name what was to be captured and is not there; called at the script's end."""
    for word in sorted(unused) if seen else ():
        note(f"--capture {word}: no such interface: there were {', '.join(dict.fromkeys(seen))}")
