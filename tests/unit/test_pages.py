"""The numbers of pages are the stored ones, and of code whose packets are the present ones."""

from __future__ import annotations

import dataclasses
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from analysis.claims.ledger import Sentence
from analysis.figures.sheet import Cell, Head, Sheet
from analysis.results import reduction
from analysis.statistics.text_tables import as_markdown
from benchmarks import claim_answers, papers
from benchmarks.claim_answers import claim_answer
from benchmarks.papers import (
    MarkedTable,
    StoredTable,
    filled,
    marked,
    store,
    store_of,
    stored_tables,
)
from benchmarks.same_packets import uncertified
from testbed.errors import TestbedError
from testbed.plan.plan import make_plan
from testbed.runs import behaviour, identity, sources

RUN = "run router-bottleneck --quick --set variant=cubic"
PAGE = f"""# A page

<!-- run: testbed {RUN} -->

    variant  goodput
    cubic      0.956
    figure: x.png

<!-- answers: GYS by {RUN}; run variants -->

| id |
|---|

<!-- end -->

BBR has <!-- GYS3.1 | modern | share of bbr -->36 %<!-- / --> of it.
"""
ANSWER = {
    "id": "GYS3.1", "claim": "BBR has most.", "verdict": "supported", "n": 5,
    "statement": "share of bbr 37.5 % (required: at least 30 %); cubic has less.",
    "profile": "modern", "setting": "", "reading": "",
    "varied": [{"what": "kernel 6.12", "verdict": "open", "in_words": "open"}],
    "rows": [{"what": "share of bbr", "ours": "37.5 ± 6.2 %"}],
}  # fmt: skip
TABLES = papers.all_tables(papers.pages())


@pytest.mark.parametrize(
    "page", papers.pages(), ids=lambda path: str(path.relative_to(papers.PROJECT_ROOT))
)
def test_a_pages_numbers_are_the_stored_ones(page: Path) -> None:
    assert page.read_text(encoding="utf-8") == filled(page), f"{papers.HOW_TO_MAKE} --fill"


@pytest.mark.parametrize(
    "page", papers.pages(), ids=lambda path: str(path.relative_to(papers.PROJECT_ROOT))
)
def test_no_line_begins_with_a_number(page: Path) -> None:
    """A comment at the beginning of a line ends the paragraph that it stands in."""
    lines = page.read_text(encoding="utf-8").splitlines()
    assert not [line for line in lines if papers.NUMBER.match(line)]


def test_this_code_is_certified() -> None:
    due = uncertified(behaviour.ledger())
    assert not due, f"this state is neither certified nor new: {papers.HOW_TO_CERTIFY}"


@pytest.mark.slow  # it plans all trials of all tables
def test_stale_tables_are_postponed_with_a_reason() -> None:
    stale = [table.name for table in TABLES if table.is_stale()]
    reason = behaviour.ledger().postponed
    hint = f"{papers.HOW_TO_MAKE} --stale (hours), or say why not in `postponed` of the ledger"
    assert bool(stale) == bool(reason), f"{hint}: {stale}"


def test_nothing_is_stored_that_no_page_shows() -> None:
    files = {store_of(table.page) for table in TABLES}
    assert {(store_of(t.page), t.name) for t in TABLES} == {
        (file, name) for file in files for name in stored_tables(file)
    }


@pytest.fixture
def page(tmp_path: Path) -> Path:
    """A page, and what is stored for it."""
    (tmp_path / "docs").mkdir()
    path = tmp_path / "docs" / "page.md"
    path.write_text(PAGE)
    (table, answers), newest = marked(path), behaviour.ledger().newest
    lines = ("    variant  goodput", "    cubic      0.957")
    store(
        tmp_path / "docs" / papers.STORED,
        {
            table.name: StoredTable(table.commands, table.revision(), newest, lines),
            answers.name: StoredTable(
                answers.commands, answers.revision(), newest, answers=(claim_answer(ANSWER),)
            ),
        },
    )
    return path


def test_a_page_is_filled_with_what_is_stored(page: Path) -> None:
    text = filled(page)
    assert "    cubic      0.957\n    figure: x.png\n" in text
    answer = "**supported.** share of bbr 37.5 % (required: at least 30 %)"
    row = f"| **GYS3.1** BBR has most. | {answer} |"
    assert f"-->\n\n| claim | answer |\n|---|---|\n{row}\n" in text
    assert f"| modern | supported | open | {ANSWER['statement']} | 5 |\n" in text
    assert "| id | trials | answer | kernel 6.12 | numbers | n |" in text
    assert "</details>\n\n<!-- end -->\n" in text
    assert "-->37.5 ± 6.2 %<!-- / --> of it." in text
    page.write_text(text)
    assert filled(page) == text
    page.write_text(text.replace("37.5", "73.5"))
    assert filled(page) == text


