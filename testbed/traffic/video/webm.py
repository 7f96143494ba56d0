"""The site's files for a browser: real media with the sizes that the model player sees.

A video segment is a WebM file with VP8 pictures, of any size in bytes.

Every segment can be decoded by itself: header, one cluster, key frames only. Void elements between
the frames pad a segment to the size that it has in the player's model.
"""

from __future__ import annotations

import io
import itertools
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

from testbed.scenario.video import OBJECTS, Video

PLAYER_SCRIPT = Path(__file__).with_name("watch.js")
PICTURES_A_SECOND = 25
_PICTURE_MS = 1000 // PICTURES_A_SECOND
_BACKGROUND, _BAR = (30, 50, 80), (230, 190, 60)

# EBML's and Matroska's identifiers (RFC 8794, RFC 9559)
_EBML, _DOC_TYPE, _SEGMENT, _VOID = b"\x1a\x45\xdf\xa3", b"\x42\x82", b"\x18\x53\x80\x67", b"\xec"
_INFO, _TIMESTAMP_SCALE = b"\x15\x49\xa9\x66", b"\x2a\xd7\xb1"
_TRACKS, _TRACK, _NUMBER, _UID, _TYPE = b"\x16\x54\xae\x6b", b"\xae", b"\xd7", b"\x73\xc5", b"\x83"
_CODEC, _DURATION, _VIDEO, _WIDTH, _HEIGHT = b"\x86", b"\x23\xe3\x83", b"\xe0", b"\xb0", b"\xba"
_CLUSTER, _TIMESTAMP, _BLOCK = b"\x1f\x43\xb6\x75", b"\xe7", b"\xa3"
_TO_THE_END = b"\x01" + b"\xff" * 7  # a size that is not known
_LENGTH_BYTES = 8  # of every element's size, so that all heads are of one length
_KEY_FRAME = b"\x80"
_VOID_HEAD_BYTES = len(_VOID) + _LENGTH_BYTES


@dataclass(frozen=True)
class Film:
    """Key frames of one size, shown in a loop."""

    width: int
    height: int
    frames: tuple[bytes, ...]


def film(width: int, height: int) -> Film:
    """One second of a bar that moves from left to right.

    Pillow writes VP8 as lossy WebP: a RIFF file whose one chunk is a key frame.
    """
    return Film(width, height, tuple(_frame(width, height, k) for k in range(PICTURES_A_SECOND)))


def _frame(width: int, height: int, number: int) -> bytes:
    picture = Image.new("RGB", (width, height), _BACKGROUND)
    left = number * width // PICTURES_A_SECOND
    picture.paste(_BAR, (left, 0, left + width // PICTURES_A_SECOND, height))
    file = io.BytesIO()
    picture.save(file, "WEBP", quality=1, method=0)
    riff = file.getvalue()
    assert riff[12:16] == b"VP8 ", "not the simple form of the file"
    return riff[20 : 20 + int.from_bytes(riff[16:20], "little")]


def segment(shown: Film, begin_s: float, seconds: float, size: int) -> bytes:
    """Put the pictures from `begin_s` on into a file of exactly `size` bytes."""
    first, count = round(begin_s * PICTURES_A_SECOND), round(seconds * PICTURES_A_SECOND)
    blocks = [
        _element(_BLOCK, b"\x81" + (k * _PICTURE_MS).to_bytes(2, "big") + _KEY_FRAME + frame)
        for k, frame in enumerate(
            shown.frames[number % len(shown.frames)] for number in range(first, first + count)
        )
    ]
    head, timestamp = _head(shown), _number(_TIMESTAMP, first * _PICTURE_MS)
    cluster_head = len(_CLUSTER) + _LENGTH_BYTES
    room = size - len(head) - cluster_head - len(timestamp) - sum(map(len, blocks))
    content = [timestamp, *itertools.chain(*zip(blocks, _voids(room, count), strict=True))]
    return head + _element(_CLUSTER, b"".join(content))


def _voids(room: int, count: int) -> list[bytes]:
    """Void elements that spread `room` bytes evenly over `count` gaps."""
    ends = [room * number // count for number in range(count + 1)]
    lengths = [end - begin - _VOID_HEAD_BYTES for begin, end in itertools.pairwise(ends)]
    assert min(lengths) >= 0, f"{room} bytes are too few to fill {count} gaps"
    return [_element(_VOID, bytes(length)) for length in lengths]


def _head(shown: Film) -> bytes:
    """Return the file's header: type, track, codec and picture size."""
    size = _number(_WIDTH, shown.width) + _number(_HEIGHT, shown.height)
    track = (
        *(_number(_NUMBER, 1), _number(_UID, 1), _number(_TYPE, 1)),
        *(_element(_CODEC, b"V_VP8"), _number(_DURATION, _PICTURE_MS * 1_000_000)),
        _element(_VIDEO, size),
    )
    return (
        _element(_EBML, _element(_DOC_TYPE, b"webm"))
        + _SEGMENT
        + _TO_THE_END
        + _element(_INFO, _number(_TIMESTAMP_SCALE, 1_000_000))
        + _element(_TRACKS, _element(_TRACK, b"".join(track)))
    )


def _element(identifier: bytes, content: bytes) -> bytes:
    length = (1 << 7 * _LENGTH_BYTES) | len(content)
    return identifier + length.to_bytes(_LENGTH_BYTES, "big") + content


def _number(identifier: bytes, value: int) -> bytes:
    return _element(identifier, value.to_bytes(8, "big"))


def write_browser_files(video: Video, name: str, folder: Path) -> None:
    """Replace the site's files by real media; of the video, only the segments of one rung."""
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
    """Make an image, script or style sheet of the given size; the player is the script."""
    if suffix == ".jpg":
        file = io.BytesIO()
        Image.new("RGB", (160, 90)).save(file, "JPEG")
        return file.getvalue().ljust(size, b"\0")  # padding after the picture's end is ignored
    text = PLAYER_SCRIPT.read_bytes() if suffix == ".js" else b""
    return text.ljust(size, b"\n")
