"""The command line: one line, a hint, the right status; nothing started for a wrong request."""

from __future__ import annotations

import errno
import functools
import importlib.metadata
import json
import os
import pkgutil
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from rich.table import Table

from experiments.catalogue import EXPERIMENTS
from experiments.command import main
from testbed.cli.parser import VERBS, Verb, build_parser
from testbed.errors import TestbedError, hint_for
from testbed.runs import console as terminal
from testbed.store.names import SCENARIO
from tests.papers import PAPERS
from tests.scenarios import router


def failing(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, list[str]]:
    """Exit status and what was said on stderr."""
    status = main(arguments)
    return status, capsys.readouterr().err.splitlines()


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
def test_every_verb_has_a_function(verb: Verb) -> None:
    assert callable(pkgutil.resolve_name(f"testbed.cli.{verb.function}"))


def test_the_overview_has_every_verb_once_in_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = build_parser().format_help().splitlines()
    listed = [line.split()[0] for line in lines if re.match(r"  \w", line)]
    assert sorted(listed) == sorted(verb.name for verb in VERBS)
    assert listed[:2] == ["run", "plan"] and max(map(len, lines)) <= 80


def test_help_loads_no_verb() -> None:
    program = "import sys; from experiments.command import main\ntry: main(['--help'])\nfinally: "
    program += "print([name for name in sys.modules if name.split('.')[0] in sys.argv[1:]])"
    packages = ["numpy", "pydantic", "analysis", "experiments"]
    shown = subprocess.run(
        [sys.executable, "-c", program, *packages], check=True, capture_output=True, text=True
    )
    loaded = ["experiments", "experiments.command", "experiments.catalogue"]
    assert shown.stdout.splitlines()[-1] == str(loaded)


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        (["frob"], ["unknown verb 'frob'"], f"known: {', '.join(sorted(v.name for v in VERBS))}"),
        (
            ["run"],
            ["nothing to run: name an experiment"],
            "an experiment (`testbed list`), or --topo tree,2,2 --link bw=10,delay=5ms "
            "--flow h1,h4",
        ),
        (
            ["run", "router-botleneck"],
            ["unknown experiment 'router-botleneck'"],
            "did you mean 'router-bottleneck'?",
        ),
        (
            ["run", "router-bottleneck", "--engine", "gest"],
            ["unknown engine 'gest'"],
            "did you mean 'guest'?",
        ),
        (
            ["run", "router-bottleneck", "--seeds", "0"],
            ["--seeds: '0' is not a whole number above 0"],
            "e.g. --seeds 3",
        ),
        (
            ["run", "router-bottleneck", "--set", "variant"],
            ["--set variant: not KEY=VALUE"],
            f"axes: {', '.join(EXPERIMENTS['router-bottleneck'].axes)}, kernel",
        ),
        (
            ["plan", "router-bottleneck", "--set", "varant=reno"],
            ["--set varant: no such axis"],
            "did you mean 'variant'?",
        ),
        (
            ["plan", "router-bottleneck", "--set", "duration_s=long"],
            ["--set duration_s=long: not a number"],
            "duration_s is in s: --set duration_s=60",
        ),
        (
            ["plan", "router-bottleneck", "--set", "variant=Ren0!"],
            ["variant=Ren0!: unknown variant 'Ren0!': did you mean 'reno'?"],
            "correct the spelling",
        ),
        (
            ["plan", "router-bottleneck", "--set", "queue=bfido"],
            ["queue=bfido: unknown queue 'bfido': did you mean 'bfifo'?"],
            "correct the spelling",
        ),
        (
            ["plan", "router-bottleneck", "--set", "rate_mbit=-1"],
            ["rate_mbit=-1: -1 is not between 0.001 and 100000"],
            "rate_mbit takes numbers from 0.001 to 100000",
        ),
        (
            ["plan", "nowhere.json"],
            ["nowhere.json: no such file"],
            f"name an experiment (`testbed list`), or the {SCENARIO} of a trial",
        ),
    ],
)
def test_wrong_requests(
    capsys: pytest.CaptureFixture[str], arguments: list[str], message: list[str], hint: str
) -> None:
    """One line, or one for each fault, and one that says what to type instead."""
    status, said = failing(capsys, *arguments)
    assert status == 2
    first, *others = message
    assert said == [f"testbed: {first}", *(f"    {each}" for each in others), f"    hint: {hint}"]


