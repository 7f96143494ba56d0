"""Whether the engine of claims errs as seldom as it says, in worlds where the truth is known.

    .venv/bin/python -m benchmarks.claim_worlds [--worlds 1000] [--page docs/statistics.md]

Each world has the numbers of some networks, drawn from a distribution; the engine's own functions
judge them. The rows are the kinds of claim: how often each answer is given, and how often it may
be. A second table has how often intervals hold the typical network's number.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from analysis.claims.comparisons import (
    NEEDED_OF_SHARES,
    ClaimMeasure,
    ComparisonOutcome,
    Sample,
    all_are,
    contrasts,
    in_most,
    within,
)
from analysis.claims.judgement import (
    AGAINST,
    ClaimPart,
    ClaimVerdict,
    combine_verdicts,
    judge_parts,
)
from analysis.statistics.estimates import (
    CLAIM_LOOKS,
    MIN_CONSTANT,
    Estimate,
    EstimateKind,
    level_at,
    networks_needed,
)
from analysis.statistics.intervals import Floats, half_width
from benchmarks.harness import markdown_lines, parser_of, with_tables

CLAIM_WORLDS = "benchmarks.claim_worlds"  # in the mark of the page's tables
WORLDS_MARGIN = 1.0
WORLDS_MEASURE = ClaimMeasure("", 2, absolute=WORLDS_MARGIN)
MANY_PARTS = 30  # parts of a compound claim
DrawNumbers = Callable[[np.random.Generator, int], Floats]


@dataclass(frozen=True)
class NetworkNumbers:
    """A distribution whose typical number is 0, scaled to a deviation near 1."""

    name: str
    draw: DrawNumbers


NETWORK_NUMBERS = (
    NetworkNumbers("normal", lambda rng, n: np.asarray(rng.normal(size=n))),
    NetworkNumbers(
        "t3", lambda rng, n: np.asarray(rng.normal(size=n) / np.sqrt(rng.chisquare(3, n)))
    ),
    NetworkNumbers("lognormal", lambda rng, n: np.expm1(rng.normal(size=n)) / 2),
    NetworkNumbers("two-point 20:80", lambda rng, n: np.where(rng.random(n) < 0.2, 2.5, 0.0)),
    NetworkNumbers("constant", lambda rng, n: np.zeros(n)),
)
NORMAL_NUMBERS = NETWORK_NUMBERS[0]


def by_seed(values: Floats) -> Sample:
    """Return numbers as samples of networks."""
    return dict(enumerate(values.tolist()))


def order(values: Floats, wanted: ComparisonOutcome = ComparisonOutcome.ABOVE) -> ClaimPart:
    """Return a claim about the difference of two, of which these are the networks' differences."""
    nothing = dict.fromkeys(range(len(values)), 0.0)
    return all_are(wanted, contrasts(WORLDS_MEASURE, [("a", by_seed(values), "b", nothing)]))


@dataclass(frozen=True)
class ClaimWorld:
    """A claim in a kind of world, and how often its answer may, or should, be among some."""

    claim: str
    truth: str
    networks: int
    parts: Callable[[np.random.Generator, int], list[ClaimPart]]
    counted: frozenset[ClaimVerdict]
    most: float = 1.0  # the share of worlds in which it may be given
    least: float = 0.0  # and in which it should
    level: float = 0.05

    def share(self, worlds: int, seed: int = 1) -> float:
        """Return in what share of the worlds one of the counted answers is given."""
        rng = np.random.default_rng(seed)
        given = 0
        for _ in range(worlds):
            judged = judge_parts(self.parts(rng, self.networks), self.level)
            given += combine_verdicts(part.verdict for part in judged) in self.counted
        return given / worlds


HOLDS = frozenset({ClaimVerdict.SUPPORTED})
CONTRARY = frozenset({ClaimVerdict.CONTRADICTED, ClaimVerdict.PARTLY})
NOT_SO = AGAINST | {ClaimVerdict.TOO_SMALL}
COUNTED_ANSWERS = {HOLDS: "supported", CONTRARY: "contradicted", NOT_SO: "not so"}
BARELY_BEYOND = 1.001 * WORLDS_MARGIN  # beyond the margin, so that the claim is true
Parts = Callable[[np.random.Generator, int], list[ClaimPart]]


