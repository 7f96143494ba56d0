"""The site's files in formats that a browser accepts, with the sizes that the model player sees."""

from __future__ import annotations

import io
from pathlib import Path

from PIL import Image

from testbed.scenario.video_content import OBJECTS, Video
from testbed.traffic.video.webm import film, segment

SCRIPT = Path(__file__).with_name("watch.js")


def write_browser_files(video: Video, name: str, folder: Path) -> None:
    """Replace the site's files; of the video, only the segments of the named rung."""
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
    """An image, script or style sheet of the given size; the player is the script."""
    if suffix == ".jpg":
        file = io.BytesIO()
        Image.new("RGB", (160, 90)).save(file, "JPEG")
        return file.getvalue().ljust(size, b"\0")  # padding after the picture's end is ignored
    text = SCRIPT.read_bytes() if suffix == ".js" else b""
    return text.ljust(size, b"\n")
