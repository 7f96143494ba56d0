"""Queues as they really are set up: a row that is added, and options that are set wrongly.

Every option of every discipline is set wrongly on purpose: a trial is set up in the guest with one
word of a tc command changed. It must fail before a packet is sent, and its reason name the option.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from testbed.scenario import queues
from testbed.scenario.model import Scenario
from testbed.scenario.network import Queue, Shaping
from testbed.store.records import Status
from tests.added_row import tutorial_row
from tests.faults import verdict
from tests.lab import ended_in_the_guest, packets, samples
from tests.sabotage import run_sabotaged
from tests.scenarios import access, background, router, with_network

EVERY = 4  # one in so many, but in a full run
RED = {"min_bytes": 5000, "max_bytes": 15_000, "avpkt_bytes": 900, "burst_packets": 12}
AQM = {"target_ms": 7, "interval_ms": 90, "ce_threshold_ms": 2}
FLOWS = {"flows": 64, "quantum_bytes": 300}


def behind(queue: Queue) -> Scenario:
    """A router with this queue, 10 Mbit/s."""
    return router(rate_mbit=10, queue=queue, delay_ms=10, duration_s=1)


SCENARIOS = {
    "bfifo": behind(Queue("bfifo", limit_bytes=60_000)),
    "pfifo": behind(Queue("pfifo", limit_packets=30)),
    "red": behind(Queue("red", limit_bytes=60_000, ecn=True, options={**RED, "probability": 0.05})),
    "codel": behind(Queue("codel", limit_packets=30, ecn=True, options=AQM)),
    "fq_codel": behind(Queue("fq_codel", limit_packets=30, options={**AQM, **FLOWS})),
    "pie": behind(
        Queue("pie", limit_packets=30, ecn=True, options={"target_ms": 7, "tupdate_ms": 20})
    ),
    "cake": behind(Queue("cake", limit_bytes=60_000, options={"rtt_ms": 40})),
    "cake-chosen": behind(
        Queue("cake", limit_bytes=60_000, options={"diffserv": 8, "ack_filter": 1})
    ),
    "htb": with_network(behind(Queue("pfifo", limit_packets=30)), shaping=Shaping.HTB),
    "netem": access("netem-congested"),
    "radio": access("wifi-congested"),
    "background": background(),
}


@dataclass(frozen=True)
class Fault:
    """One option: what tc is told instead of the plan's words, and how the trial must end."""

    scenario: str
    planned: str
    told: str
    message: str


