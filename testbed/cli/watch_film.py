"""The film of a page of `testbed watch`: Chromium shows the page at one instant after the other."""

from __future__ import annotations

import asyncio
import base64
import io
import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

from PIL import Image

from testbed.errors import TestbedError, UsageError
from testbed.machine.atomic import replace, workplace
from testbed.machine.process import CHROMIUM, end_all, require, run, start_told
from testbed.traffic.video.browser import Tab

FILM_SIZE = 800  # of the window, in pixels
PICTURES_A_S, LONGEST_S = 12, 60
GIF_COLOURS = 32
FILM_FLAGS = (
    "--headless",
    "--disable-gpu",
    "--hide-scrollbars",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-dev-shm-usage",
    "--remote-debugging-pipe",
)
LOADED = """new Promise((done) => {
  if (document.readyState === "complete") done(); else addEventListener("load", done);
})"""
FILMED = """watching.then(() => {
  const box = document.querySelector(".left").getBoundingClientRect();
  return [box.x, box.y, box.width, box.height].map(Math.round);
})"""


def check(out: Path, seconds: float) -> None:
    """Raise unless a film can be made."""
    if out.suffix not in (".gif", ".mp4"):
        raise UsageError(
            f"--video {out}: neither a .gif nor an .mp4", "for example --video film.gif"
        )
    if not 0 < seconds <= LONGEST_S:
        raise UsageError(f"--seconds {seconds:g}: a film has up to {LONGEST_S} s", "--seconds 8")
    require(CHROMIUM)
    if out.suffix == ".mp4":
        require("ffmpeg")


def film(page: Path, stretch: tuple[float, float], seconds: float, out: Path) -> None:
    """Film a page from one of the trial's seconds to another."""
    with workplace("film") as folder:
        count = max(2, round(seconds * PICTURES_A_S))
        first_s, step_s = stretch[0], (stretch[1] - stretch[0]) / (count - 1)
        instants = [first_s + step_s * number for number in range(count)]
        address = f"{page.resolve().as_uri()}#t={first_s}&speed={(stretch[1] - first_s) / seconds}"

        async def taken() -> list[Image.Image]:
            return [each async for each in _pictures(folder, address, instants)]

        pictures = asyncio.run(taken())
        replace(out, lambda path: _write(pictures, path, out.suffix, folder))


async def _pictures(
    folder: Path, address: str, instants: list[float]
) -> AsyncIterator[Image.Image]:
    """Yield the page at each instant."""
    sandbox = [] if os.geteuid() else ["--no-sandbox"]  # root has none, and the page is our own
    profile = folder / "profile"
    environment = {"HOME": str(folder), "TMPDIR": str(folder)}
    argv = [CHROMIUM, *FILM_FLAGS, *sandbox, f"--user-data-dir={profile}"]
    process = start_told(argv, {**os.environ, **environment})
    try:
        tab = Tab(process, "report")
        await tab.open()
        tab.told.cancel()  # this page reports nothing
        size = {"width": FILM_SIZE, "height": FILM_SIZE, "deviceScaleFactor": 1, "mobile": False}
        await tab.call("Emulation.setDeviceMetricsOverride", **size)
        await tab.call("Page.navigate", url=address)
        await _value(tab, LOADED)
        places = zip(("x", "y", "width", "height"), await _value(tab, FILMED), strict=True)
        clip = {**dict(places), "scale": 1}
        for second in instants:
            await _value(tab, f"watching.then((page) => page.go({second * 1e9}))")
            shot = await tab.call("Page.captureScreenshot", clip=clip, captureBeyondViewport=True)
            yield Image.open(io.BytesIO(base64.b64decode(shot["data"]))).convert("RGB")
        await tab.call("Browser.close")
    finally:
        end_all(process)


async def _value(tab: Tab, script: str) -> list[float]:
    """Return what an expression of the page gives."""
    asked = {"expression": script, "returnByValue": True, "awaitPromise": True}
    answer = await tab.call("Runtime.evaluate", **asked)
    if "exceptionDetails" in answer:
        raise TestbedError(f"the page could not be filmed: {answer['exceptionDetails']['text']}")
    return list(answer["result"].get("value") or ())


def _write(pictures: list[Image.Image], path: Path, kind: str, folder: Path) -> None:
    if kind == ".gif":
        palette = pictures[len(pictures) // 2].quantize(GIF_COLOURS)
        first, *others = (
            each.quantize(palette=palette, dither=Image.Dither.NONE) for each in pictures
        )
        each_ms = round(1000 / PICTURES_A_S)
        first.save(path, "GIF", save_all=True, append_images=others, duration=each_ms, loop=0)
        return
    for number, picture in enumerate(pictures):
        picture.save(folder / f"{number:04}.png")
    even = "pad=ceil(iw/2)*2:ceil(ih/2)*2"  # as the pixels of H.264 are
    into = ["-vf", even, "-pix_fmt", "yuv420p", "-f", "mp4", str(folder / "film")]
    rate = ["-framerate", str(PICTURES_A_S)]
    run(["ffmpeg", "-loglevel", "error", "-y", *rate, "-i", str(folder / "%04d.png"), *into])
    shutil.copyfile(folder / "film", path)
