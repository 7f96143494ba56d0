"""Checks of a radio link: the station's signal, and the share of the other stations."""

from __future__ import annotations

from collections.abc import Iterator

from analysis.trials.radio import read_medium
from analysis.verdict.checks import Check, compare, same, unknown
from analysis.verdict.evidence import Evidence
from testbed.scenario.model import Topology

NO_REPORT = "the medium left no report"


def radio(evidence: Evidence) -> Iterator[Check]:
    """Both checks of every radio link."""
    topology = evidence.trial.scenario.topology
    links = topology.links.items() if isinstance(topology, Topology) else ()
    for name, path in links:
        if path.radio is None:
            continue
        report = read_medium(evidence.trial)
        if report is None:
            for check in ("radio", "radio share"):
                yield unknown(check, name, NO_REPORT)
            continue
        found = [f"{report['signal_dbm']} dBm", *([] if report["joined"] else ["left"])]
        yield same("radio", name, ", ".join(found), f"{path.radio.signal_dbm} dBm")
        share = report["others"]["air_s"] / report["seconds"]
        yield compare("radio share", name, evidence.virtual_time, share, path.radio.busy)
