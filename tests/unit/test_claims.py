"""The ledger: every claim answered yes, no and not known from tables made by hand."""

from __future__ import annotations

import dataclasses
import json
import math
import re
from pathlib import Path

import pandas as pd
import pytest

from analysis.claims.judgement import ClaimVerdict
from analysis.claims.ledger import Answer, ledger_frame, ledger_json, numbers_frame
from analysis.claims.time_windows import delay_ms
from analysis.results.reduction import reduce_trial, reduction_of
from experiments.kapre_saxena_joshi_hattikar.jh_claims import straightness
from experiments.parvez_mahanti_williamson import newreno_for_tests as newreno
from experiments.rajore_gupta_sikka_jain import video_for_tests as video
from testbed.store.reading import open_trial
from tests import claims_tables as made
from tests.claims_tables import Numbers
from tests.papers import PAPERS, answers
from tests.sealing import seal
from tests.trial_writer import write_trial

IDS = """
GYS1.1 GYS1.2 GYS1.3 GYS2.1 GYS2.2 GYS3.1 GYS3.2
KS1.1 KS1.2 KS1.3 KS1.4 KS1.5 KS1.6 KS1.7 KS2.1 KS2.2 KS2.3 KS2.4 KS2.5 KS3.1 KS3.2 KS3.3 KS3.4
JH1.1 JH1.2 JH1.3 JH1.4 JH1.5 JH2.1 JH2.2 JH2.3 JH2.4 JH3.1 JH3.2 JH3.3 JH3.4 JH3.5
PMW1 PMW2 PMW3 PMW4
RGSJ0 RGSJ1 RGSJ2 RGSJ3.1 RGSJ3.2 RGSJ4.1 RGSJ4.2 RGSJ4.3 RGSJ5.1 RGSJ5.2 RGSJ5.3 RGSJ5.4
RGSJ6.1 RGSJ6.2 RGSJ6.3 RGSJ7.1 RGSJ7.2 RGSJ7.3 RGSJ8.1 RGSJ8.2 RGSJ8.3
""".split()
BESIDE_SUPPORTED = {each: [ClaimVerdict.NOT_TESTABLE] for each in ("PMW2", "JH3.1")}
NOT_TESTABLE = {"GYS1.3", "RGSJ4.1", "RGSJ4.2", "RGSJ6.3", "RGSJ7.3"}


def answered(claim: str, computed: ClaimVerdict) -> ClaimVerdict:
    """What a claim's answer is for what its test alone gives."""
    return ClaimVerdict.NOT_TESTABLE if claim in NOT_TESTABLE else computed


Place = dict[str, str]


def as_claimed(flow: str, second: int, place: Place) -> Numbers:
    """The course of a trial as the papers have it."""
    numbers = made.over_time(flow, second)
    if place.get("variant") == "sack" and flow == "tcp" and 40 <= second < 45:
        numbers["throughput_mbps"] += 0.5
    return numbers


def otherwise(flow: str, second: int, place: Place) -> Numbers:
    """TCP gets what CBR leaves, CBR waits longer; of four flows none changes."""
    if flow in made.FOUR_SHARES:
        return {"throughput_mbps": 0.25}
    if flow == "cbr":
        return {"throughput_mbps": 1.0, "owd_ms": 50.0, "owd_n": 100.0}
    return {"throughput_mbps": 2.9 if 40 <= second < 60 else 9.5, "owd_ms": 33.0, "owd_n": 800.0}


MIRROR = {"vegas": "tahoe", "tahoe": "vegas", "reno": "newreno", "newreno": "reno"}


def load_mirrored(place: Place) -> dict[str, Numbers]:
    """Each variant has another's numbers."""
    return made.load_world(place | {"variant": MIRROR[place["variant"]]})


def pairs_mirrored(place: Place) -> dict[str, Numbers]:
    """The like pairs are unfair, and the unlike ones fair or the other way round."""
    shares = {"vegas/vegas": 0.8, "reno/reno": 0.3, "newreno/reno": 0.4, "newreno/vegas": 0.47}
    return made.pairs_world(place, shares)


