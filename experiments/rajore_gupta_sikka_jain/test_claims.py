"""RGSJ's claims beyond yes and no: who was set to the variant, and numbers that are the same."""

from __future__ import annotations

import pandas as pd
import pytest

from analysis.claims.judgement import ClaimVerdict
from analysis.claims.ledger import Answer, numbers_frame
from experiments.rajore_gupta_sikka_jain import video_for_tests as made
from experiments.rajore_gupta_sikka_jain.claims import PAPER
from experiments.rajore_gupta_sikka_jain.printed import RGSJ_LENGTHS, RGSJ_PACKET_BYTES, RGSJ_SHAPED
from experiments.rajore_gupta_sikka_jain.selection import (
    COUNT,
    DURATION,
    LAPTOP,
    SERVER,
    VIDEO_RATE,
    middle,
)
from tests.claims_tables import SEEDS, Numbers
from tests.papers import answers

OF_BOTH = {claim.id for claim in PAPER.claims if claim.settings}


def ledger(table: pd.DataFrame) -> dict[tuple[str, str], Answer]:
    """The answers by id and setting."""
    found = answers({"video-access": table})
    return {(each.id, each.setting): each for each in found if each.paper == "RGSJ"}


def laptops_numbers_are_cubics(place: dict[str, str]) -> dict[str, Numbers]:
    """As it is: what the laptop is set to changes nothing, to the byte."""
    if place["setting"] == LAPTOP and place["transport"] == "https":
        place = place | {"variant": "cubic"}
    return made.video_world(place)


@pytest.fixture(scope="module")
def as_it_is() -> dict[tuple[str, str], Answer]:
    table = made.video_metrics(laptops_numbers_are_cubics)
    # one seed, one course: the noise of a trial's name is none of the network's
    first = table["axes"].str.contains("setting=receiver") & table["axes"].str.contains("https")
    for _, rows in table[first].groupby([table["axes"].str.split(";").str[0], "seed"]):
        numbers = rows.select_dtypes("number").columns
        table.loc[rows.index, numbers] = rows[numbers].iloc[0].to_numpy()
    return ledger(table)


def test_each_claim_is_answered_for_both_settings(
    as_it_is: dict[tuple[str, str], Answer],
) -> None:
    assert set(as_it_is) == {("RGSJ0", "")} | {
        (claim, setting) for claim in OF_BOTH for setting in (LAPTOP, SERVER)
    }
    for (_, setting), answer in as_it_is.items():
        trials = answer.evidence[0].trials
        assert trials and all(not setting or f"-{setting}-" in each for each in trials)
    assert "on the laptop, as in the paper" in as_it_is["RGSJ1", LAPTOP].tested
    assert "on the server" in as_it_is["RGSJ1", SERVER].tested


def test_numbers_that_are_the_same_refute_no_order(as_it_is: dict[tuple[str, str], Answer]) -> None:
    laptop = as_it_is["RGSJ1", LAPTOP]
    assert laptop.verdict is ClaimVerdict.REFUTED  # the paper prints 13 and 15 s
    assert "veno equal to cubic (122.0 s, 122.0 s; the paper: 109.0 s, 122.0 s)" in laptop.statement
    assert laptop.interval.startswith(
        f"+0.0 s in {SEEDS} of {SEEDS} networks (95 %: in at least 78% of networks); margin 6.5 s"
    )
    same = {row.what: row.ours for row in laptop.rows}
    assert same["seeds with the same number for all three, time to load"] == f"{SEEDS} of {SEEDS}"
    assert as_it_is["RGSJ1", SERVER].verdict is ClaimVerdict.SUPPORTED


def test_whose_setting_governs(as_it_is: dict[tuple[str, str], Answer]) -> None:
    answer = as_it_is["RGSJ0", ""]
    assert answer.verdict is ClaimVerdict.CONTRADICTED and answer.n == SEEDS
    assert answer.statement.startswith("set on the laptop: veno equal to cubic and vegas (all ")
    rows = {row.what: row.ours for row in answer.rows}
    assert rows["spread of load times, wifi-good, set on the laptop"] == "0.0 s"
    assert rows["spread of load times, wifi-good, set on the server"].startswith("14.9 s (")
    assert rows["largest spread of duplicate ACKs, any network and seed"].startswith("0 set on")


