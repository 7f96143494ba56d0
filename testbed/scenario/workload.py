"""Workloads as values: when transfers begin, their sizes and connections, and their faults."""

from __future__ import annotations

import dataclasses
import enum
import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TypeVar

from testbed.errors import UsageError, quoted
from testbed.faults import Fault
from testbed.scenario.limits import Length, Range

MAX_TRANSFERS = 30_000  # of a flow, or of one of its sessions: each has its port (plan/flows.py)
MAX_LISTED = 500_000  # of all sessions: the client holds the list in a guest's memory
MAX_SESSIONS = 400
MAX_POOL = 500  # connections that stay open: a choice, more than browsers and proxies have
MAX_SIZE_BYTES = 1 << 40  # of a transfer
POINT = "a point is a size in bytes and a part of the transfers"
SessionRttMs = Annotated[float, Range(0.0, 4000.0)]  # fq holds no packet for longer than 10 s


class Process(enum.StrEnum):
    """How transfers arrive."""

    POISSON = "poisson"
    DETERMINISTIC = "deterministic"  # evenly
    TIMES = "times"  # a list
    SESSIONS = "sessions"  # closed loops: each transfer waits for the one before it


class Distribution(enum.StrEnum):
    """How transfers' sizes are distributed."""

    CONSTANT = "constant"
    PARETO = "pareto"
    LOGNORMAL = "lognormal"
    WEB_SEARCH = "web-search"  # published_sizes.py
    DATA_MINING = "data-mining"
    EMPIRICAL = "empirical"  # a list of points


class Connections(enum.StrEnum):
    """What carries the transfers."""

    NEW = "new"  # each has a connection of its own
    KEPT = "kept"  # a pool, open from start to end


@dataclass(frozen=True)
class Sessions:
    """Closed loops: each asks for a file, waits for all of it, thinks, and asks for the next."""

    number: Annotated[int, Range(1, MAX_SESSIONS)]
    """The number of sessions."""
    long_share: Annotated[float, Range(0.0, 1.0)] = 0.0
    """The share of the sessions that are single transfers without an end."""
    think_ms: Annotated[float, Range(1.0, 86_400_000.0)] = 500.0
    """The mean time between a session's transfers; the times are exponential."""
    rtt_min_ms: SessionRttMs | None = None
    """The least round trip of a session, its path's included: each session has its own, drawn
    uniformly. Unless given, all have the path's."""
    rtt_max_ms: SessionRttMs | None = None
    """The longest round trip of a session."""
    spread_s: Annotated[float, Range(0.0, 86_400.0)] = 1.0
    """The time within which the sessions start, at instants drawn uniformly."""


@dataclass(frozen=True)
class Arrivals:
    """When transfers begin."""

    process: Process = Process.POISSON
    """Whether by chance, evenly, at listed times, or in sessions."""
    load: Annotated[float, Range(0.001, 10.0)] | None = None
    """The rate of arrivals as the part of the slowest link on the data's way that they fill, in
    frames of full segments."""
    per_s: Annotated[float, Range(1e-3, 1e5)] | None = None
    """The rate of arrivals itself."""
    times_s: Annotated[tuple[float, ...], Length(0, MAX_TRANSFERS, "times")] = ()
    """The listed times, after the flow's start."""
    file: str | None = None
    """A file with these times, one a line."""
    sessions: Sessions | None = None
    """The sessions that ask for the transfers."""


@dataclass(frozen=True)
class Sizes:
    """How many bytes of data a transfer has."""

    distribution: Distribution = Distribution.WEB_SEARCH
    """How sizes are distributed."""
    mean_bytes: Annotated[float, Range(1, MAX_SIZE_BYTES)] | None = None
    """The mean of a Pareto or lognormal distribution, or the constant."""
    shape: Annotated[float, Range(1.001, 1000.0)] | None = None
    """The shape of a Pareto distribution."""
    sigma: Annotated[float, Range(0.0, 10.0)] | None = None
    """The standard deviation of the logarithm of a lognormal distribution."""
    cdf: tuple[
        Annotated[tuple[float, ...], Length(2, 2, "numbers", few=POINT, many=POINT)], ...
    ] = ()
    """Points of an empirical distribution function, with straight lines between them: each a size
    in bytes and the part of the transfers that are not larger."""
    file: str | None = None
    """A file with these points, one a line."""
    scale: Annotated[float, Range(1e-6, 1e6)] = 1.0
    """What every size drawn is multiplied by."""


