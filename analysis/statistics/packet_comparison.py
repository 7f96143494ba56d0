"""Whether two results folders, or two trials, hold the same packets, samples, numbers and verdicts.

In virtual time the same scenario and seed give the same bytes, so a difference comes from the
code, the kernel or a program. Trials are matched by experiment, axes, label, seed and engine, not
by the hash in the folder's name: a trial's identity may change while its packets stay. Packets and
samples of trials that another version wrote are compared, too, even if this version cannot read
their scenarios any more.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import BinaryIO

import pandas as pd

from analysis.results.reduction import reduction_of
from analysis.verdict.verdict import Verdict
from testbed.errors import TestbedError, short
from testbed.faults import Fault, listed
from testbed.machine import json_files, safe_files
from testbed.machine.safe_files import plain_file
from testbed.scenario.model import BASE_KERNEL
from testbed.store.names import CAPTURES_FOLDER, RECORD, SAMPLES_FOLDER, SCENARIO, ZSTD_SUFFIX
from testbed.store.reading import Trial, file_fault, is_trial, open_trial, trial_paths
from testbed.store.records import DAMAGED, FileRecord

# Columns of metrics.csv that say which trial a row is of: the kernel may be what is compared.
NAMING_COLUMNS = ("trial", "setting", "label", "axes")
PACKET_BLOCK = 6  # pcapng's enhanced packet block: its type, and where its time stands
TIME_BYTES = slice(12, 20)
TIME_AND_LENGTHS = slice(12, 28)
MAX_BLOCK_BYTES = 1 << 20
# Fields of a scenario that name it or say what is looked at
OBSERVATION_FIELDS = ("seed", "axes", "captures", "snaplen_bytes", "sample_interval_ms")

TrialKey = tuple[str, ...]
TrialPair = tuple["TrialFiles", "TrialFiles"]


@dataclass(frozen=True)
class CapturedFile:
    """A capture of a trial: empty `file` if it was dropped."""

    file: str
    sha256: str


@dataclass(frozen=True)
class TrialFiles:
    """A trial as its files say, whichever version of the testbed wrote them."""

    path: Path
    key: TrialKey  # what tells it from the other trials of its folder
    scenario: str
    status: str
    reason: str
    epoch_s: float
    captures: Mapping[tuple[str, str], CapturedFile]  # by node and interface
    files: Mapping[str, FileRecord]

    @property
    def name(self) -> str:
        """The name of its folder."""
        return self.path.name


def read_files(path: Path) -> TrialFiles:
    """Read what a comparison needs of a trial's record and scenario."""
    try:
        record = json_files.read_record(path / RECORD)
        scenario = json_files.read_record(path / SCENARIO)
        captures = {
            (str(c["node"]), str(c["interface"])): CapturedFile(
                Path(str(c["file"])).name, str(c["sha256"])
            )
            for c in record["captures"]
        }
        axes = json.dumps(scenario["axes"], sort_keys=True)
        kernel = scenario.get("kernel", BASE_KERNEL)
        parts = (scenario["experiment"], axes, scenario["label"], kernel)
        key = (*map(str, parts), str(scenario["seed"]), str(record["engine"]))
        settings = {k: v for k, v in scenario.items() if k not in OBSERVATION_FIELDS}
        for flow in settings["flows"]:
            if flow.get("command"):
                flow["command"]["files"] = [Path(each).name for each in flow["command"]["files"]]
        text = json.dumps(settings, sort_keys=True)
        status, reason = str(record["status"]), str(record["reason"])
        files = {str(n): FileRecord(**each) for n, each in record.get("files", {}).items()}
        epoch_s = float(record["epoch_s"])
        return TrialFiles(path, key, text, status, reason, epoch_s, captures, files)
    except (OSError, *DAMAGED) as error:
        raise TestbedError(
            f"{path}: not a trial: {short(error)}", "name results folders"
        ) from error


