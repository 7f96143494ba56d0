"""Congestion controls of one's own in a kernel: they run, and evaluations say what they are.

The kernel has the examples of kernel/examples, and one of them a second time under another name. It
takes minutes to build: --full.
"""

from __future__ import annotations

import dataclasses
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pandas as pd
import pytest

from analysis.evaluation.standing import Standing, standings
from analysis.results.experiment_results import collect
from experiments.catalogue import EXPERIMENTS
from testbed.evaluate.evaluation import evaluate, standard_evaluation
from testbed.guest import kernels
from testbed.runs.orchestration import RunListener, RunOptions
from testbed.scenario.variations import on_kernels
from testbed.store.reading import Trial
from tests.lab import run_trials
from tests.scenarios import router

VERSION, OMIT_DEFAULT = "6.12", "test-added"
EXAMPLE, TWIN, HEEDLESS = "gentle", "twin", "heedless"


@pytest.fixture(scope="module")
def kernel(full: bool, root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The name of the kernel, which is removed after the tests."""
    if not full:
        pytest.skip("builds a kernel: --full")
    if not kernels.has_source(VERSION):
        pytest.skip(f"testbed kernel build {VERSION}")
    folder = tmp_path_factory.mktemp("controls")
    for name, source in ((EXAMPLE, EXAMPLE), (TWIN, EXAMPLE), (HEEDLESS, HEEDLESS)):
        text = (kernels.SOURCE_FOLDER / "examples" / f"tcp_{source}.c").read_text()
        (folder / f"tcp_{name}.c").write_text(text.replace(source, name))
    testbed = str(root / ".venv/bin/testbed")
    build = [testbed, "kernel", "build", VERSION, "--add", str(folder), "--name", OMIT_DEFAULT]
    subprocess.run(build, check=True)
    yield OMIT_DEFAULT
    subprocess.run([testbed, "kernel", "remove", OMIT_DEFAULT], check=True)


def standing_in(
    names: Sequence[str], subject: str, rival: str, kernel: str, seeds: int
) -> Mapping[tuple[str, str], Standing]:
    """Run the short forms of evaluations; return how a subject stands, by evaluation and score."""
    evaluation = standard_evaluation(subject, "", [rival])
    folders = evaluate(
        dataclasses.replace(evaluation, kernel=kernel),
        [EXPERIMENTS[name] for name in names],
        RunOptions(seeds=seeds, engine="guest", captures="drop"),
        RunListener(),
        quick=True,
        command=[],
        after_each=lambda _run, _done: None,
    )
    lines = standings(collect(folders, EXPERIMENTS).experiments, subject, [rival])
    return {(line.experiment, line.score.name): line.beside[0].standing for line in lines}


def test_a_congestion_control_of_ones_own(kernel: str, tmp_path: Path) -> None:
    """The example, built in: it runs, and goes back by less than Reno does."""
    both = [router(variant=each, duration_s=10) for each in ("linux-reno", EXAMPLE)]
    reno, gentle = run_trials(on_kernels(both, [kernel]), tmp_path)
    assert gentle.record.flows[0].variant_seen == EXAMPLE
    assert least_window(gentle) > least_window(reno)


def least_window(trial: Trial) -> int:
    """The smallest window after the first loss."""
    flow = pd.read_csv(trial.path / "samples" / "sockets.csv")
    windows, states = flow["cwnd"], flow["ca_state"]
    return int(windows[(states == "open") & (states == "recovery").cumsum().gt(0)].min())


def test_a_control_that_ignores_losses_is_named_by_the_evaluations_that_ask_about_them(
    kernel: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where losses say nothing of congestion it is the better one."""
    monkeypatch.chdir(tmp_path)
    found = standing_in(
        ("intra-protocol", "harm", "lossy", "collapse"), HEEDLESS, "linux-reno", kernel, seeds=5
    )
    worse = {place for place, standing in found.items() if standing is Standing.WORSE}
    assert worse >= {
        ("intra-protocol", "losses"),
        ("harm", "throughput_mbps"),
        ("harm", "drop_rate"),
        ("collapse", "offered_percent"),
    }
    assert found["lossy", "goodput_percent"] is Standing.BETTER


def test_a_control_under_another_name_is_the_same_everywhere(
    kernel: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names = ("intra-protocol", "path-change", "calls", "incast")
    found = standing_in(names, TWIN, EXAMPLE, kernel, seeds=2)
    assert {name for name, _ in found} == set(names)
    assert set(found.values()) == {Standing.SAME}
