"""Workloads as values: their form, faults and drawn transfers."""

from __future__ import annotations

import dataclasses
import itertools
import statistics
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from analysis.transfers.connection_streams import NEVER
from analysis.transfers.transfer_reports import Planned, Reported
from analysis.transfers.wire_transfers import OnTheWire
from analysis.verdict import transfers
from analysis.verdict.checks import Grade
from analysis.verdict.transfers import check_list, held_back
from testbed.errors import UsageError
from testbed.plan.plan import make_plan
from testbed.runs.sources import compiled_for
from testbed.scenario.network import PathSummary
from testbed.scenario.reading import field_faults, read_scenario
from testbed.scenario.transfers import draw, ideal_s, mean_bytes, planned_transfers, rate_per_s
from testbed.scenario.workload import (
    Arrivals,
    Connections,
    Distribution,
    Process,
    Sizes,
    Workload,
    read_cdf,
    read_times,
    with_input_files,
    workload_faults,
)
from tests.scenarios import router
from tests.workloads import SMALL, kept, workload_scenario

EVENLY = Arrivals(Process.DETERMINISTIC, per_s=10)
MANY = 20_000
WITH_LOAD = Workload(Arrivals(load=0.5), Sizes(scale=0.01), count=50)


def sizes_of(sizes: Sizes) -> list[int]:
    workload = Workload(Arrivals(per_s=1000), sizes, count=MANY)
    return [each.size for each in draw(workload, "a seed", 10, 1e6)]


def test_a_workload_travels_as_json() -> None:
    scenario = workload_scenario(kept())
    assert read_scenario(scenario.to_json()) == scenario


def test_published_means_are_those_of_the_papers() -> None:
    assert mean_bytes(Sizes(Distribution.WEB_SEARCH)) == pytest.approx(1_711_250)
    assert mean_bytes(Sizes(Distribution.DATA_MINING)) == pytest.approx(12_658_199, rel=1e-6)


@pytest.mark.parametrize(
    ("sizes", "within"),
    [
        (Sizes(Distribution.WEB_SEARCH), 0.03),
        (Sizes(Distribution.DATA_MINING, scale=0.01), 0.15),
        (Sizes(Distribution.PARETO, mean_bytes=30_000, shape=3), 0.03),
        (Sizes(Distribution.LOGNORMAL, mean_bytes=30_000, sigma=1), 0.03),
        (Sizes(Distribution.EMPIRICAL, cdf=((100, 0), (200, 0.5), (1000, 1))), 0.03),
        (Sizes(Distribution.CONSTANT, mean_bytes=100), 0),
    ],
)
def test_drawn_sizes_have_the_mean_of_their_distribution(sizes: Sizes, within: float) -> None:
    assert statistics.mean(sizes_of(sizes)) == pytest.approx(mean_bytes(sizes), rel=within)


def test_drawn_sizes_follow_the_distribution_function() -> None:
    found = sizes_of(Sizes(Distribution.WEB_SEARCH))
    for size, part in ((10_000, 0.15), (80_000, 0.53), (1_000_000, 0.7), (5_000_000, 0.9)):
        assert sum(each <= size for each in found) / MANY == pytest.approx(part, abs=0.01)


def test_poisson_gaps_are_exponential_and_make_the_load() -> None:
    workload = Workload(Arrivals(load=0.5), SMALL, count=MANY)
    times = [each.at_ns / 1e9 for each in draw(workload, "a seed", 10, 1e6)]
    gaps = [other - one for one, other in itertools.pairwise(times)]
    # 0.5 of 10 Mbit/s, of which 1448 of 1514 bytes are data
    expected = 8 * 20_000 / (5e6 * 1448 / 1514)
    assert 1 / rate_per_s(workload, 10) == pytest.approx(expected)
    assert statistics.mean(gaps) == pytest.approx(expected, rel=0.03)
    assert statistics.stdev(gaps) == pytest.approx(expected, rel=0.03)


def test_even_and_listed_arrivals() -> None:
    listed = Arrivals(Process.TIMES, times_s=(0.5, 0.5, 2, 9))
    assert [t.at_ns for t in draw(Workload(EVENLY, SMALL, count=3), "", 10, 4)] == [
        0, 100_000_000, 200_000_000,
    ]  # fmt: skip
    assert [t.at_ns for t in draw(Workload(listed, SMALL), "", 10, 9)] == [
        500_000_000, 500_000_000, 2_000_000_000,
    ]  # fmt: skip


