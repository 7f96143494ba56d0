"""Results folders of which a part failed or was damaged: every verb says so, and reads the rest."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from analysis.results.reduction import reduction_of
from analysis.results.stored_tables import decoded
from testbed.cli.entry import main
from testbed.runs.results_folders import keep_run
from testbed.store.names import (
    CPU_LOAD,
    IDLE_RTTS,
    LINK_CHANGES,
    QUEUE_SAMPLES,
    RECORD,
    REDUCED,
    REPORT,
    SCENARIO,
    SOCKET_SAMPLES,
    TCP_EVENTS,
    VERDICT_FILE,
)
from testbed.store.reading import open_trial
from testbed.store.records import Record, Status
from testbed.store.writing import write_table
from tests import report_writer
from tests.trial_writer import write_trial

PATIENCE_S = 300  # of wall time: a wait takes no processor time, and the machine may be busy


@pytest.fixture(autouse=True, scope="module")
def figures(with_slow: bool) -> Iterator[None]:
    """Draw one of each experiment in the ordinary run: drawing is what a report takes time for."""
    with contextlib.nullcontext() if with_slow else report_writer.first_figures():
        yield


def write_failed(path: Path, status: Status = Status.FAILED, experiment: str = "") -> Path:
    """Write a trial that left nothing but its scenario and why it failed."""
    whole = write_trial(path)
    scenario = dataclasses.replace(open_trial(whole).scenario, experiment=experiment)
    shutil.rmtree(whole)
    whole.mkdir()
    (whole / SCENARIO).write_text(scenario.to_json())
    (whole / RECORD).write_text(Record(status, "no room", engine="guest", seed=1).to_json())
    return whole


@pytest.mark.parametrize("status", [Status.FAILED, Status.UNSUPPORTED])
@pytest.mark.parametrize("beside", [True, False], ids=["beside a good one", "alone"])
def test_all_trials_of_an_experiment_failed(tmp_path: Path, status: Status, beside: bool) -> None:
    """Its page says why, and that of another experiment in the folder is there."""
    out = tmp_path / "results"
    write_failed(out / "failed", status, "router-bottleneck")
    if beside:
        write_trial(out / "good")
    assert main(["report", str(out)]) == 0
    page = (out / REPORT).read_text()
    assert "no room" in page and f"1 {status}" in page
    assert ("<td>tcp 0." in page) == beside


def fifo(path: Path) -> None:
    os.mkfifo(path)


def endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


def empty(path: Path) -> None:
    path.touch()


@contextlib.contextmanager
def ends() -> Iterator[None]:
    """Fail where nothing else would end the wait: a read of a pipe that nobody writes."""

    def end(_number: int, _frame: object) -> None:
        raise AssertionError(f"no end within {PATIENCE_S} s")

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(PATIENCE_S)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two results folders with a reduced trial in each."""
    folder = tmp_path_factory.mktemp("pair")
    for name in ("a", "b"):
        path = write_trial(folder / name / "trial")
        write_all_samples(path)
        keep_run(folder / name, "first", "testbed run x", ["trial"])
        assert main(["report", str(folder / name)]) == 0
        assert main(["report", str(path)]) == 0
    return folder


def write_all_samples(trial: Path) -> None:
    for table in (QUEUE_SAMPLES, SOCKET_SAMPLES, CPU_LOAD, IDLE_RTTS, LINK_CHANGES, TCP_EVENTS):
        if not (trial / table.file).exists():
            write_table(trial, table, ())


DAMAGES = (fifo, endless, empty)
FILES = (
    *("trial/scenario.json", "trial/trial.json", "trial/verdict.json", f"trial/{REDUCED}"),
    *("trial/samples/queues.csv", "trial/samples/sockets.csv", "trial/samples/counters.json"),
    *("trial/flows/tcp.client.json", "trial/commands.log", "trial/captures/sender1-eth0.pcapng"),
    *("runs/first/run.json", "runs/first/metrics.parquet"),
)


# first every other file with one damage, in turn
CASES = sorted(
    ((name, damage) for name in FILES for damage in DAMAGES),
    key=lambda case: (FILES.index(case[0]) % 6) != 2 * DAMAGES.index(case[1]),
)


