"""An interactive look at single packets with pyshark.

In a notebook, or at Python's prompt:

    from analysis.captures.wireshark import first_packets, look

    packets = first_packets("results/fall-floyd/tahoe-lost4-…", 20, flow="tcp")
    packets[7].tcp.window_size, packets[7].sniff_time
    print(packets[7])                       # all layers, as Wireshark's details show them

    # the first fast retransmission, and no packet after it
    first_packets("some.pcapng", 1, display_filter="tcp.analysis.fast_retransmission")

    with look("results/…", point="receiver") as packets:  # one at a time, as many as wanted
        for packet in packets:
            if int(packet.tcp.len) and "analysis_lost_segment" in packet.tcp.field_names:
                break

The packets are pyshark's (https://github.com/KimiNewt/pyshark): a layer is an attribute of the
packet, and Wireshark's field `tcp.analysis.ack_rtt` is `packet.tcp.analysis_ack_rtt`. For the
numbers of whole captures use `testbed reduce`: pyshark takes milliseconds a packet.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from analysis.captures.inspection import Point, View, dissected, view_of
from testbed.errors import UsageError
from testbed.store import open_trial

if TYPE_CHECKING:
    from pyshark.packet.packet import Packet


def first_packets(
    source: Path | str,
    count: int,
    *,
    flow: str = "",
    point: str = Point.SENDER,
    display_filter: str = "",
) -> list[Packet]:
    """The first `count` packets of a flow, or fewer if there are no more; see `look`."""
    with look(source, flow=flow, point=point, display_filter=display_filter) as packets:
        return list(itertools.islice(packets, count))


@contextlib.contextmanager
def look(
    source: Path | str,
    *,
    flow: str = "",
    point: str = Point.SENDER,
    display_filter: str = "",
) -> Iterator[Iterator[Packet]]:
    """A flow's packets, each dissected when it is asked for.

    `source` is a trial's directory, where `flow` (by default the first) and `point` choose
    the capture and its filter; or any capture file. `display_filter` narrows either.
    Sequence numbers and all else are as in our Wireshark profile, whatever the user's own
    settings are. When the block is left, tshark has ended, however many packets were read.
    """
    with dissected(_view(Path(source), flow, point).narrowed(display_filter), "pdml") as lines:
        yield _packets(lines)


def _view(source: Path, flow: str, point: str) -> View:
    if source.is_dir():
        return view_of(open_trial(source), flow, point)
    if flow:
        raise UsageError(
            f"{source}: flows have names in trials only", "choose with display_filter instead"
        )
    return View(source)


def _packets(lines: Iterator[str]) -> Iterator[Packet]:
    # pyshark's parser without its FileCapture: that needs an event loop of its own, which a
    # notebook does not allow beside the one it runs in, and leaves its tshark to be collected.
    from pyshark.tshark.output_parser.tshark_xml import packet_from_xml_packet

    for line in lines:
        if line.startswith("<packet>"):
            rest = itertools.takewhile(lambda text: not text.startswith("</packet>"), lines)
            yield packet_from_xml_packet("".join((line, *rest, "</packet>")).encode())