def test_the_seed_decides_and_the_load_leaves_the_sizes_alone() -> None:
    scenario = workload_scenario(WITH_LOAD)
    (flow,) = scenario.flows
    drawn = planned_transfers(scenario, flow)
    assert drawn == planned_transfers(scenario, flow)
    other = dataclasses.replace(scenario, seed=2)
    assert drawn != planned_transfers(other, flow)
    denser = dataclasses.replace(
        flow, workload=dataclasses.replace(WITH_LOAD, arrivals=Arrivals(load=1))
    )
    sizes = [each.size for each in planned_transfers(scenario, denser)]
    own = [each.size for each in drawn]
    assert len(own) > 3 and sizes[: len(own)] == own


def test_the_way_has_the_slowest_rate_and_all_delays() -> None:
    network = workload_scenario(kept()).network
    assert network.path("sender1", "receiver1") == PathSummary(10, 20)


def test_the_ideal_time_is_round_trips_and_frames() -> None:
    path = PathSummary(10, 20)
    # of three frames the first fills the bucket, the last leaves when the second is paid for
    assert ideal_s(Workload(), path, 3000, 1514) == pytest.approx(0.04 + 1514 * 8 / 10e6)
    assert ideal_s(kept(), path, 3000, 1514) == pytest.approx(0.02 + 1514 * 8 / 10e6)
    assert ideal_s(kept(), path, 3000, 0) == pytest.approx(0.02 + (3000 + 3 * 66) * 8 / 10e6)
    assert ideal_s(kept(), path, 1448, 1514) == pytest.approx(0.02)


def faults(workload: Workload) -> list[str]:
    return list(map(str, field_faults(workload)[1] or workload_faults(workload)))


@pytest.mark.parametrize(
    ("workload", "said"),
    [
        (Workload(Arrivals()), "poisson arrivals have either load or per_s"),
        (Workload(Arrivals(load=0.5, per_s=3)), "poisson arrivals have either load or per_s"),
        (Workload(Arrivals(load=50)), "arrivals.load: 50 is not between 0.001 and 10"),
        (Workload(Arrivals(Process.TIMES)), "arrivals.times_s: 0 times"),
        (Workload(Arrivals(Process.TIMES, times_s=(1, 0.5))), "times_s[1]: 0.5 after 1"),
        (Workload(Arrivals(Process.TIMES, times_s=(1,), load=1)), "have neither load nor per_s"),
        (Workload(Arrivals(file="a.txt")), "'a.txt' was not read"),
        (Workload(sizes=Sizes(Distribution.PARETO, mean_bytes=9)), "sizes.shape: missing for a"),
        (Workload(sizes=Sizes(mean_bytes=9)), "mean_bytes: not of a web-search distribution"),
        (Workload(sizes=Sizes(Distribution.PARETO, 9, shape=1)), "shape: 1 is not between 1.001"),
        (Workload(sizes=Sizes(Distribution.EMPIRICAL, cdf=((0, 0), (9, 2)))), "rise from 0 to 1"),
        (Workload(sizes=Sizes(Distribution.EMPIRICAL, cdf=((9, 0), (3, 1)))), "after [9, 0]"),
        (Workload(sizes=Sizes(Distribution.EMPIRICAL, cdf=((9,),))), "cdf[0]: 1 numbers, not 2"),
        (Workload(sizes=Sizes(scale=0)), "sizes.scale: 0 is not between"),
        (Workload(pool=3), "pool: of kept connections"),
        (Workload(connections=Connections.KEPT, pool=0), "pool: 0 is not between 1 and 500"),
        (Workload(count=0), "count: 0 is not between 1 and 30000"),
    ],
)
def test_faults_name_their_field(workload: Workload, said: str) -> None:
    found = faults(workload)
    assert len(found) == 1 and said in found[0]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"workload": None}, "flows[0].workload: missing for a flow of kind workload"),
        ({"bytes": 5}, "flows[0].bytes: of flows of kind tcp; this is workload"),
        ({"variant": None}, "flows[0].variant: missing"),
        ({"workload": Workload(Arrivals(per_s=90_000), SMALL)}, "more than 30000 transfers"),
        (
            {"workload": Workload(Arrivals(Process.TIMES, times_s=(77,)), SMALL)},
            "no transfer begins before the flow's end",
        ),
    ],
)
def test_faults_of_a_flow_are_found_before_it_runs(change: dict[str, object], said: str) -> None:
    scenario = workload_scenario(kept())
    flow = dataclasses.replace(scenario.flows[0], **change)  # type: ignore[arg-type]
    with pytest.raises(UsageError) as raised:
        make_plan(dataclasses.replace(scenario, flows=(flow,)))
    assert said in str(raised.value)


