"""The numbers of the pages are those of docs/data, and docs/data is of this code."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from analysis.figures.plotting.sheet import Cell, Head, Sheet
from analysis.results.reduction import revision
from benchmarks import packets, pages
from benchmarks.pages import Block, Stored, blocks, filled, store, stored_now
from benchmarks.papers import answer_lines, numbers_of, sheet_lines
from testbed.errors import TestbedError
from testbed.plan.task import Task
from testbed.runs import identity, sources
from testbed.store import Status

MARKED = {
    block.name: block
    for path in pages.pages()
    for block in blocks(path.read_text(encoding="utf-8"))
}
RUN = "run router-bottleneck --quick --set variant=cubic"
NAME = "cubic-1"
PAGE = f"""# A page

<!-- run: testbed {RUN} -->

    variant  goodput
    cubic      0.956

Text.

<!-- answers: GYS by {RUN} -->
| id |
|---|

BBR has <!-- GYS3.1 | modern | share of bbr -->36 %<!-- / --> of it.
"""
ANSWER = {
    "id": "GYS3.1", "claim": "BBR has most.", "verdict": "supported", "statement": "It has.",
    "n": 5, "profile": "modern", "setting": "", "reading": "",
    "rows": [{"what": "share of bbr", "ours": "37.5 ± 6.2 %"}],
}  # fmt: skip


@pytest.mark.parametrize("page", pages.pages(), ids=lambda path: str(path.name))
def test_a_pages_numbers_are_those_that_are_stored(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert text == filled(text), pages.AGAIN


@pytest.mark.parametrize("name", MARKED)
def test_what_is_stored_is_of_this_code(name: str) -> None:
    found = pages.stored(name)
    assert found.commands == MARKED[name].commands, pages.AGAIN
    stale = found.stale(MARKED[name].files)
    assert not stale, f"{stale} changed: {pages.AGAIN} --stale"


def test_nothing_is_stored_that_no_page_shows(root: Path) -> None:
    data = root / pages.DATA
    assert {path.stem for path in data.glob("*.json")} == set(MARKED)
    commands = {command for block in MARKED.values() for command in block.commands}
    wanted = {packets.file_of(command, data) for command in commands}
    assert set((data / "packets").glob("*")) <= wanted


@pytest.fixture
def root_with_data(tmp_path: Path) -> Path:
    (tmp_path / "docs").mkdir()
    table, answers = blocks(PAGE[: PAGE.index("Text.")]), blocks(PAGE[PAGE.index("Text.") :])
    lines = ["    variant  goodput", "    cubic      0.957"]
    store(next(table).name, stored_now((RUN,), lines, {}), tmp_path)
    made = stored_now((RUN,), answer_lines([ANSWER]), numbers_of([ANSWER]))
    store(next(answers).name, made, tmp_path)
    return tmp_path


def test_a_page_is_filled_with_what_is_stored(root_with_data: Path) -> None:
    text = filled(PAGE, root_with_data)
    assert "    cubic      0.957\n\nText." in text
    assert "| GYS3.1 | BBR has most. | modern | supported | It has. | 5 |\n\nBBR has" in text
    assert "-->37.5 ± 6.2 %<!-- / --> of it." in text
    assert filled(text, root_with_data) == text
    by_hand = text.replace("37.5", "73.5")
    assert filled(by_hand, root_with_data) != by_hand


def test_a_number_that_is_not_stored_is_named(root_with_data: Path) -> None:
    with pytest.raises(TestbedError, match="share of cubic"):
        filled(PAGE.replace("share of bbr", "share of cubic"), root_with_data)
    with pytest.raises(TestbedError, match="no such file"):
        filled(PAGE.replace("GYS", "KS"), root_with_data)


def test_some_of_a_papers_claims_are_stored_by_themselves(root_with_data: Path) -> None:
    """A change to one experiment does not call for the other's trials."""
    text = PAGE.replace("answers: GYS by", "answers: GYS1.1 GYS3.1 by")
    answers = next(blocks(text[text.index("Text.") :]))
    assert (answers.name, answers.title) == ("GYS1.1-GYS3.1", "GYS1.1 GYS3.1")
    told = ANSWER | {"rows": [{"what": "share of bbr", "ours": "12 %"}]}
    (root_with_data / pages.DATA / "GYS.json").unlink()
    made = stored_now((RUN,), answer_lines([told]), numbers_of([told]))
    store(answers.name, made, root_with_data)
    assert "-->12 %<!-- / --> of it." in filled(text, root_with_data)