def test_a_setting_that_was_not_run_is_open() -> None:
    table = made.video_metrics()
    found = ledger(table[table["axes"].str.contains("setting=sender")])
    assert found["RGSJ1", SERVER].verdict is ClaimVerdict.SUPPORTED
    for claim in ("RGSJ1", "RGSJ6.1", "RGSJ8.1"):
        answer = found[claim, LAPTOP]
        assert answer.verdict is ClaimVerdict.OPEN and "no usable trials" in answer.why.lower()
    assert found["RGSJ0", ""].verdict is ClaimVerdict.OPEN


def test_without_quic_the_claims_of_tcp_are_answered() -> None:
    table = made.video_metrics()
    found = ledger(table[table["axes"].str.contains("transport=https")])
    assert found["RGSJ1", SERVER].verdict is ClaimVerdict.SUPPORTED
    assert found["RGSJ7.2", SERVER].verdict is ClaimVerdict.OPEN


def test_videos_at_other_bitrates_do_not_count() -> None:
    table = made.video_metrics()
    other = table.assign(axes=table["axes"].str.replace("rule=240p", "rule=buffer"))
    other["trial"] += "-buffer"
    other["loaded_s"] = 300.0
    both = ledger(pd.concat((table, other)))
    assert both["RGSJ1", SERVER].statement == ledger(table)["RGSJ1", SERVER].statement


def test_quics_congestion_control_is_the_servers_own() -> None:
    """The paper does not say which it was: answers that depend on it stand side by side."""
    table = made.video_metrics()
    cubic = table["axes"].str.contains("cubic") & table["axes"].str.contains("quic")
    table.loc[cubic, "page_s"] = 100.0
    answer = ledger(table)["RGSJ7.1", SERVER]
    assert answer.in_words == "by cubic contradicted, by reno supported"


def test_a_video_that_never_came_leaves_the_claim_open() -> None:
    table = made.video_metrics()
    late = table["axes"].str.contains("ethernet; variant=veno; transport=https; setting=sender")
    table.loc[late, "loaded_s"] = float("nan")
    assert ledger(table)["RGSJ2", SERVER].verdict is ClaimVerdict.OPEN


def test_numbers_say_whose_setting_they_are_of(as_it_is: dict[tuple[str, str], Answer]) -> None:
    frame = numbers_frame(as_it_is.values())
    loads = frame[frame["what"] == "median time to load, veno"]
    assert set(zip(loads["id"], loads["setting"], strict=True)) >= {
        ("RGSJ1", LAPTOP),
        ("RGSJ1", SERVER),
    }
    assert set(loads["paper"]) == {"109 s", "112 s"}


def test_medians_with_their_range() -> None:
    assert middle(DURATION, {1: 3.0, 2: 1.0, 3: 2.0}) == "2.0 s (1.0 to 3.0)"
    assert middle(VIDEO_RATE, {1: 0.328, 2: 0.328}) == "41.0 KB/s"
    assert middle(COUNT, {1: float("nan")}) == "not known"


def test_the_papers_numbers_agree_with_each_other() -> None:
    """Copied from tables whose sums and medians are printed too."""
    for transport, rows in RGSJ_LENGTHS.items():
        whole, *buckets = rows
        assert sum(row.count for row in buckets) == whole.count
        mean = sum(row.count * (row.average or 0) for row in buckets) / whole.count
        assert mean == pytest.approx(whole.average, abs=0.01)
        assert whole.average == RGSJ_PACKET_BYTES[transport]["cubic"]
    medians = {
        what: {name: sorted(runs)[2] for name, runs in variants.items()}
        for what, variants in RGSJ_SHAPED.items()
    }
    assert medians["KB/s"] == {"cubic": 41, "veno": 41, "vegas": 40}
    assert medians["retransmitted bytes"] == {"cubic": 49587, "veno": 38535, "vegas": 16852}
    assert medians["duplicate ACKs"] == {"cubic": 249, "veno": 134, "vegas": 121}
    assert set(medians["out of order"].values()) == {0}
