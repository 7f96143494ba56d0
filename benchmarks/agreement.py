"""A flow in the guest, on the host, in simulators and by theory, compared cell by cell.

    .venv/bin/python -m benchmarks.agreement --sides guest-6.1 guest-6.12 ns-2 ns-3 [--seeds 5]
    sudo .venv/bin/python -m benchmarks.agreement --sides host [--tries 20]

Measures these sides of the twenty cells, puts their numbers into docs/agreement.csv in place of
earlier ones of the same sides, and writes the tables of docs/agreement.md from all that is there.
`theory` comes with `guest-6.1`: the goodput that a model expects from the losses and round trips of
the same trials. On the host, trials outrank other work; one that was disturbed, by its verdict, is
repeated.
"""

from __future__ import annotations

import argparse
import enum
import os
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.results.reduction import reduction_of
from analysis.statistics.intervals import Comparison, ComparisonKind, compare, compare_paired
from analysis.throughput_models import BITS_A_BYTE, Invalid
from analysis.verdict.checks import Grade
from analysis.verdict.verdict import worst_verdict
from benchmarks.harness import (
    errors_as_exit,
    first_flows,
    markdown_lines,
    run_trials,
    scratch_folder,
    with_tables,
)
from benchmarks.simulators import (
    NS2_CONTROLS,
    NS3_CONTROLS,
    SimulatedFlow,
    build_ns3,
    measured_ns2,
    require_ns2,
    run_ns3,
)
from experiments.parvez_mahanti_williamson.models import expected_pps
from testbed.host.engine import HostEngine
from testbed.plan.plan import make_plan
from testbed.scenario.model import BASE_KERNEL, Flow, FlowKind, Scenario
from testbed.scenario.named_networks import LinkSettings, router_bottleneck
from testbed.scenario.network import FRAME_BYTES, Direction, Queue
from testbed.store.reading import open_trial

DOCS_FOLDER = Path(__file__).resolve().parents[1] / "docs"
NUMBERS_FILE, PAGE_FILE = DOCS_FOLDER / "agreement.csv", DOCS_FOLDER / "agreement.md"
AGREEMENT_BENCHMARK = "benchmarks.agreement"  # in the marks of the page's tables

AGREEMENT_SECONDS, MEASURED_FROM_S = 30.0, 6.0
STARTS_WITHIN_MS = 100.0
AGREEMENT_MARGIN = 0.05  # of the guest's mean
DROPS_MARGIN = 0.0005  # or this share of the packets, if it is more
BUSY_CORES_CHECK = "cpu"

AGREEMENT_VARIANTS = {"linux-reno": "Reno", "cubic": "Cubic", "bbr": "BBR", "vegas": "Vegas"}
GUEST_SIDE, OTHER_GUEST_SIDE, HOST_SIDE, NS2_SIDE, NS3_SIDE, THEORY_SIDE = AGREEMENT_SIDES = (
    f"guest-{BASE_KERNEL}",
    "guest-6.12",
    "host",
    "ns-2",
    "ns-3",
    "theory",
)
SAME_NETWORKS = (OTHER_GUEST_SIDE, THEORY_SIDE)  # as the guest's, seed by seed


@dataclass(frozen=True)
class AgreementNetwork:
    """A bottleneck's rate and buffer, and the round trip of the empty path."""

    rate_mbit: float
    rtt_ms: float
    packets: int

    def __str__(self) -> str:
        return f"{self.rate_mbit:g} Mbit/s, {self.rtt_ms:g} ms, {self.packets} packets"


AGREEMENT_NETWORKS: Mapping[str, AgreementNetwork] = {
    "A": AgreementNetwork(10.0, 0.0, 33),
    "B": AgreementNetwork(50.0, 0.0, 82),
    "C": AgreementNetwork(10.0, 40.0, 82),
    "D": AgreementNetwork(10.0, 100.0, 33),
    "E": AgreementNetwork(100.0, 20.0, 82),
}


class CellAnswer(enum.StrEnum):
    """Whether a number is the guest's."""

    EQUAL = "equal"  # the whole interval of the difference is within the margin
    DIFFERENT = "different"  # and here beyond it
    OPEN = "open"


@dataclass(frozen=True)
class AgreementNumber:
    """A number that is compared: a column of the table, its word, and its margin."""

    column: str
    word: str
    least_margin: float = 0.0
    in_points: bool = False  # of a percentage, not in percent of the guest's

    def margin(self, mean: float) -> float:
        """Return the largest difference from the guest's mean that does not matter."""
        return max(AGREEMENT_MARGIN * mean, self.least_margin)

    def write(self, difference: float, mean: float) -> str:
        """Write a difference from the guest's mean."""
        return f"{100 * difference:+.2f}" if self.in_points else f"{100 * difference / mean:+.1f}"


