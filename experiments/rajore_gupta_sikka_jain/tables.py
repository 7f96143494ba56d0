"""The tables of a video at home, as the paper prints them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import pandas as pd

from analysis.captures.lengths import ALL, BUCKETS
from analysis.figures import cases
from analysis.figures.sheet import Cell, Head, Sheet, median_cell, number_cell
from analysis.metrics.digest import lengths_of
from analysis.metrics.metric_rows import AXIS
from analysis.results.experiment_results import ExperimentResults
from analysis.trials.labels import variant_key
from experiments.rajore_gupta_sikka_jain.claims import RADIOS
from experiments.rajore_gupta_sikka_jain.printed import (
    RGSJ_LENGTHS,
    RGSJ_LOAD_S,
    RGSJ_QUIC_SOONER_S,
    RGSJ_SHAPED,
    RGSJ_SIGNAL,
    RGSJ_SPIKES,
    RGSJ_STARTUP_S,
    RGSJ_WORST_ERRORS,
    LengthsRow,
)
from experiments.rajore_gupta_sikka_jain.selection import (
    HTTPS,
    KBYTES_PER_MBIT,
    LAPTOP,
    NETWORK_NAMES,
    QUIC,
    SERVER,
    THREE,
)

LENGTH_HEADS = (
    Head("Topic / Item"),
    *(
        Head(words, number=True)
        for item in ("Count", "Average", "Min val", "Max val", "Rate (ms)", "Percent",
                     "Burst rate", "Burst start")
        for words in (item, "paper")
    ),
)  # fmt: skip
LENGTH_COLUMNS: tuple[tuple[str, str, Callable[[LengthsRow], float | None]], ...] = (
    ("count", ".0f", lambda row: row.count),
    ("average", ".2f", lambda row: row.average),
    ("min", ".0f", lambda row: row.least),
    ("max", ".0f", lambda row: row.most),
    ("rate_per_ms", ".4f", lambda row: row.rate),
    ("percent", ".2f", lambda row: row.percent),
    ("burst_rate_per_ms", ".4f", lambda row: row.burst_rate),
    ("burst_start_s", ".3f", lambda row: row.burst_start_s),
)


def length_sheet(digest: pd.DataFrame, paper: Sequence[LengthsRow]) -> Sheet:
    """Make the table of packet lengths from a digest; it is empty if the digest has none."""
    table = lengths_of(digest)
    return Sheet(LENGTH_HEADS, () if table.empty else tuple(_length_lines(table, paper)))


def _length_lines(table: pd.DataFrame, paper: Sequence[LengthsRow]) -> Iterator[tuple[Cell, ...]]:
    for name, (_, own), theirs in zip(_buckets(), table.iterrows(), paper, strict=True):
        cells = [Cell(name, name)]
        for column, form, get in LENGTH_COLUMNS:
            cells += [number_cell(float(own[column]), form), number_cell(get(theirs), form)]
        yield tuple(cells)


def _buckets() -> list[str]:
    """Return the names that Wireshark gives the rows."""
    ends = [f"-{high - 1}" for high in BUCKETS[1:]] + [" and greater"]
    return [ALL, *(f"{low}{end}" for low, end in zip(BUCKETS, ends, strict=True))]


MEDIAN = "median of the trials, and the range: with five trials, its 94 % interval"
SET_ON = {LAPTOP: "laptop", SERVER: "server"}
TABLE_AXES = ("network", "variant", "transport", "setting")
Line = tuple[Cell, ...]
Case = tuple[str, str, str, pd.DataFrame]  # transport, setting, variant and flows


def video_tables(results: ExperimentResults) -> Iterator[tuple[str, Sheet]]:
    """Yield the paper's tables that there are trials for, then whose congestion control governs."""
    rows = results.good
    if f"{AXIS}setting" not in rows:
        return
    even = rows[f"{AXIS}rule"] == "240p"
    for case, own in cases.split(rows[even], (), TABLE_AXES):
        for title, sheet in _tables(results, own):
            yield cases.titled(title, case), sheet
    for case, own in cases.split(rows[~even], (), (*TABLE_AXES, "rule")):
        title = cases.titled("Players that choose the bitrate", case)
        yield title, Sheet(PLAYER_HEADS, tuple(_player_lines(own)))


