"""A recorded trial, sound in every layer, and what the verdict says once a part of it is doctored.

The trial is real: linux-reno through 1 Mbit/s and a pfifo of 16 packets, 3.5 s in the guest.
"""

from __future__ import annotations

import dataclasses
import gzip
import json
import shutil
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from analysis.fidelity.checks import Grade
from analysis.fidelity.tables import checks_table, fidelity_checks, fidelity_table
from analysis.fidelity.tolerances import RULES
from analysis.fidelity.verdict import CACHE, Verdict, cached_verdict, judge
from testbed.store import RECORD, Record, Status, open_trial

SOUND = Path(__file__).with_name("fidelity") / "trial"
RECORD_HEADER = struct.Struct("<IIII")
ETHERNET = 14
HOST_ONLY = {"cpu", "softirq", "steal", "scheduling delay"}
WITH_BACKGROUND = {  # tests/unit/test_background_fidelity.py has these
    *("background sessions", "background RTT", "background window", "background failures"),
    "memory",
}
WITH_VIDEO = {"video", "video bytes", "video capture"}  # tests/unit/test_video_fidelity.py
WITH_RADIO = {"radio", "radio share"}  # tests/unit/test_radio.py
Frame = tuple[int, bytes, int]  # nanoseconds, what was captured, bytes on the wire


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


def edit(path: Path, change: Callable[[Any], object]) -> None:
    """Change a JSON file."""
    data = json.loads(path.read_text())
    change(data)
    path.write_text(json.dumps(data))


def edit_table(path: Path, change: Callable[[pd.DataFrame], object]) -> None:
    """Change a CSV file."""
    table = pd.read_csv(path)
    change(table)
    table.to_csv(path, index=False)


def frames(content: bytes) -> Iterator[Frame]:
    """The frames of a nanosecond pcap."""
    at = 24
    while at < len(content):
        seconds, nanoseconds, kept, size = RECORD_HEADER.unpack_from(content, at)
        at += RECORD_HEADER.size
        yield seconds * 10**9 + nanoseconds, content[at : at + kept], size
        at += kept


def edit_capture(path: Path, interface: str, change: Callable[[int, Frame], Frame | None]) -> None:
    """Change each frame of a capture, or leave it out; the record knows how many there are."""
    file = path / "captures" / f"{interface}.pcap.gz"
    content = gzip.decompress(file.read_bytes())
    kept = [change(i, frame) for i, frame in enumerate(frames(content))]
    out = [content[:24]]
    for frame in kept:
        if frame is not None:
            time_ns, data, size = frame
            out += [RECORD_HEADER.pack(*divmod(time_ns, 10**9), len(data), size), data]
    file.write_bytes(gzip.compress(b"".join(out)))
    count = sum(frame is not None for frame in kept)

    def recount(record: Any) -> None:
        for capture in record["captures"]:
            if capture["interface"] == interface:
                capture["packets"] = count

    edit(path / RECORD, recount)


def without(number: int) -> Callable[[int, Frame], Frame | None]:
    return lambda i, frame: None if i == number else frame


def with_ce(i: int, frame: Frame) -> Frame:
    """A data packet that carries CE."""
    time_ns, data, size = frame
    if not 100 <= i < 110 or size < 1000:
        return frame
    return time_ns, data[: ETHERNET + 1] + b"\x03" + data[ETHERNET + 2 :], size


def test_a_sound_trial_is_valid_in_every_check() -> None:
    verdict = judged(SOUND)
    assert (verdict.verdict, verdict.why) == (Grade.VALID, "")
    valid = {check.name for check in verdict.checks if check.verdict is Grade.VALID}
    # it asked for no losses by chance, for no background, no video and no radio
    others = HOST_ONLY | WITH_BACKGROUND | WITH_VIDEO | WITH_RADIO | {"losses by chance"}
    assert valid == set(RULES) - others
    # the queue of the acknowledgements is never full
    unknown = {c.subject for c in verdict.checks if c.verdict is Grade.UNKNOWN}
    assert unknown == {"router-eth1"}


def _flow(name: str, value: object) -> Callable[[Path], None]:
    return lambda path: edit(path / RECORD, lambda r: r["flows"][0].update({name: value}))


