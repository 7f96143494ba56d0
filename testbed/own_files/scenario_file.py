"""Scenarios in files and on the command line, with the files and the Topo that they name read in.

A Topo is named by `"topology": {"topo": …}` in JSON, or by the words of `--topo`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testbed.errors import UsageError, quoted
from testbed.faults import Fault, collected, refusal, usage_error, without_consequences
from testbed.own_files.topo_graph import split_settings, topo_graph
from testbed.plan.check import combined_faults
from testbed.scenario.model import Flow, plain
from testbed.scenario.network import NodeKind
from testbed.scenario.reading import (
    MAX_SCENARIO_BYTES,
    NETWORK_KEY,
    TOPOLOGY_KEY,
    ScenarioDocument,
    checked_document,
    parsed,
)
from testbed.scenario.trace import with_traces
from testbed.scenario.workload import with_input_files
from testbed.stacks.flows import with_stacks
from testbed.store.names import SCENARIO

TOPO_KEY, LINK_KEY = "topo", "link"
FLOW_HINT = "--flow h1,h2,variant=cubic"
DEFAULT_VARIANT = "cubic"  # of a TCP flow that names none


@dataclass(frozen=True)
class Document:
    """A scenario in JSON's types, without a Topo any more, and what of the Topo is not in it."""

    data: Any
    left_out: tuple[str, ...] = ()
    faults: tuple[Fault, ...] = ()  # that the data does not show


@dataclass(frozen=True)
class TopoReference:
    """A Mininet Topo class as it is; any field of a network may be given beside it."""

    topo: str
    """A class in a file with its arguments, `net.py:MyTopo,hosts=3`, or one of Mininet's own:
    `tree,2,2`."""
    link: str = ""
    """Options of all links that have none of their own: `bw=10,delay=5ms`."""


def with_topo_graph(data: Any, folder: Path) -> Document:
    """Return the data with a Topo replaced by its graph; file paths begin at `folder`."""
    topology = data.get(TOPOLOGY_KEY) if isinstance(data, dict) else None
    if not isinstance(topology, dict) or TOPO_KEY not in topology:
        return Document(data)  # whoever reads it tells its faults, with their places
    others = {key: value for key, value in topology.items() if key not in (TOPO_KEY, LINK_KEY)}
    name, link = topology[TOPO_KEY], topology.get(LINK_KEY, "")
    if not isinstance(name, str) or not isinstance(link, str):
        raise UsageError("topology: topo and link are texts", 'like "topo": "tree,2,2"')
    graph = topo_graph(name, link, folder)
    rest = {key: value for key, value in data.items() if key != TOPOLOGY_KEY}
    network = {**plain(graph.graph), **others}
    return Document({**rest, NETWORK_KEY: network}, graph.left_out, graph.faults)


def document_from_options(
    topo: str, link: str, flows: Iterable[str], duration_s: float
) -> Document:
    """Return the scenario of `--topo`, `--link`, `--flow` and `--duration`."""
    graph, faults, read = topo_graph(topo, link), list[Fault](), list[dict[str, Any]]()
    for text in flows:
        with collected(faults):
            read.append(_flow(text))
    if not (read or faults):
        hosts = [node.name for node in graph.graph.nodes if node.kind is NodeKind.HOST][:2]
        hint = f"--flow {','.join(hosts)},variant=cubic"
        faults.append(Fault(("flows",), "there is no flow", hint))
    data = {
        "experiment": graph.word,
        NETWORK_KEY: plain(graph.graph),
        "flows": _with_names(read),
        "duration_s": duration_s,
    }
    return Document(data, graph.left_out, (*graph.faults, *faults))


def _flow(text: str) -> dict[str, Any]:
    """Return the flow of `h1,h2,variant=cubic`: source, destination, and any of its fields."""
    settings = split_settings(text.split(","))
    ends = [str(each) for each in settings.positional]
    if len(ends) != 2:
        fault = f"not SRC,DST[,FIELD=VALUE…]: --flow {quoted(text)}"
        raise refusal("flows", message=fault, hint=FLOW_HINT)
    flow: dict[str, Any] = {"kind": "tcp", "src": ends[0], "dst": ends[1], **settings.named}
    if "stack" in flow:
        flow["kind"] = "stack"
    if flow["kind"] == "tcp":
        flow.setdefault("variant", DEFAULT_VARIANT)
    return flow


def _with_names(flows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the flows, each with a unique name: its ends, and a number if others have the same."""
    taken: dict[str, int] = {}
    for flow in flows:
        name = flow.setdefault("name", f"{flow['src']}-{flow['dst']}")
        taken[name] = taken.get(name, 0) + 1
        if taken[name] > 1:
            flow["name"] = f"{name}-{taken[name]}"
    return flows


JSON_SUFFIX = ".json"


def in_file(path: Path) -> ScenarioDocument:
    """Return the scenario in a file; every fault is reported at once."""
    if not path.is_file():
        raise UsageError(
            f"{path}: {'not a file' if path.exists() else 'no such file'}",
            f"name an experiment (`testbed list`), or the {SCENARIO} of a trial",
        )
    with path.open("rb") as file:
        text = file.read(MAX_SCENARIO_BYTES + 1)
    document = with_topo_graph(parsed(text, str(path)), path.parent)
    return in_document(document, str(path), path.parent)


def in_document(document: Document, where: str, folder: Path = Path()) -> ScenarioDocument:
    """Return the scenario of JSON's types; the paths in it begin at `folder`."""
    read, faults = checked_document(document.data, where)
    faults = [*document.faults, *without_consequences(faults, document.faults)]
    if read is not None:
        with collected(faults):  # of a file that the scenario names
            read = _with_files(read, folder)
            together = combined_faults(with_stacks(read.scenario), faults)
            faults += without_consequences(read.in_its_words(together), faults)
    if faults or read is None:
        raise usage_error(faults, where)
    return dataclasses.replace(read, left_out=document.left_out)


def _with_files(document: ScenarioDocument, folder: Path) -> ScenarioDocument:
    """Return the scenario with what the files that it names hold: it then stands alone."""
    scenario = with_traces(document.scenario, folder)
    flows = tuple(_flow_with_files(flow, folder) for flow in scenario.flows)
    return dataclasses.replace(
        document,
        scenario=dataclasses.replace(scenario, flows=flows),
        named=document.named and with_traces(document.named, folder),
    )


def _flow_with_files(flow: Flow, folder: Path) -> Flow:
    """Return the flow with its workload's files read, and absolute paths of its programs' files."""
    if flow.workload:
        return dataclasses.replace(flow, workload=with_input_files(flow.workload, folder))
    if flow.command:
        command = flow.command.with_files(lambda name: str((folder / name).absolute()))
        return dataclasses.replace(flow, command=command)
    if flow.stack and "/" in flow.stack:
        return dataclasses.replace(flow, stack=str((folder / flow.stack).absolute()))
    return flow