def queues_mirrored(place: Place) -> dict[str, Numbers]:
    """RED and DropTail have each other's numbers; all take three times as long."""
    other = "droptail" if place["queue"] == "red" else "red"
    found = made.queues_world(place | {"queue": other})
    slower = {name: 3 * value for name, value in found["tcp"].items() if name.endswith("_ms")}
    return found | {"tcp": found["tcp"] | slower}


def router_as_it_is(place: Place) -> dict[str, Numbers]:
    """What a link allows: all alike, and CoDel helps all who fill the buffer."""
    slower = 0.1 if place["queue"] == "codel" else 1.0
    rates = {"throughput_mbps": 0.99, "goodput_mbps": 0.95}
    return {"tcp": {**rates, "owd_mean_ms": 500 * slower, "rtt_mean_ms": 501 * slower}}


def fairness_mirrored(place: Place) -> dict[str, Numbers]:
    """Cubic has most, BBR least."""
    return {flow: {"share": share} for flow, share in MIRRORED_SHARES.items()}


MIRRORED_SHARES = {"linux-reno": 0.15, "cubic": 0.65, "vegas": 0.12, "bbr": 0.08}


def idle_as_claimed(place: Place) -> float:
    return {"vegas": 3.0, "bbr": 1.0}.get(place["variant"], 2.0)


def tables(seeds: int, claimed: bool) -> dict[str, pd.DataFrame]:
    """Every experiment's, as the papers have it or not."""
    load = made.load_world if claimed else load_mirrored
    pairs = made.pairs_world if claimed else pairs_mirrored
    windows = ("small", "large")
    return {
        "dumbbell-load": pd.concat([made.load_metrics(w, load, seeds) for w in windows]),
        "dumbbell-pairs": pd.concat([made.pairs_metrics(w, pairs, seeds) for w in windows]),
        "dumbbell-queues": made.queues_metrics(
            made.queues_world if claimed else queues_mirrored, seeds
        ),
        "router-bottleneck": made.router_metrics(
            made.router_world if claimed else router_as_it_is, seeds
        ),
        "router-fairness": made.fairness_metrics(
            made.fairness_world if claimed else fairness_mirrored, seeds
        ),
        "newreno-models": newreno.models_metrics(
            newreno.models_world if claimed else newreno.models_mirrored, seeds
        ),
        "newreno-background": newreno.background_metrics(
            newreno.background_world if claimed else newreno.background_mirrored, seeds
        ),
        "video-access": video.video_metrics(seeds=seeds)
        if claimed
        else video.as_alike(video.video_metrics(video.video_mirrored, seeds)),
    }


def on_disk(folder: Path, found: dict[str, pd.DataFrame], claimed: bool) -> dict[str, Path]:
    """The folders of those experiments among them whose claims ask what happened when."""
    course = as_claimed if claimed else otherwise
    idle = idle_as_claimed if claimed else lambda _: 0.9
    lengths = {"dumbbell-queues": 80, "router-fairness": 60, "router-bottleneck": 1}
    return {
        name: made.write_trials(
            folder / name,
            found[name],
            course,
            idle if name == "router-bottleneck" else None,
            length_s,
        )
        for name, length_s in lengths.items()
        if name in found
    }


def ledger(folder: Path, seeds: int, claimed: bool) -> dict[str, Answer]:
    """The answers by id."""
    found = tables(seeds, claimed)
    return {each.id: each for each in answers(found, on_disk(folder, found, claimed))}


@pytest.fixture(scope="module")
def held(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Answer]:
    """Where everything is as the papers say."""
    return ledger(tmp_path_factory.mktemp("held"), made.SEEDS, claimed=True)


@pytest.fixture(scope="module")
def refuted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Answer]:
    """Where nothing is."""
    return ledger(tmp_path_factory.mktemp("refuted"), made.SEEDS, claimed=False)


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Answer]:
    """Where everything is as the papers say, in a single seed."""
    return ledger(tmp_path_factory.mktemp("once"), 1, claimed=True)


def test_every_claim_of_the_papers_is_in_the_ledger() -> None:
    claims = [(paper, claim) for paper in PAPERS for claim in paper.claims]
    assert [claim.id for _, claim in claims] == IDS
    for paper, claim in claims:
        assert claim.id.startswith(paper.id) and claim.words and claim.tested.endswith(".")


