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
from testbed.scenario.network import Change, Direction, Queue, Radio, Shaping
from testbed.scenario.trace import read_trace
from tests.added_row import block
from tests.scenarios import access, router, with_link

PACKAGES = ("testbed", "topologies", "experiments", "analysis", "benchmarks")


@dataclass(frozen=True)
class Addition:
    """What is added: new files, lines put before others in the files that are there, and a program
    that uses it, with a line that it has to print."""

    kind: str  # as the table in docs/architecture.md says it
    files_touched: int
    run: str
    prints: str
    files: Mapping[str, str] = field(default_factory=dict)
    before: Mapping[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)


ENGINE = """
from testbed.engine import Engine


class NowhereEngine(Engine):
    name = "nowhere"
    virtual_time = True

    def ready(self) -> str:
        return ""
"""

PAPER = """
from analysis.claims.comparisons import RATE, within
from analysis.claims.judgement import Finding
from analysis.claims.ledger import Claim, Paper
from analysis.claims.samples import sample


def judge(least, group):
    rates = sample(group.rows, "goodput_mbps")
    return Finding((within("goodput", RATE, rates, low=least),))


def papers():
    fast = Claim("N1", "It is fast.", "At least 0.9.", "one-reno", lambda g: judge(0.9, g))
    faster = Claim("N2", "It is faster.", "At least 1.1.", "one-reno", lambda g: judge(1.1, g))
    return (Paper("N", "Nobody", "experiments/nobody/README.md", (fast, faster)),)
"""

EXPERIMENT = '''
"""One flow of Reno."""

from analysis.figures.figure import Axis, Figure, Panel, PointSeries
from experiments import all_variants
from testbed.scenario.experiment import Experiment


def figures(results):
    points = PointSeries(results.rows["seed"], results.rows["goodput_mbps"], colour="#0072b2")
    panel = Panel(title="trials", x=Axis("seed"), y=Axis("Mbit/s"), marks=(points,))
    yield Figure(stem="rates", title="Rates of Reno", panels=((panel,),), data=results.rows)


EXPERIMENT = Experiment(
    name="one-reno",
    paper="",
    about="one flow of Reno",
    axes={**all_variants.EXPERIMENT.axes, "variant": ("reno",)},
    build=all_variants.scenario,
    quick={},
    figures=figures,
)
'''

