"""The frames of a capture that were not read, in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum

from analysis.captures.native import Core, SkippedCount


class SkipReason(IntEnum):
    """Why a frame was skipped: the values of `enum why` in core.h."""

    BROKEN = 1
    LINK = 2
    ETHERTYPE = 3
    IP_PROTOCOL = 4
    PPP_PROTOCOL = 5
    TUNNEL = 6
    OTHER_BLOCK = 7


LINKS: Mapping[int, str] = {
    3: "AX.25",
    6: "Token Ring",
    7: "ARCNET",
    8: "SLIP",
    10: "FDDI",
    100: "LLC on ATM",
    105: "802.11",
    107: "Frame Relay",
    117: "pflog",
    119: "802.11 with Prism's header",
    122: "IP on Fibre Channel",
    123: "SunATM",
    127: "802.11 with radiotap",
    129: "ARCNET of Linux",
    138: "IP on FireWire",
    149: "pflog",
    163: "802.11 with AVS's header",
    166: "PPP with pppd's direction",
    187: "Bluetooth",
    189: "USB",
    192: "PPI",
    195: "802.15.4",
    201: "Bluetooth",
    220: "USB",
    227: "CAN",
    230: "802.15.4",
    253: "netlink",
}
# protocols that may carry TCP and UDP; of others, such as ARP, there is nothing to be read
ETHERTYPES: Mapping[int, str] = {
    0x22EB: "ERSPAN",
    0x22F3: "TRILL",
    0x4305: "B.A.T.M.A.N.",
    0x6558: "bridged Ethernet",
    0x8847: "MPLS without IP",
    0x88BE: "ERSPAN",
    0x88E5: "MACsec",
    0x88E7: "802.1ah",
    0x8903: "FabricPath",
    0x8926: "VN-Tag",
    0x892F: "HSR",
    0x893F: "802.1BR",
    0x894F: "NSH",
    0x9200: "a VLAN tag of its vendor's",
    0x883E: "WCCP",
    0xA0ED: "6LoWPAN",
}
IP_PROTOCOLS: Mapping[int, str] = {
    50: "ESP",
    55: "minimal encapsulation",
    94: "IPIP of 1993",
    97: "EtherIP",
    98: "ENCAP",
    108: "IPComp",
    115: "L2TP",
}
PPP_PROTOCOLS: Mapping[int, str] = {
    0x2D: "compressed TCP of PPP",
    0x2F: "compressed TCP of PPP",
    0x31: "bridged Ethernet of PPP",
    0x3D: "multilink PPP",
    0x53: "encrypted PPP",
    0xFB: "compressed PPP",
    0xFD: "compressed PPP",
}
TUNNEL_PORTS: Mapping[int, str] = {2152: "GTP", 4789: "VXLAN", 6081: "GENEVE"}
OPTIONAL = ("VXLAN", "GENEVE")


@dataclass(frozen=True)
class SkippedFrames:
    """Counts of the frames that were not read, by their kind."""

    reasons: Mapping[str, int]

    @property
    def frames(self) -> int:
        """The number of skipped frames."""
        return sum(self.reasons.values())

    def __str__(self) -> str:
        """`12 NSH, 3 802.11`: empty if all were read."""
        ordered = sorted(self.reasons.items(), key=lambda each: (-each[1], each[0]))
        return ", ".join(f"{frames} {what}" for what, frames in ordered)

    def warnings(self, file: str, frames: int) -> tuple[str, ...]:
        """Return a warning of one line; none if every frame was read."""
        if not self.reasons:
            return ()
        hint = ""
        if any(what.startswith(OPTIONAL) for what in self.reasons):
            hint = "; --tunnels reads what VXLAN and GENEVE carry"
        return (f"{file}: {self.frames} of {frames} frames are not read: {self}{hint}",)


def skipped_frames(core: Core) -> SkippedFrames:
    """Count what the core did not read, by reason."""
    reasons: Counter[str] = Counter()
    for each in core.skipped():
        reasons[_name(each)] += each.frames
    reasons["fragments of datagrams that are not whole"] += core.state.waiting
    return SkippedFrames({what: frames for what, frames in reasons.items() if what and frames})


def _name(unread: SkippedCount) -> str:
    """Empty for what carries neither TCP nor UDP."""
    number = int(unread.number)
    match SkipReason(unread.reason):
        case SkipReason.BROKEN:
            return "with headers cut short or malformed"
        case SkipReason.LINK:
            return (
                f"{LINKS[number]} (link type {number})"
                if number in LINKS
                else f"of link type {number}"
            )
        case SkipReason.ETHERTYPE:
            return ETHERTYPES.get(number, "")
        case SkipReason.IP_PROTOCOL:
            return IP_PROTOCOLS.get(number, "")
        case SkipReason.PPP_PROTOCOL:
            return PPP_PROTOCOLS.get(number, "")
        case SkipReason.TUNNEL:
            return f"{TUNNEL_PORTS[number]} (read as UDP)"
        case SkipReason.OTHER_BLOCK:
            return f"blocks of type {number:#x} that are not packets"
