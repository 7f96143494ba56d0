"""What a whole program's run left in its folder of results, read for its page."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.captures.flow_tables import BIN_NEEDS, flow_bins
from analysis.captures.tcp import read_arrays
from analysis.laboratory.observation import Observation, read_observation
from analysis.laboratory.rules import LaboratoryFinding
from testbed.errors import TestbedError, short
from testbed.machine import json_files, safe_files
from testbed.store.names import (
    CAPTURES_FOLDER,
    LABORATORY_FINDINGS,
    MACHINE_FLOWS,
    MACHINE_OBSERVED,
    MACHINE_QUEUES,
    MACHINE_RECORD,
    MACHINE_SOCKETS,
    NETWORK_SHELL,
    SAMPLED_TEXTS,
    Table,
)
from testbed.store.records import DAMAGED, MAX_NUMBER

BIN_WIDTHS_S = tuple(digit * 10.0**power for power in range(-3, 7) for digit in (1, 2, 5))
MAX_PLOTTED_BINS = 300
FLOW = ["kind", "src", "dst"]  # what a flow is known by in each capture on its way


@dataclass(frozen=True)
class MachineRecord:
    """A whole program's start and end."""

    words: Sequence[str]
    folder: str
    seed: int
    kernel: str
    status: int
    took_s: float
    wall_s: float
    deterministic: bool
    notes: Sequence[str]


@dataclass(frozen=True)
class ProgramResults:
    """A whole program's run."""

    folder: Path
    record: MachineRecord
    findings: Sequence[LaboratoryFinding]
    observation: Observation
    flows: pd.DataFrame
    queues: pd.DataFrame
    sockets: pd.DataFrame

    @property
    def command(self) -> Sequence[str]:
        """The command's words; without the shell that made a network for it."""
        argv = self.record.words
        return argv[argv.index(NETWORK_SHELL) + 1 :] if NETWORK_SHELL in argv else argv

    @property
    def captures(self) -> list[Path]:
        """The captures, by name."""
        folder = self.folder / CAPTURES_FOLDER
        return sorted(folder.glob("*.pcapng")) if folder.is_dir() else []

    @functools.cached_property
    def rates(self) -> pd.DataFrame:
        """Return each flow's throughput over time at the capture nearest to its sender."""
        tables = list(map(self._bins, self.captures))
        rows = pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()
        if rows.empty:
            return rows
        rows["round"] = rows["file"].str.extract(r"-(\d+)\.pcapng$", expand=False).fillna("1")
        same = [*FLOW, "round"]
        packets = rows.groupby([*same, "file"])["packets"].sum().reset_index()
        nearest = packets.sort_values("packets", kind="stable").drop_duplicates(same, keep="last")
        return rows.merge(nearest[[*same, "file"]])

    def _bins(self, capture: Path) -> pd.DataFrame:
        arrays = read_arrays(capture, BIN_NEEDS)
        table: pd.DataFrame = flow_bins(arrays, capture.name, self.bin_s).to_pandas()
        began_s = (arrays.start_ns - self.observation.began_clock_ns) / 1e9
        text = {name: table[name].astype(str) for name in ("file", *FLOW)}
        return table.assign(**text, time_s=table["start_s"] + began_s)

    @property
    def bin_s(self) -> float:
        """The width of the bins: the narrowest of which a figure can show all."""
        fitting = (
            width for width in BIN_WIDTHS_S if self.record.took_s / width <= MAX_PLOTTED_BINS
        )
        return next(fitting, BIN_WIDTHS_S[-1])

    def seconds(self, time_ns: int) -> float:
        """Return a time of the observation on the program's clock."""
        return (time_ns - self.observation.began_ns) / 1e9


def open_program_run(path: Path) -> ProgramResults:
    """Read a folder of results of a whole program."""
    try:
        record = _record(json_files.read_record(path / MACHINE_RECORD))
        findings = json_files.read_record(path / LABORATORY_FINDINGS)
        return ProgramResults(
            path,
            record,
            [LaboratoryFinding(**each) for each in findings],
            read_observation(path / MACHINE_OBSERVED, Path(record.folder)),
            _table(path / MACHINE_FLOWS),
            _samples(path, MACHINE_QUEUES),
            _samples(path, MACHINE_SOCKETS),
        )
    except (OSError, *DAMAGED) as error:
        raise TestbedError(
            f"{path}: damaged, or of an older version: {short(error)}", "run the program again"
        ) from error


def _record(data: Mapping[str, Any]) -> MachineRecord:
    took_s, wall_s = float(data["took_s"]), float(data["wall_s"])
    if not all(0 <= each < MAX_NUMBER for each in (took_s, wall_s)):
        raise ValueError("a time beyond all bounds")
    return MachineRecord(
        words=[str(word) for word in data["words"]],
        folder=str(data["folder"]),
        seed=int(data["seed"]),
        kernel=str(data["kernel"]),
        status=int(data["status"]),
        took_s=took_s,
        wall_s=wall_s,
        deterministic=bool(data["deterministic"]),
        notes=[str(note) for note in data["notes"]],
    )


def _samples(path: Path, table: Table) -> pd.DataFrame:
    samples = _table(path / table.file)
    if samples.empty:
        return pd.DataFrame(columns=table.columns)
    numbers = {name: float for name in table.columns if name not in SAMPLED_TEXTS}
    return samples[list(table.columns)].astype(numbers)


def _table(path: Path) -> pd.DataFrame:
    if not path.exists() or not path.stat().st_size:
        return pd.DataFrame()
    return pd.read_csv(safe_files.table(path))
