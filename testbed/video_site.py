"""What a video's server has and how a player finds it: for plans, and for the programs themselves.

The programs run in the guest, where nothing of `testbed.scenario` and `testbed.plan` is loaded.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping
from dataclasses import dataclass

PAGE = "index.html"
CERTIFICATE, KEY = "certificate.pem", "key.pem"  # testbed/traffic/video has them
QUIC_CONTROLS = ("reno", "cubic", "bbr")  # aioquic's own, and ours for it
MANIFEST = "manifest.mpd"
_TEMPLATE = "video/$RepresentationID$/$Number$.m4s"
_SPACE = "urn:mpeg:dash:schema:mpd:2011"


@dataclass(frozen=True)
class Rung:
    """One rendition: a name, its mean rate, the picture's size."""

    name: str
    bit_per_s: int
    width: int
    height: int


@dataclass(frozen=True)
class Manifest:
    """What a player knows about a video before it requests a segment; rungs in ascending order."""

    duration_s: float
    segment_s: float
    rungs: tuple[Rung, ...]

    @property
    def segments(self) -> tuple[float, ...]:
        """The duration of each segment; the last one may be shorter."""
        count = math.ceil(self.duration_s / self.segment_s - 1e-9)
        last = self.duration_s - (count - 1) * self.segment_s
        return (self.segment_s,) * (count - 1) + (last,)

    def path(self, rung: Rung, number: int) -> str:
        """Return a segment's path below the manifest; the first segment has number 1."""
        return _TEMPLATE.replace("$RepresentationID$", rung.name).replace("$Number$", f"{number}")

    def to_xml(self) -> str:
        """Return the manifest as XML, for any DASH player."""
        renditions = "\n".join(
            f'   <Representation id="{rung.name}" bandwidth="{rung.bit_per_s}" '
            f'codecs="avc1.4d401f" width="{rung.width}" height="{rung.height}"/>'
            for rung in self.rungs
        )
        return f"""<?xml version="1.0" encoding="UTF-8"?>
<MPD xmlns="{_SPACE}" type="static" profiles="urn:mpeg:dash:profile:isoff-live:2011"
     mediaPresentationDuration="PT{self.duration_s}S" minBufferTime="PT{self.segment_s}S">
 <Period>
  <AdaptationSet mimeType="video/mp4" segmentAlignment="true">
   <SegmentTemplate media="{_TEMPLATE}" timescale="1000"
                    duration="{round(self.segment_s * 1000)}" startNumber="1"/>
{renditions}
  </AdaptationSet>
 </Period>
</MPD>
"""

    @staticmethod
    def from_xml(text: str) -> Manifest:
        """Read what `to_xml` wrote."""
        from xml.etree import ElementTree  # loads a parser: a trial only writes

        root = ElementTree.fromstring(text)
        template = next(root.iter(f"{{{_SPACE}}}SegmentTemplate"))
        return Manifest(
            duration_s=float(root.attrib["mediaPresentationDuration"].strip("PTS")),
            segment_s=int(template.attrib["duration"]) / int(template.attrib["timescale"]),
            rungs=tuple(_rung(node.attrib) for node in root.iter(f"{{{_SPACE}}}Representation")),
        )


def _rung(attributes: Mapping[str, str]) -> Rung:
    numbers = (int(attributes[key]) for key in ("bandwidth", "width", "height"))
    return Rung(attributes["id"], *numbers)


class Transport(enum.StrEnum):
    """The transport that carries the video."""

    HTTP = "http"  # HTTP/1.1 over TCP
    HTTPS = "https"  # the same with TLS 1.3, as browsers have it
    QUIC = "quic"  # HTTP/3


@dataclass(frozen=True)
class Thresholds:
    """Seconds of video in the buffer at which something happens.

    The cap is what the paper's own player held: it had loaded all of 270 s after some 120 s,
    so that about 150 s lay before it.
    """

    start_s: float = 4.0
    resume_s: float = 4.0
    cap_s: float = 150.0


@dataclass(frozen=True)
class Site:
    """The server as a client sees it.

    It has an address, a certificate (none without TLS), and the client's own port (0: any).
    """

    address: str
    port: int
    authority: str = ""  # the file of the certificate
    own_port: int = 0

    @property
    def local(self) -> tuple[str, int] | None:
        """The address to which the client's socket is bound."""
        return ("0.0.0.0", self.own_port) if self.own_port else None