@pytest.mark.slow(but=len(FILES) // 2)
@pytest.mark.parametrize(("name", "damage"), CASES)
def test_a_damaged_file_is_a_line_and_no_traceback(
    tmp_path: Path, pair: Path, name: str, damage: Callable[[Path], None]
) -> None:
    """Neither a traceback nor a wait without an end, whichever file it is and whoever reads it."""
    shutil.copytree(pair, tmp_path / "pair", symlinks=True)
    a, b = tmp_path / "pair" / "a", tmp_path / "pair" / "b"
    file = a / name
    file.unlink(missing_ok=True)
    file.parent.mkdir(exist_ok=True)
    damage(file)
    if name.startswith(("trial/samples", "trial/flows", "trial/captures")):
        (a / "trial" / REDUCED).unlink()
    verbs = (
        ("report", str(a)),
        ("compare", str(a), str(b)),
        ("compare", "--packets", str(a), str(b)),
        ("runs", str(a)),
    )
    every = damage is empty
    figures = contextlib.nullcontext() if every else report_writer.first_figures(drawn=True)
    with figures:
        for words in verbs:
            with ends():
                assert main(words) in (0, 1), words


def test_a_trial_without_its_captures_stops_no_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is invalid, and the others are on the page."""
    for name in ("good", "bad"):
        write_trial(tmp_path / "x" / name)
    shutil.rmtree(tmp_path / "x" / "bad" / "captures")
    for _ in range(2):  # the first stores nothing that the second takes for numbers
        assert main(["report", str(tmp_path / "x")]) == 0
        assert "bad: captures/receiver-eth0.pcap: missing: " in capsys.readouterr().err
        page = (tmp_path / "x" / REPORT).read_text()
        assert "captures/receiver-eth0.pcap: missing" in page and "<td>tcp 0." in page


@pytest.mark.parametrize("dropped", [True, False], ids=["dropped", "removed"])
def test_a_verdict_that_is_lost_with_the_captures_costs_no_number(
    tmp_path: Path, dropped: bool
) -> None:
    trial = open_trial(write_trial(tmp_path / "x" / "trial"))
    before = reduction_of(trial).tables
    shutil.rmtree(trial.path / "captures")
    (trial.path / VERDICT_FILE).unlink()
    if dropped:
        captures = tuple(dataclasses.replace(c, file="") for c in trial.record.captures)
        record = dataclasses.replace(trial.record, captures=captures)
        (trial.path / RECORD).write_text(record.to_json())
    assert main(["report", str(tmp_path / "x")]) == 0
    after = reduction_of(open_trial(trial.path)).tables
    assert all(decoded(after[name]).equals(decoded(before[name])) for name in before)


@pytest.mark.parametrize("make", [fifo, endless], ids=lambda make: make.__name__)
def test_list_in_a_folder_with_something_else_called_py(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Callable[[Path], None]
) -> None:
    make(tmp_path / "x.py")
    (tmp_path / "deep.py").write_text("(" * 400_000)
    monkeypatch.chdir(tmp_path)
    with ends():
        assert main(["list"]) == 0


def test_a_flipped_byte_in_a_reduction_changes_no_number(tmp_path: Path) -> None:
    """It is found by a checksum, and the trial is reduced again."""
    trial = open_trial(write_trial(tmp_path / "trial"))
    before = reduction_of(trial).tables
    whole = (trial.path / REDUCED).read_bytes()
    for place in range(0, len(whole), len(whole) // 16):
        (trial.path / REDUCED).write_bytes(flipped(whole, place))
        after = reduction_of(trial).tables
        assert all(decoded(after[name]).equals(decoded(before[name])) for name in before), place


def flipped(content: bytes, place: int) -> bytes:
    return content[:place] + bytes([content[place] ^ 0xFF]) + content[place + 1 :]


def test_a_capture_that_was_changed_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not where its numbers are stored already: they are those of the capture as it was."""
    out = tmp_path / "results"
    trial = open_trial(write_trial(out / "trial"))
    file = trial.path / trial.record.captures[0].file
    assert main(["report", str(out)]) == 0
    assert "damaged" not in capsys.readouterr().err
    content = file.read_bytes()
    file.write_bytes(flipped(content, len(content) - 1))
    (trial.path / REDUCED).unlink()
    assert main(["report", str(out)]) == 0
    line = f"trial: {trial.record.captures[0].file}: damaged: it is not what the trial recorded"
    assert line in " ".join(capsys.readouterr().err.split())


def test_a_damaged_verdict_is_made_again(tmp_path: Path) -> None:
    out = tmp_path / "results"
    trial = open_trial(write_trial(out / "trial"))
    reduction_of(trial)
    before = (trial.path / VERDICT_FILE).read_bytes()
    (trial.path / VERDICT_FILE).write_bytes(before[:100])
    assert main(["report", str(out)]) == 0
    assert (trial.path / VERDICT_FILE).read_bytes() == before
    assert "checks: what each compares" in (out / REPORT).read_text()
