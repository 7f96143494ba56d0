"""The manifest (MPEG-DASH's MPD): which segments there are, how long, at which rates."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

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
        """A segment's path below the manifest; the first has number 1."""
        return _TEMPLATE.replace("$RepresentationID$", rung.name).replace("$Number$", f"{number}")

    def to_xml(self) -> str:
        """The manifest as XML, for any DASH player."""
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