AGREEMENT_NUMBERS = (
    AgreementNumber("goodput_mbps", "goodput"),
    AgreementNumber("queue_mean_ms", "queue"),
    AgreementNumber("drop_rate", "drops", DROPS_MARGIN, in_points=True),
)
AGREEMENT_COLUMNS = [number.column for number in AGREEMENT_NUMBERS]
PLACE_COLUMNS = ["side", "network", "variant", "seed"]
AgreementRow = dict[str, object]
AgreementRows = dict[Any, pd.DataFrame]  # by side, network and variant


def answer(number: AgreementNumber, comparison: Comparison, mean: float) -> CellAnswer:
    """Test equivalence: by the 95 % interval, so that each of its two sides is at 2.5 %."""
    if comparison.kind is ComparisonKind.NOT_KNOWN:
        return CellAnswer.OPEN
    margin = number.margin(mean)
    if -margin <= comparison.low and comparison.high <= margin:
        return CellAnswer.EQUAL
    if comparison.low > margin or comparison.high < -margin:
        return CellAnswer.DIFFERENT
    return CellAnswer.OPEN


def agreement_scenario(network: str, variant: str, seed: int, kernel: str) -> Scenario:
    """Return a flow through the bottleneck; the seed draws delays within a packet's time."""
    link = AGREEMENT_NETWORKS[network]
    queue = Queue("pfifo", limit_packets=link.packets)
    return Scenario(
        experiment="agreement",
        label=f"{network}-{variant}",
        network=router_bottleneck(
            LinkSettings(link.rate_mbit, queue=queue, reverse=Direction()),
            access=LinkSettings(delay_ms=link.rtt_ms / 2),
        ),
        flows=(Flow("tcp", FlowKind.TCP, "sender1", "receiver", variant=variant),),
        duration_s=AGREEMENT_SECONDS,
        measure_from_s=MEASURED_FROM_S,
        seed=seed,
        kernel=kernel,
        start_jitter_ms=STARTS_WITHIN_MS,
        drawn_service_times=1.0,
        axes={"network": network, "variant": variant},
    )


def _scenarios(seeds: int, kernel: str = BASE_KERNEL) -> list[Scenario]:
    places = product(AGREEMENT_NETWORKS, AGREEMENT_VARIANTS, range(1, seeds + 1))
    return [agreement_scenario(*place, kernel) for place in places]


def guest_rows(side: str, seeds: int) -> Iterator[AgreementRow]:
    """Run the trials in a guest, and yield their numbers; of the first one also the models'."""
    scenarios = _scenarios(seeds, side.removeprefix("guest-"))
    # cell by cell: the captures of all take 8 GB
    for first in range(0, len(scenarios), seeds):
        for scenario, row in first_flows(scenarios[first : first + seeds]):
            place = {**scenario.axes, "seed": scenario.seed}
            yield {"side": side, **place, **row[[*AGREEMENT_COLUMNS, "verdict"]]}
            expected = expected_pps(row.to_dict())
            if side == GUEST_SIDE and not isinstance(expected, Invalid):
                goodput = expected * float(row["segment_bytes"]) * BITS_A_BYTE / 1e6
                yield {"side": THEORY_SIDE, **place, "goodput_mbps": goodput}


def host_rows(seeds: int, most_tries: int) -> Iterator[AgreementRow]:
    """Run what this machine's kernel can on it, disturbed trials again, and yield their numbers.

    What a trial starts outranks other work, so that a busy core is no disturbance by itself.
    """
    os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))  # what it starts inherits this
    engine = HostEngine()
    waiting = [
        each
        for each in _scenarios(seeds)
        if not engine.missing(make_plan(each, virtual_time=False).needs)
    ]
    for tries in range(1, most_tries + 1):
        disturbed = []
        for scenario in waiting:
            row, verdict, why = _host_trial(scenario, engine)
            print(f"{scenario.label}, seed {scenario.seed}: {verdict}: {why}", flush=True)
            if verdict is not Grade.VALID and tries < most_tries:
                disturbed.append(scenario)
                continue
            place = {**scenario.axes, "seed": scenario.seed, "tries": tries}
            numbers = {**row[AGREEMENT_COLUMNS], "verdict": str(verdict), "why": why}
            yield {"side": HOST_SIDE, **place, **numbers}
        waiting = disturbed