@pytest.mark.parametrize("claim", IDS)
def test_supported(held: dict[str, Answer], claim: str) -> None:
    answer = held[claim]
    supported = ClaimVerdict.SUPPORTED
    assert answer.computed is supported, (answer.statement, answer.why)
    assert answer.verdict is answered(claim, supported)
    assert {verdict for _, verdict, _ in answer.beside} <= {
        *BESIDE_SUPPORTED.get(claim, ()),
        supported,
    }
    assert answer.n == answer.seeds == made.SEEDS
    assert answer.test and answer.effect and answer.interval
    assert answer.statement.endswith(".") and answer.rows
    assert bool(answer.why) == (claim in NOT_TESTABLE)
    assert answer.evidence[0].trials


@pytest.mark.slow
def test_the_parts_beside_the_head_have_answers_and_decide_nothing(
    held: dict[str, Answer], refuted: dict[str, Answer]
) -> None:
    """Linux's RED cannot be made ns-2's: that is said of its part, and not of the claim."""
    beside = {name: (verdict, said) for name, verdict, said in held["PMW2"].beside}
    verdict, said = beside["losses per event, Slow-but-Steady, red"]
    assert verdict is ClaimVerdict.NOT_TESTABLE and "Linux's RED is not gentle" in said
    assert {each for each, _ in beside.values()} == {ClaimVerdict.SUPPORTED, verdict}
    full = refuted["GYS1.1"]
    assert full.verdict is ClaimVerdict.SUPPORTED
    assert [verdict for _, verdict, _ in full.beside] == [ClaimVerdict.PARTLY]


# where all variants have the same numbers, or only some parts of a claim are refuted
NOT_REFUTED = (
    dict.fromkeys("GYS1.2 GYS1.3 GYS2.1 RGSJ6.1".split(), ClaimVerdict.TOO_SMALL)
    | dict.fromkeys(
        "RGSJ1 RGSJ2 RGSJ3.1 RGSJ3.2 RGSJ4.1 RGSJ4.3 RGSJ5.2 RGSJ5.3".split(), ClaimVerdict.REFUTED
    )
    | dict.fromkeys("GYS1.1 JH3.1".split(), ClaimVerdict.SUPPORTED)
    | {"JH1.3": ClaimVerdict.PARTLY}
)


@pytest.mark.slow
@pytest.mark.parametrize("claim", IDS)
def test_what_is_not_so_is_not_supported(refuted: dict[str, Answer], claim: str) -> None:
    answer = refuted[claim]
    computed = NOT_REFUTED.get(claim, ClaimVerdict.CONTRADICTED)
    assert answer.computed is computed, (answer.statement, answer.why)
    assert answer.verdict is answered(claim, computed)
    assert bool(answer.why) == (computed is not ClaimVerdict.SUPPORTED)
    assert answer.statement and answer.rows


@pytest.mark.slow
@pytest.mark.parametrize("claim", IDS)
def test_open_with_one_seed(once: dict[str, Answer], claim: str) -> None:
    answer = once[claim]
    assert answer.computed is ClaimVerdict.OPEN, answer.statement
    assert answer.verdict is answered(claim, ClaimVerdict.OPEN)
    assert ("--seeds" in answer.why) == (claim not in NOT_TESTABLE) and answer.rows


NO_NUMBER = {*ClaimVerdict, "not known", "the model does not hold"}


@pytest.fixture(scope="module")
def worlds(
    held: dict[str, Answer], request: pytest.FixtureRequest, with_slow: bool
) -> list[Answer]:
    """Every claim where all is as the papers say, and where all is reversed."""
    refuted = request.getfixturevalue("refuted") if with_slow else {}
    return [*held.values(), *refuted.values()]


def test_what_an_answer_prints_is_numbers(worlds: list[Answer]) -> None:
    for answer in worlds:
        assert re.search(r"\d", answer.statement), answer.statement
        for row in answer.rows:
            assert row.ours in NO_NUMBER or re.search(r"\d", row.ours), (answer.id, row)


