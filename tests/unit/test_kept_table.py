"""Tables that trials keep: read again, computed anew, or done without."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from analysis.trials.kept_table import keep, kept_or_computed, read_kept

ROWS = pd.DataFrame({"flow": ["a", "b"], "value": [0.1, float("nan")]})


def rows() -> pd.DataFrame:
    return ROWS.copy()


def never() -> pd.DataFrame:
    raise AssertionError("computed again")


def test_what_is_kept_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "table"
    pd.testing.assert_frame_equal(kept_or_computed(path, "1", rows), ROWS)
    pd.testing.assert_frame_equal(kept_or_computed(path, "1", never), ROWS)


def test_another_revision_is_computed_anew(tmp_path: Path) -> None:
    path = tmp_path / "table"
    keep(path, ROWS.assign(value=9.0), "1")
    pd.testing.assert_frame_equal(kept_or_computed(path, "2", rows), ROWS)
    kept = read_kept(path)
    assert kept and kept.revision == "2"


def test_warnings_are_kept_with_the_rows(tmp_path: Path) -> None:
    frame = rows()
    frame.attrs["warnings"] = ["cut short"]
    keep(tmp_path / "table", frame, "1")
    assert kept_or_computed(tmp_path / "table", "1", never).attrs == {"warnings": ["cut short"]}


@pytest.mark.parametrize("content", [b"", b"damaged", b"PAR1PAR1"])
def test_a_damaged_file_is_computed_anew(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "table"
    path.write_bytes(content)
    pd.testing.assert_frame_equal(kept_or_computed(path, "1", rows), ROWS)


def test_a_table_of_an_earlier_version_is_of_no_revision(tmp_path: Path) -> None:
    path = tmp_path / "table"
    ROWS.to_parquet(path)
    kept = read_kept(path)
    assert kept and kept.revision == ""


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    pd.testing.assert_frame_equal(kept_or_computed(tmp_path / "no" / "table", "1", rows), ROWS)
