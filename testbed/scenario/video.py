"""A video that is watched, as a scenario asks for it: over what, by which rule, how long it is."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass

from testbed.errors import nearest, quoted

RULES = ("throughput", "buffer")
CONTROLS = ("reno", "cubic", "bbr")  # aioquic's own, and ours for it
SHORTEST_S, LONGEST_S = 1.0, 4 * 3600.0


class Transport(enum.StrEnum):
    """The transport that carries the video."""

    HTTP = "http"  # HTTP/1.1 over TCP
    HTTPS = "https"  # the same with TLS 1.3, as browsers have it
    QUIC = "quic"  # HTTP/3


class Player(enum.StrEnum):
    """Who watches."""

    MODEL = "model"  # a client of ours with a buffer
    CHROMIUM = "chromium"  # a real browser


@dataclass(frozen=True)
class Viewing:
    """A video that a flow's `dst` watches."""

    transport: Transport = Transport.HTTPS
    """What it is carried over."""
    rule: str = "throughput"
    """How the player chooses among the bitrates: `throughput`, `buffer`, or the name of one of them
    (`240p`)."""
    length_s: float = 270.0
    """How long the video is."""
    control: str | None = None
    """The congestion control of the server's QUIC, `reno`, `cubic` or `bbr`; its TCP's is the
    flow's `variant`."""
    viewer_variant: str | None = None
    """What the viewing host is set to, as the paper's laptop was: governs what that host sends."""
    player: Player = Player.MODEL
    """What watches it: our model of a player, or a browser."""


@dataclass(frozen=True)
class Thresholds:
    """Seconds of video in the buffer at which something happens.

    The cap is what the paper's own player held: it had loaded all of 270 s after some 120 s,
    so that about 150 s lay before it.
    """

    start_s: float = 4.0
    resume_s: float = 4.0
    cap_s: float = 150.0


def faults(viewing: Viewing, where: str) -> Iterator[str]:
    """Every fault with its field, except for the variant's name."""
    from testbed.scenario.video_content import LADDER  # few scenarios need it

    rules = (*RULES, *(rung.name for rung in LADDER))
    if viewing.rule not in rules:
        yield f"{where}.rule: unknown rule {quoted(viewing.rule)}: {nearest(viewing.rule, rules)}"
    if not SHORTEST_S <= viewing.length_s <= LONGEST_S:
        limits = f"{SHORTEST_S:g} and {LONGEST_S:g} s"
        yield f"{where}.length_s: {viewing.length_s:g} is not between {limits}"
    if viewing.transport is Transport.QUIC:
        if viewing.control not in CONTROLS:
            yield f"{where}.control: {quoted(viewing.control)}: QUIC needs {' or '.join(CONTROLS)}"
    elif viewing.control is not None:
        yield f"{where}.control: QUIC's; TCP's is the flow's variant"
    if viewing.player is Player.CHROMIUM:
        if viewing.rule in RULES:
            yield f"{where}.rule: {viewing.rule}: the browser's page plays one bitrate, e.g. 240p"
        if viewing.transport is Transport.HTTP:
            yield f"{where}.transport: a browser opens one connection over https and quic only"