def test_a_commands_file_stands_in_the_page() -> None:
    file = "In `own.json`:\n\n    {\n\n      1}\n\nThen\n\n"
    (block,) = blocks(f"{file}<!-- run: testbed run own.json -->\n\n    x\n")
    assert block.files == (("own.json", "{\n\n  1}\n\n"),)


def test_tables_of_the_same_trials_are_stored_apart() -> None:
    kinds = ("run", "summary", "layers", "radio")
    found = [next(blocks(f"<!-- {kind}: testbed {RUN} -->\n\n| x |\n")) for kind in kinds]
    assert tuple(each.kind for each in found) == kinds
    assert len({each.name for each in found}) == len(kinds)


def test_a_table_of_the_report_is_stored_by_its_title() -> None:
    marks = [f"<!-- sheet: {title} by {RUN}; run variants -->" for title in ("A, run by run", "C")]
    found = [next(blocks(f"{mark}\n\n| x |\n")) for mark in marks]
    assert [each.title for each in found] == ["A, run by run", "C"]
    assert found[0].name == "sheet-router-bottleneck-A-run-by-run" != found[1].name
    assert found[0].commands == (RUN, "run variants")
    sheet = Sheet((Head("rate", "Mbit/s"), Head("n")), ((Cell("1.5"), Cell("2")),))
    assert sheet_lines(sheet) == ["| rate, Mbit/s | n |", "| --- | --- |", "| 1.5 | 2 |"]