def test_what_an_answer_says_of_its_reasons_is_the_engines(worlds: list[Answer]) -> None:
    """The same few sentences, or what a claim declares: none of them knows what a trial showed."""
    known: tuple[str, ...] = (
        "What earlier runs showed",
        "The paper does not define",
        "Fewer than two seeds",
        "The interval reaches",
    )
    known += ("Whatever difference there is lies within the margin",)
    known += tuple(c.not_testable for p in PAPERS for c in p.claims if c.not_testable)
    for answer in worlds:
        assert not answer.why or answer.why.startswith(known), (answer.id, answer.why)


def test_of_two_likes_the_share_is_the_first_flows(held: dict[str, Answer]) -> None:
    assert "the first vegas flow" in held["KS2.1"].statement
    assert "51.0 %" in held["KS2.1"].statement  # tests/claims_tables.py: 0.51 for tcp1


def test_what_was_not_run_is_open() -> None:
    found = answers({})
    assert [each.id for each in found] == IDS
    assert all(each.verdict is answered(each.id, ClaimVerdict.OPEN) for each in found)
    experiments = {claim.experiment for paper in PAPERS for claim in paper.claims}
    whys = {each.why.partition("Not run")[2] for each in found if each.id not in NOT_TESTABLE}
    assert whys == {f": testbed run {e}" for e in experiments}


def test_without_the_trials_claims_about_time_are_open() -> None:
    found = {each.id: each for each in answers({"router-fairness": made.fairness_metrics()})}
    assert found["GYS3.1"].verdict is ClaimVerdict.SUPPORTED
    assert found["GYS3.2"].verdict is ClaimVerdict.OPEN and "folder" in found["GYS3.2"].why


def test_trials_that_do_not_say_what_a_claim_is_about_are_of_no_use() -> None:
    """As those of a scenario of the user's that has the experiment's name."""
    pairs = made.pairs_metrics("small", seeds=2)
    of_old = pairs.assign(axes=pairs["axes"].str.replace("; second=n5-n6", ""))
    found = answers({"dumbbell-pairs": of_old})
    ours = [each for each in found if each.id.startswith("KS2.")]
    assert ours and all(each.why.startswith("No usable trials") for each in ours)


def test_a_variant_that_was_not_run_leaves_its_claims_open() -> None:
    table = made.load_metrics("large")
    found = {e.id: e for e in answers({"dumbbell-load": table[table["variant"] != "tahoe"]})}
    assert found["JH1.1"].verdict is ClaimVerdict.OPEN and "tahoe" in found["JH1.1"].why
    assert found["JH1.2"].computed is ClaimVerdict.SUPPORTED  # not about Tahoe


def test_one_of_two_forms_is_ahead_of_nothing() -> None:
    table = newreno.background_metrics(seeds=2)
    found = {e.id: e for e in answers({"newreno-background": table[table["variant"] != "newreno"]})}
    assert found["PMW3"].verdict is ClaimVerdict.OPEN


def one(metrics: pd.DataFrame, claim: str, reference: Path | None = None) -> list[Answer]:
    """A claim's answers from one table."""
    ((paper, its),) = ((p, c) for p in PAPERS for c in p.claims if c.id == claim)
    alone = dataclasses.replace(paper, claims=(its,))
    table = {str(metrics["experiment"].iloc[0]): metrics}
    return list(answers(table, reference=reference, papers=[alone]))


def test_an_answer_for_each_profile() -> None:
    good, bad = made.load_metrics("large"), made.load_metrics("large", load_mirrored)
    bad["axes"] = bad["axes"].str.replace("profile=ns2", "profile=modern")
    bad["trial"] += "-modern"
    found = one(pd.concat((bad, good)), "JH1.2")
    assert [(e.profile, e.computed) for e in found] == [
        ("ns2", ClaimVerdict.SUPPORTED),
        ("modern", ClaimVerdict.CONTRADICTED),
    ]


