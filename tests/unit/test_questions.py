"""docs/questions.md: its commands can be run, and their scenarios have no faults."""

from __future__ import annotations

import re
import shlex

import pytest

from benchmarks.gallery import DOCS, QUESTIONS
from experiments.catalogue import EXPERIMENTS
from testbed.cli.parser import build_parser
from testbed.cli.run import selected
from testbed.plan.check import validate

TEXT = (DOCS / "questions.md").read_text()
COMMANDS = re.findall(r"^    testbed (.+)$", TEXT, re.M)


def test_there_are_seventeen_and_every_file_is_in_one() -> None:
    assert len(re.findall(r"^\*\*.+\?\*\*", TEXT, re.M)) == 17 <= len(COMMANDS)
    words = " ".join(COMMANDS + [path.read_text() for path in QUESTIONS.glob("*.json")])
    for path in QUESTIONS.iterdir():
        assert path.name in words, path.name


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_can_be_run(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(QUESTIONS)
    options = build_parser().parse_args(shlex.split(command))
    if options.verb == "run":
        options.experiments = EXPERIMENTS
        scenarios = selected(options).scenarios(1)
        assert scenarios
        for scenario in scenarios:
            validate(scenario)
