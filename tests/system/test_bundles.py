"""`testbed verify`: what a bundle claims is run again, and compared byte by byte."""

from __future__ import annotations

import hashlib
import json
import zipfile
from pathlib import Path

import pytest

from experiments.command import main
from testbed.bundles.descriptions import CRATE_PROFILE, CRATE_SPECIFICATION
from testbed.bundles.make import About, make_bundle
from testbed.bundles.manifest import BUNDLE_CITATION, BUNDLE_CRATE, BUNDLE_MANIFEST, read_manifest
from testbed.bundles.opened import unpacked
from testbed.bundles.verify import chosen
from testbed.store.names import RECORD

FLOWS = [
    {"name": "tcp", "kind": "tcp", "src": "sender1", "dst": "receiver", "variant": "cubic"},
]
SCENARIO = {
    "experiment": "shared",
    "topology": {"kind": "router-bottleneck", "bottleneck": {"rate_mbit": 4, "delay_ms": 10}},
    "flows": FLOWS,
    "duration_s": 2,
}
PROGRAM = "import socket, sys\nsocket.create_connection((sys.argv[1], 7000)).sendall(b'x' * 9999)\n"


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A results folder of two trials, one of which ran a program of the author's."""
    folder = tmp_path_factory.mktemp("author")
    (folder / "send.py").write_text(PROGRAM)
    command = {
        "server": [
            "python3",
            "-c",
            "import socket; s = socket.create_server(('', 7000))\n"
            "while True:\n c, _ = s.accept()\n while c.recv(4096): pass",
        ],
        "client": ["python3", "send.py", "{server_ip}"],
        "files": ["send.py"],
        "port": 7000,
        "upload": True,
    }
    flow = FLOWS[0] | {"name": "app", "kind": "command"}
    scenario = SCENARIO | {"flows": [*FLOWS, flow | {"command": command}]}
    (folder / "plain.json").write_text(json.dumps(SCENARIO))
    (folder / "program.json").write_text(json.dumps(scenario))
    for name in ("plain", "program"):
        words = ["run", str(folder / f"{name}.json"), "--out", str(folder / "out")]
        assert main([*words, "--engine", "guest"]) == 0
    return folder


@pytest.fixture(scope="module")
def bundle(results: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its bundle without captures; the author's files are gone since."""
    path = tmp_path_factory.mktemp("post") / "paper.zip"
    make_bundle([results / "out"], path, About("Two trials", ("A. Author",), captures="drop"), {})
    (results / "send.py").unlink()
    return path


def forged(bundle: Path, path: Path, changed: dict[str, bytes]) -> Path:
    """Write a bundle with other files, whose manifest lists them as they are."""
    with zipfile.ZipFile(bundle) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()} | changed
    manifest = json.loads(entries[BUNDLE_MANIFEST])
    for name, content in changed.items():
        digest = hashlib.sha256(content).hexdigest()
        manifest["files"][name] = {"bytes": len(content), "sha256": digest}
    entries[BUNDLE_MANIFEST] = json.dumps(manifest).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return path