def test_another_kind_of_flow_has_no_workload() -> None:
    scenario = router()
    flow = dataclasses.replace(scenario.flows[0], workload=kept())
    with pytest.raises(UsageError, match="of flows of kind workload; this is tcp"):
        make_plan(dataclasses.replace(scenario, flows=(flow,)))


def test_the_plan_has_every_transfer_and_the_program_that_runs_them() -> None:
    plan = make_plan(workload_scenario(kept()))
    (flow,) = plan.flows
    assert len(list(flow.transfers)) > 50
    assert flow.client.argv[-2] == "4"  # the pool
    names = [each.file.name for each in compiled_for(plan)]
    assert names[:2] == ["testbed-runner", "testbed-spoken-netlink.so"]
    assert names[2:] == ["testbed-tc", "testbed-workload"]


def test_the_verdict_expects_the_transfers_of_the_network_that_the_seed_draws() -> None:
    scenario = dataclasses.replace(workload_scenario(WITH_LOAD), network_jitter=0.1)
    (flow,) = make_plan(scenario).flows
    rows = [(each.session, each.at_ns, each.size) for each in flow.transfers]
    planned = Planned(*np.array(rows, dtype=np.int64).T)
    trial = SimpleNamespace(scenario=scenario)
    evidence = cast(Any, SimpleNamespace(trial=trial, virtual_time=True))
    check = check_list(evidence, cast(Any, SimpleNamespace(name=scenario.flows[0].name)), planned)
    assert check.verdict is Grade.VALID


@pytest.mark.parametrize(("told", "sound"), [(5, True), (7, True), (4, False), (8, False)])
def test_synacks_of_a_connection_that_nobody_accepted(
    monkeypatch: pytest.MonkeyPatch, told: int, sound: bool
) -> None:
    """Two transfers were delivered with five retransmissions, and a third never connected."""
    monkeypatch.setattr(transfers, "server_retransmissions", lambda *_: told)
    times = np.zeros(3, dtype=np.int64)
    found = OnTheWire(times, times, np.array([2, 3, 2]), 3, 2)
    received = np.array([100, 200, 0])
    reported = Reported(0, times, times, times, received, np.zeros(3, dtype=np.bool_))
    evidence = cast(Any, SimpleNamespace(trial=None, virtual_time=True))
    flow = cast(Any, SimpleNamespace(name="web"))
    check = transfers.check_retransmissions(evidence, flow, reported, found)
    assert (check.verdict is Grade.VALID) is sound


@pytest.mark.parametrize(
    ("seen", "waited"),
    [
        (50, False),  # when it was made
        (40, False),  # before
        (60, True),  # the answer before it came at 70
        (71, False),
        (NEVER, False),  # it never left, and there was nothing to wait for
    ],
)
def test_a_request_may_wait_for_the_answer_before_it(seen: int, waited: bool) -> None:
    """By Nagle's algorithm: the second on the connection of port 1, not the first on that of 2."""
    found = OnTheWire(np.array([0, 60, seen]), np.array([70, 90, NEVER]), None, 2, 3)
    held = held_back(np.array([1, 2, 1]), np.array([0, 50, 50]), found)
    assert held.tolist() == [False, False, waited]


@pytest.mark.parametrize(("answered", "waited"), [(NEVER, True), (80, True), (60, False)])
def test_a_request_waits_until_the_stop(answered: int, waited: bool) -> None:
    """At 70, for an answer that comes too late or never: it does not leave."""
    found = OnTheWire(np.array([0, NEVER]), np.array([answered, NEVER]), None, 1, 1)
    assert held_back(np.array([1, 1]), np.array([0, 50]), found, 70).tolist() == [False, waited]


def test_files_of_times_and_points(tmp_path: Path) -> None:
    (tmp_path / "times").write_text("# s\n0.5\n\n1.25 # the second\n")
    (tmp_path / "cdf").write_text("0 0\n1000, 0.25\n5e4 1\n")
    named = Workload(Arrivals(Process.TIMES, file="times"), Sizes(file="cdf"))
    found = with_input_files(named, tmp_path)
    assert found.arrivals == Arrivals(Process.TIMES, times_s=(0.5, 1.25))
    assert found.sizes.cdf == ((0, 0), (1000, 0.25), (50_000, 1))


def test_a_bad_file_is_told_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text("0 0\n1 2 3\n")
    with pytest.raises(UsageError, match=r"x: line 2: '1 2 3' is not a size in bytes"):
        read_cdf(path)
    path.write_text("soon\n")
    with pytest.raises(UsageError, match=r"x: line 1: 'soon' is not a time in seconds"):
        read_times(path)
    with pytest.raises(UsageError, match=r"nowhere: No such file"):
        read_times(tmp_path / "nowhere")