def test_a_claim_about_a_simulator_is_answered_there_and_on_linux() -> None:
    own = [ANSWER | {"profile": "in ns-2"}, ANSWER | {"verdict": "too small to matter"}]
    own.append(ANSWER | {"verdict": "open", "profile": "other", "n": 3, "out_of": "3 of 5"})
    lines = claim_answers.answer_lines([claim_answer(each) for each in own])
    assert "| **in ns-2: supported; on Linux: too small to matter / open.** " in lines[2]
    assert lines[-3].endswith("| 3 of 5 |")


def test_what_is_open_says_how_many_networks_may_decide_it() -> None:
    open_one = ANSWER | {"verdict": "open", "needed": 44}
    (row,) = claim_answers.answer_lines([claim_answer(open_one)])[2:3]
    assert row.endswith("Some 44 networks may decide it. |")
    inside = open_one | {"profile": "in ns-2", "needed": 10688}
    (row,) = claim_answers.answer_lines([claim_answer(each) for each in (inside, open_one)])[2:3]
    assert row.endswith("Some 10,688 networks in ns-2 and 44 networks on Linux may decide it. |")
    for decided in ({"verdict": "supported"}, {"n": 44}):
        (row,) = claim_answers.answer_lines([claim_answer(open_one | decided)])[2:3]
        assert "may decide" not in row