@pytest.fixture
def no_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine that is ready and knows two variants: what follows never gets to run it."""
    monkeypatch.setattr("testbed.guest.engine.GuestEngine.ready", lambda _self: "")
    monkeypatch.setattr(
        "testbed.guest.engine.GuestEngine.controls", lambda _self: frozenset({"reno", "cubic"})
    )


@pytest.mark.usefixtures("no_engine")
def test_a_variant_that_nobody_knows(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["run", "router-bottleneck", "--engine", "guest", "--set", "variant=renoo"]
    status, said = failing(capsys, *arguments)
    assert status == 2
    assert said == ["testbed: unknown variant 'renoo'", "    hint: did you mean 'reno'?"]


@pytest.mark.parametrize("arguments", [["renoo"], ["bbr", "--against", "renoo"]])
def test_an_evaluation_of_a_misspelt_variant_is_not_planned(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    monkeypatch.setattr("testbed.evaluate.evaluation.tasks", lambda _: pytest.fail("planned"))
    status, said = failing(capsys, "evaluate", *arguments)
    assert status == 2
    assert said == ["testbed: unknown variant 'renoo'", "    hint: did you mean 'reno'?"]


def test_a_plan_of_many_trials_says_so_first_and_refuses_unknown_kernels(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("testbed.runs.orchestration.MANY_TRIALS", 1)
    status, said = failing(capsys, "plan", "fall-floyd", "--quick", "--set", "kernel=5.10")
    assert status == 2
    assert said[:2] == ["planning 20 trials", "testbed: there is no kernel 5.10"]


def test_a_scenario_that_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = json.loads(router().to_json())
    data["flows"][0]["dst"] = "juliet"
    data["duration_s"] = -1
    path = tmp_path / "scenario.json"
    path.write_text(json.dumps(data))
    status, said = failing(capsys, "run", str(path), "--out", str(tmp_path / "out"))
    assert status == 2
    assert said == [
        f"testbed: {path}: duration_s: -1 is not above 0 and at most 86400",
        "    flows[0].dst: unknown node 'juliet': known: receiver, router, sender1",
        "    hint: duration_s takes numbers above 0, up to 86400",
    ]
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("no_engine")
def test_an_output_that_is_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "out").touch()
    arguments = ["run", "router-bottleneck", "--engine", "guest", "--out", str(tmp_path / "out")]
    status, said = failing(capsys, *arguments)
    said = said[-2:]  # where Linux 6.1 is missing, that is said first
    assert (status, len(said)) == (1, 2)
    assert "out is a file" in said[0]


@pytest.mark.parametrize(
    ("manager", "command"),
    [("apt-get", "apt install"), ("dnf", "dnf install"), ("pacman", "pacman -S"), ("", "install")],
)
def test_a_missing_tool(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    manager: str,
    command: str,
) -> None:
    """How it is installed is said in the words of the machine's manager of packages."""
    import shutil

    found = shutil.which
    others = {"taskset", "apt-get", "dnf", "pacman"} - {manager}
    monkeypatch.setattr(
        "shutil.which", lambda name, **keys: None if name in others else found(name, **keys) or name
    )
    arguments = ["run", "router-bottleneck", "--engine", "guest", "--out", str(tmp_path / "out")]
    status, said = failing(capsys, *arguments)
    assert status == 1
    assert said[0].startswith(f"testbed: taskset not installed: {command} util-linux")