@dataclass(frozen=True)
class PacketReport:
    """The result of a comparison: the differences of each trial that has some."""

    trials: int  # that were compared
    captures: int
    differences: Mapping[str, tuple[str, ...]]  # trial's folder in B → sentences
    only_a: tuple[str, ...] = ()  # trials' folders
    only_b: tuple[str, ...] = ()
    unread: str = ""  # why numbers and verdicts of some trials were not compared

    @property
    def agrees(self) -> bool:
        """True if every trial has a counterpart with the same content."""
        return bool(self.trials) and not (self.differences or self.only_a or self.only_b)

    def lines(self) -> Iterator[str]:
        """Yield the report; its last line is the summary."""
        for name, sentences in self.differences.items():
            yield f"{name}: {listed(Fault((), each) for each in sentences)}"
        for side, names in (("A", self.only_a), ("B", self.only_b)):
            yield from (f"{name}: only in {side}" for name in names)
        if self.unread:
            yield f"only packets and samples are compared of other versions' trials: {self.unread}"
        same = self.trials - len(self.differences)
        count = f"all {self.trials}" if same == self.trials else f"{same} of {self.trials}"
        numbers = "" if self.unread else ", numbers and verdict"
        yield (
            f"same packets, samples{numbers}: {count} trials ({self.captures} captures compared)"
        )


def compare_packets(a: Path, b: Path) -> PacketReport:
    """Compare two results folders, runs, or directories of single trials."""
    if is_trial(a) and is_trial(b):
        return compare_pairs([(read_files(a), read_files(b))])
    sides = [list(map(read_files, trial_paths(folder))) for folder in (a, b)]
    pairs, only_a, only_b = _matched(*sides)
    if not pairs:
        raise TestbedError(
            f"{a} and {b}: no trial in common",
            "trials match by experiment, axes, label, seed and engine",
        )
    return compare_pairs(pairs, only_a, only_b)


def compare_pairs(
    pairs: Sequence[TrialPair], only_a: Sequence[str] = (), only_b: Sequence[str] = ()
) -> PacketReport:
    """Compare trials that are known to be each other's counterparts."""
    differing: dict[str, tuple[str, ...]] = {}
    unread = ""
    for left, right in pairs:
        sentences = [*_file_differences(left, right)]
        if left.status == right.status:
            try:
                trials = open_trial(left.path), open_trial(right.path)
            except TestbedError as error:
                unread = error.message
            else:
                sentences += _number_and_verdict_differences(*trials)
        if sentences:
            differing[right.name] = tuple(sentences)
    captures = sum(len(right.captures) for _, right in pairs)
    return PacketReport(len(pairs), captures, differing, tuple(only_a), tuple(only_b), unread)


def same_captures(left: Trial, right: Trial) -> bool:
    """Return whether both trials have captures, and the same packets in all of them."""
    return bool(left.record.captures) and not capture_differences(left, right)


def capture_differences(left: Trial, right: Trial) -> list[str]:
    """Return the captures of two trials that differ, each with its first packet that does."""
    return list(_capture_differences(read_files(left.path), read_files(right.path)))


@dataclass(frozen=True)
class FirstDifference:
    """The first packets that differ in two trials' captures; one if only one has more."""

    interface: str
    number: int  # of the packet in its capture
    time_s: tuple[float, float]  # in A and in B, on the trial's clock; NaN where it ends before

    @property
    def earliest_s(self) -> float:
        """The time of the earlier one of the two."""
        return min(time for time in self.time_s if not math.isnan(time))


def first_difference(left: Trial, right: Trial) -> FirstDifference | None:
    """Return the earliest packet that differs of all that both trials have captured."""
    a, b = read_files(left.path), read_files(right.path)
    both = [place for place in a.captures if place in b.captures]
    differing = [
        _first_packet(place[1], files, a.epoch_s)
        for place in both
        if a.captures[place].sha256 != b.captures[place].sha256
        for files in [[t.path / CAPTURES_FOLDER / t.captures[place].file for t in (a, b)]]
    ]
    return min(filter(None, differing), key=lambda each: each.earliest_s, default=None)


def _first_packet(interface: str, paths: Sequence[Path], epoch_s: float) -> FirstDifference | None:
    for number, mine, theirs in _differing(paths):
        times = [_time_s(each) - epoch_s if each else math.nan for each in (mine, theirs)]
        return FirstDifference(interface, number, (times[0], times[1]))
    return None