def _ordered(
    where: NetworkNumbers,
    centre: float,
    scale: float = 1.0,
    wanted: ComparisonOutcome = ComparisonOutcome.ABOVE,
    parts: int = 1,
) -> Parts:
    return lambda rng, n: [order(centre + scale * where.draw(rng, n), wanted) for _ in range(parts)]


def _bounded(where: NetworkNumbers) -> Parts:
    return lambda rng, n: [within("x", WORLDS_MEASURE, by_seed(where.draw(rng, n)), low=0.0)]


def _one_wrong(rng: np.random.Generator, n: int) -> list[ClaimPart]:
    return [order(2.0 * (k > 0) + NORMAL_NUMBERS.draw(rng, n)) for k in range(MANY_PARTS)]


def _share(truth: float) -> Parts:
    return lambda rng, n: [in_most("x", dict(enumerate((rng.random(n) < truth).tolist())))]


def worlds() -> Iterator[ClaimWorld]:
    """Yield all kinds of claim in their worlds."""
    for where in NETWORK_NUMBERS[:-1]:
        for n in (10, 40):
            for truth, centre, counted in (
                ("the margin", WORLDS_MARGIN, HOLDS),
                ("hardly more than the margin", BARELY_BEYOND, NOT_SO),
            ):
                at = f"{where.name}: {truth}"
                yield ClaimWorld("a above b", at, n, _ordered(where, centre), counted, most=0.05)
            at = f"{where.name}: the bound"
            yield ClaimWorld("x at least 0", at, n, _bounded(where), CONTRARY, most=0.05)
    for centre, counted in ((0.0, NOT_SO), (2.0, HOLDS)):
        at, same = f"constant: {centre:g} margins", _ordered(NETWORK_NUMBERS[-1], centre)
        yield ClaimWorld("a above b", at, MIN_CONSTANT, same, counted, least=1.0)
    for n in (5, 20, 200):
        near = _ordered(NORMAL_NUMBERS, 0.5, 0.3)
        yield ClaimWorld("a above b", "normal: half the margin", n, near, HOLDS, most=0.05)
    yield from _planned()
    yield from _compound()
    for share, counted, most, least in (
        (0.5, HOLDS, 0.05, 0.0),
        (0.5, frozenset({ClaimVerdict.CONTRADICTED}), 0.05, 0.0),
        (0.75, HOLDS, 1.0, 0.9),
        (0.25, CONTRARY, 1.0, 0.9),
    ):
        at, part = f"in {share:.0%}", _share(share)
        yield ClaimWorld("in most networks", at, NEEDED_OF_SHARES, part, counted, most, least)


def _planned() -> Iterator[ClaimWorld]:
    """Yield worlds of twice the margin, or no difference, with as many networks as planned."""
    for spread in (0.5, 1.0, 2.0):
        n = networks_needed(spread, WORLDS_MARGIN)
        for centre, counted in ((2.0, HOLDS), (-2.0, CONTRARY)):
            at = f"normal, spread {spread:g}: {centre:g} margins, networks as planned"
            part = _ordered(NORMAL_NUMBERS, centre, spread)
            yield ClaimWorld("a above b", at, n, part, counted, least=0.9)
    n = networks_needed(1.0, WORLDS_MARGIN, two_sided=True)
    part = _ordered(NORMAL_NUMBERS, 0.0, wanted=ComparisonOutcome.EQUAL)
    at = "normal, spread 1: no difference, networks as planned"
    yield ClaimWorld("a equal to b", at, n, part, HOLDS, least=0.9)


def _compound() -> Iterator[ClaimWorld]:
    """Yield worlds of claims with many parts."""
    alike, above = f"all {MANY_PARTS} equal", f"all {MANY_PARTS} above"
    for centre, spread, n in ((WORLDS_MARGIN, 1.0, 20), (0.95 * WORLDS_MARGIN, 0.1, 5)):
        part = _ordered(NORMAL_NUMBERS, centre, spread, ComparisonOutcome.EQUAL, MANY_PARTS)
        at = f"normal, spread {spread:g}: each {centre:g} margins"
        yield ClaimWorld(alike, at, n, part, CONTRARY, most=0.05)
    part = _ordered(NORMAL_NUMBERS, 2.0, parts=MANY_PARTS)
    yield ClaimWorld(above, "normal: each 2 margins", 40, part, NOT_SO, most=0.0)
    yield ClaimWorld(above, "normal: each 2 margins", 40, part, HOLDS, least=0.9)
    at = "normal: one 0, the others 2 margins"
    yield ClaimWorld(above, at, 40, _one_wrong, HOLDS, most=0.05)


