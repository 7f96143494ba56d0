"""The reports of docs/gallery: small experiments, each report a single file.

    .venv/bin/python -m benchmarks.gallery

runs them in the guest (a minute) and writes the pages.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

from benchmarks.command import errors_as_exit
from experiments.command import main
from testbed.errors import TestbedError

GALLERY = Path(__file__).resolve().parents[1] / "docs" / "gallery"
MOST_BYTES = 400_000  # of a page, which stays in Git's history
# what each page is made of, as words after `testbed run`
GALLERY_PAGES = {
    "incast": "incast --quick --set variant=cubic --set queue=pfifo",
    "latecomer": "latecomer --quick --set variant=bbr",
    "lossy": "lossy --quick --set variant=bbr",
}


def make_page(name: str) -> int:
    """Run a page's experiment in a temporary folder, and write the page; return its size."""
    page = GALLERY / f"{name}.html"
    words = GALLERY_PAGES[name].split()
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        status = main(["run", *words]) or main(
            ["report", f"results/{words[0]}", "--single-file", "--out", os.fspath(page)]
        )
    if status:
        raise TestbedError(f"{page}: not made", "the reason is above")
    size = page.stat().st_size
    if size > MOST_BYTES:
        raise TestbedError(f"{page}: {size} bytes, of at most {MOST_BYTES}", "choose fewer trials")
    return size


if __name__ == "__main__":
    with errors_as_exit():
        GALLERY.mkdir(exist_ok=True)
        for each in GALLERY_PAGES:
            print(f"{each}: {make_page(each)} bytes")
