"""A recorded trial, sound in every layer, and what the verdict says once a part is doctored."""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path
from typing import Any, cast

import pytest

from analysis.report.verdict_tables import (
    checks_table,
    fidelity_checks,
    side_by_side,
    tally,
    tolerances,
)
from analysis.results.reduction import reduction_of, revision, store, verdict_of
from analysis.statistics.text_tables import NO_VALUE
from analysis.verdict.checks import Grade
from analysis.verdict.rules import CHECK_RULES, CheckRule, Limits
from analysis.verdict.verdict import Verdict, judge
from testbed.machine import json_files
from testbed.store.names import RECORD, VERDICT_FILE
from testbed.store.reading import open_trial
from testbed.store.records import Record, Status
from tests.doctored import ETHERNET, SABOTAGES, SOUND, Frame, edit, edit_capture
from tests.sealing import seal

HOST_ONLY = {"cpu", "softirq", "steal", "scheduling delay"}
# tests/unit/test_sessions.py
WITH_SESSIONS = {"session RTT", "session window", "session failures", "memory"}
WITH_LINKS_AND_WINDOWS = {"sending", "window offered", "bytes"}  # of neither, until it is doctored
WITH_VIDEO = {"video", "video bytes", "video capture"}  # tests/unit/test_video_fidelity.py
WITH_RADIO = {"radio", "radio share"}  # tests/unit/test_radio.py
# tests/system/test_changing_links.py
WITH_CHANGES = {"link changes", "capacity", "trace", "down"}
WITH_WORKLOAD = {"transfers", "transfer times"}  # tests/system/test_workload_trial.py
WITH_PROGRAMS = {"program", "pauses", "pace"}  # tests/system/test_programs.py
FEATURES = WITH_SESSIONS | WITH_VIDEO | WITH_RADIO | WITH_CHANGES | WITH_WORKLOAD
FEATURES |= WITH_PROGRAMS | WITH_LINKS_AND_WINDOWS
FEATURES |= {"phase", "few packets"}  # notes: test_drawn_network.py, system/test_corners.py
FEATURES |= {"losses by chance", "overtaking", "share ahead"}  # tests/system/test_overtaking.py


@pytest.fixture
def trial(tmp_path: Path) -> Path:
    """A copy to doctor."""
    return Path(shutil.copytree(SOUND, tmp_path / "results" / "trial"))


def judged(path: Path) -> Verdict:
    verdict = judge(open_trial(path))
    assert verdict is not None
    return verdict


def bad(verdict: Verdict) -> set[str]:
    """The names of the checks that are suspect or invalid."""
    return {c.name for c in verdict.checks if c.verdict in (Grade.SUSPECT, Grade.INVALID)}


def test_a_sound_trial_is_valid_in_every_check() -> None:
    verdict = judged(SOUND)
    assert (verdict.verdict, verdict.why) == (Grade.VALID, "")
    valid = {check.name for check in verdict.checks if check.verdict is Grade.VALID}
    # it asked for none of the features, such as losses by chance, sessions or video
    assert valid == set(CHECK_RULES) - HOST_ONLY - FEATURES
    # the queue of the acknowledgements is never full
    unknown = {c.subject for c in verdict.checks if c.verdict is Grade.UNKNOWN}
    assert unknown == {"router-eth1"}


@pytest.mark.parametrize(("more", "named"), [(0, set()), (1, {"retransmissions"})])
def test_an_interval_too_short_to_be_listed(trial: Path, more: int, named: set[str]) -> None:
    """iperf3 lists no last interval of less than a tenth of the others: its total has it."""

    def shorten(report: Any) -> None:
        report["intervals"].pop()
        report["end"]["sum_sent"]["retransmits"] += more

    edit(trial / "flows" / "tcp.client.json", shorten)
    assert bad(judged(seal(trial))) == named


@pytest.mark.parametrize("name", SABOTAGES)
def test_what_is_doctored_is_named(name: str, trial: Path, root: Path) -> None:
    act, check = SABOTAGES[name]
    act(trial)
    verdict = judged(trial)
    page = (root / "docs" / "verdicts.md").read_text()
    assert f"| {name} | {verdict.verdict} | {verdict.why} |\n" in page
    assert verdict.verdict in (Grade.SUSPECT, Grade.INVALID)
    assert verdict.why.startswith("samples/" if check == "files" else f"{check} of ")


def test_a_question_for_a_name_is_told_in_plain_words(trial: Path) -> None:
    foreign, _ = SABOTAGES["a connection that is no flow's"]
    foreign(trial)  # from port 9999

    def ask(_i: int, frame: Frame) -> Frame:
        time_ns, data, size = frame
        ends = ETHERNET + 20, ETHERNET + 24
        if data[ends[0] : ends[0] + 2] == (9999).to_bytes(2):
            data = data[: ends[0] + 2] + (53).to_bytes(2) + data[ends[1] :]
        return time_ns, data, size

    edit_capture(trial, "receiver-eth0", ask)
    verdict = judged(seal(trial))
    (check,) = (each for each in verdict.checks if each.name == "other connections")
    assert check.why.endswith("receiver asked for a name (DNS): docs/faq.md"), check.why