def _matched(
    a: Sequence[TrialFiles], b: Sequence[TrialFiles]
) -> tuple[list[TrialPair], list[str], list[str]]:
    """Pair the trials of both sides; also return the folders' names of those left over."""
    several = {
        key for side in (a, b) for key, n in Counter(each.key for each in side).items() if n > 1
    }  # where experiment, axes and the rest do not tell trials apart, the whole scenario must
    left, right = (
        {(t.key, t.scenario if t.key in several else ""): t for t in side} for side in (a, b)
    )
    pairs = [(left[key], right[key]) for key in left if key in right]
    only_a, only_b = (
        [trial.name for key, trial in side.items() if key not in other]
        for side, other in ((left, right), (right, left))
    )
    return pairs, only_a, only_b


def setting_json(trial: Trial) -> str:
    """Return the scenario without its seed and its captures and samples."""
    plain = dataclasses.replace(
        trial.scenario.unplaced, seed=0, axes={}, captures=(), snaplen_bytes=0, sample_interval_ms=0
    )
    return plain.to_json()


def _file_differences(left: TrialFiles, right: TrialFiles) -> Iterator[str]:
    """Yield a sentence for each difference of status, packets and samples."""
    if left.status != right.status:
        yield f"{left.status} in A, {right.status} in B: {right.reason or left.reason}"
        return
    changed = [*_changed_captures((left, right))]
    yield from changed or _capture_differences(left, right)
    yield from _sample_differences(left, right)


def _changed_captures(sides: TrialPair) -> Iterator[str]:
    """Yield the captures that are not what their trial recorded: its hashes say nothing of them."""
    for side, trial in zip("AB", sides, strict=True):
        names = (f"{CAPTURES_FOLDER}/{each.file}" for each in trial.captures.values() if each.file)
        yield from filter(None, (_fault(side, trial, name) for name in names))


def _number_and_verdict_differences(left: Trial, right: Trial) -> Iterator[str]:
    a, b = reduction_of(left), reduction_of(right)
    yield from _verdict_differences(a.verdict, b.verdict)
    yield from _number_differences("flow", a.flows, b.flows)
    yield from _number_differences("link", a.links, b.links)
    yield from _number_differences("transfer", a.transfers, b.transfers)


def _capture_differences(left: TrialFiles, right: TrialFiles) -> Iterator[str]:
    """Yield the captures that differ, each with its first packet that does."""
    a, b = left.captures, right.captures
    for place in dict.fromkeys([*a, *b]):
        where = f"{place[1]} of {place[0]}"
        if place not in a or place not in b:
            yield f"{where} captured only in {'A' if place in a else 'B'}"
        elif a[place].sha256 != b[place].sha256:
            names = [f"{CAPTURES_FOLDER}/{t.captures[place].file}" for t in (left, right)]
            paths = [t.path / name for t, name in zip((left, right), names, strict=True)]
            are_left = all(path.is_file() for path in paths)
            faults = [*_faults((left, right), names)] if are_left else []
            yield from faults or _packet_difference(where, paths, left.epoch_s)


def _packet_difference(where: str, paths: Sequence[Path], epoch_s: float) -> Iterator[str]:
    """Yield where two captures part; nothing if only the program that wrote them differs."""
    if not all(path.is_file() for path in paths):
        yield f"{where}: other packets (no capture is left that says which)"
        return
    first, others = "", 0
    for number, mine, theirs in _differing(paths):
        if not mine or not theirs:
            yield f"{where}: {'A' if theirs else 'B'} ends before packet {number}"
            return
        others += 1
        first = first or f"{where}: packet {number} differs, {_time_s(mine) - epoch_s:.6f} s in A"
        if mine[TIME_AND_LENGTHS] != theirs[TIME_AND_LENGTHS]:
            yield first
            return
    if first:
        yield f"{first}; {others} packets have other bytes, but all times and lengths are the same"


def _differing(paths: Sequence[Path]) -> Iterator[tuple[int, bytes, bytes]]:
    """Yield the blocks that differ, empty where a file ends before, with their packets' number."""
    number = 0
    for mine, theirs in itertools.zip_longest(*map(_blocks, paths), fillvalue=b""):
        number += (mine or theirs)[:4] == PACKET_BLOCK.to_bytes(4, "little")
        if mine != theirs:
            yield number, mine, theirs


def _time_s(block: bytes) -> float:
    """Return a packet's time on the capture's clock."""
    high, low = (int.from_bytes(block[TIME_BYTES][at : at + 4], "little") for at in (0, 4))
    return ((high << 32) + low) / 1e9


