"""Drops and shares over the round trip within one packet's time, on Linux and in ns-2."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from analysis.claims.samples import Reference
from analysis.figures import cases, means, style
from analysis.figures.figure import Axis, Figure, Mark, Panel, ReferenceLine, legend_entries
from analysis.metrics.metric_rows import AXIS
from analysis.results.experiment_results import ExperimentResults
from experiments.kapre_saxena_joshi_hattikar.simulated import ORACLE, OUR_VARIANTS

OURS, NS2 = "Linux", "ns-2"
PHASE_MEASURES = (
    means.DROPS,
    means.Measure("share_percent", "NewReno's share (%)", zero=False),
)


def draw(results: ExperimentResults) -> Iterator[Figure]:
    """Draw single flows' drop rates, and the share of a pair's NewReno, over the round trip."""
    rows = results.tcp
    if rows.empty or f"{AXIS}more_ms" not in rows:
        return
    ours = rows.assign(case=rows[f"{AXIS}case"], more_ms=rows[f"{AXIS}more_ms"])
    tables = {OURS: measured(ours)}
    theirs = ns2_rows(ORACLE)
    if not theirs.empty:
        tables[NS2] = measured(theirs)
    looks = style.series_styles(["vegas", "newreno"])
    grid, data = [], []
    for measure in PHASE_MEASURES:
        line: list[Panel] = []
        for where, table in tables.items():
            marks: list[Mark] = [ReferenceLine("y", 50)] if measure.scale == 1 else []
            for variant, look in looks.items():
                of_variant = table[(table["variant"] == variant) & table[measure.metric].notna()]
                if len(of_variant):
                    summary = means.summary(of_variant, ["more_ms"], measure)
                    marks += means.line_with_band(summary, "more_ms", look, variant)
                    data.append(summary.assign(where=where, variant=variant, what=measure.metric))
            x = Axis("round trip beyond the least (ms)")
            y = Axis(measure.label if not line else "", limits=_limits(tables, measure))
            line.append(Panel(marks, x, y, title=where))
        grid.append(tuple(line))
    yield Figure(
        stem=cases.stem(results.key, "phase"),
        title="Drops beside CBR of 9 Mbit/s, and shares beside 7: a function of the phase",
        panels=tuple(grid),
        caption=_caption(tables),
        reading="from left to right: one packet's time at 10 Mbit/s",
        legend=legend_entries(looks),
        foot=cases.foot(results, rows),
        data=pd.concat(data, ignore_index=True),
    )


def ns2_rows(reference: Reference) -> pd.DataFrame:
    """Return ns-2's TCP flows, with our names."""
    table = reference.table("phase_raw.csv")
    if table.empty:
        return table
    table = table[table["flow"] != "cbr"]
    names = table["case"].str.split("/")
    place = (table["flow"] == "tcp2").astype(int)
    values = [each[at] for each, at in zip(names, place, strict=True)]
    return table.assign(
        case=["/".join(OUR_VARIANTS[word] for word in each) for each in names],
        variant=[OUR_VARIANTS[word] for word in values],
        trial=table["case"] + table["more_ms"].astype(str) + "-" + table["rep"].astype(str),
        verdict="valid",
    )


def measured(rows: pd.DataFrame) -> pd.DataFrame:
    """Keep the drop rates of flows beside CBR alone, and the share of the pair's NewReno."""
    is_pair = rows["case"].str.contains("/")
    shares = means.with_goodput_shares(rows)["share_percent"]
    return rows.assign(
        drop_rate=rows["drop_rate"].where(~is_pair),
        share_percent=shares.where(is_pair & (rows["variant"] == "newreno")),
    )


def _limits(tables: dict[str, pd.DataFrame], measure: means.Measure) -> tuple[float, float]:
    """Return the limits of the axis that ours and ns-2's share."""
    values = pd.concat([table[measure.metric] for table in tables.values()]) * measure.scale
    top = float(values.max()) if values.notna().any() else 1.0
    return (0.0, 1.05 * top) if measure.scale > 1 else (0.0, 100.0)


def _caption(tables: dict[str, pd.DataFrame]) -> str:
    """Say by how much drop rates and shares vary over one packet's time."""
    sentences = []
    for where, table in tables.items():
        for variant in ("vegas", "newreno"):
            averages = (
                table[table["variant"] == variant].groupby("more_ms")["drop_rate"].mean().dropna()
            )
            if len(averages):
                least, most = 100 * averages.min(), 100 * averages.max()
                sentences.append(f"{where}: {variant} drops {least:.2g} to {most:.2g} %")
        share = table.groupby("more_ms")["share_percent"].mean().dropna()
        if len(share):
            sentences.append(
                f"{where}: NewReno has {share.min():.0f} to {share.max():.0f} % of a pair"
            )
    return "; ".join(sentences) + "."