def _sample(file: str, column: str, value: int) -> Callable[[Path], None]:
    def change(table: pd.DataFrame) -> None:
        table[column] = table[column].where(table.index != len(table) // 2, value)

    return lambda path: edit_table(path / "samples" / file, change)


def _counter(node: str, name: str) -> Callable[[Path], None]:
    def change(data: Any) -> None:
        data[node][name] = data[node].get(name, 0) + 1

    return lambda path: edit(path / "samples" / "counters.json", change)


def _last(column: str, more: int) -> Callable[[Path], None]:
    def change(table: pd.DataFrame) -> None:
        table[column] += (table.index == len(table) - 1) * more

    return lambda path: edit_table(path / "samples" / "queues.csv", change)


def _setting(path: Path) -> None:
    def change(data: Any) -> None:
        data["end"]["sender1: sysctl net.ipv4.tcp_sack"] = "0"

    edit(path / "samples" / "configuration.json", change)


def _late(path: Path) -> None:
    def change(table: pd.DataFrame) -> None:
        table["rtt_ms"] += 2

    edit_table(path / "samples" / "idle.csv", change)


def _report(path: Path) -> None:
    def change(data: Any) -> None:
        data["end"]["sum_received"]["bytes"] -= 5000

    edit(path / "flows" / "tcp.server.json", change)


def _interval(path: Path) -> None:
    def change(data: Any) -> None:
        data["intervals"][1]["sum"]["bytes"] += 5000

    edit(path / "flows" / "tcp.server.json", change)


def _retransmits(path: Path) -> None:
    def change(data: Any) -> None:
        data["intervals"][1]["sum"]["retransmits"] += 1

    edit(path / "flows" / "tcp.client.json", change)


def _queue(name: str, value: object) -> Callable[[Path], None]:
    def change(record: Any) -> None:
        next(q for q in record["queues"] if q["interface"] == "router-eth0")[name] = value

    return lambda path: edit(path / RECORD, change)


def _dropped(path: Path) -> None:
    edit(path / RECORD, lambda r: r["captures"][0].update(dropped=2))


def _fewer(path: Path) -> None:
    edit(path / RECORD, lambda r: r["captures"][0].update(packets=1))


def _samples_gap(path: Path) -> None:
    for name in ("queues.csv", "sockets.csv"):
        file = path / "samples" / name
        table = pd.read_csv(file)
        table[~table["time_s"].between(1, 1.2)].to_csv(file, index=False)


def _scaled(column: str, factor: float) -> Callable[[Path], None]:
    def change(table: pd.DataFrame) -> None:
        table[column] = (table[column] * factor).astype(table[column].dtype)

    return lambda path: edit_table(path / "samples" / "sockets.csv", change)


def _larger(i: int, frame: Frame) -> Frame:
    return (*frame[:2], 1600) if i == 100 else frame


SABOTAGES: dict[str, tuple[Callable[[Path], None], str]] = {
    "tcpdump lost packets": (_dropped, "capture drops"),
    "a file with other packets": (_fewer, "capture file"),
    "another variant": (_flow("variant_seen", "cubic"), "variant"),
    "an option missing": (_flow("options_seen", ["timestamps"]), "options"),
    "a setting changed": (_setting, "configuration"),
    "a packet beyond the MTU": (
        lambda path: edit_capture(path, "sender1-eth0", _larger),
        "offloads",
    ),
    "a late start": (_flow("planned_start_s", -0.05), "start"),
    "a late stop": (_flow("planned_stop_s", 3.4), "stop"),
    "samples missing": (_samples_gap, "sampling"),
    "a longer path": (_late, "idle RTT"),
    "a rate 3 % off": (_queue("rate_mbit", 1.03), "rate"),
    "a larger buffer than asked": (_queue("limit", 15), "buffer"),
    "a smaller buffer than asked": (_queue("limit", 30), "tail drop"),
    "a packet missing at the sender": (
        lambda path: edit_capture(path, "sender1-eth0", without(200)),
        "capture gaps",
    ),
    "a packet missing at the receiver": (
        lambda path: edit_capture(path, "receiver-eth0", without(201)),
        "loss",
    ),
    "a packet missing behind the queue": (
        lambda path: edit_capture(path, "router-eth0", without(200)),
        "capture gaps",
    ),
    "a drop too many": (_last("drops", 1), "conservation"),
    "a packet too many": (_last("sent_packets", 1), "queue counters"),
    "other bytes": (_last("sent_bytes", 1), "queue counters"),
    "a mark too many": (_last("marks", 1), "ECN"),
    "a CE that the kernel did not count": (
        lambda path: edit_capture(path, "receiver-eth0", with_ce),
        "ECN",
    ),
    "TCP_INFO's retransmissions": (
        _sample("sockets.csv", "total_retrans", 99),
        "retransmissions",
    ),
    "the kernel's retransmissions": (_counter("sender1", "TcpRetransSegs"), "retransmissions"),
    "iperf3's retransmissions": (_retransmits, "retransmissions"),
    "TCP_INFO's unacked": (_sample("sockets.csv", "unacked", 99), "outstanding"),
    "a small window": (_scaled("cwnd", 1 / 3), "window"),
    "another srtt": (_scaled("srtt_ms", 1.1), "RTT"),
    "iperf3's sum": (_report, "goodput"),
    "an interval of iperf3's": (_interval, "iperf3 intervals"),
}


@pytest.mark.parametrize("name", SABOTAGES)
def test_what_is_doctored_is_named(name: str, trial: Path) -> None:
    act, check = SABOTAGES[name]
    act(trial)
    verdict = judged(trial)
    assert verdict.verdict in (Grade.SUSPECT, Grade.INVALID)
    assert verdict.why.startswith(f"{check} of ")


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
    assert bad(judged(trial)) & own == named


def test_a_dropper_before_the_bottlenecks_own_queue(trial: Path) -> None:
    """What it took came in and did not come out, like what the queue dropped."""
    queued = json.loads((trial / "samples" / "qdiscs.json").read_text())["router"]
    (leaf,) = (q for q in queued if q["handle"] == "30:" and q["dev"] == "router-eth0")
    drops = trial / "samples" / "drops.json"
    for more in (0, 1):  # as many as the queue says, and one more
        counted = {"interface": "router-eth0", "dropped": leaf["drops"] + more}
        drops.write_text(json.dumps({"tcp": counted}))
        edit(trial / "samples" / "qdiscs.json", lambda d: _of(d, "router-eth0").update(drops=0))
        names = {c.name for c in judged(trial).checks if c.verdict is Grade.INVALID}
        assert ("losses by chance" in names) == bool(more)


def _of(qdiscs: Any, interface: str) -> Any:
    return next(q for q in qdiscs["router"] if (q["handle"], q["dev"]) == ("30:", interface))


def test_results_of_an_older_recorder_are_valid_as_far_as_they_tell(trial: Path) -> None:
    def forget(record: Any) -> None:
        del record["queues"]
        for name in ("control", "options", "options_seen", "planned_start_s", "planned_stop_s"):
            del record["flows"][0][name]

    edit(trial / RECORD, forget)
    for name in ("idle.csv", "configuration.json"):
        (trial / "samples" / name).unlink()
    verdict = judged(trial)
    assert verdict.verdict is Grade.VALID
    unknown = {c.name for c in verdict.checks if c.verdict is Grade.UNKNOWN}
    assert unknown == {"variant", "options", "configuration", "start", "stop", "idle RTT"}


def test_a_queue_of_the_senders_own_may_hold_what_it_has_sent(trial: Path) -> None:
    """TCP counts a segment that the capture behind the queue has not seen."""
    SABOTAGES["TCP_INFO's unacked"][0](trial)
    own = {"node": "sender1", "interface": "sender1-eth0", "rate_mbit": 1, "burst_bytes": 1514}
    own |= {"discipline": "pfifo", "limit": 100, "unit": "packets", "ecn": False, "sampled": False}
    edit(trial / RECORD, lambda record: record["queues"].append(own))
    assert "outstanding" not in bad(judged(trial))
    edit(trial / RECORD, lambda record: record.update(queues=[]))

    def shaped(data: Any) -> None:
        data["sender1"] = [{"handle": "30:", "dev": "sender1-eth0", "drops": 0}]

    edit(trial / "samples" / "qdiscs.json", shaped)
    assert "outstanding" not in bad(judged(trial))  # an older trial: unknown


def test_what_was_not_captured_or_sampled_is_not_known(trial: Path) -> None:
    edit(trial / RECORD, lambda record: record.update(captures=[]))
    shutil.rmtree(trial / "samples")
    shutil.rmtree(trial / "flows")
    verdict = judged(trial)
    assert verdict.verdict is Grade.VALID
    known = {c.name for c in verdict.checks if c.verdict is Grade.VALID}
    assert known == {"variant", "options", "start", "stop"}


def test_a_busy_host_is_suspect(trial: Path) -> None:
    edit(trial / RECORD, lambda record: record.update(engine="host"))
    load = {"time_s": [1, 2, 3], "busiest": [0.4, 0.99, 1.0], "softirq": 0.1, "steal": 0.0}
    waits = {"name": ["iperf3", "tcpdump"], "node": "sender1", "run_s": 1.0}
    waits |= {"wait_s": [0.1, 5.0], "slices": [1000, 1000]}
    pd.DataFrame(load).to_csv(trial / "samples" / "load.csv", index=False)
    pd.DataFrame(waits).to_csv(trial / "samples" / "processes.csv", index=False)
    verdict = judged(trial)
    assert bad(verdict) == {"cpu", "scheduling delay"}
    assert verdict.why.startswith("cpu of host: 0.666667")
    late = next(c for c in verdict.checks if c.name == "scheduling delay")
    assert (late.subject, late.measured) == ("tcpdump on sender1", 5.0)


def test_a_verdict_is_kept_and_read_back(trial: Path) -> None:
    first = cached_verdict(open_trial(trial))
    assert first is not None
    assert Verdict.from_json((trial / CACHE).read_text()) == first
    shutil.rmtree(trial / "captures")  # reading again would fail
    assert cached_verdict(open_trial(trial)) == first


def test_a_verdict_of_other_tolerances_is_made_anew_where_it_can_be(trial: Path) -> None:
    cached_verdict(open_trial(trial))
    edit(trial / CACHE, lambda data: data.update(revision="before", verdict="suspect", why="x"))
    kept = (trial / CACHE).read_text()
    again = cached_verdict(open_trial(trial))
    assert again is not None and again.verdict is Grade.VALID
    (trial / CACHE).write_text(kept)
    edit(trial / RECORD, lambda r: [c.update(file="") for c in r["captures"]])
    older = cached_verdict(open_trial(trial))
    assert older is not None and older.why == "x"


def test_a_damaged_verdict_is_made_anew(trial: Path) -> None:
    (trial / CACHE).write_text("{")
    verdict = cached_verdict(open_trial(trial))
    assert verdict is not None and verdict.verdict is Grade.VALID


def test_a_trial_that_did_not_run_has_no_verdict(trial: Path) -> None:
    record = Record(Status.FAILED, "no disk", engine="guest")
    (trial / RECORD).write_text(record.to_json())
    assert cached_verdict(open_trial(trial)) is None and not (trial / CACHE).exists()


def test_tables(trial: Path) -> None:
    _dropped(trial)
    verdict = judged(trial)
    table = checks_table(verdict, everything=False)
    assert table.rows[0][:4] == ("capture drops", "sender1-eth0", "2", "0")
    assert table.note.startswith("1 invalid, ")
    counts = fidelity_table(trial.parent)
    rows = {row[0]: row[1:] for row in counts.rows}
    assert rows["capture drops"] == ("0", "0", "1", "0") and rows["rate"] == ("1", "0", "0", "0")
    assert counts.note == "trials: 1 invalid"
    assert len(fidelity_checks(trial.parent)) == len(verdict.checks)


def test_every_tolerance_has_its_reason() -> None:
    assert all(rule.reason and rule.name == name for name, rule in RULES.items())
    for rule in RULES.values():
        for limits in (rule.guest, rule.host):
            assert limits.suspect <= limits.invalid
        assert dataclasses.astuple(rule.guest) <= dataclasses.astuple(rule.host) or (
            rule.name in HOST_ONLY
        )
