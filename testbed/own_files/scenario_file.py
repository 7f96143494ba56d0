"""A scenario's file, with the files that it names read into it, if it is sound."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from testbed.errors import UsageError
from testbed.own_files.topo_document import Document, with_graph
from testbed.plan.validate import faults
from testbed.scenario.form.positions import located
from testbed.scenario.form.reading import FIELDS_HINT, LONGEST_BYTES, decoded, parsed
from testbed.scenario.links.trace_files import with_traces
from testbed.scenario.model import Flow, Scenario
from testbed.scenario.workload.input_files import with_files
from testbed.store import SCENARIO

SUFFIX = ".json"


@dataclasses.dataclass(frozen=True)
class Found:
    """A scenario, and sentences on what of the user's is not in it."""

    scenario: Scenario
    left_out: tuple[str, ...] = ()


def in_file(path: Path) -> Found:
    """The scenario in a file; every fault is told with its line."""
    if not path.is_file():
        raise UsageError(
            f"{path}: {'not a file' if path.exists() else 'no such file'}",
            f"name an experiment (`testbed list`), or the {SCENARIO} of a trial",
        )
    with path.open("rb") as file:
        text = decoded(file.read(LONGEST_BYTES + 1), str(path))
    document = with_graph(parsed(text, str(path)), path.parent)
    return in_document(document, str(path), text, path.parent)


def in_document(document: Document, where: str, text: str = "", folder: Path = Path()) -> Found:
    """The scenario of JSON's types, which stand in `text` if anywhere; paths begin at `folder`."""
    scenario = _with_files(Scenario.from_data(document.data, where, text), where, folder)
    if found := list(faults(scenario)):
        raise UsageError(located(where, text, found), FIELDS_HINT)
    return Found(scenario, document.left_out)


def _with_files(scenario: Scenario, where: str, folder: Path) -> Scenario:
    """The scenario with what the files that it names hold: it then stands alone."""
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
