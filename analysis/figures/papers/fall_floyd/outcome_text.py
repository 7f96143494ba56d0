"""The figure's words: each is read off the outcomes, so none says what was not seen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from analysis.figures.papers.fall_floyd.loss_panels import Extent, Panel
from analysis.figures.papers.fall_floyd.outcome import Outcome
from analysis.trials.labels import setting_label, variant_key

DEFINITIONS = {
    "tahoe": "slow start after every loss,\nno fast recovery",
    "reno": "fast recovery, which the first\nACK of new data ends",
    "newreno": "fast recovery until all that\nwas sent is acknowledged",
    "newreno-impatient": "newreno, but later partial\nACKs leave the timer running",
    "sack": "the receiver says which\nsegments it has",
}


def note(outcome: Outcome) -> str:
    """The outcome in two short lines."""
    events = []
    if outcome.timeouts:
        events.append("timeout" if outcome.timeouts == 1 else f"{outcome.timeouts} timeouts")
    events.append(f"{outcome.halvings} halving{'s' * (outcome.halvings != 1)}")
    if outcome.slow_start:
        events.append("slow start")
    trips = f"{round_trips(outcome)} round trips" if outcome.recovered else "no recovery"
    return f"{', '.join(events)}\n{trips}, {len(outcome.sent_again)} sent again"


def round_trips(outcome: Outcome) -> str:
    """The recovery, as notes and the title write it."""
    return f"{outcome.round_trips:.1f}"


def title(panels: Iterable[Panel]) -> str:
    """The title: the findings with the most losses."""
    ran = [(each.lost, each.variant, each.outcome) for each in panels if each.outcome]
    if not ran:
        return "Lost segments: no trial ran"
    most = max((lost for lost, _, _ in ran), key=lambda lost: (len(lost), lost))
    ran.sort(key=lambda each: variant_key(each[1]))
    seen = {variant: outcome for lost, variant, outcome in ran if lost == most}
    what = f"{len(most)} segment{'s' * (len(most) > 1)} lost"
    return f"{what}: {_recoveries(seen)};\n{_timeouts(seen)}"


def _recoveries(seen: Mapping[str, Outcome]) -> str:
    """The shortest recovery and the longest."""
    done = {name: each for name, each in seen.items() if each.recovered}
    if not done:
        return f"{_names(seen)} did not recover"
    low = round_trips(min(done.values(), key=lambda each: each.round_trips))
    high = round_trips(max(done.values(), key=lambda each: each.round_trips))
    text = f"{_names(_those(done, low))} recovered in {low} round trips"
    if high != low:
        text += f", {_names(_those(done, high))} in {high}"
    missing = [name for name in seen if name not in done]
    return text + (f", {_names(missing)} did not" if missing else "")


def _those(seen: Mapping[str, Outcome], trips: str) -> list[str]:
    return [name for name, each in seen.items() if round_trips(each) == trips]


def _timeouts(seen: Mapping[str, Outcome]) -> str:
    """The variants whose retransmit timer fired."""
    fired = [name for name, each in seen.items() if each.timeouts]
    if not fired:
        return "no retransmit timer fired"
    return f"the retransmit timer{'s' * (len(fired) > 1)} of {_names(fired)} fired"


def _names(names: Iterable[str]) -> str:
    *before, last = names
    return f"{', '.join(before)} and {last}" if before else last


def footer(panels: Sequence[Panel], shown: Extent | None) -> str:
    """The footer: setting, engine, and how to read the figure."""
    seeds = sorted({each.trial.scenario.seed for each in panels})
    how = [
        f"seed{'s' * (len(seeds) > 1)} {', '.join(map(str, seeds))}",
        "time from the first segment",
    ]
    how.append(
        "round trips: of the idle path, from the first segment sent again to the ACK of all "
        "that was sent before it"
    )
    if shown is not None:
        how.append(f"segments above {shown.number[1]:.0f} not shown")
    return f"{setting_label(panels[0].trial)}\n{' · '.join(how)}"
