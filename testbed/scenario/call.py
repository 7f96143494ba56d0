"""Calls: what a codec sends, whatever the network does with it.

One direction of a call, as datagrams of RTP. A voice sends at an even pace. A video's frames follow
the statistical model of RFC 8593, section 5, at a rate that does not change: the intervals and the
sizes of frames deviate from their means by Laplace's distribution with mean 0 and scale 0.15, the
RFC's example (SCALE_t and SCALE_B in its figure 2); no interval is below 0. The model's bursts
(5.2) follow an abrupt change of the target rate, which never comes here.
"""

from __future__ import annotations

import enum
import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from testbed.faults import Fault
from testbed.scenario.limits import Range

RTP_BYTES = 12  # of a header
VOICE_GAP_NS = 20_000_000
VOICE_BYTES = 160  # of 20 ms of sound by G.711, 64 kbit/s
VOICE_TICKS_PER_S = 8000
VIDEO_TICKS_PER_S = 90_000
DEVIATION = 0.15  # SCALE_t and SCALE_B of RFC 8593: of Laplace's distribution
MAX_FRAME_PART = 1188  # bytes of a frame in one datagram, whose payload is 1200


class Media(enum.StrEnum):
    """What is heard or seen."""

    VOICE = "voice"
    VIDEO = "video"


@dataclass(frozen=True)
class Call:
    """What one side of a call sends to the other."""

    media: Media = Media.VOICE
    """`voice`: G.711, 160 bytes of sound in a datagram every 20 ms. `video`: frames by the
    statistical model of RFC 8593 at a constant target rate, the datagrams of a frame at once."""
    rate_mbit: Annotated[float, Range(0.01, 1000.0)] = 1.0
    """The mean rate of a video's frames, without headers."""
    frames_per_s: Annotated[float, Range(1.0, 240.0)] = 30.0
    """The mean number of a video's frames a second."""


@dataclass(frozen=True)
class Datagram:
    """A datagram: when it is sent after the call's start, and what its RTP header says."""

    at_ns: int
    payload: int  # bytes, with RTP's header
    ticks: int  # of the media's clock
    ends_frame: bool


def call_faults(call: Call) -> Iterator[Fault]:
    """Yield what a voice does not have."""
    if call.media is Media.VOICE:
        for name in ("rate_mbit", "frames_per_s"):
            if getattr(call, name) != getattr(Call, name):
                yield Fault((name,), "of a video; this is a voice")


def datagrams(call: Call, seconds: float, dice: str) -> Iterator[Datagram]:
    """Yield all datagrams of a call of this length."""
    end_ns = round(seconds * 1e9)
    if call.media is Media.VOICE:
        for at_ns in range(0, end_ns, VOICE_GAP_NS):
            ticks = at_ns * VOICE_TICKS_PER_S // 1_000_000_000
            yield Datagram(at_ns, RTP_BYTES + VOICE_BYTES, ticks, at_ns == 0)
        return
    drawn = random.Random(dice)
    gap_ns, size = 1e9 / call.frames_per_s, call.rate_mbit * 125_000 / call.frames_per_s
    at_ns = 0
    while at_ns < end_ns:
        yield from _frame(at_ns, max(1, round(size * _deviating(drawn))))
        at_ns += max(1, round(gap_ns * _deviating(drawn)))


def _frame(at_ns: int, size: int) -> Iterator[Datagram]:
    """Yield the datagrams of a frame, of nearly equal sizes."""
    count = -(-size // MAX_FRAME_PART)
    ticks = at_ns * VIDEO_TICKS_PER_S // 1_000_000_000
    for number in range(count):
        part = (number + 1) * size // count - number * size // count
        yield Datagram(at_ns, RTP_BYTES + part, ticks, number == count - 1)


def _deviating(drawn: random.Random) -> float:
    """Draw a factor around 1, no less than 0, by Laplace's distribution."""
    half = drawn.random() - 0.5
    return max(0.0, 1 - DEVIATION * math.copysign(math.log(max(1e-12, 1 - 2 * abs(half))), half))
