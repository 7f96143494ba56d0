"""Reports for docs/gallery: small experiments, each as one page in one file.

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
MOST_BYTES = 400_000  # of a page: it stays in the history
# of each page: the words after `testbed run`
GALLERY_PAGES = {
    "incast": "incast --quick --set variant=cubic,dctcp --set queue=step --set senders=10",
    "latecomer": "latecomer --quick --set variant=bbr",
    "lossy": "lossy --quick --set variant=bbr",
}


def make_page(name: str) -> int:
    """Run a page's experiment in a folder that is removed; return the size of the page."""
    page = GALLERY / f"{name}.html"
    words = GALLERY_PAGES[name].split()
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        made = main(["run", *words]) or main(
            ["report", f"results/{words[0]}", "--single-file", "--out", os.fspath(page)]
        )
    size = page.stat().st_size if not made else 0
    if made or size > MOST_BYTES:
        raise TestbedError(f"{page}: {size} bytes, of at most {MOST_BYTES}", "choose fewer trials")
    return size


if __name__ == "__main__":
    with errors_as_exit():
        GALLERY.mkdir(exist_ok=True)
        for each in GALLERY_PAGES:
            print(f"{each}: {make_page(each)} bytes")
