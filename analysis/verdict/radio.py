"""Was the radio link the one that was asked for: the station on it, the other stations' share?"""

from __future__ import annotations

from collections.abc import Iterator

from analysis.trials.evidence import Evidence
from analysis.verdict.checks import Check, compare, same, unknown

NO_REPORT = "the medium left no report"


def radio(evidence: Evidence) -> Iterator[Check]:
    """Of the link that is a radio, if there is one."""
    for name, path in evidence.trial.scenario.topology.links.items():
        if path.radio is None:
            continue
        report = evidence.medium
        if report is None:
            for check in ("radio", "radio share"):
                yield unknown(check, name, NO_REPORT)
            continue
        found = [f"{report['signal_dbm']} dBm", *([] if report["joined"] else ["left"])]
        yield same("radio", name, ", ".join(found), f"{path.radio.signal_dbm} dBm")
        share = report["others"]["air_s"] / report["seconds"]
        yield compare("radio share", name, evidence.engine, share, path.radio.busy)
