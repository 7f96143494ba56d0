"""RGSJ's claims beyond yes and no: who was set to the variant, and numbers that are the same."""

from __future__ import annotations

import pandas as pd
import pytest

from analysis.claims.judgement import ClaimVerdict
from analysis.claims.ledger import Answer
from experiments.rajore_gupta_sikka_jain import video_for_tests as made
from experiments.rajore_gupta_sikka_jain.claims import PAPER
from experiments.rajore_gupta_sikka_jain.judges import LAPTOP, SERVER
from tests.claims_tables import SEEDS, Numbers
from tests.papers import answers

OF_THE_SERVER = {claim.id for claim in PAPER.claims if claim.settings}


def ledger(table: pd.DataFrame) -> dict[tuple[str, str], Answer]:
    """The answers by id and setting."""
    given = answers({"video-access": table})
    return {(each.id, each.setting): each for each in given if each.paper == "RGSJ"}


def laptops_numbers_are_cubics(place: dict[str, str]) -> dict[str, Numbers]:
    """As it is: what the laptop is set to changes nothing, to the byte."""
    if place["setting"] == LAPTOP and place["transport"] == "https":
        place = place | {"variant": "cubic"}
    return made.video_world(place)


@pytest.fixture(scope="module")
def as_it_is() -> dict[tuple[str, str], Answer]:
    return ledger(made.as_alike(made.video_metrics(laptops_numbers_are_cubics)))


def test_claims_of_a_variant_are_about_the_servers(
    as_it_is: dict[tuple[str, str], Answer],
) -> None:
    for (claim, setting), answer in as_it_is.items():
        assert bool(setting) == (claim in OF_THE_SERVER) and setting in ("", SERVER)
        trials = answer.evidence[0].trials
        assert trials and all(not setting or f"-{setting}-" in each for each in trials)
    assert (
        "on the laptop, where the paper set it, it has no effect"
        in as_it_is["RGSJ1", SERVER].tested
    )
    assert as_it_is["RGSJ1", SERVER].verdict is ClaimVerdict.SUPPORTED


def test_numbers_that_are_the_same_refute_an_order() -> None:
    table = made.video_metrics()
    table.loc[table["axes"].str.contains("wifi-good"), "loaded_s"] = 120.5
    answer = ledger(table)["RGSJ1", SERVER]
    assert answer.verdict is ClaimVerdict.REFUTED  # the paper prints 13 and 15 s
    assert "veno equal to cubic (120.5 s, 120.5 s; the paper: 109.0 s, 122.0 s)" in answer.statement
    assert answer.interval.startswith(
        f"+0.0 s in {SEEDS} of {SEEDS} networks (95 %: in at least 78% of networks); margin 6.5 s"
    )
    same = {row.what: row.ours for row in answer.rows}
    assert same["networks with one time to load for all"] == f"{SEEDS} of {SEEDS}"


def test_whose_setting_governs(as_it_is: dict[tuple[str, str], Answer]) -> None:
    answer = as_it_is["RGSJ0", ""]
    assert answer.verdict is ClaimVerdict.CONTRADICTED and answer.n == SEEDS
    assert [verdict for _, verdict, _ in answer.beside] == [ClaimVerdict.SUPPORTED]
    rows = {row.what: row.ours for row in answer.rows}
    assert rows["networks with the same for all, set on the laptop"] == f"{SEEDS} of {SEEDS}"
    assert rows["spread of load times, wifi-good, set on the laptop"] == "0.0 s in all"
    assert "14.9 s" in rows["spread of load times, wifi-good, set on the server"]


def test_a_single_packet_is_a_difference() -> None:
    """Of one variant, on one network, in every seed."""
    table = made.as_alike(made.video_metrics(laptops_numbers_are_cubics))
    other = table["axes"].str.contains("shaped; variant=vegas; transport=https; setting=receiver")
    table.loc[other, "sent_packets"] += 1
    assert ledger(table)["RGSJ0", ""].verdict is ClaimVerdict.SUPPORTED


def test_a_setting_that_was_not_run_is_open() -> None:
    table = made.video_metrics()
    laptop, server = (
        ledger(table[table["axes"].str.contains(f"setting={each}")]) for each in (LAPTOP, SERVER)
    )
    assert server["RGSJ1", SERVER].verdict is ClaimVerdict.SUPPORTED
    assert server["RGSJ0", ""].verdict is ClaimVerdict.OPEN
    for claim, setting in (("RGSJ1", SERVER), ("RGSJ6.1", SERVER), ("RGSJ7.1", "")):
        answer = laptop[claim, setting]
        assert answer.verdict is ClaimVerdict.OPEN and "no usable trials" in answer.why.lower()


def test_without_quic_the_claims_of_tcp_are_answered() -> None:
    table = made.video_metrics()
    given = ledger(table[table["axes"].str.contains("transport=https")])
    assert given["RGSJ1", SERVER].verdict is ClaimVerdict.SUPPORTED
    assert given["RGSJ7.2", ""].verdict is ClaimVerdict.OPEN


def test_videos_at_other_bitrates_do_not_count() -> None:
    table = made.video_metrics()
    other = table.assign(axes=table["axes"].str.replace("rule=240p", "rule=buffer"))
    other["trial"] += "-buffer"
    other["loaded_s"] = 300.0
    both = ledger(pd.concat((table, other)))
    assert both["RGSJ1", SERVER].statement == ledger(table)["RGSJ1", SERVER].statement


def test_a_video_that_never_came_leaves_the_claim_open() -> None:
    table = made.video_metrics()
    late = table["axes"].str.contains("ethernet; variant=veno; transport=https; setting=sender")
    table.loc[late, "loaded_s"] = float("nan")
    assert ledger(table)["RGSJ2", SERVER].verdict is ClaimVerdict.OPEN
