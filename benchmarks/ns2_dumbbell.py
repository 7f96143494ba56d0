"""The experiments of Kapre, Saxena and of Joshi, Hattikar in ns-2: what their claims are about.

python -m benchmarks.ns2_dumbbell [--seeds N] [--only load pairs queues phase]

Each experiment's flows are written as a CSV into `ns2/` in the papers' folder, from which `testbed
report --reference` answers the claims in ns-2. The network is that of our experiments: a seed draws
the links' delays within one packet's time at the bottleneck, when flows start, and CBR's jitter.
All settings of TCP beside its window are ns-2's defaults. Debian's ns2 is ns-2.35.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.harness import errors_as_exit
from benchmarks.simulators import require_ns2
from testbed.machine.process import run

DUMBBELL_SCRIPT = Path(__file__).with_suffix(".tcl")
ORACLE_FOLDER = (
    Path(__file__).resolve().parents[1] / "experiments" / "kapre_saxena_joshi_hattikar" / "ns2"
)
AGENTS = {  # of a sender and of its receiver, below Agent/TCP and Agent/TCPSink
    "Tahoe": ("", ""),
    "Reno": ("/Reno", ""),
    "Newreno": ("/Newreno", ""),
    "Vegas": ("/Vegas", ""),
    "Sack1": ("/Sack1", "/Sack1"),
}
WINDOW_SETTINGS = {"w20rand": 20, "w1000rand": 1000}  # packets, beside jittered CBR
FURTHER_SEEDS = {"load": 24, "pairs": 19}  # for KS1.6 and KS2.4, which 20 left open
FURTHER_SETTING, FURTHER_PAIR = "w20rand", "Newreno/Vegas"
NOMINAL_MS = 10.0  # of a link; ns-2 adds the time that a packet takes
SERVICE_MS = 0.832  # 1040 bytes at 10 Mbit/s
PHASE_STEPS = 10
PHASE_SEEDS = 3
ORACLE_PAIRS = ("Reno/Reno", "Newreno/Reno", "Vegas/Vegas", "Newreno/Vegas")
ENDS = {"tcp1": ("n1", "n4"), "tcp2": ("n5", "n6")}
# ns-2 numbers nodes in the order of their making
SENDER_NODES, MIDDLE_NODES = {"1": 0, "2": 4}, (1, 2)
TRACE_NAMES = ("event", "time", "source", "target", "type", "size", "flow", "number")
TRACE_COLUMNS = (0, 1, 2, 3, 4, 5, 7, 10)


@dataclass(frozen=True)
class OracleRun:
    """One run of ns-2: its place in the table, and what the script is told."""

    place: Mapping[str, Any]  # columns
    variants: tuple[str, ...]
    cbr: tuple[str, str, float, float, float]  # from, to, Mbit/s, start, stop
    window: int
    queue: str
    seconds: float
    measured_from_s: float
    starts_s: float
    middle_ms: float
    access_ms: float

    @property
    def seed(self) -> int:
        """The seed of ns-2's own dice, which takes none below 1."""
        return int(self.place["rep"]) + 1


def drawn_ms(seed: int, place: str) -> float:
    """Return a link's delay, within half a packet's time of the nominal one."""
    return NOMINAL_MS + random.Random(f"{seed} {place}").uniform(-SERVICE_MS / 2, SERVICE_MS / 2)


def _run(
    place: Mapping[str, Any], variants: Sequence[str], cbr_mbit: float, **other: Any
) -> OracleRun:
    """Return a run of 30 s beside CBR from the beginning, as the first two experiments have it."""
    seed = int(place["rep"])
    usual: dict[str, Any] = {
        "cbr": ("n2", "n3", cbr_mbit, 0.0, 30.0),
        "window": WINDOW_SETTINGS[place["setting"]],
        "queue": "DropTail",
        "seconds": 30.0,
        "measured_from_s": 10.0,
        "starts_s": 2.0,
        "middle_ms": drawn_ms(seed, "middle"),
        "access_ms": drawn_ms(seed, "access"),
    }
    return OracleRun(place, tuple(variants), **(usual | other))


def load_runs(seeds: int) -> Iterator[OracleRun]:
    """Yield the runs of one TCP flow against CBR."""
    variants = ("Tahoe", "Reno", "Newreno", "Vegas")
    for seed, setting, variant, load in product(
        range(seeds), WINDOW_SETTINGS, variants, range(1, 11)
    ):
        place = {"setting": setting, "variant": variant, "cbr_mbps": load, "order": "cbr_first"}
        yield _run({**place, "rep": seed}, [variant], load)


