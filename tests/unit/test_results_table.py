"""The table of a results folder: written, kept in its trials, used again and made anew."""

from __future__ import annotations

import dataclasses
import gzip
import json
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

from analysis.metrics.columns import ALL_METRICS
from analysis.results import reduction
from analysis.results.stored_tables import TABLES
from analysis.results.tables import write_metrics
from analysis.trials import packets
from testbed.errors import TestbedError
from testbed.machine.atomic import replace
from testbed.store.names import RECORD, REDUCED
from testbed.store.reading import open_trial
from testbed.store.records import Record, Status
from tests.sealing import seal
from tests.trial_writer import write_trial
from tests.unit.test_analysis_metrics import ALL_BUT_THE_RECEIVER, ISSUE_COLUMNS, TCP_GOODPUT


def test_results_folder(tmp_path: Path) -> None:
    write_trial(tmp_path / "a")
    write_trial(tmp_path / "b", record=Record(Status.FAILED, "no"))
    table = write_metrics(tmp_path)
    assert list(table["trial"]) == ["a", "a", "b", "b"]
    read = pd.read_csv(tmp_path / "metrics.csv", keep_default_na=False)
    assert list(read.columns) == ISSUE_COLUMNS
    assert read["sent_packets"].tolist() == ["13", "5", "", ""]
    assert read["goodput_mbps"].tolist() == ["0.008", "0.0031104", "", ""]
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "metrics.parquet"), table)
    assert not list(tmp_path.glob(".*"))


def test_no_trials_give_an_empty_table(tmp_path: Path) -> None:
    assert list(write_metrics(tmp_path).columns) == ISSUE_COLUMNS
    assert (tmp_path / "metrics.csv").read_text().count("\n") == 1


def test_rows_are_kept_in_the_trial_and_used_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_trial(tmp_path / "a", without=ALL_BUT_THE_RECEIVER)
    first = write_metrics(tmp_path)
    (tmp_path / "a").rename(tmp_path / "renamed")
    with monkeypatch.context() as patched:
        patched.setattr(packets, "read_cached", None)  # reading again would fail
        again = write_metrics(tmp_path)
    pd.testing.assert_frame_equal(again, first.assign(trial="renamed"))
    assert (tmp_path / "metrics.csv").read_text().count("renamed") == 2


def test_rows_of_other_definitions_are_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_trial(tmp_path / "a", without=ALL_BUT_THE_RECEIVER)
    write_metrics(tmp_path)
    stored = reduction.reduction_of(open_trial(path))
    wrong = pa.Table.from_pandas(stored.flows.assign(goodput_mbps=99.0))
    other = dataclasses.replace(stored, tables={**stored.tables, "flows": wrong})
    reduction.store(other)
    assert write_metrics(tmp_path)["goodput_mbps"][0] == 99
    reduction.store(other, "another revision")
    assert write_metrics(tmp_path)["goodput_mbps"][0] == pytest.approx(TCP_GOODPUT)


@pytest.mark.parametrize(
    "content", [b"", b"damaged", gzip.compress(b"[]", mtime=0), gzip.compress(b"{}", mtime=0)]
)
def test_a_damaged_file_is_replaced(tmp_path: Path, content: bytes) -> None:
    path = write_trial(tmp_path / "a", without=ALL_BUT_THE_RECEIVER)
    first = write_metrics(tmp_path)
    (path / REDUCED).write_bytes(content)
    pd.testing.assert_frame_equal(write_metrics(tmp_path), first)
    assert (path / REDUCED).read_bytes() != content


@pytest.mark.parametrize("content", [1, {"a": 1}, [1], [{"a": 1}]])
def test_tables_that_are_none_are_replaced(tmp_path: Path, content: object) -> None:
    path = write_trial(tmp_path / "a", without=ALL_BUT_THE_RECEIVER)
    first = write_metrics(tmp_path)
    document = json.loads(gzip.decompress((path / REDUCED).read_bytes()))
    document["tables"] = dict.fromkeys(TABLES, content)
    (path / REDUCED).write_bytes(gzip.compress(json.dumps(document).encode()))
    pd.testing.assert_frame_equal(write_metrics(tmp_path), first)