def _blocks(path: Path) -> Iterator[bytes]:
    """Yield a pcapng file's blocks after the first, which names the program that wrote it."""
    with contextlib.closing(_opened(path)) as file:
        first = True
        while len(head := file.read(8)) == 8:
            size = int.from_bytes(head[4:], "little")
            if not 12 <= size <= MAX_BLOCK_BYTES:
                raise TestbedError(f"{path}: damaged: a block of {size} bytes", "run it again")
            block = head + file.read(size - 8)
            if not first:
                yield block
            first = False


def times_and_lengths(path: Path) -> Iterator[bytes]:
    """Yield the time, the captured length and the length of each packet of a pcapng file."""
    for block in _blocks(path):
        if block[:4] == PACKET_BLOCK.to_bytes(4, "little"):
            yield block[TIME_AND_LENGTHS]


def _opened(path: Path) -> BinaryIO:
    if path.suffix != ZSTD_SUFFIX:
        return plain_file(path, None).open("rb")
    import pyarrow as pa  # slow to load

    stream: BinaryIO = pa.CompressedInputStream(str(plain_file(path, None)), "zstd")
    return stream


def _sample_differences(left: TrialFiles, right: TrialFiles) -> Iterator[str]:
    """Yield the tables of samples that differ, each with its first line that does."""
    a, b = (
        {n: each for n, each in trial.files.items() if PurePath(n).match(f"{SAMPLES_FOLDER}/*.csv")}
        for trial in (left, right)
    )
    for path in dict.fromkeys([*a, *b]):
        name = PurePath(path).name
        if path not in a or path not in b:
            yield f"{name} only in {'A' if path in a else 'B'}"
        elif a[path] != b[path]:
            faults = [*_faults((left, right), (path, path))]
            yield from faults or [f"{name}: {_first_line(left.path / path, right.path / path)}"]


def _faults(sides: Sequence[TrialFiles], names: Sequence[str]) -> Iterator[str]:
    """Yield what is wrong with a file of each side."""
    yield from filter(None, map(_fault, "AB", sides, names))


def _fault(side: str, trial: TrialFiles, name: str) -> str:
    recorded = trial.files.get(name)
    fault = file_fault(trial.path / name, recorded) if recorded else "not recorded"
    return f"{name} in {side}: {fault}" if fault else ""


def _first_line(one: Path, other: Path) -> str:
    pairs = zip(safe_files.lines(one), safe_files.lines(other), strict=False)
    number = next((n for n, (x, y) in enumerate(pairs, 1) if x != y), 0)
    return f"line {number} differs" if number else "other lengths"


def _verdict_differences(a: Verdict | None, b: Verdict | None) -> Iterator[str]:
    if a is None or b is None:
        if (a is None) != (b is None):
            yield f"a verdict only in {'B' if a is None else 'A'}"
        return
    if a.verdict != b.verdict:
        yield f"verdict {a.verdict} in A, {b.verdict} in B ({b.why or a.why})"
    ours, theirs = (
        {(check.name, check.subject): (str(check.measured), check.verdict) for check in v.checks}
        for v in (a, b)
    )
    for key in dict.fromkeys([*ours, *theirs]):
        if ours.get(key) != theirs.get(key):
            values = f"{_shown(ours, key)} in A, {_shown(theirs, key)} in B"
            yield f"check {key[0]} of {key[1]}: {values}"


def _shown(checks: Mapping[tuple[str, str], tuple[str, object]], key: tuple[str, str]) -> str:
    return f"{checks[key][0]} ({checks[key][1]})" if key in checks else "absent"


def _number_differences(what: str, a: pd.DataFrame, b: pd.DataFrame) -> Iterator[str]:
    """Yield the numbers that differ, row by row."""
    if len(a) != len(b):
        yield f"{len(a)} rows of {what}s in A, {len(b)} in B"
        return
    for name in a.columns.difference(list(NAMING_COLUMNS), sort=False):
        one, other = a[name], b[name]
        unlike = (one != other) & ~(one.isna() & other.isna())
        for row in a.index[unlike]:
            where = a["flow"][row] if "flow" in a else row + 1
            yield f"{name} of {what} {where}: {one[row]} in A, {other[row]} in B"