@dataclass(frozen=True)
class Workload:
    """A flow of kind workload: transfers that the flow's `dst` asks for and its `src` sends."""

    arrivals: Arrivals = Arrivals(load=0.5)
    """When they begin."""
    sizes: Sizes = Sizes()
    """How long they are."""
    connections: Connections = Connections.NEW
    """New: each transfer opens a connection. Kept: the first idle connection takes it, or, if none
    is idle, the one with the fewest bytes outstanding."""
    pool: Annotated[int, Range(1, MAX_POOL)] = 10
    """The number of kept connections."""
    count: Annotated[int, Range(1, MAX_TRANSFERS)] | None = None
    """The number of transfers; unless given, as many as begin before the flow's end. Sessions go
    on until then."""


# which fields each distribution takes, all of which it needs
FIELDS_OF_DISTRIBUTION = {
    Distribution.CONSTANT: ("mean_bytes",),
    Distribution.PARETO: ("mean_bytes", "shape"),
    Distribution.LOGNORMAL: ("mean_bytes", "sigma"),
    Distribution.EMPIRICAL: ("cdf",),
    Distribution.WEB_SEARCH: (),
    Distribution.DATA_MINING: (),
}
FILE_HINT = "`testbed run FILE.json` reads it; in Python, `with_input_files` does"


def workload_faults(workload: Workload) -> Iterator[Fault]:
    """Yield what a workload's arrivals, sizes and connections cannot be together."""
    yield from (fault.inside("arrivals") for fault in _arrival_faults(workload.arrivals))
    yield from (fault.inside("sizes") for fault in _size_faults(workload.sizes))
    if workload.connections is Connections.NEW and workload.pool != Workload.pool:
        yield Fault(("pool",), "of kept connections; these are new")
    if workload.arrivals.process is Process.SESSIONS:
        if workload.connections is Connections.KEPT:
            yield Fault(("connections",), "a session opens a new one for every transfer")
        if workload.count is not None:
            yield Fault(("count",), "sessions go on until the flow's end")


def _arrival_faults(arrivals: Arrivals) -> Iterator[Fault]:
    if arrivals.file is not None:
        yield Fault(("file",), f"{quoted(arrivals.file)} was not read", FILE_HINT)
    elif arrivals.process is Process.TIMES:
        yield from _times_faults(arrivals)
    elif arrivals.process is Process.SESSIONS:
        if (arrivals.load, arrivals.per_s, arrivals.times_s) != (None, None, ()):
            yield Fault((), "sessions have neither load, per_s nor times_s")
        if arrivals.sessions is None:
            yield Fault(("sessions",), "missing for process sessions")
        else:
            yield from _rtt_faults(arrivals.sessions)
    else:
        if (arrivals.load is None) == (arrivals.per_s is None):
            yield Fault((), f"{arrivals.process} arrivals have either load or per_s")
        if arrivals.times_s:
            yield Fault(("times_s",), f"of process times; this is {arrivals.process}")
    if arrivals.sessions is not None and arrivals.process is not Process.SESSIONS:
        yield Fault(("sessions",), f"of process sessions; this is {arrivals.process}")


def _rtt_faults(sessions: Sessions) -> Iterator[Fault]:
    least, longest = sessions.rtt_min_ms, sessions.rtt_max_ms
    if (least is None) != (longest is None):
        yield Fault(("sessions",), "rtt_min_ms and rtt_max_ms: both or neither")
    elif least is not None and longest is not None and least > longest:
        yield Fault(("sessions",), "rtt_min_ms, rtt_max_ms: rising")


def _times_faults(arrivals: Arrivals) -> Iterator[Fault]:
    if arrivals.load is not None or arrivals.per_s is not None:
        yield Fault((), "listed times have neither load nor per_s")
    if not arrivals.times_s:
        yield Fault(("times_s",), f"0 times; between 1 and {MAX_TRANSFERS}")
    for place, (one, other) in enumerate(itertools.pairwise((0.0, *arrivals.times_s))):
        if other < one:
            yield Fault(("times_s", place), f"{other:g} after {one:g}: in order, from 0 on")
            return


