"""Bundles of others: whatever an archive holds, it ends in a line, and writes nowhere else."""

from __future__ import annotations

import dataclasses
import json
import random
import shutil
import stat
import warnings
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from experiments.command import main
from testbed.bundles import verify
from testbed.bundles.make import About, make_bundle
from testbed.bundles.manifest import BUNDLE_FORMAT, BUNDLE_MANIFEST
from testbed.bundles.opened import MAX_BUNDLE_BYTES, folders_of, unpacked
from testbed.bundles.verify import repeatable, with_bundled_files
from testbed.errors import TestbedError
from testbed.runs.results_folders import keep_run
from testbed.scenario.model import Flow, FlowKind
from testbed.scenario.programs import Programs
from testbed.store.reading import open_trial
from tests.trial_writer import write_trial

TABLE = "results/made/runs/first/metrics.csv"
Entries = dict[str, bytes]


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle of one trial, which nothing was run for."""
    folder = tmp_path_factory.mktemp("bundle")
    trial = write_trial(folder / "made" / "trial")
    keep_run(folder / "made", "first", "testbed run made.json", [trial.name])
    make_bundle([folder / "made"], folder / "paper.zip", About(), {})
    return folder / "paper.zip"


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Temporary files go to a folder of the test's."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder


def test_a_word_chooses_other_trials_of_another_bundle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else who makes a bundle could try words, and put what is sound where they lead."""
    trials = [SimpleNamespace(path=Path(f"/b/results/trial-{number}")) for number in range(50)]
    monkeypatch.setattr(verify, "repeatable", lambda _bundle: trials)

    def choice(fingerprint: str, word: str) -> tuple[str, ...]:
        bundle = cast(Any, SimpleNamespace(folder=Path("/b"), fingerprint=fingerprint))
        return tuple(trial.path.name for trial in verify.chosen(bundle, word, 5))

    assert choice("a", "rhubarb") == choice("a", "rhubarb")
    assert len({choice("a", "rhubarb"), choice("b", "rhubarb"), choice("a", "pie")}) == 3


def test_a_trial_in_real_time_is_not_repeated(tmp_path: Path) -> None:
    """Nobody's second run has its packets."""
    there = write_trial(tmp_path / "made" / "there")
    record = dataclasses.replace(open_trial(there).record, virtual_time=False, engine="host")
    host = write_trial(tmp_path / "made" / "on-the-host", record=record)
    keep_run(tmp_path / "made", "first", "testbed run made.json", [there.name, host.name])
    make_bundle([tmp_path / "made"], tmp_path / "paper.zip", About(), {})
    with unpacked(tmp_path / "paper.zip") as bundle:
        assert [trial.path.name for trial in repeatable(bundle)] == ["there"]


@pytest.mark.parametrize("captures", ["keep", "drop"])
def test_a_record_names_the_captures_that_come_along(tmp_path: Path, captures: str) -> None:
    """And the hashes of those that do not."""
    write_trial(tmp_path / "made" / "there")
    make_bundle([tmp_path / "made"], tmp_path / "paper.zip", About(captures=captures), {})
    with unpacked(tmp_path / "paper.zip") as bundle:
        assert not bundle.faults
        [trial] = repeatable(bundle)
        files = [each.file for each in trial.record.captures]
        assert all(each.sha256 for each in trial.record.captures) and len(files) > 1
        assert [bool(file) for file in files] == [captures == "keep"] * len(files)
        assert all((trial.path / file).is_file() for file in files if file)


