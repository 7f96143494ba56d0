"""What a comparison shows, in a sentence that an engineer would say: the title of its figure.

Both get 0.957 Mbit/s, but packets take 10 times as long with Cubic (645 ms) as with Vegas (60 ms).
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from analysis.figures import cases
from analysis.figures.cases import axes_beside
from analysis.metrics.metric_rows import AXIS
from analysis.statistics.intervals import MIN_SEEDS_OF_A_SPREAD, half_width

ALIKE_RATIO = 1.05  # two means that close are called the same
LIKE_DELAYS = 1.2  # the same, of flows through one queue
TIMES_RATIO = 2.0  # from which on a sentence says how many times
SPEAKING_AXES = ("variant", "queue", "discipline")  # whose values say what they are
MAX_SAID = 3  # values that are all said; of more, the ends
SPOKEN_NAMES = {
    "tahoe": "Tahoe",
    "reno": "Reno",
    "newreno": "NewReno",
    "sack": "SACK",
    "vegas": "Vegas",
    "vegas1995": "Vegas of 1995",
    "veno": "Veno",
    "cubic": "Cubic",
    "bbr": "BBR",
    "linux-reno": "Linux's Reno",
    "dctcp": "DCTCP",
    "westwood": "Westwood",
    "illinois": "Illinois",
    "htcp": "H-TCP",
}
THROUGHPUT_COLUMN, DELAY_COLUMN, DROPS_COLUMN = "throughput_mbps", "owd_mean_ms", "drop_rate"


def said_name(name: str) -> str:
    """Name a variant as people do; of a flow among several of one variant, the flow too."""
    variant, _, rest = name.partition(" (")
    return SPOKEN_NAMES.get(variant, variant) + (f" ({rest}" if rest else "")


def in_words(parts: Sequence[str]) -> str:
    """`cubic, bbr and vegas`."""
    return " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))


def said_value(axis: str, value: str) -> str:
    """Name a value of an axis: a variant or a queue by itself, others with the axis."""
    return said_name(value) if axis in SPEAKING_AXES else cases.case_words({axis: value})


def _cells(rows: pd.DataFrame, series: str) -> pd.DataFrame | None:
    """Name the cell of each row: its series, with the value of the axis that varies beside it.

    None where more axes vary: a mean over settings that differ would say nothing.
    """
    axes = axes_beside(rows, series)
    if len(axes) > 1:
        return None
    names = rows[series].map(lambda name: said_name(str(name)))
    if axes:
        values = rows[AXIS + axes[0]]
        label = values.map(lambda value: said_value(axes[0], cases.text(value)), na_action="ignore")
        names = names + (" with " + label).fillna("")
    return rows.assign(cell=names)


def comparison(rows: pd.DataFrame, series: str) -> str:
    """Say how throughput and delay compare; empty where neither is known, or too much varies."""
    axes = axes_beside(rows, series)
    if len(axes) == 1 and rows[series].nunique() > 1:
        return _by_value(rows, series, axes[0])
    if (named := _cells(rows, series)) is None:
        return ""
    subject = ""
    if axes:  # of one series: its values are what is compared
        subject = said_name(str(rows[series].iloc[0]))
        named = named.assign(cell=named["cell"].str.removeprefix(f"{subject} with "))
    rate, delay = (_means(named, name) for name in (THROUGHPUT_COLUMN, DELAY_COLUMN))
    if len(rate) < 2 and len(delay) < 2:
        return _only(rate, delay)
    first, second = _rates(rate, subject), _delays(delay)
    if not (first and second):
        return _capital(f"{first or second}.")
    link = ", but" if _alike(rate) and not _alike(delay) else ";"
    return f"{first}{link} {second}."


def spread(rows: pd.DataFrame, series: str) -> str:
    """Say between what the means are of all settings, where more cannot be said of each."""
    axes = [AXIS + name for name in axes_beside(rows, series)]
    cells = rows.groupby([series, *axes], sort=False, dropna=False)
    rate = cells[THROUGHPUT_COLUMN].mean().dropna()
    names = [said_name(str(each)) for each in rate.index.unique(series)]
    if len(rate) < 2:
        return ""
    who = in_words(names) if len(names) <= MAX_SAID else f"All {len(names)}"
    low, high = f"{rate.min():.3g}", f"{rate.max():.3g}"
    gets = "get" if len(names) > 1 else "gets"
    return f"{who} {gets} {low}{f' to {high}' * (high != low)} Mbit/s."


def _by_value(rows: pd.DataFrame, series: str, axis: str) -> str:
    """Say what each of a few flows gets with each of a few values; empty where they are more."""
    names = list(dict.fromkeys(rows[series]))
    groups = list(rows.groupby(AXIS + axis, sort=False))
    rates = rows.groupby([AXIS + axis, series])[THROUGHPUT_COLUMN].mean()
    if max(len(names), len(groups)) > MAX_SAID:
        return ""
    sentences = []
    for place, (value, of_value) in enumerate(groups):
        gets, unit = (" gets", " Mbit/s") if place == 0 else ("", "")
        here = [name for name in names if not pd.isna(rates.get((value, name)))]
        if not here:
            return ""
        first, *others = here
        shares = [f"{said_name(str(first))}{gets} {rates[value, first]:.3g}{unit}"]
        shares += [f"{said_name(str(each))} {rates[value, each]:.3g}" for each in others]
        delays = of_value.groupby(series)[DELAY_COLUMN].mean().reindex(here).dropna()
        waits = ""
        if len(delays) == len(here) and not _alike(delays, LIKE_DELAYS):
            waits = f", delayed by {' and '.join(f'{each:.3g}' for each in delays)} ms"
        elif len(delays):
            waits = f", and packets take {delays.mean():.3g} ms"
        start = said_value(axis, cases.text(value))
        start = "" if start in map(said_name, here) else f"with {start}, "
        sentences.append(f"{start}{' and '.join(shares)}{waits}")
    return _capital("; ".join(sentences)) + "."


def by_number_of(rows: pd.DataFrame, series: str, axis: str) -> str:
    """Say how throughput changes from one end of an axis of numbers to the other."""
    variants = rows["variant"].nunique()
    if rows[series].nunique() > MAX_SAID and variants <= MAX_SAID:
        series = "variant"
    values = sorted(rows[AXIS + axis].dropna().unique())
    unit = cases.AXIS_UNITS.get(axis.rpartition("_")[2], "")
    name = axis.removesuffix("_" + axis.rpartition("_")[2]) if unit else axis
    name = "buffer" if name == "limit" else name
    # flows of one seed are no repeats of each other
    by_seed = rows.groupby([AXIS + axis, series, "seed"])[THROUGHPUT_COLUMN].mean().dropna()
    first, last = (
        dict(list(by_seed[by_seed.index.get_level_values(0) == value].groupby(level=1)))
        for value in (values[0], values[-1])
    )
    both = [each for each in first if each in last]
    if not 0 < len(both) <= MAX_SAID:
        return ""
    goes = [
        f"{said_name(str(each))} {_goes(first[each], last[each], '' if place else ' Mbit/s')}"
        for place, each in enumerate(both)
    ]
    low, high = cases.text(values[0]), cases.text(values[-1])
    start = f"As {cases.axis_words(name)} goes from {low} to {high}{' ' * bool(unit)}{unit}"
    return f"{start}, {in_words(goes)}."


def drops(rows: pd.DataFrame, series: str) -> str:
    """Say with whom the queue drops most packets, and with whom least."""
    if (named := _cells(rows, series)) is None:
        return ""
    rate = _means(named, DROPS_COLUMN) * 100
    if rate.empty or not rate.max() > 0:
        return ""
    most, least = str(rate.idxmax()), str(rate.idxmin())
    of_packets = f"The queue drops {rate.max():.2g} % of the packets"
    if len(rate) == 1 or _alike(rate):
        return f"{of_packets}."
    least_of = "none" if rate.min() == 0 else f"{rate.min():.2g} %"
    return f"{of_packets} of {most}, {least_of} of {least}."


def corner(rows: pd.DataFrame, series: str) -> str:
    """Say which is the fastest and which has the least delay, and what the other one costs."""
    if (named := _cells(rows, series)) is None:
        return ""
    rate, delay = (_means(named, name) for name in (THROUGHPUT_COLUMN, DELAY_COLUMN))
    rate, delay = rate[rate.index.isin(delay.index)], delay[delay.index.isin(rate.index)]
    if len(rate) < 2:
        return ""
    fast, near = str(rate.idxmax()), str(delay.idxmin())
    if _alike(rate):
        sentence = f"all get {_mean_words(rate)} Mbit/s, for a delay of {delay.min():.3g} to"
        return _capital(f"{sentence} {delay.max():.3g} ms.")
    if fast == near:
        return (
            f"{fast} has the highest throughput and the least delay "
            f"({rate[fast]:.3g} Mbit/s, {delay[fast]:.3g} ms)."
        )
    return (
        f"{fast} is the fastest ({rate[fast]:.3g} Mbit/s at {delay[fast]:.3g} ms), "
        f"{near} waits least ({delay[near]:.3g} ms at {rate[near]:.3g} Mbit/s)."
    )


def _means(named: pd.DataFrame, metric: str) -> pd.Series[float]:
    by_cell: pd.Series[float] = named.groupby("cell", sort=False)[metric].mean().dropna()
    return by_cell


def _alike(means: pd.Series[float], ratio: float = ALIKE_RATIO) -> bool:
    return bool(means.max() <= ratio * means.min())


def _mean_words(alike: pd.Series[float]) -> str:
    """Write the mean with as many digits as the values share: `about 7.6`."""
    if f"{alike.max():.3g}" == f"{alike.min():.3g}":
        return f"{alike.mean():.3g}"
    return f"about {float(f'{alike.mean():.2g}'):g}"


def _only(rate: pd.Series[float], delay: pd.Series[float]) -> str:
    parts = [
        *(f"gets {value:.3g} Mbit/s" for value in rate),
        *(f"its packets take {value:.3g} ms" for value in delay),
    ]
    name = str((rate if len(rate) else delay).index[0]) if parts else ""
    return f"{name} {', and '.join(parts)}." if len(rate) else ""


def _rates(rate: pd.Series[float], subject: str = "") -> str:
    """Say what each gets; or, of one subject, what it gets with each."""
    if len(rate) < 2:
        return f"{subject or rate.index[0]} gets {rate.iloc[0]:.3g} Mbit/s" if len(rate) else ""
    if _alike(rate):
        both, mean = len(rate) == 2, f"{_mean_words(rate)} Mbit/s"
        if subject:
            return f"{subject} gets {mean} with {'either' if both else 'all of them'}"
        return f"{'Both' if both else 'All'} get {mean}"
    ordered = rate.sort_values(ascending=False)
    names = [str(each) for each in ordered.index]
    most, *others = (f"{value:.3g}" for value in ordered)
    if len(rate) > MAX_SAID:
        first, last, least = names[0], names[-1], others[-1]
        if subject:
            return f"{subject} gets most with {first}, {most} Mbit/s, least with {last}, {least}"
        return f"{first} gets most, {most} Mbit/s, {last} least, {least}"
    pairs = zip(names[1:], others, strict=True)
    if subject:
        rest = (f"{value} with {name}" for name, value in pairs)
        return ", ".join((f"{subject} gets {most} Mbit/s with {names[0]}", *rest))
    return ", ".join((f"{names[0]} gets {most} Mbit/s", *(f"{n} {value}" for n, value in pairs)))


def _delays(delay: pd.Series[float]) -> str:
    if delay.empty:
        return ""
    if len(delay) < 2 or _alike(delay):
        return f"packets take {delay.mean():.3g} ms"
    ordered = delay.sort_values()
    low, high = ordered.iloc[0], ordered.iloc[-1]
    if high >= TIMES_RATIO * low > 0:
        times = high / low
        often = "twice" if round(times, 1) == 2 else f"{times:.2g} times"
        return (
            f"packets take {often} as long with {ordered.index[-1]} ({high:.3g} ms) as with "
            f"{ordered.index[0]} ({low:.3g} ms)"
        )
    return (
        f"packets take {low:.3g} ms with {ordered.index[0]}, {high:.3g} ms with {ordered.index[-1]}"
    )


def _goes(first: pd.Series[float], last: pd.Series[float], unit: str) -> str:
    start, end = first.mean(), last.mean()
    if max(start, end) <= ALIKE_RATIO * min(start, end):
        return f"stays at {start:.3g}{unit}"
    lower, upper = (first, last) if start < end else (last, first)
    if _reach(lower)[1] >= _reach(upper)[0]:
        return f"gets {start:.3g} and {end:.3g}{unit}, which the seeds do not tell apart"
    return f"{'falls' if end < start else 'rises'} from {start:.3g} to {end:.3g}{unit}"


def _reach(values: pd.Series[float]) -> tuple[float, float]:
    """Return the ends of the mean's interval; of values that allow none, their own."""
    half = half_width(values) if len(values) >= MIN_SEEDS_OF_A_SPREAD else 0.0
    if pd.isna(half):
        return values.min(), values.max()
    return values.mean() - half, values.mean() + half


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