def test_the_papers_own_window_is_taken_where_it_was_run() -> None:
    large = made.load_metrics("large")
    both = pd.concat((large, made.load_metrics("small")))
    tested = one(both, "KS1.3")[0].tested
    assert "Window: small, which" in tested and tested.endswith("Planned: 44 networks.")
    assert one(both, "KS1.1")[0].verdict is ClaimVerdict.SUPPORTED
    other = one(large, "KS1.1")[0]
    assert other.verdict is ClaimVerdict.OPEN and not other.is_measured
    assert other.why == "No usable trials: testbed run dumbbell-load --set window=small"
    modern = large.assign(axes=large["axes"].str.replace("profile=ns2", "profile=modern"))
    assert [each.profile for each in one(pd.concat((both, modern)), "KS1.1")] == ["ns2"]


def test_trials_that_failed_or_are_invalid_do_not_count() -> None:
    good = made.load_metrics("large")
    bad = made.load_metrics("large", load_mirrored).assign(seed=lambda t: t["seed"] + 100)
    assert one(pd.concat((good, bad)), "JH1.2")[0].computed is not ClaimVerdict.SUPPORTED
    failed = pd.concat((good, bad.assign(status="failed")))
    invalid = pd.concat((good.assign(verdict="valid"), bad.assign(verdict="invalid")))
    for table in (failed, invalid):
        assert one(table, "JH1.2")[0].computed is ClaimVerdict.SUPPORTED


def test_trials_that_dropped_out_are_counted() -> None:
    """Those of the claim: not those of another window, nor what was varied."""
    good = pd.concat((made.load_metrics("large"), made.load_metrics("small")))
    bad = made.load_metrics("large", seeds=1).assign(seed=99, status="failed")
    other = made.load_metrics("small", seeds=1).assign(seed=99, verdict="invalid")
    for table in (bad, other):
        table["trial"] += "-unusable"
    answer = one(pd.concat((good, bad, other)), "JH1.2")[0]
    assert answer.unusable == 4 * 7 and answer.seeds == made.SEEDS
    assert answer.out_of == f"{made.SEEDS}; {answer.unusable} trials left out"


def test_engines_are_not_mixed() -> None:
    good = made.load_metrics("large")
    few = made.load_metrics("large", load_mirrored, seeds=2).assign(engine="host")
    assert one(pd.concat((few, good)), "JH1.2")[0].n == made.SEEDS
    assert one(pd.concat((few, good)), "JH1.2")[0].computed is ClaimVerdict.SUPPORTED


def test_an_answer_shows_what_became_of_each_part() -> None:
    table = made.load_metrics("large")
    table.loc[table["axes"].str.contains("vegas; cbr_mbit=9"), "throughput_mbps"] = 9.0
    found = one(table, "JH1.3")[0]
    assert [row.ours for row in found.rows[:2]] == ["contradicted", "supported"]
    tally = "1 of 2 parts supported, 1 contradicted"
    assert found.statement.startswith(f"{tally}: vegas: R² of a line ")


def test_a_short_form_beside_the_full_one_does_not_count() -> None:
    good = made.load_metrics("large")
    short = made.load_metrics("large", load_mirrored)
    short["axes"] = short["axes"].str.replace("duration_s=60", "duration_s=20")
    assert one(pd.concat((good, short)), "JH1.2")[0].computed is ClaimVerdict.SUPPORTED


def test_a_seed_without_a_load_does_not_count() -> None:
    """A mean over fewer loads would be another number."""
    table = made.load_metrics("large")
    cut = table[~((table["seed"] == 1) & table["axes"].str.contains("reno; cbr_mbit=8;"))]
    assert one(cut, "JH1.2")[0].n == made.SEEDS - 1


def test_a_load_that_only_some_variants_have_does_not_count() -> None:
    table = made.load_metrics("large")
    cut = table[~table["axes"].str.contains("variant=reno; cbr_mbit=2;")]
    assert one(cut, "JH1.2")[0].n == made.SEEDS


def test_an_order_that_was_run_at_some_loads_only_does_not_count() -> None:
    """Else a sweep would have another mean of orders at every other load."""
    table = made.load_metrics("small")
    table["axes"] = table["axes"].str.replace("order=tcp-first", "order=cbr-first")
    even = table[table["axes"].str.contains("cbr_mbit=(?:2|4|6|8|10);")].copy()
    even["axes"] = even["axes"].str.replace("order=cbr-first", "order=tcp-first")
    even["trial"] += "-tcp-first"
    even["throughput_mbps"] *= 3
    for claim in ("KS1.2", "KS1.3"):
        [both], [alone] = one(pd.concat((table, even)), claim), one(table, claim)
        assert (both.statement, both.rows) == (alone.statement, alone.rows)


