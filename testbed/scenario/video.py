"""Videos: how a flow watches one, and the files that are served.

Sizes are drawn by a seed, and the files hold next to nothing.
"""

from __future__ import annotations

import enum
import itertools
import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from testbed.errors import quoted
from testbed.faults import Fault
from testbed.scenario.limits import OneOf, Range
from testbed.video_site import MANIFEST, PAGE, QUIC_CONTROLS, Manifest, Rung, Transport

# Picture and sound together, as YouTube's H.264 renditions have had them for years (a published
# reading of 2013: 80, 350, 520, 830, 1600 and 3000 kbit/s for the picture, plus sound). 240p is
# the rate of a published set of captures: 10.9 to 12.0 MB in some 277 s.
LADDER = (
    Rung("144p", 200_000, 256, 144),
    Rung("240p", 330_000, 426, 240),
    Rung("360p", 600_000, 640, 360),
    Rung("480p", 1_000_000, 854, 480),
    Rung("720p", 1_900_000, 1280, 720),
    Rung("1080p", 3_300_000, 1920, 1080),
)
# Sizes of segments about their mean: a spread that rarely doubles it, and scenes of some segments.
SPREAD = 0.3
MEMORY = 0.6

_HTML_BYTES = 120_000
# What the page shows and runs, compressed as it would be: about 1 MB with the page itself.
OBJECTS = (("style.css", 60_000), ("player.js", 600_000), ("poster.jpg", 80_000)) + tuple(
    (f"thumbnail{number}.jpg", 12_000) for number in range(1, 7)
)
PAGE_BYTES = _HTML_BYTES + sum(size for _, size in OBJECTS)
_TAGS = {
    ".css": '<link rel="stylesheet" href="{}">',
    ".js": '<script src="{}"></script>',
    ".jpg": '<img src="{}" alt="">',
}


@dataclass(frozen=True)
class Video:
    """A video in segments, each at every bitrate of a ladder."""

    duration_s: float = 270.0
    segment_s: float = 4.0
    ladder: tuple[Rung, ...] = LADDER
    seed: int = 1

    @property
    def manifest(self) -> Manifest:
        """The video's manifest."""
        return Manifest(self.duration_s, self.segment_s, self.ladder)

    def sizes(self, rung: Rung) -> tuple[int, ...]:
        """Return the bytes of each segment: the rung's rate on average, more in complex scenes."""
        shares = [length * weight for length, weight in self._scenes()]
        scale = rung.bit_per_s * self.duration_s / 8 / sum(shares)
        return tuple(round(share * scale) for share in shares)

    def _scenes(self) -> list[tuple[float, float]]:
        """Return each segment's duration and complexity, equal at every rung."""
        draw = random.Random(self.seed)
        step = math.sqrt(1 - MEMORY**2)
        lengths = self.manifest.segments
        states = itertools.accumulate(
            (draw.gauss(0, 1) for _ in lengths),
            lambda before, fresh: MEMORY * before + step * fresh,
        )
        weights = [math.exp(SPREAD * state) for state in states]
        return list(zip(lengths, weights, strict=True))


def write_site(video: Video, folder: Path) -> None:
    """Write the page, the manifest and all segments into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / PAGE).write_text(page())
    for name, size in OBJECTS:
        _write_sparse(folder / name, size)
    (folder / MANIFEST).write_text(video.manifest.to_xml())
    for rung in video.ladder:
        for number, size in enumerate(video.sizes(rung), 1):
            path = folder / video.manifest.path(rung, number)
            path.parent.mkdir(parents=True, exist_ok=True)
            _write_sparse(path, size)


def page() -> str:
    """Return the page's text, which names its objects and has a real page's length."""
    tags = "\n".join(_TAGS[Path(name).suffix].format(name) for name, _ in OBJECTS)
    head = f"<!DOCTYPE html>\n<title>A video</title>\n{tags}\n<video></video>\n<!-- "
    return head.ljust(_HTML_BYTES - 4, ".") + "-->\n"


def _write_sparse(path: Path, size: int) -> None:
    """Write a file of that size with only its head on the disk: a box that players skip."""
    with path.open("wb") as file:
        file.write((size.to_bytes(4, "big") + b"free" + path.name.encode())[:size])
        file.truncate(size)


PLAYER_RULES = ("throughput", "buffer")
RULES = OneOf("rule", (*PLAYER_RULES, *(rung.name for rung in LADDER)))


class PlayerKind(enum.StrEnum):
    """The program that plays the video."""

    MODEL = "model"  # a client of ours with a buffer
    CHROMIUM = "chromium"  # a real browser


@dataclass(frozen=True)
class Viewing:
    """A video that a flow's `dst` watches."""

    transport: Transport = Transport.HTTPS
    """What it is carried over."""
    rule: Annotated[str, RULES] = "throughput"
    """How the player chooses among the bitrates: `throughput`, `buffer`, or the name of one of them
    (`240p`)."""
    length_s: Annotated[float, Range(1.0, 4 * 3600.0)] = 270.0
    """How long the video is."""
    control: str | None = None
    """The congestion control of the server's QUIC, `reno`, `cubic` or `bbr`; its TCP's is the
    flow's `variant`."""
    viewer_variant: str | None = None
    """What the viewing host is set to, as the paper's laptop was: governs what that host sends."""
    player: PlayerKind = PlayerKind.MODEL
    """What watches it: our model of a player, or a browser."""


def viewing_faults(viewing: Viewing) -> Iterator[Fault]:
    """Yield what a player, its transport and its server's control cannot be together."""
    if viewing.transport is Transport.QUIC:
        if viewing.control not in QUIC_CONTROLS:
            known = " or ".join(QUIC_CONTROLS)
            yield Fault(("control",), f"{quoted(viewing.control)}: QUIC needs {known}")
    elif viewing.control is not None:
        yield Fault(("control",), "QUIC's; TCP's is the flow's variant")
    if viewing.player is PlayerKind.CHROMIUM:
        if viewing.rule in PLAYER_RULES:
            yield Fault(
                ("rule",), f"{viewing.rule}: the browser's page plays one bitrate, e.g. 240p"
            )
        if viewing.transport is Transport.HTTP:
            yield Fault(("transport",), "a browser opens one connection over https and quic only")