def _host_trial(scenario: Scenario, engine: HostEngine) -> tuple[pd.Series, Grade, str]:
    """Run one trial; return its flow's row, its verdict, and the names of the checks that fail."""
    with scratch_folder() as folder:  # for each, so that no reduction runs beside the next
        (done,) = run_trials([scenario], folder, engine)
        reduction = reduction_of(open_trial(done.path))
    assert reduction.verdict is not None
    checks = [each for each in reduction.verdict.checks if each.name != BUSY_CORES_CHECK]
    bad = {each.name for each in checks if each.verdict in (Grade.SUSPECT, Grade.INVALID)}
    return reduction.flows.iloc[0], worst_verdict(tuple(checks)).verdict, ", ".join(sorted(bad))


def simulated_rows(side: str, seeds: int, jobs: int) -> Iterator[AgreementRow]:
    """Run the cells in a simulator that has the variant, and yield their numbers."""
    simulate, variants = (
        (measured_ns2, NS2_CONTROLS) if side == NS2_SIDE else (run_ns3, NS3_CONTROLS)
    )
    if side == NS2_SIDE:
        require_ns2()
    else:
        build_ns3()
    cores = sorted(os.sched_getaffinity(0))

    def row(place: tuple[str, str, int]) -> AgreementRow:
        network, variant, seed = place
        done = simulate(simulated_flow(*place), cores[seed % len(cores)])
        numbers = {column: getattr(done, column) for column in AGREEMENT_COLUMNS}
        return {"side": side, "network": network, "variant": variant, "seed": seed, **numbers}

    places = product(
        AGREEMENT_NETWORKS, filter(variants.get, AGREEMENT_VARIANTS), range(1, seeds + 1)
    )
    with ThreadPoolExecutor(jobs) as pool:
        yield from pool.map(row, places)


def simulated_flow(network: str, variant: str, seed: int) -> SimulatedFlow:
    """Return a cell for a simulator; the seed draws the same as in our trials, by other dice."""
    link, dice = AGREEMENT_NETWORKS[network], random.Random(f"{seed} {network}")
    service_ms = FRAME_BYTES * 8e-3 / link.rate_mbit
    return SimulatedFlow(
        link.rate_mbit,
        link.rtt_ms + (2 * dice.uniform(-service_ms / 2, service_ms / 2) if link.rtt_ms else 0),
        AGREEMENT_SECONDS,
        link.packets,
        variant,
        start_s=dice.uniform(0, STARTS_WITHIN_MS / 1e3),
        measure_from_s=MEASURED_FROM_S,
    )


def measured_rows(side: str, seeds: int, jobs: int, most_tries: int) -> Iterator[AgreementRow]:
    """Measure a side."""
    if side.startswith("guest-"):
        return guest_rows(side, seeds)
    return host_rows(seeds, most_tries) if side == HOST_SIDE else simulated_rows(side, seeds, jobs)


@dataclass(frozen=True)
class AgreementCell:
    """A variant through a bottleneck on one side, beside the guest's."""

    side: str
    network: str
    variant: str
    answers: Mapping[str, CellAnswer]  # by the numbers' words; none where nothing was measured
    text: str

    @property
    def fails(self) -> bool:
        """Whether a number is not the guest's, or not known to be."""
        return any(each is not CellAnswer.EQUAL for each in self.answers.values())


def cells(table: pd.DataFrame) -> list[AgreementCell]:
    """Compare every side with the guest, cell by cell."""
    sound = table[table["verdict"] != "invalid"]  # simulators give none
    groups: AgreementRows = dict(list(sound.groupby(["side", "network", "variant"])))
    return [
        _cell(side, network, variant, groups)
        for network, variant in product(AGREEMENT_NETWORKS, AGREEMENT_VARIANTS)
        for side in AGREEMENT_SIDES[1:]
    ]


def compare_numbers(theirs: pd.DataFrame, ours: pd.DataFrame, column: str) -> Comparison:
    """Compare a number with the guest's: by seed where both sides have the same networks."""
    if theirs["side"].iloc[0] in SAME_NETWORKS:
        first, second = (
            dict(zip(each["seed"], each[column], strict=True)) for each in (theirs, ours)
        )
        return compare_paired(first, second)
    return compare(theirs[column], ours[column])


def _cell(side: str, network: str, variant: str, groups: AgreementRows) -> AgreementCell:
    ours, theirs = (groups.get((each, network, variant)) for each in (GUEST_SIDE, side))
    answers, texts = {}, []
    if ours is not None and theirs is not None:
        for number in AGREEMENT_NUMBERS:
            if theirs[number.column].isna().all():
                continue
            comparison = compare_numbers(theirs, ours, number.column)
            mean = float(ours[number.column].mean())
            answers[number.word] = answer(number, comparison, mean)
            if answers[number.word] is not CellAnswer.EQUAL:
                ends = (comparison.difference, comparison.low, comparison.high)
                mean_words, low, high = (number.write(each, mean) for each in ends)
                mark = "?" if answers[number.word] is CellAnswer.OPEN else ""
                texts.append(f"{number.word} {mean_words} ({low} … {high}){mark}")
    text = "; ".join(texts) or ("equal" if answers else "–")
    return AgreementCell(side, network, variant, answers, text)


