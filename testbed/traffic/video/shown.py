"""The files of the site as a browser wants them: each as long as the model's player finds it."""

from __future__ import annotations

import io
from pathlib import Path

from PIL import Image

from testbed.scenario.video_content import OBJECTS, Video
from testbed.traffic.video.webm import film, segment

SCRIPT = Path(__file__).with_name("watch.js")


def write_shown(video: Video, name: str, folder: Path) -> None:
    """Put them in the place of the site's own; of the video, those of the rung of that name."""
    for thing, size in OBJECTS:
        (folder / thing).write_bytes(_object(Path(thing).suffix, size))
    rung = next(rung for rung in video.ladder if rung.name == name)
    shown = film(rung.width, rung.height)
    begin_s = 0.0
    lengths = zip(video.manifest.segments, video.sizes(rung), strict=True)
    for number, (seconds, size) in enumerate(lengths, 1):
        path = folder / video.manifest.path(rung, number)
        path.write_bytes(segment(shown, begin_s, seconds, size))
        begin_s += seconds


def _object(suffix: str, size: int) -> bytes:
    """What the page shows and runs: the player is among it."""
    if suffix == ".jpg":
        file = io.BytesIO()
        Image.new("RGB", (160, 90)).save(file, "JPEG")
        return file.getvalue().ljust(size, b"\0")  # nobody reads on behind the picture's end
    text = SCRIPT.read_bytes() if suffix == ".js" else b""
    return text.ljust(size, b"\n")
