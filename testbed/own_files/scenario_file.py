"""A scenario's file, with the files that it names read into it, if it is sound."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from testbed.errors import UsageError, listed
from testbed.own_files.topo_document import Document, with_graph
from testbed.plan.check import faults
from testbed.scenario.links.trace_files import with_traces
from testbed.scenario.model import Flow, Scenario
from testbed.scenario.reading import (
    FIELDS_HINT,
    LONGEST_BYTES,
    ScenarioDocument,
    parsed,
    read_document,
)
from testbed.scenario.workload.input_files import with_files
from testbed.store import SCENARIO

SUFFIX = ".json"


def in_file(path: Path) -> ScenarioDocument:
    """Return the scenario in a file; every fault is reported at once."""
    if not path.is_file():
        raise UsageError(
            f"{path}: {'not a file' if path.exists() else 'no such file'}",
            f"name an experiment (`testbed list`), or the {SCENARIO} of a trial",
        )
    with path.open("rb") as file:
        text = file.read(LONGEST_BYTES + 1)
    document = with_graph(parsed(text, str(path)), path.parent)
    return in_document(document, str(path), path.parent)


def in_document(document: Document, where: str, folder: Path = Path()) -> ScenarioDocument:
    """Return the scenario of JSON's types; the paths in it begin at `folder`."""
    read = read_document(document.data, where)
    found = dataclasses.replace(
        read,
        scenario=_with_files(read.scenario, where, folder),
        named=read.named and with_traces(read.named, folder),
        left_out=document.left_out,
    )
    if sentences := found.in_its_words(list(faults(found.scenario))):
        raise UsageError(f"{where}: {listed(sentences)}", FIELDS_HINT)
    return found


def _with_files(scenario: Scenario, where: str, folder: Path) -> Scenario:
    """Return the scenario with what the files that it names hold: it then stands alone."""
    try:
        flows = tuple(_flow_with_files(flow, folder) for flow in scenario.flows)
        return dataclasses.replace(with_traces(scenario, folder), flows=flows)
    except UsageError as error:
        raise UsageError(f"{where}: {error.message}", error.hint) from error


def _flow_with_files(flow: Flow, folder: Path) -> Flow:
    """What a workload's files hold, and where a program's are, whoever runs the scenario again."""
    if flow.workload:
        return dataclasses.replace(flow, workload=with_files(flow.workload, folder))
    if flow.command:
        files = tuple(str((folder / name).absolute()) for name in flow.command.files)
        return dataclasses.replace(flow, command=dataclasses.replace(flow.command, files=files))
    return flow