def pair_runs(seeds: int) -> Iterator[OracleRun]:
    """Yield the runs of two TCP flows and CBR."""
    for seed, setting, pair, load in product(
        range(seeds), WINDOW_SETTINGS, ORACLE_PAIRS, range(1, 11)
    ):
        place = {"setting": setting, "pair": pair, "cbr_mbps": load, "order": "cbr_first"}
        yield _run({**place, "rep": seed}, pair.split("/"), load)


def queue_runs(seeds: int) -> Iterator[OracleRun]:
    """Yield the runs of one TCP flow that CBR of 7 Mbit/s joins from 40 s to 60 s."""
    for seed, queue, variant in product(range(seeds), ("DropTail", "RED"), ("Reno", "Sack1")):
        place = {"setting": "w1000rand", "queue": queue, "variant": variant, "rep": seed}
        cbr = ("n5", "n6", 7.0, 40.0, 60.0)
        times = {"seconds": 80.0, "measured_from_s": 0.0, "starts_s": 0.0}
        yield _run(place, [variant], 7.0, cbr=cbr, queue=queue, **times)


def phase_runs(_seeds: int) -> Iterator[OracleRun]:
    """Yield the runs at round trips across one packet's time: two variants alone, and as a pair."""
    steps = [round(SERVICE_MS * n / PHASE_STEPS, 4) for n in range(PHASE_STEPS + 1)]
    cases = (("Vegas", 9), ("Newreno", 9), ("Newreno/Vegas", 7))
    for seed, (case, load), more_ms in product(range(PHASE_SEEDS), cases, steps):
        place = {"setting": "w1000rand", "case": case, "cbr_mbps": load}
        place |= {"more_ms": more_ms, "rep": seed}
        delays = {"middle_ms": NOMINAL_MS + more_ms / 2, "access_ms": NOMINAL_MS}
        yield _run(place, case.split("/"), load, **delays)


ORACLE_TABLES: Mapping[str, tuple[str, Callable[[int], Iterator[OracleRun]]]] = {
    "load": ("exp1_raw.csv", load_runs),
    "pairs": ("exp2_rand_raw.csv", pair_runs),
    "queues": ("exp3_raw.csv", queue_runs),
    "phase": ("phase_raw.csv", phase_runs),
}


def runs_of(table: str, seeds: int) -> Iterator[OracleRun]:
    """Yield a table's runs, and after them those that a claim needs beyond the others'."""
    _, runs = ORACLE_TABLES[table]
    yield from runs(seeds)
    for one in runs(seeds + FURTHER_SEEDS.get(table, 0)):
        is_asked = one.place.get("pair", FURTHER_PAIR) == FURTHER_PAIR
        if is_asked and one.place["setting"] == FURTHER_SETTING and one.place["rep"] >= seeds:
            yield one


def flows_of(one: OracleRun) -> list[dict[str, Any]]:
    """Run ns-2 once, and return a row for each flow."""
    dice = random.Random(f"{one.seed} starts")
    flows = [
        f"{{{{{agent}}} {{{sink}}} {source} {target} {one.starts_s + dice.uniform(0, 0.1):.6f}}}"
        for (agent, sink), (source, target) in zip(
            (AGENTS[each] for each in one.variants), ENDS.values(), strict=False
        )
    ]
    with tempfile.TemporaryDirectory(prefix="ns2-") as folder:
        path = Path(folder) / "trace"
        numbers = (f"{one.middle_ms:.6f}", f"{one.access_ms:.6f}", str(one.window))
        arguments = (" ".join(flows), " ".join(map(str, one.cbr)), str(one.seconds), str(path))
        run(["ns", str(DUMBBELL_SCRIPT), str(one.seed), one.queue, *numbers, *arguments])
        trace = pd.read_csv(path, sep=" ", header=None, usecols=list(TRACE_COLUMNS), dtype={7: str})
    trace.columns = pd.Index(TRACE_NAMES)
    return [
        {**one.place, "flow": f"tcp{n}" if n < 9 else "cbr", **measured(trace, str(n), one)}
        for n in (*range(1, len(one.variants) + 1), 9)
    ]


