"""A node's network namespace: entering it, its settings and its offloads, without a process."""

from __future__ import annotations

import array
import contextlib
import ctypes
import fcntl
import os
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

_libc = ctypes.CDLL(None, use_errno=True)
_CLONE_NEWNET = 0x40000000
_SETTING_BYTES = 4096  # at most
_SIOCETHTOOL = 0x8946
_GET_OFFLOAD = {"tso": 0x1E, "gso": 0x23, "gro": 0x2B}  # ETHTOOL_GTSO, _GGSO, _GGRO
_SET_OFFLOAD = {name: command + 1 for name, command in _GET_OFFLOAD.items()}  # ETHTOOL_STSO, …


@contextlib.contextmanager
def inside(pid: int | None) -> Iterator[None]:
    """Enter a process's network namespace; sockets and processes from inside stay there.

    Only the calling thread moves, so this is for single-threaded programs such as a trial.
    """
    if pid is None:
        yield
        return
    home = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    try:
        there = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)
        try:
            _setns(there)
        finally:
            os.close(there)
        try:
            yield
        finally:
            _setns(home)
    finally:
        os.close(home)


def _setns(descriptor: int) -> None:
    if _libc.setns(descriptor, _CLONE_NEWNET):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def read_setting(file: Path) -> str:
    """Return the text of a file below /proc/sys or /sys.

    That takes three system calls where Path.read_text() makes nine, and a trial has hundreds of
    settings.
    """
    descriptor = os.open(file, os.O_RDONLY)
    try:
        return os.read(descriptor, _SETTING_BYTES).decode()
    finally:
        os.close(descriptor)


def write_setting(file: Path, value: str) -> None:
    """Change a setting; raise the kernel's error if it does not take the value."""
    descriptor = os.open(file, os.O_WRONLY)
    try:
        os.write(descriptor, value.encode())
    finally:
        os.close(descriptor)


def offloads_on(interface: str) -> list[str]:
    """Return the segmentation offloads that are on at an interface of the current namespace."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        return [name for name, get in _GET_OFFLOAD.items() if _ethtool(control, interface, get)]


def switch_offloads_off(interface: str) -> None:
    """Do as `ethtool -K INTERFACE tso off gso off gro off`, in the current namespace.

    Offloads that are off already are not touched: a radio has none and rejects the command.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        for name, get in _GET_OFFLOAD.items():
            if _ethtool(control, interface, get):
                _ethtool(control, interface, _SET_OFFLOAD[name])


def _ethtool(control: socket.socket, interface: str, command: int) -> bool:
    """Issue a get command, or a set command for "off", and return the resulting state."""
    value = array.array("I", [command, 0])
    request = struct.pack("16sP", interface.encode(), value.buffer_info()[0])
    fcntl.ioctl(control, _SIOCETHTOOL, request)
    return bool(value[1])
