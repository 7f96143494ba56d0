"""A link on which packets overtake others, in the guest: as many as the kernel says, by chance."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from analysis.trials.packets import TrialPackets
from analysis.verdict.checks import Grade
from analysis.verdict.verdict import judge
from testbed.store.reading import open_trial
from tests.doctored import edit
from tests.lab import run_trials
from tests.scenarios import router, with_network
from tests.sealing import seal


def unlike_the_captures(data: dict[str, list[dict[str, Any]]]) -> None:
    for each in data["wires"]:
        each["requeues"] = 0


def test_packets_overtake_and_the_verdict_counts_them(tmp_path: Path) -> None:
    """Both ways, so that some of the echoes before the flow may arrive early too."""
    plain = router(variant="cubic", rate_mbit=8, delay_ms=1, duration_s=3)
    both = with_network(plain, access={"delay_ms": 10, "reorder": 0.1})
    (trial,) = run_trials([both], tmp_path)
    found = TrialPackets(trial).flow("receiver", trial.record.flows[0])
    assert found is not None and found.data["out_of_order"].sum() > 50
    edit(trial.path / "samples" / "qdiscs.json", unlike_the_captures)
    verdict = judge(open_trial(seal(trial.path)))
    assert verdict is not None
    bad = {each.name for each in verdict.checks if each.verdict is Grade.INVALID}
    assert bad == {"overtaking", "share ahead"}
