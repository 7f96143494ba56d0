"""The pictures of docs/lessons: each page at its moment (`python -m tests.lesson_pictures`)."""

from __future__ import annotations

import base64
import io
import re
import shutil
import sys
import tempfile
from pathlib import Path

from PIL import Image

from experiments.command import main
from testbed.store.names import FIGURES, WATCH_PAGE
from tests.browser import Tab, browser

LESSONS = Path(__file__).resolve().parents[1] / "docs" / "lessons"
NAMES = sorted(path.stem for path in LESSONS.glob("*.md") if path.stem != "README")
WIDTH, COLOURS = 1100, 48


def text_of(name: str) -> str:
    """Return a lesson's page."""
    return (LESSONS / f"{name}.md").read_text(encoding="utf-8")


def moment(name: str) -> str:
    """Return the fragment of the address at which a lesson's page is shown."""
    found = re.search(r"`watch\.html(#\S+)`", text_of(name))
    assert found, name
    return found[1]


def ran(name: str, folder: Path) -> Path:
    """Run a lesson in a new folder; return its trial with its moving picture."""
    for path in LESSONS.iterdir():
        if path.suffix in (".json", ".py"):
            shutil.copy(path, folder)
    out = folder / "results" / name
    assert main(["run", str(folder / f"{name}.json"), "--out", str(out)]) == 0
    (trial,) = out.glob("seed1-*")
    assert main(["watch", str(trial)]) == 0
    return trial


def take(tab: Tab, page: Path, fragment: str, out: Path) -> None:
    """Take a picture of the page at an instant, in few colours."""
    tab.visit("about:blank", WIDTH)
    tab.visit(page.resolve().as_uri() + fragment, WIDTH)
    tab.run("watching.then(() => new Promise((done) => setTimeout(done, 200)))")
    box = "document.querySelector('.scene').getBoundingClientRect()"
    places = ("x", "y", "width", "height")
    values = tab.run(f"(() => {{ const b = {box}; return [b.x, b.y, b.width, b.height]; }})()")
    clip = {**dict(zip(places, values, strict=True)), "scale": 1}
    taken = tab.call("Page.captureScreenshot", clip=clip, captureBeyondViewport=True)
    picture = Image.open(io.BytesIO(base64.b64decode(taken["data"]))).convert("RGB")
    picture.quantize(COLOURS).save(out, optimize=True)


if __name__ == "__main__":
    with browser() as opened:
        for lesson in sys.argv[1:] or NAMES:
            with tempfile.TemporaryDirectory() as place:
                page = ran(lesson, Path(place)) / FIGURES / WATCH_PAGE
                take(opened, page, moment(lesson), LESSONS / f"{lesson}.png")