def measured(trace: pd.DataFrame, flow: str, one: OracleRun) -> dict[str, float]:
    """Return what the trace shows of a flow from the beginning of the measured interval on.

    Throughput is in bytes of the trace, which have headers of 40 bytes except for Vegas; goodput
    has neither these nor what arrived twice. A round trip is that of the newest segment of an ACK
    that covers no retransmission (Karn).
    """
    of_flow = trace[(trace["flow"] == flow) & trace["type"].isin(("tcp", "cbr"))]
    late = of_flow[of_flow["time"] >= one.measured_from_s]
    span_s = one.seconds - one.measured_from_s
    target = one.cbr[1] if flow == "9" else ENDS[f"tcp{flow}"][1]
    arrived = late[(late["event"] == "r") & (late["target"] == int(target[1:]) - 1)]
    queued = late[(late["source"] == MIDDLE_NODES[0]) & (late["target"] == MIDDLE_NODES[1])]
    sent, dropped = (int((queued["event"] == event).sum()) for event in "+d")
    first = arrived.drop_duplicates("number") if flow != "9" else arrived
    return {
        "throughput_mbps": 8e-6 * float(arrived["size"].sum()) / span_s,
        "goodput_mbps": 8e-3 * len(first) / span_s,
        "drop_rate": dropped / sent if sent else 0.0,  # what is dropped was queued, by the trace
        "oneway_ms": _one_way_ms(of_flow, arrived, flow, one),
        **(_round_trips(trace, of_flow, flow, one) if flow != "9" else {}),
    }


def _source_events(events: pd.DataFrame, source: int) -> pd.DataFrame:
    return events[(events["event"] == "+") & (events["source"] == source)]


def _one_way_ms(events: pd.DataFrame, arrived: pd.DataFrame, flow: str, one: OracleRun) -> float:
    """Return the mean time from a packet's last sending to its first arrival."""
    source = int(one.cbr[0][1:]) - 1 if flow == "9" else SENDER_NODES[flow]
    sent = _source_events(events, source).drop_duplicates("number", keep=False)
    both = arrived.merge(sent, on="number", suffixes=("", "_sent"))
    return 1e3 * float((both["time"] - both["time_sent"]).mean())


def _round_trips(
    trace: pd.DataFrame, events: pd.DataFrame, flow: str, one: OracleRun
) -> dict[str, float]:
    """Return the mean round trip, and the mean time from a first sending to its ACK."""
    sent = _source_events(events, SENDER_NODES[flow])
    numbers, times = sent["number"].to_numpy(), sent["time"].to_numpy()
    size = int(numbers.max()) + 1 if len(numbers) else 1
    first, count = np.full(size, np.nan), np.zeros(size, dtype=int)
    first[numbers[::-1]] = times[::-1]
    np.add.at(count, numbers, 1)
    acks = trace[(trace["flow"] == flow) & (trace["type"] == "ack") & (trace["event"] == "r")]
    acks = acks[acks["target"] == SENDER_NODES[flow]]
    trips, repairs, highest = [], [], -1
    for time, number in zip(acks["time"], acks["number"], strict=True):
        if number <= highest or number >= size:
            continue
        covered = slice(highest + 1, number + 1)
        highest = number
        if first[number] >= one.measured_from_s:
            repairs += list(time - first[covered])
            if count[covered].max() == 1:
                trips.append(time - first[number])
    means = [1e3 * float(np.mean(each)) if each else float("nan") for each in (trips, repairs)]
    return {"rtt_ms": means[0], "recovery_latency_ms": means[1]}


@errors_as_exit()
def main() -> None:
    """Run ns-2 for each table, and write the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--seeds",
        type=int,
        default=20,
        help="repeats of each setting (20); of `phase` there are always as many, and of the small "
        "window more of `load` and `pairs`",
    )
    parser.add_argument("--only", nargs="+", choices=ORACLE_TABLES, default=list(ORACLE_TABLES))
    parser.add_argument("--jobs", type=int, default=1, help="simulations at a time (1)")
    parser.add_argument("--out", type=Path, default=ORACLE_FOLDER, metavar="DIR")
    options = parser.parse_args()
    require_ns2()
    options.out.mkdir(exist_ok=True)
    for table in options.only:
        name, _ = ORACLE_TABLES[table]
        runs = runs_of(table, options.seeds)
        with ThreadPoolExecutor(options.jobs) as pool:
            rows = [row for flows in pool.map(flows_of, runs) for row in flows]
        pd.DataFrame(rows).to_csv(options.out / name, index=False, float_format="%.6g")
        print(f"{options.out / name}: {len(rows)} rows")


if __name__ == "__main__":
    main()