def test_a_folder_that_cannot_be_written_is_done_without(tmp_path: Path) -> None:
    path = write_trial(tmp_path / "a", without=ALL_BUT_THE_RECEIVER)
    (path / REDUCED).mkdir()
    (path / REDUCED / "in the way").touch()
    found = reduction.reduction_of(open_trial(path))
    assert found.flows["goodput_mbps"][0] == pytest.approx(TCP_GOODPUT)
    assert found.verdict is not None


def test_a_damaged_capture_is_told(tmp_path: Path) -> None:
    path = write_trial(tmp_path / "a", without=ALL_BUT_THE_RECEIVER)
    capture = path / "captures" / "receiver-eth0.pcap"
    capture.write_bytes(capture.read_bytes()[:-10])
    seal(path)  # as if the disk had been full
    for _ in range(2):  # from the capture, then from the rows kept
        warnings = write_metrics(tmp_path).attrs["warnings"]
        told = "the capture ends in the middle of a packet, after frame 29 (byte 3404)"
        assert warnings == [f"a: receiver-eth0.pcap: {told}"]


def test_a_trial_without_its_capture_is_invalid(tmp_path: Path) -> None:
    path = write_trial(tmp_path / "a", without=ALL_BUT_THE_RECEIVER)
    (path / "captures" / "receiver-eth0.pcap").unlink()
    rows = write_metrics(tmp_path)
    assert set(rows["verdict"]) == {"invalid"} and rows["goodput_mbps"].isna().all()
    (why,) = set(rows["why"])
    assert why == "captures/receiver-eth0.pcap: missing: the trial recorded it"
    assert rows.attrs["warnings"] == [f"a: {why}"]
    assert not (path / REDUCED).exists()  # it may come back


def test_a_file_in_a_folder_that_is_not_there_names_the_folder(tmp_path: Path) -> None:
    with pytest.raises(TestbedError) as caught:
        replace(tmp_path / "none" / "page.html", lambda path: path.write_text(""))
    assert caught.value.hint == f"there is no folder {tmp_path}/none: make it, or name another path"


def test_results_that_cannot_be_written(tmp_path: Path) -> None:
    write_trial(tmp_path / "a", without=ALL_BUT_THE_RECEIVER)
    (tmp_path / "metrics.csv").mkdir()
    (tmp_path / "metrics.csv" / "in the way").touch()
    with pytest.raises(TestbedError, match=r"metrics\.csv: cannot be written"):
        write_metrics(tmp_path)
    assert not list(tmp_path.glob(".*"))


def test_a_record_that_is_missing_is_no_trial(tmp_path: Path) -> None:
    (write_trial(tmp_path / "a", without=ALL_BUT_THE_RECEIVER) / RECORD).unlink()
    assert write_metrics(tmp_path).empty


def test_a_definition_worded_anew_reduces_nothing_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_trial(tmp_path / "a", without=ALL_BUT_THE_RECEIVER)
    first = write_metrics(tmp_path)
    reworded = tuple(dataclasses.replace(each, definition="worded anew") for each in ALL_METRICS)
    monkeypatch.setattr("analysis.metrics.columns.ALL_METRICS", reworded)
    monkeypatch.setattr(packets, "read_cached", None)  # reading again would fail
    pd.testing.assert_frame_equal(write_metrics(tmp_path), first)


def test_other_tolerances_or_columns_reduce_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {reduction.revision()}
    for name in ("CHECK_RULES", "METRIC_COLUMNS", "COUNT_COLUMNS"):
        with monkeypatch.context() as patched:
            changed = {} if name == "CHECK_RULES" else getattr(reduction, name)[1:]
            patched.setattr(reduction, name, changed)
            found.add(reduction.revision())
    assert len(found) == 4
