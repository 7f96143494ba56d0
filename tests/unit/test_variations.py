"""What papers leave open, varied a little, and what the ledger says of answers that change."""

from __future__ import annotations

import dataclasses

import pandas as pd
import pytest

from analysis.claims.judgement import ClaimVerdict
from analysis.claims.ledger import Answer, ledger_frame
from analysis.claims.samples import split_variations
from analysis.metrics.metric_rows import with_axes
from experiments.catalogue import EXPERIMENTS
from experiments.rajore_gupta_sikka_jain.video_for_tests import video_metrics
from testbed.plan.check import validate
from testbed.scenario.model import Scenario
from testbed.scenario.variations import (
    VARIATION_AXIS,
    VARIATIONS,
    is_varied,
    with_variations,
)
from tests import claims_tables as made
from tests.papers import PAPERS, answers

EVERY = 9  # of an experiment's scenarios, varied here


def one(name: str, **settings: str) -> Scenario:
    """The first scenario of an experiment with these settings."""
    chosen = {key: [value] for key, value in settings.items()}
    return EXPERIMENTS[name].scenarios(chosen, 1, quick=False)[0]


def varied(scenario: Scenario) -> dict[str, Scenario]:
    """By variation."""
    plain, *others = with_variations([scenario])
    assert plain == scenario
    return {each.axes[VARIATION_AXIS]: each for each in others}


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_all_of_them_can_run(name: str) -> None:
    plain = EXPERIMENTS[name].scenarios({}, 1, quick=False)[::EVERY]
    found = with_variations(plain)
    assert len(found) > 3 * len(plain)
    assert len({each.name for each in found}) == len(found)
    for each in found:
        validate(each)
        assert is_varied(each) == (each not in plain)


def test_what_changes_nothing_is_not_run() -> None:
    own = varied(one("router-bottleneck", queue="bfifo"))
    assert "other-ecn" not in own  # nothing there marks
    assert "linux-timer" not in own  # it has Linux's
    assert "other-ecn" in varied(one("router-bottleneck", queue="codel"))
    assert "starts-within-1s" not in varied(one("router-fairness", within_s="1"))


def test_a_buffer_of_nine_packets_has_one_more_or_less() -> None:
    own = varied(one("dumbbell-load"))
    limits = {name: each.network.bottleneck_queue.limit_packets for name, each in own.items()}
    assert (limits["buffers-less"], limits["buffers-more"], limits["delays-more"]) == (8, 10, 9)
    access = own["buffers-less"].network.links[1].forward.queue
    assert access and access.limit_packets == 8


def test_a_larger_buffer_has_five_percent() -> None:
    own = varied(one("router-bottleneck", queue="bfifo"))
    assert own["buffers-less"].network.bottleneck_queue.limit_bytes == 104_857 - 5243
    assert own["buffers-more"].network.bottleneck_queue.limit_bytes == 104_857 + 5243


def test_all_delays_are_varied_together() -> None:
    plain = one("dumbbell-load")
    longer = varied(plain)["delays-more"]
    for old, new in (
        (plain.network.bottleneck.delay_ms, longer.network.bottleneck.delay_ms),
        (plain.network.links[1].forward.delay_ms, longer.network.links[1].forward.delay_ms),
    ):
        assert new == pytest.approx(1.05 * old, abs=1e-3)  # whole microseconds
    assert dataclasses.replace(longer, network=plain.network).flows == plain.flows


def test_ecn_is_the_other_way_round() -> None:
    asked = {q: varied(one("router-bottleneck", queue=q))["other-ecn"].asks_ecn for q in QUEUES}
    assert asked == {"codel": True, "codel-ecn": False}


QUEUES = ("codel", "codel-ecn")


def fairness(bbr: float, variation: str = "") -> pd.DataFrame:
    """router-fairness with BBR's share, varied or not."""
    shares = made.FOUR_SHARES | {"bbr": bbr}
    table = made.fairness_metrics(lambda _place: {f: {"share": s} for f, s in shares.items()})
    if not variation:
        return table
    return table.assign(
        axes=table["axes"] + f"; {VARIATION_AXIS}={variation}", trial=table["trial"] + variation
    )


def shares_of_bbr(*tables: pd.DataFrame) -> Answer:
    """The answer to GYS3.1."""
    found = answers({"router-fairness": pd.concat(tables, ignore_index=True)})
    return next(each for each in found if each.id == "GYS3.1")


def test_an_answer_that_survives() -> None:
    found = shares_of_bbr(fairness(0.65), fairness(0.66, "buffers-less"))
    assert found.verdict is ClaimVerdict.SUPPORTED
    assert found.survival == "the same with all that was varied"