def _size_faults(sizes: Sizes) -> Iterator[Fault]:
    if sizes.file is not None:
        yield Fault(("file",), f"{quoted(sizes.file)} was not read", FILE_HINT)
        return
    wanted = FIELDS_OF_DISTRIBUTION[sizes.distribution]
    for name in ("mean_bytes", "shape", "sigma", "cdf"):
        given = getattr(sizes, name) not in (None, ())
        if given and name not in wanted:
            yield Fault((name,), f"not of a {sizes.distribution} distribution")
        elif name in wanted and not given:
            yield Fault((name,), f"missing for a {sizes.distribution} distribution")
    yield from _cdf_faults(sizes.cdf)


def _cdf_faults(cdf: tuple[tuple[float, ...], ...]) -> Iterator[Fault]:
    """Yield why points are no distribution function."""
    for place, ((x, p), (y, q)) in enumerate(itertools.pairwise(cdf), start=1):
        if y < x or q < p:
            message = f"[{y:g}, {q:g}] after [{x:g}, {p:g}]: sizes and parts rise"
            yield Fault(("cdf", place), message)
            return
    if not cdf:
        return
    if cdf[0][0] < 0 or cdf[0][1] != 0 or cdf[-1][1] != 1 or len(cdf) < 2:
        yield Fault(("cdf",), "the parts rise from 0 to 1, the sizes from 0 or more")
    elif not 0 < cdf[-1][0] <= MAX_SIZE_BYTES:
        yield Fault(("cdf",), f"the largest size is not between 1 and {MAX_SIZE_BYTES}")


MAX_INPUT_BYTES = 4 << 20
_Row = TypeVar("_Row")


def read_times(path: Path) -> tuple[float, ...]:
    """Read times in seconds, one a line; what follows a `#` is a comment."""
    return tuple(_lines(path, "a time in seconds", lambda fields: _numbers(fields, 1)[0]))


def read_cdf(path: Path) -> tuple[tuple[float, ...], ...]:
    """Read points, one a line: a size in bytes, the share of transfers that are not larger."""
    wanted = "a size in bytes and the part of the transfers that are not larger"
    return tuple(_lines(path, wanted, lambda fields: _numbers(fields, 2)))


def with_input_files(workload: Workload, folder: Path) -> Workload:
    """Return the workload with its files replaced by what they hold."""
    arrivals, sizes = workload.arrivals, workload.sizes
    if arrivals.file is not None:
        times = read_times(folder / arrivals.file)
        arrivals = dataclasses.replace(arrivals, times_s=times, file=None)
    if sizes.file is not None:
        sizes = dataclasses.replace(sizes, cdf=read_cdf(folder / sizes.file), file=None)
    return dataclasses.replace(workload, arrivals=arrivals, sizes=sizes)


def _lines(path: Path, wanted: str, read: Callable[[list[str]], _Row]) -> list[_Row]:
    rows = []
    for number, line in enumerate(_text(path).splitlines(), start=1):
        fields = line.partition("#")[0].replace(",", " ").split()
        try:
            if fields:
                rows.append(read(fields))
        except ValueError:
            raise UsageError(
                f"{path}: line {number}: {quoted(line.strip())} is not {wanted}",
                "one a line; what follows a # is a comment",
            ) from None
    return rows


def _numbers(fields: list[str], count: int) -> tuple[float, ...]:
    values = tuple(float(word) for word in fields)
    if len(values) != count or not all(map(math.isfinite, values)):
        raise ValueError
    return values


def _text(path: Path) -> str:
    hint = "paths are relative to the scenario's file"
    try:
        with path.open("rb") as file:
            data = file.read(MAX_INPUT_BYTES + 1)
        if len(data) > MAX_INPUT_BYTES:
            raise UsageError(f"{path}: longer than {MAX_INPUT_BYTES >> 20} MB", hint)
        return data.decode()
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}", hint) from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: not a text", hint) from error
