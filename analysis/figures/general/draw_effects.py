"""What results depend on of what a seed draws: the delays, and the bottleneck's buffer.

Where the networks are drawn (`drawn_share`), a number is of networks like the stated one. How much
the main metric changes with a flow's round trip and with the buffer, each by itself, is a
regression over the networks: in percent, for one that is 5 % longer or larger.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from analysis.figures import cases, style
from analysis.figures.figure import Axis, Figure, Mark, Panel, PointSeries, ReferenceLine
from analysis.metrics.metric_rows import AXIS
from analysis.results.experiment_results import ExperimentResults
from analysis.statistics.distributions import t_quantile
from analysis.statistics.estimates import CLAIM_LEVEL
from testbed.scenario.experiment import Experiment
from testbed.scenario.model import Scenario
from testbed.scenario.network import Queue
from testbed.scenario.variations import drawn

STATED_CHANGE = 0.05
MIN_EFFECT_FREEDOM = 2
DRAWN_QUANTITIES = {"rtt": "round trip 5 % longer", "buffer": "buffer 5 % larger"}
EFFECTS_READING = "points: effect on the mean over the settings; bars: 95 % interval"


def draw(results: ExperimentResults) -> Iterator[Figure]:
    """Yield a figure of the effects, if networks were drawn and there are enough of them."""
    metric = results.definition.metric if results.definition else Experiment.metric
    table = effects(results, metric)
    if table.empty:
        return
    looks = style.series_styles(list(table["variant"].unique()))
    marks: list[Mark] = [ReferenceLine("x", 0, colour=style.BLACK)]
    marks += [
        PointSeries(
            of_variant["effect"],
            of_variant["place"],
            looks[str(name)].colour,
            looks[str(name)].marker,
            size=4.5,
            low=list(of_variant["low"]),
            high=list(of_variant["high"]),
            along="x",
            series=str(name),
        )
        for name, of_variant in table.groupby("variant", sort=False)
    ]
    pairs = zip(table["variant"], table["what"], strict=True)
    names = [f"{variant}: {DRAWN_QUANTITIES[what]}" for variant, what in pairs]
    yield Figure(
        stem=cases.stem(results.key, "effect-of-drawn-network"),
        title="What the drawn network changes",
        panels=((Panel(marks, Axis(f"change of {metric} (%)"), Axis(names=names)),),),
        foot=cases.foot(results, results.good, EFFECTS_READING),
        data=table.drop(columns="place"),
        row_inches=0.5 + 0.22 * len(table),
    )


def effects(results: ExperimentResults, metric: str) -> pd.DataFrame:
    """Return each variant's effects in percent, with their intervals."""
    scenarios = {each.path.name: each.scenario for each in results.trials}
    rows = results.tcp[results.tcp[metric] > 0]
    places = rows[["trial", "src", "dst"]].astype(str).itertuples(index=False)
    changes = [_changes(scenarios[trial], src, dst) for trial, src, dst in places]
    rows = rows.assign(**pd.DataFrame(changes, columns=list(DRAWN_QUANTITIES), index=rows.index))
    effect_rows = [
        {"variant": variant, "what": what, "effect": effect, "low": effect - half,
         "high": effect + half}
        for variant, of_variant in rows.groupby("variant", sort=False)
        for what, (effect, half) in _regression(of_variant, metric).items()
    ]  # fmt: skip
    return (
        pd.DataFrame(effect_rows).assign(place=range(len(effect_rows)))
        if effect_rows
        else pd.DataFrame()
    )


def _changes(scenario: Scenario, src: str, dst: str) -> tuple[float, float]:
    """Return by what share a flow's round trip and the buffer are more than stated."""
    if not scenario.drawn_share:
        return 0.0, 0.0
    stated, network = scenario.network, drawn(scenario).network
    rtt = network.path(src, dst).rtt_ms / (stated.path(src, dst).rtt_ms or 1)
    return rtt - 1, _limit(network.bottleneck_queue) / _limit(stated.bottleneck_queue) - 1


def _limit(queue: Queue) -> float:
    return float(queue.limit_bytes or queue.limit_packets or queue.limit_bdp or 1)


def _regression(rows: pd.DataFrame, metric: str) -> dict[str, tuple[float, float]]:
    """Return the effect of each drawn quantity that varies, and half of its interval.

    Of the logarithm, less the mean of each setting, and then a number for each network: settings
    are given, and have the same networks.
    """
    setting = [name for name in rows if str(name).startswith(AXIS)] + ["flow"]
    names = [name for name in DRAWN_QUANTITIES if rows[name].abs().max() > 0]
    numbers = rows[names].assign(y=np.log(rows[metric]))
    groups = numbers.groupby([rows[name] for name in setting], dropna=False)
    centred = (numbers - groups.transform("mean")).groupby(rows["seed"]).mean()
    freedom = len(centred) - 1 - len(names)
    if not names or freedom < MIN_EFFECT_FREEDOM:
        return {}
    x, y = centred[names].to_numpy(), centred["y"].to_numpy()
    slopes, *_ = np.linalg.lstsq(x, y, rcond=None)
    variance = float(((y - x @ slopes) ** 2).sum()) / freedom
    errors = np.sqrt(variance * np.diag(np.linalg.pinv(x.T @ x)))
    reach = 100 * STATED_CHANGE * t_quantile(1 - CLAIM_LEVEL, freedom)
    return {
        name: (100 * STATED_CHANGE * float(slope), reach * float(error))
        for name, slope, error in zip(names, slopes, errors, strict=True)
    }
