"""Segmentation offloads read and switched off by ethtool's ioctl, without a process."""

from __future__ import annotations

import array
import fcntl
import socket
import struct

SIOCETHTOOL = 0x8946
_GET = {"tso": 0x1E, "gso": 0x23, "gro": 0x2B}  # ETHTOOL_GTSO, _GGSO, _GGRO
_SET = {name: command + 1 for name, command in _GET.items()}  # ETHTOOL_STSO, …


def offloads_on(interface: str) -> list[str]:
    """The segmentation offloads that are on, for an interface of the current namespace."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        return [name for name, command in _GET.items() if _call(control, interface, command)]


def switch_offloads_off(interface: str) -> None:
    """Like `ethtool -K INTERFACE tso off gso off gro off`, in the current namespace.

    Offloads that are off already are not touched: a radio has none and rejects the command.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        for name, command in _GET.items():
            if _call(control, interface, command):
                _call(control, interface, _SET[name])


def _call(control: socket.socket, interface: str, command: int) -> bool:
    """Issue a get command, or a set command for "off"; returns the resulting state."""
    value = array.array("I", [command, 0])
    request = struct.pack("16sP", interface.encode(), value.buffer_info()[0])
    fcntl.ioctl(control, SIOCETHTOOL, request)
    return bool(value[1])