def test_list_and_plan_say_what_they_should(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list"]) == 0
    assert "router-bottleneck" in capsys.readouterr().out
    assert main(["plan", "router-bottleneck", "--set", "variant=bbr", "--commands"]) == 0
    text = capsys.readouterr().out
    assert "105956 B = 69 packets = 847.6 ms" in " ".join(text.split())
    assert "[router] tc qdisc add dev router-eth0 parent 1:3 handle 30: bfifo limit 105956" in text
    assert "iperf3 --client 10.0.0.2" in text


def test_plan_shows_every_trial_and_every_axis(capsys: pytest.CaptureFixture[str]) -> None:
    settings = ("--set", "variant=bbr,vegas", "--seeds", "2")
    assert main(["plan", "router-bottleneck", *settings]) == 0
    text = capsys.readouterr().out
    experiment = EXPERIMENTS["router-bottleneck"]
    made = experiment.scenarios({"variant": ["bbr", "vegas"]}, 2, quick=False)
    assert all(text.count(each.name) == 1 for each in made)
    rows = {line.split()[0]: line.split() for line in text.splitlines() if line.strip()}
    assert set(experiment.axes) <= rows.keys()
    assert rows["variant"][1:5] == ["bbr,", "vegas", "linux-reno,", "cubic,"]
    assert rows["duration_s"][-1] == "numbers"


def test_a_plan_of_a_file_lists_what_the_file_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "asked.json"
    file.write_text(router(variant="cubic", rate_mbit=7).to_json())
    assert main(["plan", str(file), "--seeds", "30"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("30 trials; about ")
    listed = {line.split()[0]: line.split() for line in text.splitlines() if line.strip()}
    rates = [row[1] for name, row in listed.items() if name.endswith("forward.rate_mbit")]
    assert rates == ["7"]
    assert "profile" not in listed and not any(name.endswith("jitter_ms") for name in listed)
    assert text.count("cubic-seed") == 24
    assert re.search(
        r"^6 trials and \d+ fields more, which have their defaults: --all$", text, re.M
    )
    assert main(["plan", str(file), "--seeds", "30", "--all"]) == 0
    text = capsys.readouterr().out
    assert text.count("cubic-seed") == 30 and re.search(r"^ profile +modern", text, re.M)


def test_a_narrow_plan_has_its_names_whole(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    narrow = functools.partial(terminal._console, width=50)
    monkeypatch.setattr("testbed.cli.plan.console", narrow())
    assert main(["plan", "router-fairness", "--set", "queue=bfifo"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert not any("…" in line for line in lines)
    width = next(line.index("queue") for line in lines if line.startswith(" trial"))
    names = "".join(line[:width].strip() for line in lines)
    for each in EXPERIMENTS["router-fairness"].scenarios({"queue": ["bfifo"]}, 1, quick=False):
        assert each.name in names


def test_list_names_the_papers(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    for paper in PAPERS:
        assert paper.authors in text


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
def test_an_example_can_be_copied_from_the_help(
    verb: Verb, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit):
        main([verb.name, "--help"])
    assert f"example: testbed {verb.example}" in capsys.readouterr().out.splitlines()


def test_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"testbed {importlib.metadata.version('tcp-testbed')}\n"


def test_a_closed_pipe_is_no_traceback(root: Path) -> None:
    argv = [str(root / ".venv/bin/testbed"), "plan", "router-bottleneck", "--commands"]
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout and process.stderr
    process.stdout.close()
    assert process.stderr.read() == ""
    assert process.wait() in (0, 1, -signal.SIGPIPE)


def test_an_interrupt_while_modules_load_is_no_traceback(root: Path) -> None:
    code = (
        "import os, signal, sys\n"
        "class Loading:\n"
        "    def find_spec(self, name, path, target=None):\n"
        "        if name == 'rich':\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Loading())\n"
        "from experiments.command import main\n"
        "main(['list'])\n"
    )
    argv = [sys.executable, "-c", code]
    done = subprocess.run(argv, check=False, capture_output=True, text=True, cwd=root)
    assert (done.returncode, done.stderr) == (-signal.SIGINT, "")


@pytest.mark.parametrize("text", ["[/] [red]x", ":smile:", "$\\frac{$", "[link=file:///x]"])
def test_nothing_that_is_printed_is_markup(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    table = Table("what", title=text)
    table.add_row(text)
    for console in (terminal.console, terminal.wide_console()):
        console.print(text)
        console.print(table)
    assert capsys.readouterr().out.count(text) == 6


def test_what_has_no_place_on_a_line_is_escaped(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> None:
        raise TestbedError("a\x1b[31m\ud800\nb", "c\r")

    monkeypatch.setattr("testbed.machine.leftovers.clean", refuse)
    assert main(["clean"]) == 1
    said = capsys.readouterr().err
    assert said == "testbed: a\\x1b[31m\\ud800\\nb\n    hint: c\\r\n"


def test_clean_with_nothing_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert main(["clean"]) == 0
    assert capsys.readouterr().out == "nothing was left behind\n"


@pytest.mark.parametrize(
    ("number", "hint"),
    [
        (errno.ENOSPC, "make room"),
        (errno.EACCES, "hint: `ls -ld`"),
        (errno.ENOTDIR, "hint: a part of the path is a file"),
        (errno.EIO, "hint: the disk cannot be read"),
    ],
)
def test_what_the_system_refuses_has_its_own_hint(
    number: int, hint: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse() -> None:
        raise OSError(number, os.strerror(number), "somewhere")

    monkeypatch.setattr("testbed.machine.leftovers.clean", refuse)
    assert main(["clean"]) == 1
    told = capsys.readouterr().err
    assert f"somewhere: {os.strerror(number)}" in told and hint in told


def test_an_error_that_says_all_has_no_hint_that_misleads() -> None:
    assert hint_for(OSError(errno.EPROTO, "Protocol error")) == ""