def tables(table: pd.DataFrame) -> str:
    """Return the page's tables: the guest's numbers, the other sides beside them, a tally."""
    ours, every = table[table["side"] == GUEST_SIDE], cells(table)
    numbers, others = list[list[str]](), list[list[str]]()
    for network, variant in product(AGREEMENT_NETWORKS, AGREEMENT_VARIANTS):
        cell = f"{network} {AGREEMENT_VARIANTS[variant]}"
        of_variant = ours[(ours["network"] == network) & (ours["variant"] == variant)]
        goodput, queue, drops = of_variant[AGREEMENT_COLUMNS].astype(float).mean()
        numbers.append([cell, f"{goodput:.2f}", f"{queue:.2f}", f"{drops:.2%}"])
        texts = [each.text for each in every if (each.network, each.variant) == (network, variant)]
        others.append([cell, *texts])
    return "\n".join(
        (
            f"What the guest has on Linux {BASE_KERNEL}, means of the seeds:",
            "",
            *markdown_lines(("cell", "goodput, Mbit/s", "queue, ms", "dropped"), numbers),
            "",
            "What the other sides have more or less: goodput and queue in percent of the guest's, "
            "losses in percentage points, with the 95 % interval; a question mark says *open*:",
            "",
            *markdown_lines(("cell", *AGREEMENT_SIDES[1:]), others),
            "",
            *(_tally(side, table, every) for side in AGREEMENT_SIDES[1:]),
        )
    )


def _tally(side: str, table: pd.DataFrame, every: Sequence[AgreementCell]) -> str:
    """Say how many of a side's cells are the guest's, and what was repeated."""
    measured = [each for each in every if each.side == side and each.answers]
    if side not in set(table["side"]):
        return f"- {side}: not measured"
    equal = sum(not each.fails for each in measured)
    text = f"- {side}: {equal} of {len(measured)} cells are equal"
    if side == HOST_SIDE:
        ours = table[table["side"] == side]
        text += f"; of {len(ours)} trials, tried {ours['tries'].sum():.0f} times"
        for verdict, fate in (("suspect", "count"), ("invalid", "are left out")):
            disturbed = ours[ours["verdict"] == verdict]
            text += f", {len(disturbed)} stayed {verdict} and {fate}{_reasons(disturbed)}"
    return text


def _reasons(disturbed: pd.DataFrame) -> str:
    """Return the checks that the last tries failed, with their numbers."""
    names = Counter(name for why in disturbed["why"] for name in str(why).split(", "))
    counts = ", ".join(f"{name} {count}" for name, count in names.most_common())
    return f" ({counts})" if counts else ""


def read_numbers() -> pd.DataFrame:
    """Return what was measured last, of each side."""
    return pd.read_csv(NUMBERS_FILE) if NUMBERS_FILE.exists() else pd.DataFrame()


def _store(side: str, rows: pd.DataFrame) -> None:
    """Put rows of a side in place of earlier ones, with all that came with them."""
    kept = read_numbers()
    if len(kept):
        kept = kept[~kept["side"].isin({side, *rows["side"]})]
    table = pd.concat((kept, rows)).sort_values(PLACE_COLUMNS)
    table.to_csv(NUMBERS_FILE, index=False, float_format="%.6g")


@errors_as_exit()
def main() -> None:
    """Measure sides, store their numbers, and write the page's tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sides", nargs="*", choices=AGREEMENT_SIDES[:-1], default=[])
    parser.add_argument("--seeds", type=int, default=5, help="repeats of each cell (5)")
    parser.add_argument("--jobs", type=int, default=1, help="simulations at a time (1)")
    parser.add_argument("--tries", type=int, default=20, help="of a trial on the host (20)")
    options = parser.parse_args()
    for side in options.sides:
        rows = list[AgreementRow]()
        for row in measured_rows(side, options.seeds, options.jobs, options.tries):
            rows.append(row)
            _store(side, pd.DataFrame(rows))  # what is measured stays if this is interrupted
        print(f"{side}: {len(rows)} rows", flush=True)
    page = PAGE_FILE.read_text()
    PAGE_FILE.write_text(with_tables(page, AGREEMENT_BENCHMARK, tables(read_numbers())))


if __name__ == "__main__":
    main()
