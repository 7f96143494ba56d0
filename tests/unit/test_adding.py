"""Adding one of each touches the files that docs/architecture.md names, and no others.

Each addition is made in a copy of the tree, and run there.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path

import pytest

from testbed.plan.plan import make_plan
from testbed.scenario.losses import GilbertElliott
from testbed.scenario.network import Change, Direction, Queue, Radio
from tests.added_row import block
from tests.scenarios import access, router, with_link

PACKAGES = ("testbed", "topologies", "experiments", "analysis")


@dataclass(frozen=True)
class Addition:
    """What is added: new files, lines put before others in the files that are there, and a program
    that uses it, with a line that it has to print."""

    kind: str  # as the table in docs/architecture.md says it
    run: str
    prints: str
    files: Mapping[str, str] = field(default_factory=dict)
    before: Mapping[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)


ENGINE = '''
"""An engine that runs nothing."""

from testbed.engine import Engine


class NowhereEngine(Engine):
    """Nothing runs there."""

    name = "nowhere"
    virtual_time = True

    def ready(self) -> str:
        """It is always ready."""
        return ""
'''

PAPER = '''
"""The claims of a paper that has one."""

from analysis.claims.judgement import Finding, NumberRow
from analysis.claims.ledger import Claim, Paper


def judge(group):
    return Finding((), (NumberRow("trials", "5", str(len(group.rows))),))


def papers():
    claim = Claim("N1", "It is so.", "Whether it is.", "one-reno", judge)
    return (Paper("N", "Nobody", "experiments/nobody/README.md", (claim,)),)
'''

EXPERIMENT = '''
"""One flow of Reno."""

from experiments import all_variants
from testbed.scenario.experiment import Experiment

EXPERIMENT = Experiment(
    name="one-reno",
    paper="",
    about="one flow of Reno",
    axes={**all_variants.EXPERIMENT.axes, "variant": ("reno",)},
    build=all_variants.scenario,
    quick={},
)
'''

CARRIED = 'on_demand("experiments.nobody.claims", "papers")'
TRIAL = "Path(sys.argv[1]) / 'tests/golden/fidelity/trial'"
ADDITIONS = (
    Addition(
        "a queue discipline",
        """
        from testbed.plan.plan import make_plan
        from testbed.scenario.network import Queue
        from tests.scenarios import router
        queue = Queue("fq_pie", limit_packets=66, ecn=True, options={"target_ms": 20})
        plan = make_plan(router(queue=queue))
        commands = {" ".join(each.argv) for each in plan.setup if "fq_pie" in each.argv}
        read = [each for each in plan.tc_objects if each.kind == "fq_pie"]
        limits = {s.value for each in read for s in each.settings if s.name == "limit"}
        print(*sorted(commands)[-1:], limits)
        """,
        "handle 30: fq_pie limit 66 target 20ms ecn {66}",
        before={
            "testbed/scenario/queues.py": (
                ('        Discipline(\n            "pfifo"', block("Discipline(") + "\n"),
            )
        },
    ),
    Addition(
        "a property of a link",
        """
        from testbed.plan.plan import make_plan
        from tests.scenarios import router, with_network
        plan = make_plan(with_network(router(delay_ms=5), access={"delay_ms": 5, "copied": 0.25}))
        (words,) = {" ".join(c.argv[8:]) for c in plan.setup if "duplicate" in c.argv}
        (read,) = {s.value for o in plan.tc_objects for s in o.settings if s.name == "copies"}
        print(words, read)
        """,
        "netem delay 5000.000us duplicate 25.000000% limit 10000000 0.25",
        before={
            "testbed/scenario/network.py": (
                ("    trace: str | None", '    copied: float = 0.0\n    """Its chance."""\n'),
            ),
            "testbed/plan/delay_links.py": (
                (
                    '            *("limit", str(NETEM_LIMIT)),',
                    '            *("duplicate", f"{100 * direction.copied:.6f}%"),\n',
                ),
                (
                    '    yield Setting("corruption"',
                    "    copies = (Field(offset=16, head=HEAD_BYTES),)\n"
                    '    yield Setting("copies", copies, wire.copied, "", CERTAIN, round)\n',
                ),
            ),
        },
    ),
    Addition(
        "an engine",
        """
        from testbed.runs.engine_choice import choose
        print(choose("nowhere", ()).engine.name)
        """,
        "nowhere",
        files={"testbed/nowhere/engine.py": ENGINE},
        before={
            "testbed/runs/engine_choice.py": (
                ("from testbed.errors", "from testbed.nowhere.engine import NowhereEngine\n"),
                (")}\nAUTO", ", NowhereEngine"),
            )
        },
    ),
    Addition(
        "a paper",
        """
        from tests.papers import answers
        from tests.claims_tables import metrics_of
        world = lambda place: {"tcp": {"goodput_mbps": 1.0}}
        rows = metrics_of("one-reno", {"variant": ("reno",)}, world, 5)
        (answer,) = (each for each in answers({"one-reno": rows}) if each.id == "N1")
        print(answer.claim, answer.rows)
        """,
        "It is so. (NumberRow(what='trials',",
        files={
            "experiments/nobody/__init__.py": '"""Nobody: one flow of Reno."""\n',
            "experiments/nobody/one_reno.py": EXPERIMENT.replace(
                "    quick",
                '    claims=on_demand("experiments.nobody.claims", "papers"),\n    quick',
            ).replace("import Experiment", "import Experiment, on_demand"),
            "experiments/nobody/claims.py": PAPER,
            "experiments/nobody/README.md": "# Nobody\n",
        },
        before={
            "experiments/catalogue.py": (
                ("from experiments.parvez", "from experiments.nobody import one_reno\n"),
                ("        router_bottleneck.EXPERIMENT", "        one_reno.EXPERIMENT,\n"),
            )
        },
    ),
    Addition(
        "a metric",
        f"""
        from analysis.results.reduction import reduce_trial
        from testbed.store import open_trial
        from analysis.metrics.columns import METRIC_COLUMNS
        from analysis.results.tables import metrics_of
        reduction = reduce_trial(open_trial({TRIAL}))
        print("others" in METRIC_COLUMNS, metrics_of([reduction])["others"].tolist())
        """,
        "True [0.0]",
        before={
            "analysis/metrics/rates.py": (
                (
                    '        Metric(\n            "jain"',
                    '        Metric("others", "", "1 - share"),\n',
                ),
                ('    tcp = rows[rows["kind"]', '    rows["others"] = 1 - rows["share"]\n'),
            )
        },
    ),
    Addition(
        "a check",
        f"""
        from analysis.verdict.verdict import judge
        from testbed.store import open_trial
        found = judge(open_trial({TRIAL}))
        print([(each.subject, str(each.verdict)) for each in found.checks if each.name == "flows"])
        """,
        "[('trial', 'valid')]",
        files={
            "analysis/verdict/flow_number.py": textwrap.dedent('''
                """Every flow that was asked for has run."""

                from analysis.verdict.checks import compare


                def flow_number(evidence):
                    """Their number against the scenario's."""
                    trial = evidence.trial
                    wanted = len(trial.scenario.flows)
                    yield compare("flows", "trial", True, len(trial.record.flows), wanted)
                ''')
        },
        before={
            "analysis/verdict/rules.py": (
                (
                    '        _exact(\n            "capture drops"',
                    '        _exact("flows", "flows", "flows that ran", "asked for", "-"),\n',
                ),
            ),
            "analysis/verdict/verdict.py": (
                ("    iperf3,\n", "    flow_number,\n"),
                ("    recording.captures,", "    flow_number.flow_number,\n"),
            ),
        },
    ),
    Addition(
        "an experiment",
        """
        from experiments.command import main
        main(["plan", "one-reno"])
        """,
        "reno-modern-seed1",
        files={"experiments/one_reno.py": EXPERIMENT},
        before={
            "experiments/catalogue.py": (
                ("from experiments.evaluation import", "from experiments import one_reno\n"),
                ("        router_bottleneck.EXPERIMENT", "        one_reno.EXPERIMENT,\n"),
            )
        },
    ),
)


@pytest.fixture
def tree(root: Path, tmp_path: Path) -> Path:
    """A copy of our packages, with what the programs need of the tests."""
    for name in (*PACKAGES, "tests"):
        ignored = shutil.ignore_patterns("__pycache__", "fuzz", "system", "unit")
        shutil.copytree(root / name, tmp_path / name, ignore=ignored)
    return tmp_path


def put(tree: Path, addition: Addition) -> None:
    for name, text in addition.files.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(text)
    for name, edits in addition.before.items():
        text = (tree / name).read_text()
        for place, added in edits:
            assert text.count(place) == 1, f"{name}: {place!r}"
            text = text.replace(place, added + place)
        (tree / name).write_text(text)


@pytest.mark.parametrize("addition", ADDITIONS, ids=lambda each: str(each.kind))
def test_it_runs(tree: Path, addition: Addition) -> None:
    put(tree, addition)
    program = "import sys\nfrom pathlib import Path\n" + textwrap.dedent(addition.run)
    done = subprocess.run(
        [sys.executable, "-c", program, str(tree)],
        cwd=tree,
        env={**os.environ, "PYTHONPATH": str(tree)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert addition.prints in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("addition", ADDITIONS, ids=lambda each: str(each.kind))
def test_it_touches_what_the_table_names(root: Path, addition: Addition) -> None:
    table = (root / "docs" / "architecture.md").read_text()
    row = re.search(rf"^\| {addition.kind} \| (.*) \|$", table, re.MULTILINE)
    assert row, f"docs/architecture.md does not say how to add {addition.kind}"
    named = set(re.findall(r"`([\w/]+\.py)`", row[1]))
    folders = tuple(re.findall(r"`([\w/]+/)`", row[1]))
    touched = set(addition.before)
    assert {name for name in touched if not name.startswith(folders or "-")} <= named
    assert all(name.startswith(folders) for name in addition.files)


LINK_VALUES = {
    "rate_mbit": 7.0,
    "delay_ms": 3.0,
    "queue": Queue("pfifo", limit_packets=9),
    "jitter_ms": 1.0,
    "loss": GilbertElliott(to_bad=0.01, to_good=0.5),
    "reorder": 0.1,
    "trace": "lte-driving",
    "schedule": (Change(2, rate_mbit=3.0),),
    "radio": Radio(-60),
}


def test_every_field_of_a_link_has_a_value_here() -> None:
    assert set(LINK_VALUES) == {each.name for each in fields(Direction)}


@pytest.mark.parametrize("name", sorted(set(LINK_VALUES) - {"trace", "radio"}))
def test_a_field_of_a_link_is_planned_and_read_back(name: str) -> None:
    scenario = router(delay_ms=5)
    link = next(each for each in scenario.network.links if each.observed).name
    plain = with_link(scenario, link, delay_ms=5.0)
    before, after = make_plan(plain), make_plan(with_link(plain, link, **{name: LINK_VALUES[name]}))
    assert (after.setup, after.changes) != (before.setup, before.changes)
    assert (after.tc_objects, after.changes) != (before.tc_objects, before.changes)


def test_a_link_of_a_radio_is_planned() -> None:
    scenario = access("wifi-good")
    assert any(link.forward.radio for link in scenario.network.links)
    assert make_plan(scenario).radio != make_plan(access()).radio
