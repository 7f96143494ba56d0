"""The playback buffer: startup, stalls, and when there is room for more video.

It works like a media element's clock; callers pass the time, so tests can control it.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

from testbed.video_site import Thresholds


class State(enum.Enum):
    """The state of playback."""

    STARTING = "starting"
    PLAYING = "playing"
    STALLED = "stalled"
    ENDED = "ended"


@dataclass
class Stall:
    """A period without a moving picture because the buffer ran empty."""

    begin_s: float
    end_s: float | None = None


@dataclass
class Playback:
    """The seconds of a video that have been loaded and played."""

    duration_s: float
    thresholds: Thresholds = field(default_factory=Thresholds)
    state: State = State.STARTING
    loaded_s: float = 0.0
    position_s: float = 0.0
    started_s: float | None = None
    ended_s: float | None = None
    stalls: list[Stall] = field(default_factory=list)
    # the buffer's level wherever it bends: (time, seconds of video)
    levels: list[tuple[float, float]] = field(default_factory=list)
    _now_s: float = 0.0

    @property
    def level_s(self) -> float:
        """Seconds of video loaded but not yet played."""
        return self.loaded_s - self.position_s

    @property
    def complete(self) -> bool:
        """True once the whole video is loaded."""
        return self.loaded_s >= self.duration_s - 1e-6

    def append(self, now_s: float, seconds: float) -> None:
        """Add a loaded segment."""
        self.advance(now_s)
        self._note()
        self.loaded_s += seconds
        self._note()
        enough = {State.STARTING: self.thresholds.start_s, State.STALLED: self.thresholds.resume_s}
        if self.state in enough and (self.complete or self.level_s >= enough[self.state]):
            self._play()

    def advance(self, now_s: float) -> None:
        """Advance playback to now, through any stalls and the end in between."""
        passed, self._now_s = now_s - self._now_s, now_s
        if self.state is not State.PLAYING:
            return
        if passed < self.level_s:
            self.position_s += passed
            return
        dry_s = now_s - (passed - self.level_s)
        self.position_s = self.loaded_s
        self.levels.append((dry_s, 0.0))
        if self.complete:
            self.state, self.ended_s = State.ENDED, dry_s
        else:
            self.state = State.STALLED
            self.stalls.append(Stall(dry_s))

    def wait_s(self, seconds: float) -> float:
        """Seconds until there is room for so much more video; 0 if there is room now."""
        # whoever loads nothing for want of room is playing: the cap is above all thresholds
        return max(0.0, self.level_s + seconds - self.thresholds.cap_s)

    def _play(self) -> None:
        if self.state is State.STARTING:
            self.started_s = self._now_s
        else:
            self.stalls[-1].end_s = self._now_s
        self.state = State.PLAYING

    def _note(self) -> None:
        self.levels.append((self._now_s, self.level_s))
