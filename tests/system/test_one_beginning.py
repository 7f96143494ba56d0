"""A trial's packets depend neither on how it is set up (kernel/patches/0028) nor on who looks."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import set_ups
from tests.lab import needs_a_seen_checkout

# PIE's timer, RED and netem's dice, the ports of four connections, a radio's air, keys of TLS
QUICK_TRIALS = (
    "queue-pie",
    "flows-parallel",
    "access-radio",
    "queue-red",
    "access-netem",
    "netem-cong",
)
SCENARIOS = list(set_ups.scenarios())


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory, full: bool, with_slow: bool) -> set_ups.Results:
    quick = QUICK_TRIALS if with_slow else QUICK_TRIALS[:3]
    chosen = [each for each in SCENARIOS if full or each.label.startswith(quick)]
    return chosen, set_ups.run(tmp_path_factory.mktemp("usual"), chosen, "none")


# what does everything at once, and who looks; the others say which thing it is
QUICK_NAMES = ("all", "bottleneck")
MARKS = {"path": (pytest.mark.slow, needs_a_seen_checkout)}


@pytest.mark.parametrize(
    "name",
    [
        name if name in QUICK_NAMES else pytest.param(name, marks=MARKS.get(name, pytest.mark.slow))
        for name in set_ups.NAMES
    ],
)
def test_the_packets_stay_the_same(
    name: str, usual: set_ups.Results, tmp_path: Path, full: bool
) -> None:
    chosen, hashes = usual
    if name in set_ups.VARIATIONS and name != "all" and not full:  # a third, another one each
        third = slice(set_ups.NAMES.index(name) % 3, None, 3)
        chosen, hashes = chosen[third], hashes[third]
    others = set_ups.run(tmp_path, chosen, name)
    pairs = zip(chosen, hashes, others, strict=True)
    found = {each.label: set_ups.difference(one, other) for each, one, other in pairs}
    assert "same" in found.values()
    # `NONE`: no capture is taken both ways
    assert not [label for label, word in found.items() if word == "DIFFERENT"]
    assert name in set_ups.VIEWS or "NONE" not in found.values()