def test_a_sentence_stands_for_the_answer_that_it_was_written_for(
    page: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its numbers are the rows'; for another answer, or without a row, no page is filled."""
    for answer, template, fails in (
        ("supported", "BBR has {share of bbr} (the paper: 60 %).", ""),
        ("open", "BBR has {share of bbr}.", "the sentence is for 'open'"),
        ("supported", "BBR has {share of cubic}.", "share of cubic"),
    ):
        own = {"GYS3.1": (Sentence("modern", answer, template),)}
        monkeypatch.setattr(claim_answers, "SENTENCES", own)
        if fails:
            with pytest.raises(TestbedError, match=fails):
                filled(page)
        else:
            assert "| **supported.** BBR has 37.5 (the paper: 60 %). |" in filled(page)


def test_what_does_not_decide_has_a_line_below_its_claim() -> None:
    answer = ANSWER | {
        "verdict": "by reading",
        "in_words": "by RTT supported, by delay open",
        "beside": [["Cubic has least", "contradicted", "share of cubic 43 %."]],
    }
    lines = claim_answers.answer_lines([claim_answer(answer)])
    assert "BBR has most. | **by RTT supported, by delay open.** " in lines[2]
    assert lines[3] == "| · Cubic has least | contradicted: share of cubic 43 % |"


def test_the_plan_has_what_a_claim_states_beside_what_it_has_and_needs(page: Path) -> None:
    path = store_of(page)
    (name, stored), *_ = (each for each in stored_tables(path).items() if each[1].answers)
    (answer,) = stored.answers
    needed = dataclasses.replace(stored, answers=(dataclasses.replace(answer, needed=44),))
    store(path, {**stored_tables(path), name: needed})
    lines = list(papers.plan_lines(marked(page)))
    assert lines[0] == "| claim | trials | answer | planned | networks | needed |"
    planned = claim_answers.CLAIMS["GYS3.1"].networks
    assert lines[2] == f"| GYS3.1 | modern | supported | {planned} | 5 | 44 |"
    trials = papers.trials_of(next(each for each in marked(page) if each.kind == "answers"))
    twice = [*marked(page), *marked(page)]
    assert list(papers.plan_lines(twice))[-1] == lines[-1]
    assert lines[-1].startswith(f"all: {len(trials)} trials, ")


def test_what_is_not_stored_is_named(page: Path) -> None:
    page.write_text(PAGE.replace("share of bbr", "share of cubic"))
    with pytest.raises(TestbedError, match="share of cubic"):
        filled(page)
    page.write_text(PAGE.replace("GYS by", "KS by"))
    with pytest.raises(TestbedError, match="no 'KS'"):
        filled(page)


def test_a_papers_tables_are_stored_beside_its_page(tmp_path: Path) -> None:
    folder = tmp_path / "experiments" / "someone"
    assert store_of(folder / "README.md") == folder / "answers.json"
    assert {store_of(table.page).parent.name for table in TABLES} > {"docs", "guo_yuan_sheng"}


def test_tables_of_the_same_trials_have_different_names(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    kinds = [f"<!-- {kind}: testbed {RUN} -->\n\nx\n" for kind in ("run", "summary", "layers")]
    sheets = [f"<!-- sheet: {title} by {RUN}; run variants -->" for title in ("A, by run", "C")]
    path.write_text("\n".join([*kinds, *sheets]))
    tables = marked(path)
    assert len({table.name for table in tables}) == len(kinds) + len(sheets)
    assert [table.title for table in tables[-2:]] == ["A, by run", "C"]
    assert tables[-1].commands == (RUN, "run variants")


def test_a_commands_file_stands_in_the_page(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    file = "In `own.json`:\n\n    {\n\n      1}\n\nThen\n\n"
    path.write_text(f"{file}<!-- run: testbed run own.json -->\n\n    x\n")
    assert marked(path)[0].files == (("own.json", "{\n\n  1}\n\n"),)


def test_a_table_of_the_report_becomes_markdown() -> None:
    sheet = Sheet((Head("rate", "Mbit/s"), Head("n")), ((Cell("1.5"), Cell("2")),))
    lines = as_markdown(sheet.as_text()).splitlines()
    assert lines == ["| rate, Mbit/s | n |", "| --- | --- |", "| 1.5 | 2 |"]


@pytest.fixture
def uncached() -> Iterator[None]:
    papers.what_runs.cache_clear()
    yield
    papers.what_runs.cache_clear()


def of_run(page: Path) -> MarkedTable:
    return marked(page)[0]


@pytest.mark.parametrize(
    ("module", "name", "value"),
    [
        (reduction, "revision_of_tables", lambda: "another"),
        (papers, "plan_values", lambda _plan: {"setup": ["another"]}),
        (papers, "parts_of", lambda *_: {"testbed-runner": "uncertified"}),
        (papers, "make_plan", lambda scenario: make_plan(scenario.__class__(
            **{**vars(scenario), "duration_s": scenario.duration_s + 1}))),
    ],
)  # fmt: skip
def test_other_trials_or_other_numbers_make_a_table_stale(
    page: Path,
    monkeypatch: pytest.MonkeyPatch,
    uncached: None,
    module: object,
    name: str,
    value: object,
) -> None:
    assert not of_run(page).is_stale()
    papers.what_runs.cache_clear()
    monkeypatch.setattr(module, name, value)
    assert of_run(page).is_stale()


def test_another_command_makes_a_table_stale(page: Path) -> None:
    page.write_text(PAGE.replace("--quick --set", "--quick --seeds 2 --set"))
    assert of_run(page).is_stale()


def test_the_table_of_an_evaluation_is_that_beside_its_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = "evaluate bbr --against cubic --quick"

    def evaluate(arguments: list[str], _place: Path) -> str:
        page = Path(arguments[arguments.index("--out") + 1])
        row = {"evaluation": "lossy", "score": "goodput (%)", "bbr": "92", "beside cubic": "better"}
        page.with_name("evaluation.json").write_text(json.dumps({"table": [row]}))
        return ""

    monkeypatch.setattr(papers, "_run", evaluate)
    page = tmp_path / "page.md"
    page.write_text(f"<!-- evaluation: testbed {command} -->\n\n<!-- end -->\n")
    (table,) = marked(page)
    made = papers.MAKERS[table.kind](table, tmp_path)
    assert made.lines == (
        "| evaluation | score | bbr | beside cubic |",
        "|---|---|---|---|",
        "| lossy | goodput (%) | 92 | better |",
    )
    variants = {flow.variant for each in papers.scenarios_of(command) for flow in each.flows}
    assert {"bbr", "cubic"} <= variants


def test_the_revision_is_the_same_on_every_machine() -> None:
    """It contains no path of this machine, and no version of its programs."""
    (scenario, *_) = papers.scenarios_of(RUN)
    plan = make_plan(scenario)
    parts = repr((identity.plan_values(plan), sources.parts_of(plan, scenario.kernel)))
    for word in (str(sources.PROJECT), str(Path.home()), str(shutil.which("iperf3"))):
        assert word not in parts