def _tables(results: ExperimentResults, rows: pd.DataFrame) -> Iterator[tuple[str, Sheet]]:
    for title, heads, lines in (
        ("Time to load, and spikes of throughput", LOAD_HEADS, _load_lines),
        ("Shaped Ethernet, run by run", _shaped_heads(rows), _shaped_lines),
        ("Congested WiFi, TCP and QUIC", CONGESTED_HEADS, _congested_lines),
        ("Signal strength, medians", SIGNAL_HEADS, _signal_lines),
        ("Whose congestion control governs: time to load over TCP", _set_heads(), _set_lines),
    ):
        found = tuple(lines(rows))
        if found:
            yield title, Sheet(heads, found)
    yield from _packet_lengths(results, rows)


def _flows(
    rows: pd.DataFrame, network: str, transport: str, setting: str
) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield the flows of each variant of the axis, in the usual order."""
    own = rows[
        (rows[f"{AXIS}network"] == network)
        & (rows[f"{AXIS}transport"] == transport)
        & (rows[f"{AXIS}setting"] == setting)
    ]
    for variant in sorted(set(own[f"{AXIS}variant"]), key=variant_key):
        yield variant, own[own[f"{AXIS}variant"] == variant]


def _cases(rows: pd.DataFrame, network: str) -> Iterator[Case]:
    """Yield the cases of a network, those set on the laptop, as in the paper, first."""
    for transport, setting in ((HTTPS, LAPTOP), (HTTPS, SERVER), (QUIC, LAPTOP), (QUIC, SERVER)):
        for variant, own in _flows(rows, network, transport, setting):
            yield transport, setting, variant, own


def _name(words: str) -> Cell:
    return Cell(words, words)


_CASE = (
    Head("over"),
    Head("variant"),
    Head("set on", hint="whose kernel, or QUIC's program, has this congestion control"),
    Head("n", number=True),
)


def _case(transport: str, setting: str, variant: str, own: pd.DataFrame) -> Line:
    return (
        _name("QUIC" if transport == QUIC else "TCP"),
        _name(variant),
        _name(SET_ON[setting]),
        number_cell(own["trial"].nunique()),
    )


# Video load time and spikes of the first part: RGSJ1, 2, 3


LOAD_HEADS = (
    Head("network"),
    *_CASE,
    Head("load time", "s", f"until the whole video is loaded; {MEDIAN}", True),
    Head("paper", "s", number=True),
    Head("spikes", "", f"seconds of 50 packets or more above both neighbours; {MEDIAN}", True),
    Head("paper", number=True),
    Head("largest spike", "packets/s", MEDIAN, True),
    Head("paper", "packets/s", number=True),
    Head("throughput", "KB/s", f"frames to the station; {MEDIAN}", True),
)


def _load_lines(rows: pd.DataFrame) -> Iterator[Line]:
    for network in NETWORK_NAMES:
        for case in _cases(rows, network):
            transport, _, variant, own = case
            known = transport == HTTPS
            paper = RGSJ_LOAD_S.get(network, {}).get(variant) if known else None
            count, largest = RGSJ_SPIKES.get(network, {}).get(variant, (None, None))
            yield (
                _name(NETWORK_NAMES[network]),
                *_case(*case),
                median_cell(own["loaded_s"]),
                number_cell(paper),
                median_cell(own["spikes"], 0),
                number_cell(count if known else None),
                median_cell(own["largest_spike_pps"], 0),
                number_cell(largest if known else None),
                median_cell(own["throughput_mbps"] * KBYTES_PER_MBIT),
            )


# Five runs on shaped Ethernet: RGSJ5

SHAPED_ROWS: Mapping[str, tuple[str, float, str]] = {  # the paper's name: metric, factor, form
    "KB/s": ("throughput_mbps", KBYTES_PER_MBIT, ".1f"),
    "retransmitted bytes": ("retransmitted_bytes", 1, ".0f"),
    "duplicate ACKs": ("duplicate_acks", 1, ".0f"),
    "out of order": ("out_of_order_sent", 1, ".0f"),
}


def _runs(rows: pd.DataFrame) -> list[int]:
    own = rows[rows[f"{AXIS}network"] == "shaped"]
    return sorted(int(seed) for seed in set(own["seed"]))


def _shaped_heads(rows: pd.DataFrame) -> tuple[Head, ...]:
    return (
        Head("what"),
        Head("variant"),
        Head("set on"),
        *(Head(f"{run}", hint="the seed", number=True) for run in _runs(rows)),
        Head("median", number=True),
        Head("median, paper", number=True),
        Head("five runs, paper", number=True),
    )


def _shaped_lines(rows: pd.DataFrame) -> Iterator[Line]:
    for what, (metric, factor, form) in SHAPED_ROWS.items():
        for setting in (LAPTOP, SERVER):
            for variant, own in _flows(rows, "shaped", HTTPS, setting):
                by_seed = own.groupby("seed")[metric].mean() * factor
                paper = RGSJ_SHAPED[what].get(variant)
                yield (
                    _name(what),
                    _name(variant),
                    _name(SET_ON[setting]),
                    *(number_cell(by_seed.get(run), form) for run in _runs(rows)),
                    number_cell(float(by_seed.median()), form),
                    number_cell(float(np.median(paper)) if paper else None),
                    _name(", ".join(map(str, paper)) if paper else "–"),
                )


# The lecture hall: RGSJ6, 7

CONGESTED_HEADS = (
    Head("radio"),
    *_CASE,
    Head("page", "s", f"until the page is loaded; {MEDIAN}", True),
    Head("playback starts", "s", MEDIAN, True),
    Head("paper", "s"),
    Head("loaded", "s", f"until the whole video is loaded; {MEDIAN}", True),
    Head("stalls", "", MEDIAN, True),
    Head("time stalled", "s", MEDIAN, True),
    Head("paper"),
    Head("error packets", "", f"with one of Wireshark's TCP error flags; {MEDIAN}", True),
    Head("worst second", "packets/s", MEDIAN, True),
    Head("paper", "packets/s", number=True),
    Head("segments lost", "", f"between server and station; {MEDIAN}", True),
    Head("worst second", "packets/s", MEDIAN, True),
)


def _congested_lines(rows: pd.DataFrame) -> Iterator[Line]:
    least, most = RGSJ_STARTUP_S
    low, high = RGSJ_QUIC_SOONER_S
    waits = {HTTPS: f"{least:g} to {most:g}", QUIC: f"{low:g} to {high:g} sooner"}
    stalls = {HTTPS: "re-buffers", QUIC: "does not"}
    for radio, case in _in_the_hall(rows):
        transport, _, variant, own = case
        known = variant in THREE or transport == QUIC
        yield (
            radio,
            *_case(*case),
            median_cell(own["page_s"]),
            median_cell(own["startup_s"]),
            _name(waits[transport] if known else "–"),
            median_cell(own["loaded_s"]),
            median_cell(own["stalls"], 0),
            median_cell(own["stall_s"]),
            _name((stalls[transport] + ", least" * (variant == "veno")) if known else "–"),
            median_cell(own["error_packets"], 0),
            median_cell(own["error_packets_peak"], 0),
            number_cell(RGSJ_WORST_ERRORS[transport] if known else None),
            median_cell(own["lost_packets"], 0),
            median_cell(own["lost_packets_peak"], 0),
        )


def _in_the_hall(rows: pd.DataFrame) -> Iterator[tuple[Cell, Case]]:
    for radio in RADIOS:
        for case in _cases(rows, str(radio.where["network"])):
            yield _name(radio.name), case


# Weak and strong signal: RGSJ8

SIGNAL_HEADS = (
    Head("signal"),
    *_CASE,
    Head("throughput", "KB/s", f"frames to the station; {MEDIAN}", True),
    Head("paper", "KB/s", number=True),
    Head("peaks", "", f"spikes, as above; {MEDIAN}", True),
    Head("paper", number=True),
    Head("duplicate ACKs", "", f"at the server's capture; {MEDIAN}", True),
    Head("paper", number=True),
)


def _signal_lines(rows: pd.DataFrame) -> Iterator[Line]:
    for network, known in RGSJ_SIGNAL.items():
        for case in _cases(rows, network):
            transport, _, variant, own = case
            rate, peaks, duplicates = (
                known.get(variant, (None,) * 3) if transport == HTTPS else (None,) * 3
            )
            yield (
                _name(network.removeprefix("wifi-")),
                *_case(*case),
                median_cell(own["throughput_mbps"] * KBYTES_PER_MBIT),
                number_cell(rate),
                median_cell(own["spikes"], 0),
                number_cell(peaks),
                median_cell(own["duplicate_acks"], 0),
                number_cell(duplicates),
            )


# Whose setting: our own


def _set_heads() -> tuple[Head, ...]:
    heads = [Head("network"), Head("n", number=True)]
    for where in SET_ON.values():
        heads += [Head(f"{name}, on the {where}", "s", MEDIAN, True) for name in THREE]
        hint = f"for each seed, the largest of the three minus the smallest; {MEDIAN}"
        heads.append(Head(f"spread, on the {where}", "s", hint, True))
    return tuple(heads)


def _set_lines(rows: pd.DataFrame) -> Iterator[Line]:
    for network, name in NETWORK_NAMES.items():
        cells: list[Cell] = []
        seeds = 0
        for setting in SET_ON:
            own = pd.DataFrame(
                {
                    variant: flows.groupby("seed")["loaded_s"].mean()
                    for variant, flows in _flows(rows, network, HTTPS, setting)
                    if variant in THREE
                },
                columns=list(THREE),
            ).dropna()
            seeds = max(seeds, len(own))
            spread = own.max(axis=1) - own.min(axis=1)
            cells += [median_cell(values, 3) for values in (*(own[v] for v in THREE), spread)]
        if seeds:
            yield (_name(name), number_cell(seeds), *cells)


# Players that choose the bitrate: our own

PLAYER_HEADS = (
    Head("network"),
    *_CASE,
    Head("rule", hint="by which the player chooses the next segment's bitrate"),
    Head("bitrate", "Mbit/s", f"mean of what was shown; {MEDIAN}", True),
    Head("switches", "", MEDIAN, True),
    Head("playback starts", "s", MEDIAN, True),
    Head("stalls", "", MEDIAN, True),
    Head("loaded", "s", f"until the whole video is loaded; {MEDIAN}", True),
)


def _player_lines(rows: pd.DataFrame) -> Iterator[Line]:
    for network, name in NETWORK_NAMES.items():
        for transport, setting, variant, flows in _cases(rows, network):
            for rule, own in flows.groupby(f"{AXIS}rule"):
                yield (
                    _name(name),
                    *_case(transport, setting, variant, own),
                    _name(str(rule)),
                    median_cell(own["video_mbps"], 2),
                    median_cell(own["switches"], 0),
                    median_cell(own["startup_s"]),
                    median_cell(own["stalls"], 0),
                    median_cell(own["loaded_s"]),
                )


# Packet lengths of one trial: RGSJ4


def _packet_lengths(results: ExperimentResults, rows: pd.DataFrame) -> Iterator[tuple[str, Sheet]]:
    """Yield the packet lengths of the first trial with Cubic on the laptop, as the paper prints."""
    for transport, paper in RGSJ_LENGTHS.items():
        flows = dict(_flows(rows, "wifi-good", transport, LAPTOP)).get("cubic")
        if flows is None:
            continue
        first = flows.sort_values("seed").iloc[0]
        digest = results.digest
        sheet = length_sheet(digest[digest["trial"] == first["trial"]], paper)
        over = "QUIC" if transport == QUIC else "TCP"
        title = f"Packet lengths over {over} (cubic), good WiFi, trial {int(first['number'])}"
        if sheet.rows:
            yield title, sheet
