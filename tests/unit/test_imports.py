"""The rules of who may import, start, print and exit (docs/architecture.md), held by parsing."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

PACKAGES = ("testbed", "topologies", "experiments", "analysis")
OURS = frozenset({*PACKAGES, "benchmarks", "tests"})

TOP = "testbed/cli/"  # the command line and
API = "testbed/api/"  # the Python API, where experiments have names; neither knows the other

# What a package may import of ours, beside the order of rooms (test_rooms.py).
PRODUCT = {"testbed", "topologies", "analysis", "experiments"}
MAY_IMPORT = {
    "topologies": {"topologies"},
    "analysis": {
        "analysis",
        "testbed.errors",
        "testbed.faults",
        "testbed.indented",
        "testbed.machine.atomic",
        "testbed.machine.compiled",
        "testbed.machine.json_files",
        "testbed.machine.process",
        "testbed.machine.safe_files",
        "testbed.scenario",
        "testbed.store",
    },
}
STARTS_PROCESSES = (
    "testbed/machine/process.py",
    "testbed/guest/worker.py",  # where there is no testbed
    "testbed/programs/perturbed.py",  # in a guest
)
PRINTS_AND_EXITS = (
    TOP,
    "testbed/runs/console.py",
    "testbed/runs/progress.py",
    "experiments/command.py",  # the command line with this project's experiments
    "experiments/course/",  # scripts, which plain Mininet runs, too
)
DRAW = (  # what uses matplotlib: all other figures are data
    "analysis/figures/static_renderer.py",
    "analysis/figures/style.py",  # its style sheet and colour maps
    "testbed/own_files/experiment_template.py",  # a user's own figures may be matplotlib's
    "testbed/runs/experiment_file.py",
)
STARTERS = ("fork", "exec", "posix_spawn", "spawn", "popen", "system")  # of os
BROAD = frozenset({"killall", "killall5", "pkill"})


@dataclass(frozen=True)
class Source:
    """A Python file: its path in the project, and what it parses to."""

    path: str
    tree: ast.Module

    @property
    def package(self) -> str:
        """The top-level package that it is in."""
        return self.path.split("/")[0]


Rule = Callable[[Source], Iterator[str]]


def parse(path: str, text: str) -> Source:
    return Source(path, ast.parse(text))


def imported(source: Source) -> Iterator[str]:
    """The full names of everything imported, wherever the import stands."""
    here = source.path.removesuffix(".py").split("/")
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(here[: len(here) - node.level]) if node.level else ""
            module = ".".join(part for part in (base, node.module) if part)
            yield from (f"{module}.{alias.name}" for alias in node.names)


def covers(allowed: str, name: str) -> bool:
    return name == allowed or name.startswith(f"{allowed}.")


def dotted(node: ast.expr) -> str:
    """`a.b.c` of an expression that is such a name; empty for any other."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        head = dotted(node.value)
        return f"{head}.{node.attr}" if head else ""
    return ""


def calls(tree: ast.AST) -> Iterator[tuple[str, ast.Call]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield dotted(node.func), node


def our_imports(source: Source) -> Iterator[str]:
    """A package imports of ours what it may: no tests, and `analysis` little of `testbed`."""
    allowed = MAY_IMPORT.get(source.package, PRODUCT)
    for name in imported(source):
        if name.split(".")[0] in OURS and not any(covers(room, name) for room in allowed):
            yield f"imports {name}"


def ways_in_stand_on_runs(source: Source) -> Iterator[str]:
    """Nothing imports the command line or the Python API but these themselves, and experiments."""
    for name in imported(source):
        for way_in, room in (("testbed.cli", TOP), ("testbed.api", API)):
            inside = source.path.startswith(room) or source.path == "testbed/__init__.py"
            if covers(way_in, name) and not inside and source.package == "testbed":
                yield f"imports {name}"


def topologies_need_mininet_alone(source: Source) -> Iterator[str]:
    """`mn --custom` loads a topology with nothing but Mininet around it."""
    if source.package != "topologies":
        return
    for name in imported(source):
        top = name.split(".")[0]
        if top not in sys.stdlib_module_names and top not in ("mininet", "topologies"):
            yield f"imports {name}"


def one_process_boundary(source: Source) -> Iterator[str]:
    """Processes are started in one place."""
    if source.path in STARTS_PROCESSES:
        return
    for name in imported(source):
        if name.split(".")[0] == "subprocess" or is_starter(name):
            yield f"imports {name}"
    for name, _ in calls(source.tree):
        if is_starter(name):
            yield f"calls {name}"


def is_starter(name: str) -> bool:
    module, _, function = name.partition(".")
    return module in ("os", "posix", "pty") and function.startswith(STARTERS)


def only_the_cli_prints_and_exits(source: Source) -> Iterator[str]:
    """Below the command line everything returns or raises."""
    if source.path.startswith(PRINTS_AND_EXITS):
        return
    tree = without_main_block(source.tree)
    for name, _ in calls(tree):
        if name in ("print", "exit", "quit", "sys.exit", "os._exit"):
            yield f"calls {name}"
        if name.startswith(("sys.stdout.", "sys.stderr.", "sys.__stdout__.")):
            yield f"calls {name}"
    for name in imported(source):
        if name in ("sys.exit", "sys.stdout", "sys.stderr", "rich.print"):
            yield f"imports {name}"
        if covers("rich.console.Console", name) or name == "rich.get_console":
            yield f"imports {name}"
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise) and node.exc is not None and raises_exit(node.exc):
            yield "raises SystemExit"


