"""Every option of `testbed evaluate` beside every other changes what runs, or is refused."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from analysis.report import collect, make_report
from analysis.statistics.text_tables import TextTable
from experiments.catalogue import EXPERIMENTS
from experiments.evaluation.l4s import L4S
from testbed.cli import evaluate
from testbed.cli.parser import build_parser
from testbed.errors import UsageError
from testbed.evaluate.drawn_settings import drawn_settings
from testbed.evaluate.evaluation import StandardEvaluation
from testbed.guest.engine import GuestEngine
from testbed.runs.orchestration import RunOptions
from tests import report_writer

OPTIONS = {
    "queue": "--queue codel",
    "against": "--against reno",
    "kernel": "--kernel 6.12",
    "set": "--set burst=1",
    "quick": "--quick",
    "seeds": "--seeds 7",
    "realistic": "--realistic",
    "budget": "--budget 5min",
    "adversary": "--adversary harm",
    "suite": "--suite bbr-draft",
    "until": "--until decided",
    "engine": "--engine host",
    "jobs": "--jobs 2",
    "captures": "--captures zstd",
    "cluster": "--cluster tcp://head:8786",
    "out": "--out page.html",
}
CARRIED_OUT = SimpleNamespace(choice=SimpleNamespace(engine=GuestEngine()))
WAYS = ("", "budget", "until", "adversary", "suite")
SETS = {"": "burst=1", "suite": "path=plain"}  # a value that each way has; else flows=4


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[object]:
    """Return the list of what would run, and where its page would be."""
    monkeypatch.chdir(tmp_path)
    shown: list[object] = []

    def standard(evaluation: StandardEvaluation, *parts: Any, quick: bool, **_more: Any) -> Any:
        shown.extend((evaluation, parts[1], quick))
        return []

    def space(evaluation: Any, _experiment: Any, run: Any, *_parts: Any, **more: Any) -> Any:
        effort = more["effort"]
        shown.extend((evaluation, run, effort.budget_s, effort.decided is not None))
        return tmp_path

    def worst(search: Any, budget_s: float) -> Any:
        shown.extend((search.evaluation, search.options, budget_s))
        return SimpleNamespace(scenario=SimpleNamespace(to_json=lambda: ""))

    def suite(selection: Any, run: RunOptions, *_parts: Any) -> Any:
        shown.extend((sorted((s.label, s.kernel) for s in selection.scenarios(1)), run))
        return CARRIED_OUT, SimpleNamespace(folder=tmp_path, trials=())

    def page(*parts: Any, **_more: Any) -> Any:
        shown.append(parts[-1])
        return ()

    monkeypatch.setattr(evaluate, "check_controls", lambda _evaluation: None)
    monkeypatch.setattr(evaluate, "_print_cost", lambda *_parts: None)
    monkeypatch.setattr(evaluate, "evaluate", standard)
    monkeypatch.setattr(evaluate, "evaluate_space", space)
    monkeypatch.setattr(evaluate, "find_worst", worst)
    monkeypatch.setattr(evaluate, "plan_and_carry_out", suite)
    monkeypatch.setattr(evaluate, "finding_lines", lambda *_parts: ())
    monkeypatch.setattr(evaluate, "replace", lambda path, _write: shown.append(path))
    monkeypatch.setattr(
        "testbed.cli.run_output.collected", lambda *_parts: SimpleNamespace(experiments=())
    )
    for name in ("_report_all", "_report_space"):
        monkeypatch.setattr(evaluate, name, page)
    monkeypatch.setattr("analysis.report.make_report", page)
    return shown


def run(words: Sequence[str]) -> None:
    options = build_parser().parse_args(["evaluate", "bbr", *words])
    options.experiments, options.arguments = EXPERIMENTS, ["evaluate", *words]
    options.act(options)


def test_the_table_above_has_every_option() -> None:
    options = vars(build_parser().parse_args(["evaluate"]))
    of_every_verb = {"verb", "version", "act", "name", "unconfined"}
    assert set(OPTIONS) == set(options) - of_every_verb


@pytest.mark.slow(but=30)
@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("way", WAYS)
def test_an_option_changes_what_runs_or_is_refused(
    shown: list[object], way: str, option: str
) -> None:
    if option == way:
        return
    words = OPTIONS[way].split() if way else []
    more = f"--set {SETS.get(way, 'flows=4')}" if option == "set" else OPTIONS[option]
    run(words)
    before = [*shown]
    shown.clear()
    by_either = (
        evaluate.REFUSED_OPTIONS.get(one, {}).get(other)
        for one, other in ((way, option), (option, way))
    )
    if hint := next(filter(None, by_either), None):
        with pytest.raises(UsageError, match=r"^--\S+ cannot be combined with --\S+$") as caught:
            run([*words, *more.split()])
        assert caught.value.hint == hint and not shown
        return
    run([*words, *more.split()])
    assert shown and shown != before


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--adversary harm --against cubic,reno", "--against takes one name here"),
        ("--suite bbr-draft --set variant=reno", "it is bbr already"),
        ("--queue pie --set queue=codel", "it is pie already"),
        ("--set mix=1:4", "no evaluation has such an axis"),  # only drawn settings have it
        ("--budget 1min --set duration_s=10", "no evaluation has such an axis"),
        ("--budget 1min --set victim=reno", "has one value of it"),
        ("--budget 1min --set rate_mbit=fast", "not a number"),
        ("--adversary harm --set mix=2:1", "mix: unknown"),
        ("--kernel 6.12 --set kernel=6.1", "given twice"),
    ],
)
def test_what_would_be_ignored_or_cannot_be_is_refused_before_anything_runs(
    shown: list[object], words: str, message: str
) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        run(words.split())
    assert caught.value.hint and not shown


def test_settings_are_drawn_around_what_is_fixed() -> None:
    space = EXPERIMENTS["space"].space
    assert space is not None
    first = next(drawn_settings(space, {"rate_mbit": "1000", "flows": "2"}))
    assert (first["rate_mbit"], first["flows"]) == ("1000", "2") and not space.refuse(first)
    with pytest.raises(UsageError, match=r"rtt_ms=1000: none of .* can run: .* MB in flight"):
        next(drawn_settings(space, {"rate_mbit": "10000", "rtt_ms": "1000"}))


def test_a_suite_prints_its_steps_and_writes_its_page(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    steps = TextTable(("asked", "so"), (("begins in STARTUP", "met"),), "1 met")
    shown: list[Any] = []
    done = SimpleNamespace(folder=tmp_path, trials=())
    monkeypatch.setattr(evaluate, "plan_and_carry_out", lambda *_: (CARRIED_OUT, done))
    monkeypatch.setattr(
        "testbed.cli.run_output.collected", lambda *_: SimpleNamespace(experiments=())
    )
    monkeypatch.setattr("analysis.figures.general.presentation.summaries", lambda _: [steps])
    monkeypatch.setattr("analysis.report.make_report", lambda *_, **more: shown.append(more))
    run(["--suite", "bbr-draft"])
    assert shown and "begins in STARTUP" in capsys.readouterr().out


def test_a_suites_page_begins_with_its_steps_which_are_there_once(tmp_path: Path) -> None:
    """The page of `testbed report` and that of `testbed evaluate --suite` are one."""
    (slow,) = L4S.scenarios({"variant": ["cubic"], "path": ["slow"]}, seeds=1, quick=False)
    report_writer.write(tmp_path, slow)
    page = make_report(collect([tmp_path], EXPERIMENTS), tmp_path / "page.html").read_text()
    step = page.index("MUST react to loss")
    assert page.index("RFC 9331, section 4; requirements: ") < step < page.index("What was run")
    assert page.count("MUST react to loss") == 1