@pytest.mark.slow
def test_all_of_it_again(bundle: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", str(bundle), "--all"]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith("same bytes: 8 of 8 captures, 6 of 6 tables of samples, ")
    counts = [words.split()[:3] for words in last.removeprefix("same bytes: ").split(", ")]
    assert all(same == total for same, _, total in counts)


def test_some_of_it_again(bundle: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of two trials without captures one runs again: no figure is said to differ for that."""
    assert main(["verify", str(bundle), "--trials", "1", "--nonce", "word"]) == 0
    printed = capsys.readouterr().out
    assert "the word 'word' chooses 1 of 2" in printed
    assert "same bytes: 4 of 4 captures" in printed


def test_a_word_chooses_trials_that_nobody_could_foresee(bundle: Path) -> None:
    with unpacked(bundle) as read:
        by_word = {word: chosen(read, word, 1)[0].path.name for word in map(str, range(20))}
        assert len({*by_word.values()}) == 2
        assert chosen(read, "7", 1)[0].path.name == by_word["7"]


def test_a_capture_that_the_author_made_up_is_named(
    bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with zipfile.ZipFile(bundle) as archive:
        name = next(each for each in archive.namelist() if each.endswith(RECORD))
        record = json.loads(archive.read(name))
    record["captures"][0]["sha256"] = "0" * 64
    path = forged(bundle, tmp_path / "forged.zip", {name: json.dumps(record).encode()})
    assert main(["verify", str(path), "--all"]) == 1
    printed = capsys.readouterr()
    assert "other packets" in printed.err
    assert "same bytes: 7 of 8 captures" in printed.out


def test_a_table_that_the_author_made_up_is_named(
    bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with zipfile.ZipFile(bundle) as archive:
        name = next(each for each in archive.namelist() if each.endswith("metrics.csv"))
        content = archive.read(name).replace(b"cubic", b"vegas")
    path = forged(bundle, tmp_path / "forged.zip", {name: content})
    assert main(["verify", str(path), "--all"]) == 1
    assert f"{name} differs" in capsys.readouterr().err


def test_a_kernel_that_is_not_to_be_had_is_a_line(
    bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with unpacked(bundle) as read:
        (trial,) = chosen(read, "x", 1)
        place = trial.path.relative_to(read.folder)
        scenario = json.loads((trial.path / "scenario.json").read_text()) | {"kernel": "theirs"}
        record = json.loads((trial.path / RECORD).read_text())
    text = json.dumps(scenario).encode()
    about = {"bytes": len(text), "sha256": hashlib.sha256(text).hexdigest()}
    record["files"]["scenario.json"] = about
    changed = {f"{place}/scenario.json": text, f"{place}/{RECORD}": json.dumps(record).encode()}
    path = forged(bundle, tmp_path / "forged.zip", changed)
    assert main(["verify", str(path), "--all"]) == 1
    printed = capsys.readouterr()
    assert "1 trial: kernel theirs: there is no kernel theirs" in printed.err
    assert "same bytes: 4 of 4 captures" in printed.out


def test_the_crate_names_what_is_there(bundle: Path) -> None:
    """Each reference of the RO-Crate leads to one of its entities, each file to one of the archive.

    `rocrate-validator` (PyPI: roc-validator) checks the rest, as CONTRIBUTING.md says.
    """
    with zipfile.ZipFile(bundle) as archive:
        names, crate = archive.namelist(), json.loads(archive.read(BUNDLE_CRATE))
        manifest = read_manifest(archive.read(BUNDLE_MANIFEST), "the bundle")
        assert archive.read(BUNDLE_CITATION).startswith(b"cff-version: 1.2.0\n")
    assert {"CITATION.cff", "ro-crate-metadata.json", "ro-crate-preview.html"} <= {*names}
    entities = {each["@id"]: each for each in crate["@graph"]}
    assert len(entities) == len(crate["@graph"])

    def references(value: object) -> list[str]:
        if isinstance(value, list):
            return [place for each in value for place in references(each)]
        return [value["@id"]] if isinstance(value, dict) else []

    named = {place for each in crate["@graph"] for v in each.values() for place in references(v)}
    assert named - entities.keys() == {CRATE_SPECIFICATION}
    assert entities["./"]["conformsTo"] == {"@id": CRATE_PROFILE}
    files = [each for each in crate["@graph"] if each["@type"] == "File"]
    assert {each["@id"] for each in files} <= {*names}
    assert all(each["sha256"] == manifest.files[each["@id"]].sha256 for each in files[1:])
    folders = [each["@id"] for each in crate["@graph"] if each["@type"] == "Dataset"]
    assert all(
        any(name.startswith(place.removeprefix("./")) for name in names) for place in folders
    )