TRIAL = "Path(sys.argv[1]) / 'tests/golden/fidelity/trial'"
ADDITIONS = (
    Addition(
        "a queue discipline",
        1,
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
        2,
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
        2,
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
        5,
        """
        from tests.papers import answers
        from tests.claims_tables import metrics_of
        world = lambda place: {"tcp": {"goodput_mbps": 1.0}}
        rows = metrics_of("one-reno", {"variant": ("reno",)}, world, 5)
        print([str(each.verdict) for each in answers({"one-reno": rows}) if each.id[0] == "N"])
        """,
        "['supported', 'contradicted']",
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
                ('    "router-bottleneck"', '    "one-reno": "nobody.one_reno:EXPERIMENT",\n'),
            )
        },
    ),
    Addition(
        "a metric",
        2,
        f"""
        from analysis.results.reduction import reduce_trial
        from testbed.store.reading import open_trial
        from analysis.metrics.columns import METRIC_COLUMNS
        from analysis.results.tables import metrics_of
        reduction = reduce_trial(open_trial({TRIAL}))
        flows = metrics_of([reduction.tables["flows"]])
        print("others" in METRIC_COLUMNS, flows["others"].tolist())
        from benchmarks.reference import metrics
        from experiments.command import main
        print("| `others` | 1 - share |" in metrics(), "| `frame_bytes` | of data " in metrics())
        capture = {TRIAL} / "captures/receiver-eth0.pcap.gz"
        main(["reduce", str(capture), "--format", "csv", "--out", "flows.csv"])
        print(*(line.split(",")[8] for line in Path("flows.csv").read_text().splitlines()))
        """,
        "True [0.0]\nTrue True\nframe_bytes 1509.9",
        before={
            "analysis/captures/flow_tables.py": (
                (
                    '        Metric(\n            "throughput_mbps"',
                    '        Metric("frame_bytes", "bytes", "of data"),\n',
                ),
                (
                    '        _rate_mbps(of("bytes"',
                    '        of("bytes", src) / of("data_packets", src),\n',
                ),
            ),
            "analysis/metrics/rates.py": (
                (
                    '        Metric(\n            "jain"',
                    '        Metric("others", "", "1 - share"),\n',
                ),
                ('    greedy = rows[rows["kind"]', '    rows["others"] = 1 - rows["share"]\n'),
            ),
        },
    ),
    Addition(
        "a claim",
        1,
        """
        from tests.claims_tables import router_metrics
        from tests.papers import answers
        found = answers({"router-bottleneck": router_metrics()})
        print({str(each.verdict) for each in found if each.id == "GYS0"})
        """,
        "{'supported'}",
        before={
            "experiments/guo_yuan_sheng/claims.py": (
                (
                    "CLAIMS: tuple[Claim, ...]",
                    "def filling(group):\n"
                    '    rates = samples(group.rows, "goodput_mbps", "variant")\n'
                    '    return Finding((within("BBR", RATE, rates["bbr"], low=0.9),))\n\n\n',
                ),
                (
                    '    _single(\n        id="GYS1.1"',
                    '    Claim("GYS0", "BBR fills it.", "-", "router-bottleneck", filling),\n',
                ),
            )
        },
    ),
    Addition(
        "a property of a radio link",
        5,
        """
        import json
        from types import SimpleNamespace
        from analysis.verdict.links import radio
        from testbed.plan.plan import make_plan
        from tests.scenarios import access
        scenario = access("wifi-good")
        plan = make_plan(scenario).radio
        print("beacon_int=100" in plan.hostapd)
        report = Path("samples/radio.json")
        report.parent.mkdir()
        for beacon_ms in 100, 50:
            told = {"signal_dbm": plan.radio.signal_dbm, "joined": True, "beacon_ms": beacon_ms}
            told |= {"seconds": 1, "others": {"air_s": 0}, "radios": []}
            report.write_text(json.dumps(told))
            trial = SimpleNamespace(scenario=scenario, file=Path)
            print(next(radio(SimpleNamespace(trial=trial, virtual_time=True))).verdict)
        """,
        "True\nvalid\ninvalid\n",
        before={
            "testbed/scenario/network.py": (
                (
                    "    busy: Annotated[float, Range(0.0, 0.9)] = 0.0",
                    '    beacon_ms: int = 100\n    """Between beacons."""\n',
                ),
            ),
            "testbed/plan/radio.py": (
                (
                    ",\n            )\n    return None",
                    ' + f"beacon_int={radio.beacon_ms}\\n"',
                ),
            ),
            "testbed/trial/parts/radio.py": (
                (
                    "        counters = json",
                    "        said = answers.output(self._link)[1]\n"
                    '        beacon_ms = int(said.split("beacon int:")[1].split()[0])\n'
                    '        settings["beacon_ms"] = beacon_ms\n',
                ),
            ),
            "analysis/trials/documents.py": (
                ("    seconds: Annotated", "    beacon_ms: NotRequired[Integer]\n"),
            ),
            "analysis/verdict/links.py": (
                (
                    '        yield same("radio", name',
                    """        state.append(f"{report.get('beacon_ms', 100)} ms")\n""",
                ),
                (")\n        share = report", ' + f", {planned.beacon_ms} ms"'),
            ),
        },
    ),
    Addition(
        "a check",
        3,
        f"""
        from analysis.verdict.verdict import judge
        from testbed.store.reading import open_trial
        found = judge(open_trial({TRIAL}))
        print([(each.subject, str(each.verdict)) for each in found.checks if each.name == "flows"])
        """,
        "[('trial', 'valid')]",
        files={
            "analysis/verdict/flow_number.py": textwrap.dedent("""
                from analysis.verdict.checks import make_check


                def flow_number(evidence):
                    trial = evidence.trial
                    wanted = len(trial.scenario.flows)
                    yield make_check("flows", "trial", True, len(trial.record.flows), wanted)
                """)
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
        2,
        f"""
        import json, shutil
        from experiments.command import main
        from experiments.one_reno import EXPERIMENT
        from tests.sealing import seal
        main(["plan", "one-reno"])
        shutil.copytree({TRIAL}, "results/trial")
        scenario = Path("results/trial/scenario.json")
        place = {{"experiment": "one-reno", "axes": dict.fromkeys(EXPERIMENT.axes, "1")}}
        scenario.write_text(json.dumps(json.loads(scenario.read_text()) | place))
        seal(Path("results/trial"))
        main(["report", "results"])
        print(len(Path("results/report-figures/rates.png").read_bytes()) > 10_000)
        print("Rates of Reno" in Path("results/report.html").read_text())
        """,
        "True\nTrue\n",
        files={"experiments/one_reno.py": EXPERIMENT},
        before={
            "experiments/catalogue.py": (
                ('    "router-bottleneck"', '    "one-reno": "one_reno:EXPERIMENT",\n'),
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


@pytest.mark.slow(but=4)
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
    touched = {*addition.files, *addition.before}
    print(f"\n{addition.kind}: {len(touched)} files: {', '.join(sorted(touched))}")
    assert len(touched) == addition.files_touched
    assert {name for name in addition.before if not name.startswith(folders or "-")} <= named
    assert all(name.startswith(folders) for name in addition.files)


LINK_VALUES = {
    "rate_mbit": 7.0,
    "delay_ms": 3.0,
    "queue": Queue("pfifo", limit_packets=9),
    "jitter_ms": 1.0,
    "loss": GilbertElliott(to_bad=0.01, to_good=0.5),
    "reorder": 0.1,
    "trace": read_trace("step"),
    "schedule": (Change(2, rate_mbit=3.0),),
    "radio": Radio(-60),
    "shaping": Shaping.HTB,
    "aggregate_packets": 8,
    "aggregate_ms": 2.0,
    "hold_us": 50.0,
    "cost_us": 3.0,
    "wake_us": 20.0,
}


def test_every_field_of_a_link_has_a_value_here() -> None:
    assert set(LINK_VALUES) == {each.name for each in fields(Direction)}


@pytest.mark.parametrize("name", sorted(set(LINK_VALUES) - {"radio"}))
def test_a_field_of_a_link_is_planned_and_read_back(name: str) -> None:
    scenario = router(delay_ms=5)
    link = next(each for each in scenario.network.links if each.observed).name
    needed = {"aggregate_packets": 2} if name == "aggregate_ms" else {}
    plain = with_link(scenario, link, delay_ms=5.0, **needed)
    before, after = make_plan(plain), make_plan(with_link(plain, link, **{name: LINK_VALUES[name]}))
    assert (after.setup, after.changes) != (before.setup, before.changes)
    assert (after.tc_objects, after.changes) != (before.tc_objects, before.changes)


def test_a_link_of_a_radio_is_planned() -> None:
    scenario = access("wifi-good")
    assert any(link.forward.radio for link in scenario.network.links)
    assert make_plan(scenario).radio != make_plan(access()).radio