def test_an_answer_that_does_not() -> None:
    found = shares_of_bbr(
        fairness(0.65), fairness(0.64, "buffers-less"), fairness(0.2, "delays-more")
    )
    assert found.verdict is ClaimVerdict.SUPPORTED  # by the paper's own set-up
    assert found.survival == "supported to contradicted: contradicted with delays 5 % longer"
    frame = ledger_frame([found])
    assert frame["survival"][0] == found.survival


def test_what_was_not_varied_has_no_readings() -> None:
    """Trials of one profile were varied: the other one's answer was not put to the test."""

    def of_profile(name: str, table: pd.DataFrame) -> pd.DataFrame:
        return table.assign(axes=table["axes"] + f"; profile={name}", trial=table["trial"] + name)

    tables = (
        of_profile("ns2", fairness(0.65)),
        of_profile("modern", fairness(0.65)),
        of_profile("ns2", fairness(0.2, "delays-more")),
    )
    found = answers({"router-fairness": pd.concat(tables, ignore_index=True)})
    survival = {each.profile: each.survival for each in found if each.id == "GYS3.1"}
    told = "supported to contradicted: contradicted with delays 5 % longer"
    assert survival == {"ns2": told, "modern": ""}


def test_trials_that_a_claim_is_not_tested_on_are_no_reading() -> None:
    """As those of the server's setting, where the claim is about the laptop's."""

    def set_on(end: str, table: pd.DataFrame) -> pd.DataFrame:
        return table.assign(axes=table["axes"] + f"; setting={end}", trial=table["trial"] + end)

    paper = next(each for each in PAPERS if each.id == "GYS")
    claim = next(each for each in paper.claims if each.id == "GYS3.1")
    on_laptop = dataclasses.replace(
        claim, judge=lambda group: claim.judge(group.where(setting="laptop"))
    )
    trials = [set_on(end, fairness(0.65)) for end in ("laptop", "server")]
    own = dataclasses.replace(paper, claims=(on_laptop,))
    for end, survival in (("server", ""), ("laptop", "the same with all that was varied")):
        rows = pd.concat([*trials, set_on(end, fairness(0.66, "delays-more"))], ignore_index=True)
        (found,) = answers({"router-fairness": rows}, papers=[own])
        assert (found.verdict, found.survival) == (ClaimVerdict.SUPPORTED, survival)


def test_a_claim_may_have_no_trial_that_is_not_varied() -> None:
    """Each of its trials has a varied one beside it, which stands in its place."""
    plain = video_metrics(seeds=2)
    other = plain.assign(
        axes=plain["axes"] + f"; {VARIATION_AXIS}=delays-more", trial=plain["trial"] + "delays-more"
    )
    found = answers({"video-access": pd.concat([plain, other], ignore_index=True)})
    ours = [each for each in found if each.id.startswith("RGSJ")]
    assert {each.survival for each in ours} == {"the same with all that was varied"}


def test_varied_trials_are_no_repeats() -> None:
    plain = shares_of_bbr(fairness(0.65))
    both = shares_of_bbr(fairness(0.65), fairness(0.2, "delays-more"))
    assert dataclasses.replace(both, varied=()) == plain


def on_kernel(name: str, table: pd.DataFrame) -> pd.DataFrame:
    """The same trials on another kernel."""
    return table.assign(axes=table["axes"] + f"; kernel={name}", trial=table["trial"] + name)


def test_another_kernel_is_a_reading() -> None:
    """And no repeat: with trials of two kernels as one sample the claim would be contradicted."""
    later = on_kernel("6.12", fairness(0.2))
    found = shares_of_bbr(fairness(0.65), later, on_kernel("6.12", fairness(0.66, "delays-more")))
    assert found.verdict is ClaimVerdict.SUPPORTED
    assert found.survival == "supported to contradicted: contradicted with kernel 6.12"
    assert [each.what for each in found.varied][1] == "delays 5 % longer, kernel 6.12"


def test_the_first_kernel_is_the_only_one() -> None:
    found = shares_of_bbr(on_kernel("6.12", fairness(0.65)), on_kernel("mine", fairness(0.2)))
    assert found.verdict is ClaimVerdict.SUPPORTED
    assert found.survival == "supported to contradicted: contradicted with kernel mine"


def test_cells_that_a_variation_leaves_alone_stay() -> None:
    """Only CoDel is varied by ECN: a claim that compares it with a FIFO still has the FIFO."""
    rows = with_axes(
        pd.DataFrame(
            {
                "axes": ["queue=bfifo", "queue=codel", f"queue=codel; {VARIATION_AXIS}=other-ecn"],
                "share": [1.0, 2.0, 3.0],
            }
        )
    )
    plain, others = split_variations(rows)
    assert list(plain["share"]) == [1.0, 2.0]
    assert sorted(others[VARIATIONS["other-ecn"][1]]["share"]) == [1.0, 3.0]
