"""Whether an interface joins segments, asked of the kernel by ethtool's ioctl."""

from __future__ import annotations

import array
import fcntl
import socket
import struct

SIOCETHTOOL = 0x8946
_GET = {"tso": 0x1E, "gso": 0x23, "gro": 0x2B}  # ETHTOOL_GTSO, _GGSO, _GGRO


def offloads_on(interface: str) -> list[str]:
    """The segmentation offloads that are on, in the namespace that we are in."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        return [name for name, command in _GET.items() if _is_on(control, interface, command)]


def _is_on(control: socket.socket, interface: str, command: int) -> bool:
    value = array.array("I", [command, 0])
    request = struct.pack("16sP", interface.encode(), value.buffer_info()[0])
    fcntl.ioctl(control, SIOCETHTOOL, request)
    return bool(value[1])