def test_readings_that_disagree_are_answered_side_by_side() -> None:
    table = made.load_metrics("large")
    table.loc[table["variant"] == "vegas", "srtt_mean_ms"] *= 2
    found = one(table, "JH1.4")[0]
    assert found.verdict is ClaimVerdict.BY_READING and "does not define" in found.why
    assert "by RTT, contradicted" in found.statement
    said = "by RTT contradicted, by one-way delay supported"
    assert found.in_words == said


def test_a_claim_about_ns2_is_answered_there_and_on_linux(tmp_path: Path) -> None:
    """By the same test: Vegas's packets have no headers in ns-2, and on Linux they have."""
    rates = {"Vegas": 2.55, "Tahoe": 2.65, "Reno": 2.65, "Newreno": 2.65}
    numbers = ("goodput_mbps", "drop_rate", "oneway_ms", "rtt_ms", "recovery_latency_ms")
    rows = [
        {"setting": setting, "variant": name, "cbr_mbps": load, "order": "cbr_first", "rep": rep,
         "flow": "tcp1", "throughput_mbps": rate * (1 + rep / 1e4), **dict.fromkeys(numbers, 1.0)}
        for name, rate in rates.items()
        for load in range(1, 7)
        for rep in range(6)
        for setting in ("w20rand", "w20")
    ]  # fmt: skip
    pd.DataFrame(rows).to_csv(tmp_path / "exp1_raw.csv", index=False)
    inside, outside = one(made.load_metrics("small", load_mirrored), "KS1.1", tmp_path)
    assert (inside.profile, inside.verdict, inside.n) == ("in ns-2", ClaimVerdict.SUPPORTED, 6)
    assert (outside.profile, outside.verdict) == ("ns2", ClaimVerdict.CONTRADICTED)
    assert [a.profile for a in one(made.load_metrics("small"), "KS1.2")] == ["ns2"]


def test_events_evenly_apart_are_another_reading() -> None:
    """Beside random ones: what one of them has is not said of the other."""
    random = newreno.models_metrics()
    even = newreno.models_metrics(newreno.models_mirrored)
    even["axes"] = even["axes"].str.replace("dropper=random", "dropper=even")
    even["trial"] += "-even"
    for id in ("PMW1", "PMW4"):
        found = {each.reading: each.verdict for each in one(pd.concat((random, even)), id)}
        assert found == {
            "random events": ClaimVerdict.SUPPORTED,
            "even events": ClaimVerdict.CONTRADICTED,
        }


def test_a_model_is_judged_by_its_largest_error_and_beside_it_by_its_mean() -> None:
    """One point that is far off, among points that are not."""
    table = newreno.models_metrics()
    off = table["axes"].str.contains("m=10;") & (table["variant"] == "newreno-impatient")
    table.loc[off, "goodput_mbps"] *= 1.2
    (found,) = one(table, "PMW1")
    beside = {name: verdict for name, verdict, _ in found.beside}
    assert found.verdict is ClaimVerdict.PARTLY
    assert beside == dict.fromkeys(("on average over m", "m* is 4"), ClaimVerdict.SUPPORTED)


def test_the_papers_t_test_gives_their_p() -> None:
    rows = one(made.load_metrics("small"), "KS1.4")[0].rows
    beside = {row.what.split("/")[-1]: row for row in rows if "t-test" in row.what}
    assert [row.paper for row in beside.values()] == ["0.392", "0.307", "0.464"]
    assert all(0 < float(row.ours) <= 0.5 for row in beside.values())


def test_what_iperf_reports_stands_beside_the_goodput(tmp_path: Path) -> None:
    found = {"router-bottleneck": made.router_metrics(router_as_it_is, 2)}
    folders = on_disk(tmp_path, found, claimed=False)
    for path in folders["router-bottleneck"].iterdir():
        (path / "flows").mkdir()
        end = {"sum_sent": {"bits_per_second": 1.03e6}}
        (path / "flows" / "tcp.client.json").write_text(json.dumps({"end": end}))
        seal(path)
    answer = next(e for e in answers(found, folders) if e.id == "GYS1.1")
    assert any("1.030" in row.ours for row in answer.rows)
    beside = {row.what: row.ours for row in answer.rows}
    assert beside["payload that the link can carry (1448 of 1514 bytes)"] == "0.956 Mbit/s"
    assert beside["iperf3's report minus what arrived, bbr"].startswith("+0.08")


