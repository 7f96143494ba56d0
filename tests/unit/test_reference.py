"""The reference pages are as the code is, and leave nothing out."""

from __future__ import annotations

import pytest

from analysis.captures.flow_tables import HEADINGS
from analysis.metrics.columns import METRIC_COLUMNS
from benchmarks import reference
from testbed.cli.parser import VERBS
from testbed.store import names as store


@pytest.mark.parametrize("name", reference.PAGES)
def test_a_reference_page_is_current(name: str) -> None:
    text = (reference.REFERENCE_FOLDER / name).read_text(encoding="utf-8")
    assert text == reference.PAGES[name](), "run .venv/bin/python -m benchmarks.reference"


def test_every_option_has_a_row() -> None:
    page = reference.command_line()
    assert all(f"\n## {verb.name}\n" in page for verb in VERBS)
    for usage in ("--until ci=N%", "--packets", r"--captures keep\|zstd\|drop", "FOLDER"):
        assert f"| `{usage}" in page, usage
    assert "`--rerun` |" in page  # takes no value


def test_every_file_and_field_has_a_row() -> None:
    page = reference.trial_directory()
    for name in (*store.TRIAL_FILES, *store.RESULTS_FILES):
        assert f"| `{name}` |" in page
    assert all(f"`{column}`" in page for column in store.SOCKET_SAMPLES.columns)
    for field in ("epoch_s", "variant_seen", "snaplen_bytes", "burst_bytes", "was_ended"):
        assert f"| `{field}` |" in page


def test_every_metric_has_a_row() -> None:
    page = reference.metrics()
    for name in (*METRIC_COLUMNS, *HEADINGS):
        assert f"| `{name}` |" in page


def test_a_field_without_a_sentence_is_refused() -> None:
    with pytest.raises(AssertionError, match=r"no sentence below \{'columns', 'file'\}|file"):
        reference.field_docs(store.Table)
