"""The gallery's pages: all that its command makes, small, and listed with what was run."""

from __future__ import annotations

import pytest

from benchmarks.gallery import GALLERY, GALLERY_PAGES, MAX_PAGE_BYTES, QUESTIONS
from experiments.catalogue import EXPERIMENTS
from testbed.cli.parser import build_parser
from testbed.cli.run import selected


def test_the_folder_holds_these_pages_alone() -> None:
    pages = {path.stem for path in GALLERY.glob("*.html")}
    assert pages == set(GALLERY_PAGES)
    assert {path.name for path in GALLERY.iterdir()} == {"README.md"} | {f"{n}.html" for n in pages}


def test_all_pages_together_are_small() -> None:
    assert (
        sum(path.stat().st_size for path in GALLERY.iterdir()) < 6_000_000
    )  # each has delay and queue over time


@pytest.mark.parametrize("name", GALLERY_PAGES)
def test_a_page_is_small_and_says_what_was_run(name: str) -> None:
    page = (GALLERY / f"{name}.html").read_bytes()
    assert len(page) < MAX_PAGE_BYTES
    command = f"testbed run {GALLERY_PAGES[name]}"
    assert command.encode() in page
    assert f"`{command}`" in (GALLERY / "README.md").read_text()


@pytest.mark.parametrize("name", GALLERY_PAGES)
def test_a_page_can_be_made_again(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(QUESTIONS)
    options = build_parser().parse_args(["run", *GALLERY_PAGES[name].split()])
    options.experiments = EXPERIMENTS
    assert 0 < len(selected(options).scenarios(1)) < 5