def test_codels_effect_is_that_on_what_iperf_reports(tmp_path: Path) -> None:
    """As the paper's numbers are; what arrived is the same with both queues."""
    found = {"router-bottleneck": made.router_metrics(router_as_it_is, 9)}
    folders = on_disk(tmp_path, found, claimed=False)
    for path in folders["router-bottleneck"].iterdir():
        (path / "flows").mkdir()
        variant = path.name.split("-codel")[0].split("-bfifo")[0]
        less = {"linux-reno": 0.06, "cubic": 0.001, "vegas": -0.06, "bbr": 0.06}[variant]
        rate = 1e6 * (1 - less * ("codel" in path.name))
        end = {"sum_sent": {"bits_per_second": rate}}
        (path / "flows" / "tcp.client.json").write_text(json.dumps({"end": end}))
        seal(path)
    answer = next(e for e in answers(found, folders) if e.id == "GYS2.1")
    assert answer.verdict is ClaimVerdict.CONTRADICTED
    verdicts = {name.split()[0]: verdict for name, verdict, _ in answer.beside}
    assert verdicts == {
        "linux-reno": ClaimVerdict.SUPPORTED,
        "cubic": ClaimVerdict.TOO_SMALL,
        "vegas": ClaimVerdict.CONTRADICTED,
    }
    rows = {row.what: row.ours for row in answer.rows}
    assert rows["iperf3's client's report, linux-reno, CoDel"].startswith("0.940 Mbit/s")
    assert rows["goodput, linux-reno, CoDel"] == rows["goodput, linux-reno, bfifo"]


def test_seeds_without_a_number_are_told_and_count_against_the_answer(tmp_path: Path) -> None:
    found = {"router-fairness": made.fairness_metrics(seeds=12)}

    def starved(flow: str, second: int, place: Place) -> Numbers:
        numbers = as_claimed(flow, second, place)
        is_late = flow == "cubic" and second >= 10
        return numbers | {"throughput_mbps": 0.0} if is_late else numbers

    folder = made.write_trials(tmp_path, found["router-fairness"], starved, None, 60)
    answer = next(e for e in answers(found, {"router-fairness": folder}) if e.id == "GYS3.2")
    assert answer.verdict is ClaimVerdict.OPEN and answer.n == 0 and answer.seeds == 12
    assert answer.out_of == "0 of 12"
    rows = {row.what: row.ours for row in answer.rows}
    what = "BBR's variation above each other's in 0 of 12 networks, not known in 12"
    assert rows[what] == "open (n = 0 of 12)"


@pytest.mark.parametrize("starving", ["cubic", "bbr"])
def test_a_flow_with_nothing_decides_no_network_in_which_another_flow_does(
    tmp_path: Path, starving: str
) -> None:
    """BBR's variation is not above all others' where Vegas's is higher, whatever Cubic's may be.

    Nor is it where BBR gets nothing.
    """
    found = {"router-fairness": made.fairness_metrics(seeds=12)}

    def starved(flow: str, second: int, place: Place) -> Numbers:
        numbers = as_claimed(flow, second, place)
        if flow == starving and second >= 10:
            return numbers | {"throughput_mbps": 0.0}
        is_burst = (starving, flow) == ("cubic", "vegas") and 20 <= second < 30
        return numbers | {"throughput_mbps": 5.0} if is_burst else numbers

    folder = made.write_trials(tmp_path, found["router-fairness"], starved, None, 60)
    answer = next(e for e in answers(found, {"router-fairness": folder}) if e.id == "GYS3.2")
    rows = {row.what: row.ours for row in answer.rows}
    assert rows["BBR's variation above each other's in 0 of 12 networks"].startswith("contradicted")