FAULTS = tuple(
    Fault(*words)
    for words in (
        ("bfifo", "limit 60000", "limit 70000", "bfifo's limit is 70000, not 60000"),
        ("pfifo", "limit 30", "limit 31", "pfifo's limit is 31, not 30"),
        ("red", "limit 60000", "limit 70000", "red's limit is 70000, not 60000"),
        ("red", "min 5000", "min 5500", "red's min is 5500, not 5000"),
        ("red", "max 15000", "max 15500", "red's max is 15500, not 15000"),
        ("red", "avpkt 900", "avpkt 450", "red's Wlog (from burst) is 1, not 4"),
        ("red", "burst 12", "burst 50", "red's Wlog (from burst) is 8, not 4"),
        ("red", "probability 0.05", "probability 0.06", "red's probability is 0.06, not 0.05"),
        (
            "red",
            "bandwidth 10000000bit",
            "bandwidth 1mbit",
            "red's Scell_log (from avpkt) is",
        ),
        ("red", "ecn", "", "red's ecn is off, not on"),
        ("codel", "limit 30", "limit 31", "codel's limit is 31, not 30"),
        ("codel", "target 7ms", "target 5ms", "codel's target is 5 ms, not 7 ms"),
        ("codel", "target 7ms", "target 5000000ms", "codel's target is 705032.704 ms, not 7 ms"),
        ("codel", "interval 90ms", "interval 100ms", "codel's interval is 100 ms, not 90 ms"),
        ("codel", "ce_threshold 2ms", "", "codel's ce_threshold is not set, not 2 ms"),
        ("codel", "ce_threshold 2ms", "ce_threshold 3ms", "codel's ce_threshold is 3 ms, not 2 ms"),
        ("codel", "ecn", "noecn", "codel's ecn is off, not on"),
        ("fq_codel", "limit 30", "limit 31", "fq_codel's limit is 31, not 30"),
        ("fq_codel", "target 7ms", "target 5ms", "fq_codel's target is 5 ms, not 7 ms"),
        ("fq_codel", "interval 90ms", "interval 91ms", "fq_codel's interval is 91 ms, not 90 ms"),
        ("fq_codel", "ce_threshold 2ms", "", "fq_codel's ce_threshold is not set, not 2 ms"),
        ("fq_codel", "flows 64", "flows 32", "fq_codel's flows is 32, not 64"),
        ("fq_codel", "quantum 300", "quantum 400", "fq_codel's quantum is 400, not 300"),
        ("fq_codel", "noecn", "ecn", "fq_codel's ecn is on, not off"),
        (
            "fq_codel",
            "noecn",
            "noecn memory_limit 1mb",
            "fq_codel's memory_limit is 1048576, not 33554432",
        ),
        ("fq_codel", "noecn", "noecn drop_batch 1", "fq_codel's drop_batch is 1, not 64"),
        ("pie", "limit 30", "limit 31", "pie's limit is 31, not 30"),
        ("pie", "target 7ms", "target 5ms", "pie's target is 5 ms, not 7 ms"),
        ("pie", "tupdate 20ms", "tupdate 40ms", "pie's tupdate is 40 ms, not 20 ms"),
        ("pie", "ecn", "noecn", "pie's ecn is off, not on"),
        ("pie", "ecn", "ecn alpha 3", "pie's alpha is 3, not 2"),
        ("pie", "ecn", "ecn beta 21", "pie's beta is 21, not 20"),
        ("pie", "ecn", "ecn bytemode", "pie's bytemode is on, not off"),
        ("pie", "ecn", "ecn dq_rate_estimator", "pie's dq_rate_estimator is on, not off"),
        ("cake", "memlimit 60000", "memlimit 70000", "cake's memlimit is 70000, not 60000"),
        ("cake", "rtt 40ms", "rtt 50ms", "cake's rtt is 50 ms, not 40 ms"),
        ("cake", "unlimited", "bandwidth 8mbit", "cake's rate is 1000000 bytes/s, not 0 bytes/s"),
        ("cake", "besteffort", "diffserv4", "cake's tins is diffserv4, not besteffort"),
        ("cake", "flows", "hosts", "cake's flow mode is hosts, not flows"),
        ("cake", "flows", "flows overhead 4", "cake's overhead is 4, not 0"),
        ("cake", "flows", "flows ack-filter", "cake's ack-filter is on, not off"),
        ("cake-chosen", "diffserv8", "diffserv3", "cake's tins is diffserv3, not diffserv8"),
        ("cake-chosen", "ack-filter", "no-ack-filter", "cake's ack-filter is off, not on"),
        ("htb", "default 3", "default 4", "htb's default class is 4, not 3"),
        (
            "pfifo",
            "rate 10000000bit",
            "rate 9000000bit",
            "link's rate is 9000000 bit/s, not 10000000",
        ),
        ("htb", "rate 10000000bit", "rate 9mbit", "htb's rate is 9000000 bit/s, not 10000000"),
        ("htb", "ceil 10000000bit", "ceil 11mbit", "htb's ceil is 11000000 bit/s, not 10000000"),
        ("htb", "burst 1514", "burst 3000", "htb's burst is 3000 bytes, not 1514 bytes"),
        ("htb", "cburst 1514", "cburst 3000", "htb's cburst is 3000 bytes, not 1514 bytes"),
        ("htb", "quantum 1514", "quantum 3000", "htb's quantum is 3000 bytes, not 1514 bytes"),
        ("pfifo", "delay 10000.000us", "delay 9ms", "netem's delay is 9 ms, not 10 ms"),
        ("pfifo", "limit 10000000", "limit 1000", "netem's limit is 1000, not 10000000"),
        ("pfifo", "limit 10000000", "limit 10000000 loss 1%", "netem's random loss is"),
        ("pfifo", "limit 10000000", "limit 10000000 loss gemodel 1%", "netem's loss model is"),
        ("pfifo", "limit 10000000", "limit 10000000 duplicate 1%", "netem's duplication is"),
        ("pfifo", "limit 10000000", "limit 10000000 reorder 1%", "netem's gap is 1, not 0"),
        ("pfifo", "limit 10000000", "limit 10000000 corrupt 1%", "netem's corruption is"),
        ("pfifo", "limit 10000000", "limit 10000000 rate 1mbit", "netem's rate is 1000000 bit/s"),
        ("netem", "8000.000us", "7ms", "netem's jitter is 7 ms, not 8 ms"),
        ("netem", "rate 10gbit", "rate 1gbit", "netem's rate is 1000000000 bit/s, not 10000000000"),
        ("netem", "gemodel 1.000000%", "gemodel 2%", "netem's loss model's p is 0.02, not 0.01"),
        ("netem", "25.000000%", "20%", "netem's loss model's r is 0.2, not 0.25"),
        ("netem", "50.000000%", "40%", "netem's loss model's h is 0.6, not 0.5"),
        ("netem", "0.000000%", "1%", "netem's loss model's 1-k is 0.01, not 0"),
        ("radio", "limit 50", "limit 51", "pfifo's limit is 51, not 50"),
        ("background", "fq limit 10000000", "fq limit 100", "fq's limit is 100, not 10000000"),
        ("background", "flow_limit 10000000", "flow_limit 100", "fq's flow_limit is 100"),
        ("background", "nopacing", "pacing", "fq's pacing is on, not off"),
        ("background", "timer_slack 0", "timer_slack 10us", "fq's timer_slack is 10000 ns, not 0"),
    )
)


def reason(fault: Fault, out: Path) -> str:
    """How the trial ended; empty if nobody noticed."""
    change = f"{fault.planned} -> {fault.told}"
    record = run_sabotaged(change, SCENARIOS[fault.scenario], out).record
    return record.reason if record.status is Status.FAILED else ""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Set every option wrongly with --full, some of them without."""
    if "fault" in metafunc.fixturenames:
        faults = FAULTS if metafunc.config.getoption("--full") else FAULTS[::EVERY]
        metafunc.parametrize("fault", faults, ids=lambda fault: fault.message)


@pytest.mark.slow(but=6)
def test_a_wrong_option_ends_the_trial_by_name(fault: Fault, tmp_path: Path) -> None:
    assert fault.message in reason(fault, tmp_path)


def test_the_tutorials_queue_marks_and_is_valid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = tutorial_row()
    monkeypatch.setitem(queues.DISCIPLINES, row.name, row)
    queue = Queue(row.name, limit_packets=200, ecn=True, options={"target_ms": 5})
    # Cubic: what Reno does to it in slow start is above fq_pie's ecn_prob, and dropped
    scenario = router(variant="cubic", rate_mbit=10, queue=queue, delay_ms=10, duration_s=8)
    trial = ended_in_the_guest(scenario, tmp_path)
    assert trial.record.status is Status.OK, trial.record.reason
    marked = packets(trial, "bottleneck-out:tcp", "ip.dsfield.ecn == 3")
    assert int(samples(trial, "queues")[-1]["marks"]) == len(marked) > 0
    assert verdict(trial.path).why == ""