def entries_of(bundle: Path) -> Entries:
    with zipfile.ZipFile(bundle) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def written(path: Path, entries: Entries, *more: tuple[zipfile.ZipInfo | str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w") as archive, warnings.catch_warnings(action="ignore"):
        for name, content in (*entries.items(), *more):
            archive.writestr(name, content)
    return path


def said(words: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    status = main(words)
    captured = capsys.readouterr()
    assert "Traceback" not in captured.err
    return status, captured.out + captured.err


def link() -> zipfile.ZipInfo:
    info = zipfile.ZipInfo("results/made/link")
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    return info


def device() -> zipfile.ZipInfo:
    info = zipfile.ZipInfo("results/made/device")
    info.external_attr = (stat.S_IFCHR | 0o666) << 16
    return info


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("../outside", "leads elsewhere"),
        ("results/../../outside", "leads elsewhere"),
        ("/tmp/outside", "leads elsewhere"),
        ("results/made/.hidden", "not one of a bundle's files"),
        ("results\\made", "not one of a bundle's files"),
        ("results//made", "not one of a bundle's files"),
        ("results/made/", "not a plain file"),
        ("other.txt", "not one of a bundle's files"),
        (TABLE, "twice"),
        (link(), "a link"),
        (device(), "not a plain file"),
    ],
    ids=str,
)
def test_names_that_no_bundle_has_are_refused(
    name: zipfile.ZipInfo | str,
    why: str,
    bundle: Path,
    tmp_path: Path,
    temporary: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    forged = written(tmp_path / "forged.zip", entries_of(bundle), (name, b"/etc/passwd"))
    status, text = said(["verify", str(forged)], capsys)
    assert (status, why in text) == (1, True), text
    assert not [*tmp_path.rglob("outside")]
    assert not [*temporary.iterdir()]


def test_every_cut_is_a_line(
    bundle: Path, tmp_path: Path, temporary: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole, cut = bundle.read_bytes(), tmp_path / "cut.zip"
    for part in range(16):
        cut.write_bytes(whole[: len(whole) * part // 16])
        status, text = said(["verify", str(cut)], capsys)
        assert (status, "truncated" in text) == (1, True), text
    assert not [*temporary.iterdir()]


def test_a_bundle_of_a_newer_version(
    bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    entries = entries_of(bundle)
    manifest = json.loads(entries[BUNDLE_MANIFEST]) | {"format": BUNDLE_FORMAT + 1, "new": 1}
    entries[BUNDLE_MANIFEST] = json.dumps(manifest).encode()
    status, text = said(["verify", str(written(tmp_path / "new.zip", entries))], capsys)
    assert (status, "newer version" in text) == (1, True)


@pytest.mark.parametrize("content", [b"[]", b"{}", b'{"format": "1"}', b"[" * 100_000, b"\xff"])
def test_a_manifest_that_is_none(
    content: bytes, bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    entries = entries_of(bundle) | {BUNDLE_MANIFEST: content}
    status, text = said(["verify", str(written(tmp_path / "odd.zip", entries))], capsys)
    assert (status, f"{BUNDLE_MANIFEST}: damaged" in text) == (1, True)


@pytest.mark.parametrize("verb", ["verify", "report", "compare"])
def test_a_changed_table_is_named(
    verb: str, bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    entries = entries_of(bundle)
    entries[TABLE] = entries[TABLE].replace(b"1", b"2", 1)
    forged = written(tmp_path / "forged.zip", entries)
    words = [str(forged), str(bundle)] if verb == "compare" else [str(forged)]
    status, text = said([verb, *words], capsys)
    assert (status, f"{TABLE}: changed" in text) == (1, True)


def test_a_file_that_is_missing_or_was_added_is_named(
    bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    entries = entries_of(bundle)
    del entries[TABLE]
    added = "results/made/runs/first/extra.csv"
    forged = written(tmp_path / "forged.zip", entries, (added, b"1"))
    status, text = said(["verify", str(forged)], capsys)
    assert status == 1
    assert f"{TABLE}: missing" in text
    assert f"{added}: not listed" in text


def test_one_flipped_bit_in_each_file_is_named(bundle: Path, tmp_path: Path) -> None:
    whole = bundle.read_bytes()
    with zipfile.ZipFile(bundle) as archive:
        places = {
            each.filename: each.header_offset + len(each.FileHeader()) + each.compress_size // 2
            for each in archive.infolist()
        }
    flipped = tmp_path / "flipped.zip"
    for name, place in places.items():
        flipped.write_bytes(whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :])
        if name == BUNDLE_MANIFEST:
            with pytest.raises(TestbedError, match="damaged"), unpacked(flipped):
                pass
            continue
        with unpacked(flipped) as read:
            assert [*read.faults] == [name]


def test_any_damage_is_refused_or_read(bundle: Path, tmp_path: Path, full: bool) -> None:
    dice, whole, path = random.Random(7), bundle.read_bytes(), tmp_path / "damaged.zip"
    for _ in range(2000 if full else 40):
        damaged = bytearray(whole)
        for _ in range(dice.choice((1, 2, 20))):  # also in the list of names, at the end
            start = dice.choice((0, len(whole) - 5000))
            damaged[dice.randrange(start, len(whole))] = dice.randrange(256)
        path.write_bytes(damaged)
        try:
            with unpacked(path) as read:
                assert read.manifest.format == BUNDLE_FORMAT
        except TestbedError:
            pass


def test_twenty_gigabytes_are_refused_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "large.zip"
    with path.open("wb") as file:
        file.truncate(20 << 30)
    assert MAX_BUNDLE_BYTES < 20 << 30
    status, text = said(["verify", str(path)], capsys)
    assert (status, "larger than" in text, "--captures drop" in text) == (2, True, True)


def test_a_list_of_names_of_gigabytes_is_not_read(
    bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    end = bytearray(bundle.read_bytes()[-22:])
    end[12:16] = (8 << 27).to_bytes(4, "little")  # the list's size
    end[16:20] = bytes(4)
    path = tmp_path / "list.zip"
    with path.open("wb") as file:
        file.seek(8 << 27)
        file.write(end)
    status, text = said(["verify", str(path)], capsys)
    assert (status, "truncated" in text) == (1, True)


def test_more_than_there_is_room_for_is_not_unpacked(
    bundle: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    temporary: Path,
) -> None:
    needed = sum(map(len, entries_of(bundle).values()))
    room = shutil.disk_usage(temporary)._replace(free=needed - 1)
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: room)
    status, text = said(["verify", str(bundle)], capsys)
    assert (status, "more than is free" in text, "TMPDIR" in text) == (1, True, True)
    assert not [*temporary.iterdir()]
    room = room._replace(free=needed)
    with unpacked(bundle) as read:
        assert not read.faults


def test_no_file_is_longer_than_the_list_of_names_says(bundle: Path, tmp_path: Path) -> None:
    """What a small file stands for is not known before it is unpacked: no more is written."""
    entries, name = entries_of(bundle), TABLE.encode()
    forged = written(tmp_path / "forged.zip", entries | {TABLE: entries[TABLE] + b"," * 100_000})
    content = bytearray(forged.read_bytes())
    at = content.rindex(name) - 46  # its entry in the list
    content[at + 24 : at + 28] = len(entries[TABLE]).to_bytes(4, "little")
    forged.write_bytes(content)
    with unpacked(forged) as read:
        assert [*read.faults] == [TABLE]
        assert (read.folder / TABLE).stat().st_size <= len(entries[TABLE])


def test_a_name_that_ends_early_for_others_is_refused(
    bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    forged = written(tmp_path / "forged.zip", entries_of(bundle), ("results/made/1outside", b"x"))
    forged.write_bytes(forged.read_bytes().replace(b"/1outside", b"/\0outside"))
    status, text = said(["verify", str(forged)], capsys)
    assert (status, "leads elsewhere" in text) == (1, True), text


def test_files_of_the_readers_own_are_not_taken_for_the_authors(
    bundle: Path, tmp_path: Path
) -> None:
    """A scenario names its programs' files by paths: only those in the bundle are used."""
    secret = tmp_path / "secret.txt"
    secret.write_text("mine")
    command = Programs(client=("cat", "secret.txt"), files=(str(secret),))
    with unpacked(bundle) as read:
        (trial,) = repeatable(read)
        flow = Flow("cat", FlowKind.COMMAND, "sender1", "receiver", 0, 1, command=command)
        asking = dataclasses.replace(
            trial, scenario=dataclasses.replace(trial.scenario, flows=(flow,))
        )
        with pytest.raises(TestbedError, match=r"secret\.txt of flow cat is not in the bundle"):
            with_bundled_files(read, asking)


def test_what_is_no_bundle_is_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "text.zip").write_text("no archive")
    for name, expected in (("missing.zip", 2), ("text.zip", 1)):
        status, text = said(["verify", str(tmp_path / name)], capsys)
        assert (status, "hint:" in text) == (expected, True)


def test_a_bundle_is_unpacked_once(bundle: Path) -> None:
    assert folders_of(bundle) == folders_of(bundle)
