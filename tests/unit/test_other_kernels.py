"""What the ledger says of an answer that another kernel changes."""

from __future__ import annotations

import dataclasses

import pandas as pd

from analysis.claims.judgement import ClaimVerdict
from analysis.claims.ledger import Answer, ledger_frame
from analysis.claims.samples import split_kernels
from analysis.metrics.metric_rows import with_axes
from experiments.rajore_gupta_sikka_jain.video_for_tests import video_metrics
from tests import claims_tables as made
from tests.papers import PAPERS, answers


def fairness(bbr: float, kernel: str = "") -> pd.DataFrame:
    """router-fairness with BBR's share, on a kernel."""
    shares = made.FOUR_SHARES | {"bbr": bbr}
    table = made.fairness_metrics(lambda _place: {f: {"share": s} for f, s in shares.items()})
    return on_kernel(kernel, table) if kernel else table


def on_kernel(name: str, table: pd.DataFrame) -> pd.DataFrame:
    """The same trials on another kernel."""
    return table.assign(axes=table["axes"] + f"; kernel={name}", trial=table["trial"] + name)


def shares_of_bbr(*tables: pd.DataFrame) -> Answer:
    """The answer to GYS3.1."""
    found = answers({"router-fairness": pd.concat(tables, ignore_index=True)})
    return next(each for each in found if each.id == "GYS3.1")


def test_an_answer_that_survives() -> None:
    found = shares_of_bbr(fairness(0.65), fairness(0.66, "7.3"))
    assert found.verdict is ClaimVerdict.SUPPORTED
    assert found.survival == "the same on each kernel"


def test_an_answer_that_does_not() -> None:
    found = shares_of_bbr(fairness(0.65), fairness(0.64, "7.3"), fairness(0.2, "6.12"))
    assert found.verdict is ClaimVerdict.SUPPORTED  # by the paper's own set-up
    assert found.survival == "supported to contradicted: contradicted with kernel 6.12"
    frame = ledger_frame([found])
    assert frame["survival"][0] == found.survival


def test_a_profile_that_ran_on_one_kernel_has_no_readings() -> None:
    """Trials of one profile were varied: the other one's answer was not put to the test."""

    def of_profile(name: str, table: pd.DataFrame) -> pd.DataFrame:
        return table.assign(axes=table["axes"] + f"; profile={name}", trial=table["trial"] + name)

    tables = (
        of_profile("ns2", fairness(0.65)),
        of_profile("modern", fairness(0.65)),
        of_profile("ns2", fairness(0.2, "6.12")),
    )
    found = answers({"router-fairness": pd.concat(tables, ignore_index=True)})
    survival = {each.profile: each.survival for each in found if each.id == "GYS3.1"}
    told = "supported to contradicted: contradicted with kernel 6.12"
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
    for end, survival in (("server", ""), ("laptop", "the same on each kernel")):
        rows = pd.concat([*trials, set_on(end, fairness(0.66, "6.12"))], ignore_index=True)
        (found,) = answers({"router-fairness": rows}, papers=[own])
        assert (found.verdict, found.survival) == (ClaimVerdict.SUPPORTED, survival)


def test_a_claim_may_have_trials_on_both_kernels_alone() -> None:
    """Each of its trials has a varied one beside it, which stands in its place."""
    plain = video_metrics(seeds=2)
    other = on_kernel("6.12", plain)
    found = answers({"video-access": pd.concat([plain, other], ignore_index=True)})
    ours = [each for each in found if each.id.startswith("RGSJ")]
    assert {each.survival for each in ours} == {"the same on each kernel"}


def test_another_kernels_trials_are_no_repeats() -> None:
    plain = shares_of_bbr(fairness(0.65))
    both = shares_of_bbr(fairness(0.65), fairness(0.2, "6.12"))
    assert dataclasses.replace(both, varied=()) == plain


def test_the_first_kernel_is_the_only_one() -> None:
    found = shares_of_bbr(on_kernel("6.12", fairness(0.65)), on_kernel("mine", fairness(0.2)))
    assert found.verdict is ClaimVerdict.SUPPORTED
    assert found.survival == "supported to contradicted: contradicted with kernel mine"


def test_cells_that_ran_on_one_kernel_stay() -> None:
    """Only CoDel ran on both: a claim that compares it with a FIFO still has the FIFO."""
    axes = ["queue=bfifo", "queue=codel", "queue=codel; kernel=6.12"]
    rows = with_axes(pd.DataFrame({"axes": axes, "share": [1.0, 2.0, 3.0]}))
    plain, others = split_kernels(rows)
    assert list(plain["share"]) == [1.0, 2.0]
    assert sorted(others["kernel 6.12"]["share"]) == [1.0, 3.0]
