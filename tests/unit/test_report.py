"""`testbed report`: which files it writes and names, and what it refuses."""

from __future__ import annotations

import base64
import gzip
import io
import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from analysis.report import collect
from analysis.results.reduction import reduction_of
from analysis.results.stored_tables import decoded
from experiments.catalogue import EXPERIMENTS
from experiments.command import main
from testbed.store.names import TRIAL_PAGE
from testbed.store.reading import trials_in
from tests import report_writer
from tests.trial_writer import ROLES, write_trial

SUFFIXES = ("png", "svg", "csv")


def files(capsys: pytest.CaptureFixture[str]) -> list[str]:
    """The lines that name files, after the verdict and what is not valid."""
    first, *lines = capsys.readouterr().out.splitlines()
    assert first.startswith("verdict: ")
    return lines[next(i for i, line in enumerate(lines) if line.startswith("figure: ")) :]


def written(folder: Path, *stems: str) -> bool:
    wanted = [f"{stem}.{suffix}" for stem in stems for suffix in SUFFIXES]
    return all((folder / name).stat().st_size for name in [*wanted, TRIAL_PAGE])


def test_figures_go_into_the_trial(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trial = write_trial(tmp_path / "reno", samples=True)
    assert main(["report", str(trial)]) == 0
    folder = trial / "figures"
    assert files(capsys) == [
        f"figure: {folder / 'tcp-timeline.png'} (.svg, .csv)",
        "beside it: tcp-sequence.png",
        f"report: {folder / TRIAL_PAGE}",
    ]
    assert written(folder, "tcp-timeline", "tcp-sequence")


def test_a_part_of_another_flow_elsewhere(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trial, out = write_trial(tmp_path / "reno", samples=True), tmp_path / "a" / "b"
    asked = ["--flow", "cbr", "--from", "2", "--to", "4.5", "--out", str(out)]
    assert main(["report", str(trial), *asked]) == 0
    stem = "cbr-2s-4.5s-timeline"
    first = f"figure: {out / stem}.png (.svg, .csv)"
    assert files(capsys) == [first, f"report: {out / TRIAL_PAGE}"]
    assert written(out, stem)
    assert not (trial / "figures").exists()


def test_a_single_file_has_everything(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report_writer.write_experiment(tmp_path / "results", "router-fairness", 2)
    page = tmp_path / "away" / "page.html"
    asked = ["report", str(tmp_path / "results"), "--claims", "--single-file", "--out", str(page)]
    with report_writer.first_figures():
        assert main(asked) == 0
    assert [path.name for path in page.parent.iterdir()] == ["page.html"]
    links = re.findall(r'(?:href|src)="([^"#]+)"', page.read_text())
    assert links and all(link.startswith("data:") for link in links)
    assert "claims: " in capsys.readouterr().out


def test_a_single_file_has_the_figures_files(tmp_path: Path) -> None:
    """A long CSV or SVG is compressed; a PNG has fewer colours, and looks alike."""
    results, page = tmp_path / "results", tmp_path / "page.html"
    report_writer.write_experiment(results, "router-fairness", 2)
    with report_writer.first_figures(3, drawn=True):
        assert main(["report", str(results)]) == 0
        assert main(["report", str(results), "--single-file", "--out", str(page)]) == 0
    attached = re.findall(
        r'href="data:([^;"]+);base64,([^"]+)" download="([^"]+)"', page.read_text()
    )
    held = {name: (media, base64.b64decode(content)) for media, content, name in attached}
    beside = list((results / "report-figures").iterdir())
    assert len(beside) == len(held) > 6
    for path in beside:
        usual = path.read_bytes()
        if path.suffix == ".png":
            assert held[path.name][0] == "image/png"
            few, every = (
                np.asarray(Image.open(io.BytesIO(each)).convert("RGB"), dtype=float)
                for each in (held[path.name][1], usual)
            )
            assert few.shape == every.shape and np.abs(few - every).mean() < 1
        elif len(usual) > 16_000:
            media, content = held[f"{path.name}.gz"]
            assert media == "application/gzip" and gzip.decompress(content) == usual
        else:
            assert held[path.name][1] == usual
    assert {media for media, _ in held.values()} == {"text/csv", "image/png", "application/gzip"}


def test_a_trials_page_is_a_single_file_anyway(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trial = write_trial(tmp_path / "reno", samples=True)
    assert main(["report", str(trial), "--single-file"]) == 2
    assert "one file in any case" in capsys.readouterr().err


def test_without_the_sender_there_is_no_sequence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trial = write_trial(tmp_path / "reno", samples=True, without=tuple(ROLES))
    assert main(["report", str(trial)]) == 0
    first = f"figure: {trial / 'figures' / 'tcp-timeline.png'} (.svg, .csv)"
    assert files(capsys) == [first, f"report: {trial / 'figures' / TRIAL_PAGE}"]


def test_a_page_shows_what_was_run_and_its_figures_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "fairness"
    report_writer.write_experiment(folder, "router-fairness", 2)
    with report_writer.first_figures():
        assert main(["report", str(folder)]) == 0
    assert capsys.readouterr().out == f"report: {folder / 'report.html'}\n"
    assert sorted(path.name for path in folder.glob("report-claims*")) == []
    html = (folder / "report.html").read_text()
    own = html[html.index('<section id="router-fairness-guest">') :]
    assert own.index("<figure id=") < own.index('<div class="ran">') < own.index("<table")
    assert 'class="claim"' not in html


def test_claims_are_those_of_the_experiments_and_folded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "fairness"
    report_writer.write_experiment(folder, "router-fairness", 2)
    with report_writer.first_figures():
        assert main(["report", str(folder), "--claims"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("claims: ") and said[1] == f"report: {folder / 'report.html'}"
    ledger = pd.read_csv(folder / "report-claims.csv").set_index("id")
    assert set(ledger["paper"]) == {"GYS"}  # no experiment of the others was run
    shares = ledger.loc["GYS3.1"]  # one row per reading that was run
    assert len(shares) == 2 and (shares["n"] == 2).all()
    assert "GYS1.1" not in ledger.index  # which another experiment answers
    html = (folder / "report.html").read_text()
    assert html.index('<details class="paper">') > html.index("<figure id=")
    assert "<details open" not in html[html.index('<details class="paper">') :]
    numbers = pd.read_csv(folder / "report-claims-numbers.csv")
    assert "share of bbr" in set(numbers.loc[numbers["id"] == "GYS3.1", "what"])
    assert {each["id"] for each in json.loads((folder / "report-claims.json").read_text())} == set(
        ledger.index
    )


def test_ns2s_numbers_need_claims(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "ns2.csv").touch()
    assert main(["report", str(tmp_path), "--reference", str(tmp_path)]) == 2
    assert "add --claims" in capsys.readouterr().err


def test_two_runs_of_the_same_are_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = (tmp_path / name for name in ("a", "b"))
    report_writer.write_experiment(a, "someones-own", 2)
    report_writer.write_experiment(b, "someones-own", 2)
    for trial in trials_in(b):
        found = reduction_of(trial)
        doubled = found.flows.assign(goodput_mbps=2 * found.flows["goodput_mbps"])
        report_writer.store_tables(trial, doubled, decoded(found.tables["series"]))
    for path in b.glob("*/trial.json"):
        path.write_text(path.read_text().replace('"wall_s": 0.0', '"wall_s": 1.0'))
    with report_writer.first_figures():
        assert main(["report", str(a), str(b)]) == 0
    said = capsys.readouterr().out
    assert "A and B do not agree: 6 differences beyond tolerance" in said
    html = (a / "report.html").read_text()
    assert '<section id="comparison">' in html
    keys = [each.key for each in collect([a, b], EXPERIMENTS).experiments]
    assert len(set(keys)) == 2 and all(f'<section id="{key}">' in html for key in keys)
    assert main(["report", str(a), str(b), "--claims"]) == 2


def test_trials_side_by_side(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trials = [str(write_trial(tmp_path / name, samples=True)) for name in ("one", "other")]
    assert main(["report", *trials]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["check", "of", "one", "other"]
    assert any(line.split()[:2] == ["capture", "drops,"] for line in lines)
    assert lines[-1].startswith("verdicts: 2 ")
    assert main(["report", *trials, "--out", str(tmp_path / "both.csv")]) == 0
    table = pd.read_csv(tmp_path / "both.csv")
    assert list(table.columns) == ["check", "of", "one", "other"]
    assert len(table) == len(lines) - 2
    assert not (tmp_path / "one" / "figures").exists()


@pytest.mark.parametrize(
    ("arguments", "message", "hint", "status"),
    [
        (["none"], "no such folder", "`testbed run` makes one", 2),
        (
            ["reno", "{reno}/.."],
            "/..: not a trial, as ",
            "name one trial, several trials to",
            2,
        ),
        (["{reno}/scenario.json"], "a file, not a folder", "name a results folder", 2),
        (["x.pcapng"], "a file, not a folder", "`testbed reduce FILE`, `testbed fit FILE`", 2),
        (["none", "--reference", "none"], "no folder with CSV files", "or leave it out", 2),
        (["reno", "{reno}", "--from", "4"], "apply to a single trial", "name one, or leave", 2),
        (["reno/..", "--flow", "tcp"], "apply to a single trial", "name one, or leave", 2),
        (["reno", "{reno}", "--style", "paper"], "trials have no figure", "name one trial", 2),
        (["reno/..", "--style", "paper", "--claims"], "not a page", "leave out the other", 2),
        (["reno/..", "--style", "paper", "--reference", "x"], "not a page", "leave out the", 2),
        (["reno", "--flow", "tpc"], "no flow 'tpc'", "did you mean 'tcp'", 2),
        (["reno", "--from", "4", "--to", "3"], "nothing lies between", "ran from 1 s to 11 s", 2),
    ],
)
def test_what_it_refuses(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    message: str,
    hint: str,
    status: int,
) -> None:
    write_trial(tmp_path / "reno", samples=True)
    (tmp_path / "x.pcapng").touch()
    folder, *others = (text.format(reno=tmp_path / "reno") for text in arguments)
    assert main(["report", str(tmp_path / folder), *others]) == status
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 2 and message in said[0] and hint in said[1]
