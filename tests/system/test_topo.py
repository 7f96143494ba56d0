"""Mininet's examples, unchanged, on real kernels: every pair of hosts, and the verdict is sound."""

from __future__ import annotations

import csv
import itertools
from pathlib import Path

from testbed.own_files.scenario_file import document_from_options
from testbed.scenario.model import Scenario
from testbed.scenario.network import NodeKind
from testbed.scenario.reading import read_document
from tests.lab import run_trials
from tests.unit.test_topo import EXAMPLES, LINK


def scenario(topo: str, link: str) -> Scenario:
    """A TCP flow between the first two hosts, and little UDP between all other pairs."""
    found = read_document(document_from_options(topo, link, ["h1,h2"], 2.0).data).scenario
    nodes = found.network.nodes
    hosts = [node.name for node in nodes if node.kind is NodeKind.HOST]
    pairs = list(itertools.combinations(hosts, 2))[1:]
    little = [f"{one},{other},kind=cbr,rate_mbit=.1,packet_bytes=500" for one, other in pairs]
    return read_document(document_from_options(topo, link, ["h1,h2", *little], 2.0).data).scenario


def test_all_hosts_of_mininets_examples_reach_each_other(tmp_path: Path) -> None:
    """Hosts behind switches, a router between three networks; each pair is asked for an echo."""
    examples = [
        scenario(f"{EXAMPLES}/linuxrouter.py:NetworkTopo", LINK),
        scenario("tree,depth=2,fanout=2", LINK),
    ]
    for trial in run_trials(examples, tmp_path):
        with (trial.path / "samples" / "idle.csv").open() as file:
            answered = {(row["src"], row["dst"]) for row in csv.DictReader(file) if row["rtt_ms"]}
        assert len(answered) == len(trial.scenario.flows)