@pytest.mark.parametrize(
    ("counts", "named"),
    [
        ({"dropped": 1}, set()),
        ({"dropped": 0}, {"losses by chance", "loss"}),
        ({"dropped": 2}, {"losses by chance"}),
        ({"dropped": 1, "undecided": 3}, {"losses by chance"}),
    ],
)
def test_losses_by_chance_are_those_that_the_dropper_counted(
    trial: Path, counts: dict[str, int], named: set[str]
) -> None:
    """A segment is missing behind the bottleneck, as if that were not yet the access link."""
    SABOTAGES["a packet missing at the receiver"][0](trial)
    counts_of = {"tcp": {"interface": "access-eth1", **counts}}
    (trial / "samples" / "drops.json").write_text(json.dumps(counts_of))
    own = {"losses by chance", "loss", "conservation", "tail drop", "capture gaps"}
    assert bad(judged(seal(trial))) & own == named


def test_a_dropper_before_the_bottlenecks_own_queue(trial: Path) -> None:
    """What it took came in and did not come out, like what the queue dropped."""
    queued = json.loads((trial / "samples" / "qdiscs.json").read_text())["router"]
    (leaf,) = (q for q in queued if q["handle"] == "30:" and q["dev"] == "router-eth0")
    drops = trial / "samples" / "drops.json"
    for more in (0, 1):  # as many as the queue says, and one more
        counted = {"interface": "router-eth0", "dropped": leaf["drops"] + more}
        drops.write_text(json.dumps({"tcp": counted}))
        edit(trial / "samples" / "qdiscs.json", lambda d: _of(d, "router-eth0").update(drops=0))
        names = {c.name for c in judged(seal(trial)).checks if c.verdict is Grade.INVALID}
        assert ("losses by chance" in names) == bool(more)


def _of(qdiscs: Any, interface: str) -> Any:
    return next(q for q in qdiscs["router"] if (q["handle"], q["dev"]) == ("30:", interface))


def test_reports_that_were_not_made_are_unknown(trial: Path) -> None:
    for name in ("idle.csv", "configuration.json"):
        (trial / "samples" / name).unlink()
    verdict = judged(trial)
    assert verdict.verdict is Grade.INVALID
    assert verdict.why.startswith("samples/configuration.json: missing")
    verdict = judged(seal(trial))
    assert verdict.verdict is Grade.SUSPECT
    assert verdict.why == "configuration of settings is not known: not recorded"
    suspect = {c.name for c in verdict.checks if c.verdict is Grade.SUSPECT}
    assert suspect == {"configuration", "idle RTT"}


def test_what_the_senders_own_queue_refused_is_sent_again_and_not_seen(trial: Path) -> None:
    """The kernel counts it as sent and as failed; on the wire it is not."""
    for name, number in (("TcpRetransSegs", 5), ("TcpExtTCPRetransFail", 5)):

        def more(data: Any, name: str = name, number: int = number) -> None:
            data["sender1"][name] = data["sender1"].get(name, 0) + number

        edit(trial / "samples" / "counters.json", more)
        assert ("retransmissions" in bad(judged(seal(trial)))) == (name == "TcpRetransSegs")


def test_what_the_senders_own_queue_refused_of_a_buffer_is_among_its_drops(trial: Path) -> None:
    """The kernel counts no failure where the queue took the first of the segments."""

    def more(data: Any) -> None:
        data["sender1"]["TcpRetransSegs"] += 5

    def drops(data: Any) -> None:
        data["sender1"] = [{**_of(data, "router-eth0"), "dev": "sender1-eth0", "drops": 5}]

    edit(trial / "samples" / "counters.json", more)
    assert "retransmissions" in bad(judged(seal(trial)))
    edit(trial / "samples" / "qdiscs.json", drops)
    assert "retransmissions" not in bad(judged(seal(trial)))


def test_a_queue_of_the_senders_own_may_hold_what_it_has_sent(trial: Path) -> None:
    """TCP counts a segment that the capture behind the queue has not seen."""
    SABOTAGES["TCP_INFO's unacked"][0](trial)
    SABOTAGES["segments that leave as one"][0](trial)
    assert "outstanding" not in bad(judged(trial))


def test_what_was_not_captured_or_sampled_is_not_known(trial: Path) -> None:
    """Nor is the configuration, which the trial should have recorded."""
    edit(trial / RECORD, lambda record: record.update(captures=[]))
    shutil.rmtree(trial / "samples")
    shutil.rmtree(trial / "flows")
    verdict = judged(seal(trial))
    assert verdict.verdict is Grade.SUSPECT
    known = {c.name for c in verdict.checks if c.verdict is Grade.VALID}
    assert known == {"files", "kernel", "variant", "options", "scenario", "start", "stop"}


