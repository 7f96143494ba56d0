"""The tutorial's code can be planned, and the files and modules that the docs name exist."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from experiments.catalogue import EXPERIMENTS
from experiments.command import main
from testbed.cli.new_experiment import TEMPLATE
from testbed.plan.plan import make_plan
from testbed.scenario import queues
from testbed.scenario.network import Queue
from testbed.scenario.queues import arguments, resolve
from testbed.scenario.reading import read_scenario
from tests.added_row import block, tutorial_row

ROOT = Path(__file__).parents[2]
PAGES = (
    "README.md",
    "CONTRIBUTING.md",
    "kernel/README.md",
    *(
        str(page.relative_to(ROOT))
        for folder in ("docs", "experiments")
        for page in ROOT.glob(f"{folder}/**/*.md")
    ),
)
FOLDERS = "docs|kernel|analysis|testbed|experiments|tests|topologies|benchmarks"
LINK = re.compile(r"\]\(([^)#:]+)\)")
LINKED = re.compile(rf"`((?:{FOLDERS})/[\w./-]+)")
MODULE = re.compile(r"python -m ((?:analysis|testbed|experiments|tests|benchmarks)[\w.]*)")
TO_BE_WRITTEN = {  # by the reader, or by a command
    "kernel/congestion/tcp_NAME.c",
    "kernel/queues/sch_NAME.c",
    "tests/fuzz/found/FORMAT/",
    "tests/fuzz/found-SEED",
}


def test_its_experiment_can_be_planned() -> None:
    text = block('"""How much buffer does one flow need')
    assert text.rstrip() == TEMPLATE.read_text().replace("NAME", "buffer_size").rstrip()
    names: dict[str, Any] = {"__name__": "buffer_size"}
    exec(compile(text, "<tutorial>", "exec"), names)
    scenarios = names["EXPERIMENT"].scenarios({}, 1, False)
    assert [s.label for s in scenarios] == [
        f"linux-reno-{size}bdp" for size in ("0.1", "0.25", "0.5", "1", "2")
    ]
    for scenario in scenarios:
        make_plan(scenario)


def test_its_plan_stands_as_it_is_printed(
    root: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "buffer_size.py").write_text(TEMPLATE.read_text().replace("NAME", "buffer_size"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "140")
    assert main(["plan", "./buffer_size.py", "--quick"]) == 0
    told = _without_seconds(capsys.readouterr().out)
    shown = _without_seconds((root / "docs" / "tutorial.md").read_text())
    past = next(n for n, line in enumerate(told) if line.startswith("warning: "))
    assert set(told[: past + 1]) <= set(shown)


def _without_seconds(text: str) -> list[str]:
    """Estimates of time learn from the machine."""
    time = r"\d+ s\b|(\d+ h )?\d+ min\b"
    return [" ".join(re.sub(time, "N s", line).split()) for line in text.splitlines()]


def test_its_network_can_be_planned() -> None:
    text = block('{\n      "experiment": "parking-lot"').partition("\n\n")[0]
    plan = make_plan(read_scenario(text))
    assert sum(queue.sampled for queue in plan.queues) == 3


def test_its_queue_becomes_tcs_words(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    row = tutorial_row()
    monkeypatch.setitem(queues.DISCIPLINES, row.name, row)
    queue = Queue(row.name, limit_packets=66, ecn=True, options={"target_ms": 5})
    words = " ".join(arguments(queue, resolve(queue, 1, 100), 1))
    assert words == "fq_pie limit 66 target 5ms ecn"
    assert f"CONFIG_NET_SCH_{row.name.upper()}=y" in (root / "kernel/guest.config").read_text()


@pytest.mark.parametrize("name", sorted(PAGES))
def test_named_files_exist(root: Path, name: str) -> None:
    for path in LINKED.findall((root / name).read_text()):
        assert path in TO_BE_WRITTEN or (root / path.rstrip(".")).exists(), path


@pytest.mark.parametrize("name", sorted(PAGES))
def test_named_modules_exist(root: Path, name: str) -> None:
    for module in MODULE.findall((root / name).read_text()):
        path = root / module.rstrip(".").replace(".", "/")
        assert path.with_suffix(".py").exists() or path.is_dir(), module


@pytest.mark.parametrize("name", sorted(PAGES))
def test_linked_pages_exist(root: Path, name: str) -> None:
    """Links and images, relative to the page."""
    for link in LINK.findall((root / name).read_text()):
        assert (root / name).parent.joinpath(link).exists(), link


def test_pages_name_files_modules_and_pages(root: Path) -> None:
    """A page may name none of a kind, but not all pages."""
    texts = [(root / name).read_text() for name in PAGES]
    for pattern in (LINKED, MODULE, LINK):
        assert sum(bool(pattern.search(text)) for text in texts) > 5, pattern


def test_the_index_lists_every_page(root: Path) -> None:
    index = (root / "docs" / "README.md").read_text()
    pages = {p.name for p in root.glob("docs/*.md")} - {"README.md"}
    assert len(pages) > 10
    assert [name for name in sorted(pages) if f"`{name}`" not in index] == []


def test_the_page_of_experiments_lists_them_all(root: Path) -> None:
    """Each with how many trials it has."""
    text = (root / "docs" / "experiments.md").read_text()
    listed = dict(re.findall(r"^\| `([\w-]+)` \| (\d+) \|", text, re.MULTILINE))
    expected = {n: str(len(e.scenarios({}, 1, False))) for n, e in EXPERIMENTS.items()}
    assert listed == expected
