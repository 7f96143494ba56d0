"""The result of a playback, stored as one JSON file."""

from __future__ import annotations

import dataclasses
import itertools
import json
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Load:
    """One requested file; times in seconds since the start of playback."""

    path: str
    requested_s: float
    first_byte_s: float | None
    last_byte_s: float | None
    bytes: int


@dataclass(frozen=True)
class Segment:
    """One requested segment."""

    number: int
    rung: str
    bit_per_s: int  # the rung's mean
    duration_s: float
    load: Load

    @property
    def complete(self) -> bool:
        """True if the whole segment arrived."""
        return self.load.last_byte_s is not None


@dataclass(frozen=True)
class Result:
    """A playback; times in seconds since its start, `epoch_s` on the wall clock."""

    epoch_s: float
    transport: str
    rule: str
    why: str  # empty, or what ended it early
    connected_s: float | None  # the first request goes out
    page_s: float | None  # the page and all that is on it are there
    startup_s: float | None  # the picture moves
    loaded_s: float | None  # the whole video is there
    ended_s: float | None  # it has been shown
    stopped_s: float
    stalls: tuple[tuple[float, float], ...]  # begin and end; one that lasts ends with the playback
    segments: tuple[Segment, ...]
    page: tuple[Load, ...]
    levels: tuple[tuple[float, float], ...]  # the buffer, wherever it bends

    @property
    def stall_s(self) -> float:
        """Total stall time after the first picture."""
        return sum(end - begin for begin, end in self.stalls)

    @property
    def switches(self) -> int:
        """The number of changes of rung between consecutive segments."""
        return sum(one.rung != other.rung for one, other in itertools.pairwise(self._shown))

    @property
    def mean_bit_per_s(self) -> float | None:
        """The mean bitrate of the loaded video; None if nothing was loaded."""
        seconds = sum(each.duration_s for each in self._shown)
        shown = sum(each.bit_per_s * each.duration_s for each in self._shown)
        return shown / seconds if seconds else None

    @property
    def _shown(self) -> list[Segment]:
        return [each for each in self.segments if each.complete]

    def to_json(self) -> str:
        """Return the result with its totals, as JSON."""
        content = dataclasses.asdict(self)
        content["sums"] = {
            "stalls": len(self.stalls),
            "stall_s": round(self.stall_s, 9),
            "switches": self.switches,
            "mean_bit_per_s": self.mean_bit_per_s,
            "bytes": sum(each.load.bytes for each in self.segments),
        }
        return json.dumps(content, indent=1) + "\n"

    @staticmethod
    def from_json(text: str | bytes) -> Result:
        """Read what `to_json` wrote."""
        content: dict[str, Any] = json.loads(text)
        content.pop("sums")
        content["page"] = tuple(Load(**each) for each in content["page"])
        content["segments"] = tuple(
            Segment(**{**each, "load": Load(**each["load"])}) for each in content["segments"]
        )
        for name in ("stalls", "levels"):
            content[name] = tuple((begin, end) for begin, end in content[name])
        return Result(**content)