def engineered(worlds: int) -> tuple[float, float]:
    """Return how often a claim false by 2 margins is found so, and a true one contradicted.

    With the networks that are planned, at looks as `--until answered` has them.
    """
    rng = np.random.default_rng(2)

    def last(centre: float) -> ClaimVerdict:
        values = centre + NORMAL_NUMBERS.draw(rng, CLAIM_LOOKS[-1])
        for look, n in enumerate(CLAIM_LOOKS):
            verdict = judge_parts([order(values[:n])], level_at(look))[0].verdict
            if verdict is not ClaimVerdict.OPEN:
                break
        return verdict

    false, true = ([last(centre) for _ in range(worlds)] for centre in (-2.0, 2.0))
    share_found = sum(each is ClaimVerdict.CONTRADICTED for each in false)
    return share_found / worlds, sum(each in NOT_SO for each in true) / worlds


def coverage(where: NetworkNumbers, n: int, worlds: int) -> tuple[float, float, float, float]:
    """Return what intervals cover, and in what share of worlds there is one.

    Of the engine's, the number of the typical network; of Student's ± in tables, the mean.
    """
    rng, mean = np.random.default_rng(3), float(where.draw(np.random.default_rng(4), 10**6).mean())
    covered = made = covered_mean = made_mean = 0
    for _ in range(worlds):
        values = where.draw(rng, n)
        estimate = Estimate(values)
        low, high = estimate.interval()
        has_one = estimate.kind is not EstimateKind.NOT_KNOWN and math.isfinite(low)
        made += has_one
        covered += has_one and low <= 0 <= high
        half = half_width(values)
        if not math.isnan(half) and estimate.kind is not EstimateKind.CONSTANT:
            made_mean += 1
            covered_mean += abs(values.mean() - mean) <= half
    ours, theirs = (
        hits / out_of if out_of else math.nan
        for hits, out_of in ((covered, made), (covered_mean, made_mean))
    )
    return ours, made / worlds, theirs, made_mean / worlds


def tables(worlds_each: int) -> str:
    """Return both tables as Markdown."""
    rows = []
    for world in worlds():
        share = world.share(worlds_each)
        wanted = f"at most {world.most:.0%}" if world.most < 1 else f"at least {world.least:.0%}"
        answer = COUNTED_ANSWERS.get(world.counted, "contradicted")
        rows.append((world.claim, world.truth, str(world.networks), answer, f"{share:.1%}", wanted))
    share_found, wrong = engineered(worlds_each)
    looks = " or ".join(map(str, CLAIM_LOOKS))
    rows.append(
        (
            "a above b",
            "normal: −2 margins, by looks",
            looks,
            "contradicted",
            f"{share_found:.1%}",
            "at least 90%",
        )
    )
    rows.append(
        (
            "a above b",
            "normal: 2 margins, by looks",
            looks,
            "not so",
            f"{wrong:.1%}",
            "at most 0%",
        )
    )
    head = ("claim", "truth", "networks", "answer", "worlds with it", "stated")
    intervals = [
        (where.name, str(n), *map(_percent, coverage(where, n, worlds_each)))
        for where in NETWORK_NUMBERS
        for n in (3, 5, 10, 20, 40)
    ]
    columns = ("numbers", "networks", "covers the typical one", "worlds with an interval",
               "± covers the mean", "worlds with a ±")  # fmt: skip
    return "\n".join((*markdown_lines(head, rows), "", *markdown_lines(columns, intervals)))


def _percent(share: float) -> str:
    return "" if math.isnan(share) else f"{share:.1%}"


def main() -> None:
    """Print both tables, and write them into a page."""
    parser = parser_of(__doc__)
    parser.add_argument("--worlds", type=int, default=1000)
    parser.add_argument("--page", type=Path)
    options = parser.parse_args()
    made = tables(options.worlds)
    print(made)
    if options.page:
        text = options.page.read_text(encoding="utf-8")
        options.page.write_text(with_tables(text, CLAIM_WORLDS, made), encoding="utf-8")


if __name__ == "__main__":
    main()