def test_each_reading_of_what_a_paper_leaves_open_has_an_answer_of_its_own() -> None:
    """The paper does not say which queue it had; the shares of each seed stand beside the mean."""
    plain = made.fairness_metrics(fairness_mirrored, 12)
    late = made.fairness_metrics(seeds=12)
    late["axes"] = late["axes"].str.replace("bfifo", "codel").str.replace("0.1", "1")
    late["trial"] += "-codel"
    first, second = one(pd.concat((late, plain)), "GYS3.1")
    assert (first.reading, first.verdict) == (
        "bfifo, starts within 0.1 s",
        ClaimVerdict.CONTRADICTED,
    )
    assert second.reading == "codel, ECN as set, starts within 1 s"
    assert second.verdict is ClaimVerdict.SUPPORTED and second.n == 12
    assert "leave tcp_ecn as it is" in second.tested and "within a second." in second.tested
    beside = {row.what: row.ours for row in second.rows}
    assert beside["share of bbr, by seed"].count("%") == 12
    assert beside["share of bbr, median over the seeds"] == "median 65.0 %"
    assert beside["seeds in which both are as in the paper"] == "12 of 12"


def test_a_reading_that_was_not_run_has_no_answer() -> None:
    table = made.fairness_metrics()
    table["axes"] = table["axes"].str.replace("bfifo", "pie")
    (found,) = one(table, "GYS3.1")
    assert found.verdict is ClaimVerdict.OPEN and found.why.startswith("No usable trials")


def test_trials_that_share_their_cbr_are_compared_seed_by_seed() -> None:
    """The seed's CBR moves every variant by far more than they differ."""
    table = made.load_metrics("large")
    tcp = table["flow"] == "tcp"
    table.loc[tcp, "throughput_mbps"] += 0.2 * table.loc[tcp, "seed"]
    found = one(table, "JH1.2")[0]
    assert found.verdict is ClaimVerdict.SUPPORTED and "over networks" in found.test


def test_straightness() -> None:
    x = pd.Series(range(1, 11), index=range(1, 11), dtype="float64")
    assert straightness(10 - x) == pytest.approx(1)
    # the best line through the squares is 11 x - 22, and leaves 528 of their 10,510.5
    assert straightness(x**2) == pytest.approx(1 - 528 / 10_510.5)
    assert math.isnan(straightness(x * 0))


def test_seconds_add_up_to_the_metrics(tmp_path: Path) -> None:
    trial = open_trial(write_trial(tmp_path / "trial"))
    table, whole = reduction_of(trial).seconds, reduce_trial(trial).flows.set_index("flow")
    tcp = table[table["flow"] == "tcp"]
    assert len(tcp) == 12
    assert tcp["throughput_mbps"].iloc[1:11].sum() / 10 == pytest.approx(
        whole.loc["tcp", "throughput_mbps"]
    )
    names = {"owd": "owd_mean_ms", "rtt": "rtt_mean_ms", "recovery": "recovery_latency_mean_ms"}
    for name, metric in names.items():
        mean = delay_ms(table, "tcp", 0, 12, name)
        assert mean == pytest.approx(whole.loc["tcp", metric])
    assert delay_ms(table, "cbr", 0, 12, "owd") == pytest.approx(whole.loc["cbr", "owd_mean_ms"])
    assert math.isnan(delay_ms(table, "cbr", 0, 12, "rtt"))
    for capture in (trial.path / "captures").iterdir():
        capture.unlink()
    pd.testing.assert_frame_equal(reduction_of(trial).seconds, table)  # it was kept


def test_the_ledger_as_texts(held: dict[str, Answer]) -> None:
    found = list(held.values())
    frame = ledger_frame(found)
    assert frame["id"].tolist() == IDS and frame["trials"].str.len().gt(0).all()
    assert set(frame.loc[~frame["id"].isin(NOT_TESTABLE), "verdict"]) == {"supported"}
    numbers = numbers_frame(found)
    assert set(numbers["id"]) == set(IDS) and numbers["ours"].str.len().gt(0).all()
    read = json.loads(ledger_json(found))
    assert [each["id"] for each in read] == IDS
    assert read[0]["verdict"] == "supported" and read[0]["rows"] and read[0]["evidence"]