def raises_exit(raised: ast.expr) -> bool:
    return dotted(raised.func if isinstance(raised, ast.Call) else raised) == "SystemExit"


def without_main_block(tree: ast.Module) -> ast.Module:
    """The module without its `if __name__ == "__main__":`, which is a command line too."""
    kept = [
        node
        for node in tree.body
        if not (isinstance(node, ast.If) and ast.unparse(node.test) == "__name__ == '__main__'")
    ]
    return ast.Module(kept, [])


def one_renderer(source: Source) -> Iterator[str]:
    """Figures are data, which one module draws with matplotlib."""
    if source.path not in DRAW:
        for name in imported(source):
            if covers("matplotlib", name):
                yield f"imports {name}"


def no_shell_strings(source: Source) -> Iterator[str]:
    """Commands are lists of words; no shell reads them."""
    for name, call in calls(source.tree):
        if name in ("os.system", "os.popen", "subprocess.getoutput", "subprocess.getstatusoutput"):
            yield f"calls {name}"
        for keyword in call.keywords:
            value = keyword.value
            if keyword.arg == "shell" and not (
                isinstance(value, ast.Constant) and value.value is False
            ):
                yield "gives shell= to a call"


def no_broad_kills(source: Source) -> Iterator[str]:
    """Only processes that we started are ended, by their id: never all of a name."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            words = set(node.value.split())
            if words & BROAD or "mn -c" in node.value:
                yield f"says {node.value!r}"


RULES: tuple[Rule, ...] = (
    our_imports,
    ways_in_stand_on_runs,
    topologies_need_mininet_alone,
    one_process_boundary,
    only_the_cli_prints_and_exits,
    one_renderer,
    no_shell_strings,
    no_broad_kills,
)


def is_of_tests(path: Path) -> bool:
    """Return whether a file beside an experiment belongs to its tests."""
    return path.stem.startswith("test_") or path.stem.endswith("_for_tests")


@pytest.fixture(scope="module")
def sources(root: Path) -> list[Source]:
    """Every file of ours, parsed once for all rules."""
    files = [
        path
        for package in PACKAGES
        for path in sorted((root / package).rglob("*.py"))
        if not is_of_tests(path)
    ]
    return [parse(path.relative_to(root).as_posix(), path.read_text()) for path in files]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_rule_is_kept(rule: Rule, sources: list[Source]) -> None:
    broken = [f"{source.path}: {fault}" for source in sources for fault in rule(source)]
    assert not broken, f"{rule.__doc__}\n" + "\n".join(broken)


def test_all_packages_are_read(sources: list[Source]) -> None:
    assert {source.package for source in sources} == set(PACKAGES)


VIOLATIONS = [
    (our_imports, "testbed/cli/x.py", "import tests.conftest"),
    (our_imports, "testbed/api/x.py", "import tests.conftest"),
    (our_imports, "testbed/x.py", "def f():\n    from benchmarks import y"),
    (our_imports, "topologies/x.py", "import testbed"),
    (our_imports, "topologies/x.py", "from testbed.scenario.model import Scenario"),
    (our_imports, "analysis/x.py", "from testbed import plan"),
    (our_imports, "analysis/x.py", "import testbed.trial.build"),
    (our_imports, "analysis/x.py", "import testbed"),
    (our_imports, "analysis/report/x.py", "from ...testbed import trial"),
    (our_imports, "analysis/x.py", "import topologies.dumbbell"),
    (our_imports, "experiments/x.py", "import tests.conftest"),
    (ways_in_stand_on_runs, "testbed/runs/x.py", "from testbed.cli import console"),
    (ways_in_stand_on_runs, "testbed/api/x.py", "import testbed.cli.parser"),
    (ways_in_stand_on_runs, "testbed/cli/x.py", "from testbed.api.run import run"),
    (topologies_need_mininet_alone, "topologies/x.py", "import numpy"),
    (one_process_boundary, "testbed/x.py", "import subprocess"),
    (one_process_boundary, "testbed/x.py", "from subprocess import run"),
    (one_process_boundary, "analysis/x.py", "import os\nos.fork()"),
    (one_process_boundary, "analysis/x.py", "import os\nos.execvp('ls', ['ls'])"),
    (one_process_boundary, "analysis/x.py", "from os import posix_spawn"),
    (one_process_boundary, "experiments/x.py", "import os\nos.system('ls')"),
    (only_the_cli_prints_and_exits, "testbed/x.py", "def f():\n    print(1)"),
    (only_the_cli_prints_and_exits, "testbed/x.py", "import sys\nsys.exit(1)"),
    (only_the_cli_prints_and_exits, "testbed/x.py", "from sys import exit"),
    (only_the_cli_prints_and_exits, "testbed/x.py", "raise SystemExit(1)"),
    (only_the_cli_prints_and_exits, "analysis/x.py", "from rich.console import Console"),
    (only_the_cli_prints_and_exits, "analysis/x.py", "import sys\nsys.stdout.write('x')"),
    (one_renderer, "experiments/x.py", "from matplotlib.axes import Axes"),
    (no_shell_strings, "testbed/machine/process.py", "subprocess.run('ls', shell=True)"),
    (no_shell_strings, "testbed/machine/process.py", "subprocess.run('ls', shell=really)"),
    (no_shell_strings, "testbed/machine/process.py", "os.system('ls')"),
    (no_broad_kills, "testbed/x.py", "run(['pkill', 'iperf3'])"),
    (no_broad_kills, "testbed/x.py", "node.cmd('killall iperf3')"),
    (no_broad_kills, "testbed/x.py", "node.cmd('mn -c')"),
]


@pytest.mark.parametrize(("rule", "path", "text"), VIOLATIONS)
def test_a_violation_is_found(rule: Rule, path: str, text: str) -> None:
    assert list(rule(parse(path, text)))


def test_every_rule_has_a_violation() -> None:
    assert {rule for rule, _, _ in VIOLATIONS} == set(RULES)


ALLOWED = [
    (
        our_imports,
        "analysis/x.py",
        "from testbed.store.reading import Trial\nfrom testbed import errors",
    ),
    (our_imports, "analysis/report/x.py", "from ..metrics import rate"),
    (our_imports, "testbed/cli/x.py", "from analysis import metrics"),
    (our_imports, "testbed/api/x.py", "from experiments import catalogue"),
    (ways_in_stand_on_runs, "testbed/cli/x.py", "from testbed.cli.run import selected"),
    (our_imports, "experiments/x.py", "import analysis.claims, testbed.cli"),
    (topologies_need_mininet_alone, "topologies/x.py", "import sys\nfrom mininet.topo import Topo"),
    (one_process_boundary, "testbed/machine/process.py", "import subprocess"),
    (one_process_boundary, "testbed/x.py", "import os\nos.sysconf('SC_CLK_TCK')"),
    (only_the_cli_prints_and_exits, "testbed/cli/x.py", "import sys\nsys.exit(print(1))"),
    (
        only_the_cli_prints_and_exits,
        "testbed/x.py",
        "import sys\nif __name__ == '__main__':\n    sys.exit(main())",
    ),
    (one_renderer, "analysis/figures/static_renderer.py", "import matplotlib as mpl"),
    (no_shell_strings, "testbed/machine/process.py", "subprocess.run(['ls'], shell=False)"),
    (no_broad_kills, "testbed/x.py", "os.kill(pid, 9)"),
]


@pytest.mark.parametrize(("rule", "path", "text"), ALLOWED)
def test_what_is_allowed_passes(rule: Rule, path: str, text: str) -> None:
    assert not list(rule(parse(path, text)))