def test_other_trials_or_other_metrics_make_it_stale(monkeypatch: pytest.MonkeyPatch) -> None:
    made: Stored = stored_now((RUN,), [], {})
    assert made.stale() == ""
    with monkeypatch.context() as patch:
        patch.setattr(pages, "revision", lambda: "another")
        assert made.stale() == "what is measured"
    for module, name, value in (
        (identity, "REVISION", identity.REVISION + 1),
        (sources, "of_kernel", lambda _version: {"kernel/congestion/tcp_tahoe.c": "another"}),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(module, name, value)
            pages.identities_of.cache_clear()
            assert made.stale() == "the trials"
    pages.identities_of.cache_clear()


@pytest.fixture
def root_with_packets(root_with_data: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """With the hashes of the table's trials."""
    monkeypatch.setattr(packets, "ROOT", root_with_data)
    for name in ("stored", "store"):
        now = functools.partial(getattr(pages, name), root=root_with_data)
        monkeypatch.setattr(packets, name, now)
    names = [task.scenario.name for task in pages.planned((RUN,))]
    path = packets.file_of(RUN, root_with_data / pages.DATA)
    path.parent.mkdir()
    path.write_text("".join(f"{name} abc def\n" for name in names))
    return root_with_data


@pytest.fixture
def changed(
    root_with_packets: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Block, Path]]:
    """A table that was made before a kernel of the guest was changed, with its packets' hashes."""
    block = next(blocks(PAGE[: PAGE.index("Text.")]))
    monkeypatch.setattr(sources, "of_kernel", lambda _version: {"a patch": "another"})
    pages.identities_of.cache_clear()
    assert pages.stored(block.name, root_with_packets).stale() == "the trials"
    yield block, root_with_packets
    pages.identities_of.cache_clear()


@pytest.fixture
def trials_there(monkeypatch: pytest.MonkeyPatch) -> list[SimpleNamespace]:
    """Those of the command, with the stored numbers."""
    ran = SimpleNamespace(status=Status.OK)
    found = [
        SimpleNamespace(scenario=task.scenario, record=ran, numbers="def")
        for task in pages.planned((RUN,))
    ]
    monkeypatch.setattr(packets, "trials_in", lambda _folder: found)
    monkeypatch.setattr(packets, "hashes_of", lambda one: packets.Hashes("others", one.numbers))
    return found


def test_what_a_stored_table_was_made_from_does_not_run_again(
    root_with_packets: Path, trials_there: list[SimpleNamespace], monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = next(blocks(PAGE[PAGE.index("Text.") :])).name
    table = dataclasses.replace(stored_now((RUN,), [], {}), again="2 of 4 trials ran again")
    store(answers, table, root_with_packets)
    assert packets.here(RUN, root_with_packets) == "2 of 4 trials ran again"
    monkeypatch.setattr(packets, "is_done", lambda *_trial: True)
    assert packets.here(RUN, root_with_packets) == ""
    assert packets.here(f"{RUN} --seeds 2", root_with_packets) is None
    trials_there[0].numbers = "others"
    assert packets.here(RUN, root_with_packets) is None
    trials_there.pop(0)
    assert packets.here(RUN, root_with_packets) is None


def test_what_is_of_another_code_runs_again(
    changed: tuple[Block, Path], trials_there: list[SimpleNamespace]
) -> None:
    assert trials_there
    assert packets.here(RUN, changed[1]) is None


@pytest.mark.parametrize("others", [(), ("cubic-1",)])
def test_a_table_holds_if_a_sample_sends_the_same_packets(
    changed: tuple[Block, Path], others: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    block, root = changed
    asked = []

    def again(*told: object) -> packets.Sample:
        asked.append(told)
        return packets.Sample(7, 9, others)

    monkeypatch.setattr(packets, "again", again)
    before = pages.stored(block.name, root)
    assert packets.compare([block], 7) == bool(others)
    after = pages.stored(block.name, root)
    assert after.stale() == ("the trials" if others else "")
    since = f"since {before.trials[:12]} and {before.metrics}"
    said = f"7 of 9 trials ran again: the same packets, {since}"
    assert after.again == ("" if others else said)
    assert len(asked) == 1


@pytest.mark.parametrize(
    ("others", "stale", "metrics"),
    [((), "", "with a check more"), (("cubic-1",), "what is measured", revision())],
)
def test_a_check_more_is_held_by_the_numbers_of_a_sample(
    root_with_packets: Path,
    monkeypatch: pytest.MonkeyPatch,
    others: tuple[str, ...],
    stale: str,
    metrics: str,
) -> None:
    block = next(blocks(PAGE[: PAGE.index("Text.")]))
    monkeypatch.setattr(packets, "again", lambda *_told: packets.Sample(7, 9, others))
    for module in (pages, packets):
        monkeypatch.setattr(module, "revision", lambda: "with a check more")
    assert pages.stored(block.name, root_with_packets).stale() == "what is measured"
    assert packets.compare([block], 7) == bool(others)
    after = pages.stored(block.name, root_with_packets)
    assert (after.stale(), after.metrics) == (stale, metrics)


@pytest.mark.parametrize(
    ("stored", "others", "said"),
    [
        (packets.Hashes("p", "n"), (), "the same packets"),
        (packets.Hashes("other", "n"), (), "the same numbers, and in 0 of them the same packets"),
        (packets.Hashes("other", "others"), (NAME,), ""),
        (packets.Hashes("p", "others"), (NAME,), ""),  # what a program reports
    ],
)
def test_other_packets_are_no_matter_where_the_numbers_are_the_same(
    stored: packets.Hashes, others: tuple[str, ...], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A window of an ACK; what the tables are made of is as it was."""
    done = SimpleNamespace(
        scenario=SimpleNamespace(name=NAME), status=Status.OK, path=Path("nowhere")
    )
    monkeypatch.setattr(packets, "choose", lambda *_: None)
    monkeypatch.setattr(packets, "run_all", lambda *_: [done])
    monkeypatch.setattr(packets, "open_trial", lambda _path: None)
    monkeypatch.setattr(packets, "hashes_of", lambda _trial: packets.Hashes("p", "n"))
    found = packets.again([cast(Task, done)], {NAME: stored}, 1, "a draw")
    assert found.others == others
    if not others:
        assert str(found) == f"1 of 1 trials ran again: {said}"


def test_where_a_sample_does_not_tell_all_is_run(
    changed: tuple[Block, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    block, root = changed
    monkeypatch.setattr(packets, "again", None)  # would be an error
    assert packets.has_to_be_made(block) == ""
    other = f"{RUN} --seeds 2"
    assert packets.has_to_be_made(dataclasses.replace(block, commands=(other,))) == "other trials"
    packets.file_of(RUN, root / pages.DATA).unlink()
    assert packets.has_to_be_made(block) == "no packets stored"
    assert packets.compare([block], 7) == 1


def test_the_stored_revision_is_the_same_on_every_machine() -> None:
    """No path of this machine, no version of its programs."""
    planned = pages.planned((RUN,))
    parts = repr([identity._of_project(task.scenario, task.plan) for task in planned])
    assert str(sources.PROJECT) not in parts and str(Path.home()) not in parts