def test_a_verdict_is_stored_and_read_back(trial: Path) -> None:
    first = verdict_of(open_trial(trial))
    assert first is not None
    assert Verdict.from_json(json_files.read_record(trial / VERDICT_FILE)) == first
    shutil.rmtree(trial / "captures")  # reading again would fail
    assert verdict_of(open_trial(trial)) == first


def test_a_verdict_of_another_revision_is_replaced_where_it_can_be(trial: Path) -> None:
    first = reduction_of(open_trial(trial))
    suspect = Verdict(Grade.SUSPECT, "x", ())
    store(dataclasses.replace(first, judged=suspect), "another revision")
    again = verdict_of(open_trial(trial))
    assert again is not None and again.verdict is Grade.VALID
    store(dataclasses.replace(first, judged=suspect), "another revision")
    edit(trial / RECORD, lambda r: [c.update(file="") for c in r["captures"]])
    assert verdict_of(open_trial(trial)) == suspect


def test_a_damaged_verdict_is_replaced(trial: Path) -> None:
    reduction_of(open_trial(trial))
    for text in ("{", "[]", "{}"):
        (trial / VERDICT_FILE).write_text(text)
        verdict = verdict_of(open_trial(trial))
        assert verdict is not None and verdict.verdict is Grade.VALID
        assert Verdict.from_json(json_files.read_record(trial / VERDICT_FILE)) == verdict


def test_a_trial_that_did_not_run_has_no_verdict(trial: Path) -> None:
    record = Record(Status.FAILED, "no disk", engine="guest")
    (trial / RECORD).write_text(record.to_json())
    assert verdict_of(open_trial(trial)) is None and not (trial / VERDICT_FILE).exists()


def test_every_check_is_named_by_some_fault() -> None:
    named = {check for _, check in SABOTAGES.values()}
    assert named | FEATURES == set(CHECK_RULES)


def test_tables(trial: Path) -> None:
    SABOTAGES["tcpdump lost packets"][0](trial)
    verdict = judged(trial)
    table = checks_table(verdict, with_valid=False)
    assert len(table.rows) < len(checks_table(verdict).rows)
    assert table.rows[0][:4] == ("capture drops", "sender1-eth0", "2", "0")
    assert table.note.startswith("1 invalid, ")
    counts = {each.rule.name: each.trials for each in tally([verdict.by_check()])}
    assert counts["capture drops"] == {Grade.INVALID: 1} and counts["rate"] == {Grade.VALID: 1}
    assert len(fidelity_checks(trial.parent)) == len(verdict.checks)


def test_trials_side_by_side(trial: Path) -> None:
    other = Path(shutil.copytree(trial, trial.with_name("other")))
    SABOTAGES["TCP_INFO's retransmissions"][0](other)
    table = side_by_side([open_trial(trial), open_trial(other)])
    assert table.header == ("check", "of", "trial", "other")
    assert table.note == "1 valid, 1 invalid"
    lines = {row[:2]: row[2:] for row in table.rows}
    assert lines["retransmissions, segments", "tcp"] == ("23 = 23", "99 ≠ 22")
    assert lines["RTT, ms", "tcp"][0] == "175.575 ≈ 175.578"
    assert lines["rate, Mbit/s", "router-eth1"] == (NO_VALUE, NO_VALUE)


def test_every_rule_is_whole() -> None:
    for rule in CHECK_RULES.values():
        assert rule.measured and rule.expected and rule.reason
        for limits in (rule.virtual, rule.real):
            assert limits.suspect <= limits.invalid
        assert dataclasses.astuple(rule.virtual) <= dataclasses.astuple(rule.real) or (
            rule.name in HOST_ONLY
        )


def test_the_revision_of_verdicts_depends_on_tolerances_and_not_on_words(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before, rule = revision(), CHECK_RULES["rate"]
    reworded = dataclasses.replace(rule, measured="x", expected="y", reason="z")
    monkeypatch.setitem(cast(dict[str, CheckRule], CHECK_RULES), "rate", reworded)
    assert revision() == before
    wider = dataclasses.replace(rule, virtual=Limits(1, 2))
    monkeypatch.setitem(cast(dict[str, CheckRule], CHECK_RULES), "rate", wider)
    assert revision() != before


def test_the_page_has_the_table_of_tolerances(root: Path) -> None:
    table = tolerances()
    page = (root / "docs" / "verdicts.md").read_text().splitlines()
    begin = page.index(f"| {' | '.join(table.header)} |") + 2
    rows = page[begin : page.index("", begin)]
    assert rows == [f"| {' | '.join(row)} |" for row in table.rows]
    assert len(rows) == len(CHECK_RULES) > 50
