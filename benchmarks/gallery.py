"""The reports of docs/gallery: small experiments, each report a single file.

    .venv/bin/python -m benchmarks.gallery [PAGE …]

runs them in the guest (about three minutes) and writes the pages: all, or those that are named.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
from pathlib import Path

from benchmarks.harness import errors_as_exit
from experiments.command import main
from testbed.errors import TestbedError

DOCS = Path(__file__).resolve().parents[1] / "docs"
GALLERY, QUESTIONS = DOCS / "gallery", DOCS / "questions"
MAX_PAGE_BYTES = 750_000  # of a page, which stays in Git's history
BOTTLENECK_DISCIPLINE = "--set topology.bottleneck.queue.discipline=pfifo,fq_codel"
# what each page is made of, as words after `testbed run` in a folder with docs/questions
GALLERY_PAGES = {
    "asymmetric": "asymmetric.json --set network.links.3.forward.queue.discipline=pie,pfifo",
    "buffers": "buffers.json --set topology.bottleneck.queue.limit_bdp=0.5,4 --set duration_s=10",
    "cellular": "cellular --quick --set variant=cubic",
    "course": "--topo course.py:Offices --flow office1,server,variant=cubic "
    "--flow office2,server,variant=bbr --set network.links.2.forward.queue.limit_packets=20,200",
    "incast": "incast --quick --set variant=cubic --set queue=pfifo",
    "ipv6": "ipv6.json --set topology.ip=4,6",
    "latecomer": "latecomer --quick --set variant=bbr",
    "lossy": "lossy --quick --set variant=bbr",
    "program": f"program.json {BOTTLENECK_DISCIPLINE}",
    "short-flows": f"short-flows.json {BOTTLENECK_DISCIPLINE}",
    "starlink": "starlink.json --set flows.tcp.variant=cubic,bbr",
    "voice": f"voice.json {BOTTLENECK_DISCIPLINE}",
}


def make_page(name: str) -> int:
    """Run a page's experiment in a temporary folder, and write the page; return its size."""
    page = GALLERY / f"{name}.html"
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        shutil.copytree(QUESTIONS, folder, dirs_exist_ok=True)
        status = main(["run", *GALLERY_PAGES[name].split(), "--engine", "guest"]) or main(
            ["report", "results/latest", "--single-file", "--out", os.fspath(page)]
        )
    if status:
        raise TestbedError(f"{page}: not made", "the reason is above")
    size = page.stat().st_size
    if size > MAX_PAGE_BYTES:
        raise TestbedError(
            f"{page}: {size} bytes, of at most {MAX_PAGE_BYTES}", "choose fewer trials"
        )
    return size


if __name__ == "__main__":
    with errors_as_exit():
        GALLERY.mkdir(exist_ok=True)
        for each in sys.argv[1:] or GALLERY_PAGES:
            print(f"{each}: {make_page(each)} bytes")
