"""Faults of a workload's values, each with its field."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

from testbed.errors import quoted
from testbed.scenario.workload.drawing import LARGEST_BYTES
from testbed.scenario.workload.workload import (
    Arrivals,
    Connections,
    Distribution,
    Process,
    Sessions,
    Sizes,
    Workload,
)

MAX_TRANSFERS = 30_000  # of a flow, or of one of its sessions: each has its port (plan/flows.py)
MAX_LISTED = 500_000  # of all sessions: the client holds the list in a guest's memory
MAX_SESSIONS = 400  # two of a guest's 1024 descriptors each
LONGEST_RTT_MS = 4000.0  # of a session: fq holds no packet for longer than 10 s
THOUGHTS_MS = (1.0, 86_400_000.0)
MAX_POOL = 500  # connections: two of a guest's 1024 descriptors each
LOADS = (0.001, 10.0)
RATES = (1e-3, 1e5)  # a second
SHAPES = (1.001, 1000.0)  # at 1 and below, there is no mean
SIGMAS = (0.0, 10.0)
SCALES = (1e-6, 1e6)
# which fields each distribution takes, all of which it needs
FIELDS = {
    Distribution.CONSTANT: ("mean_bytes",),
    Distribution.PARETO: ("mean_bytes", "shape"),
    Distribution.LOGNORMAL: ("mean_bytes", "sigma"),
    Distribution.EMPIRICAL: ("cdf",),
    Distribution.WEB_SEARCH: (),
    Distribution.DATA_MINING: (),
}
READ = "`testbed run FILE.json` reads it; in Python, workload/input_files.py does"


def faults(workload: Workload, where: str) -> Iterator[str]:
    """Every fault of the values by themselves."""
    yield from _arrival_faults(workload.arrivals, f"{where}.arrivals")
    yield from _size_faults(workload.sizes, f"{where}.sizes")
    if not 1 <= workload.pool <= MAX_POOL:
        yield f"{where}.pool: {workload.pool} is not between 1 and {MAX_POOL}"
    if workload.connections is Connections.NEW and workload.pool != Workload.pool:
        yield f"{where}.pool: of kept connections; these are new"
    if workload.count is not None and not 1 <= workload.count <= MAX_TRANSFERS:
        yield f"{where}.count: {workload.count} is not between 1 and {MAX_TRANSFERS}"
    if workload.arrivals.process is Process.SESSIONS:
        if workload.connections is Connections.KEPT:
            yield f"{where}.connections: a session opens a new one for every transfer"
        if workload.count is not None:
            yield f"{where}.count: sessions go on until the flow's end"


def _within(where: str, value: float | None, limits: tuple[float, float]) -> Iterator[str]:
    low, high = limits
    if value is not None and not low <= value <= high:
        yield f"{where}: {value:g} is not between {low:g} and {high:g}"


def _arrival_faults(arrivals: Arrivals, where: str) -> Iterator[str]:
    yield from _within(f"{where}.load", arrivals.load, LOADS)
    yield from _within(f"{where}.per_s", arrivals.per_s, RATES)
    if arrivals.file is not None:
        yield f"{where}.file: {quoted(arrivals.file)} was not read: {READ}"
    elif arrivals.process is Process.TIMES:
        yield from _times_faults(arrivals, where)
    elif arrivals.process is Process.SESSIONS:
        if (arrivals.load, arrivals.per_s, arrivals.times_s) != (None, None, ()):
            yield f"{where}: sessions have neither load, per_s nor times_s"
        if arrivals.sessions is None:
            yield f"{where}.sessions: missing for process sessions"
        else:
            yield from _session_faults(arrivals.sessions, f"{where}.sessions")
    else:
        if (arrivals.load is None) == (arrivals.per_s is None):
            yield f"{where}: {arrivals.process} arrivals have either load or per_s"
        if arrivals.times_s:
            yield f"{where}.times_s: of process times; this is {arrivals.process}"
    if arrivals.sessions is not None and arrivals.process is not Process.SESSIONS:
        yield f"{where}.sessions: of process sessions; this is {arrivals.process}"


def _session_faults(sessions: Sessions, where: str) -> Iterator[str]:
    if not 1 <= sessions.number <= MAX_SESSIONS:
        yield f"{where}.number: {sessions.number} is not between 1 and {MAX_SESSIONS}"
    yield from _within(f"{where}.long_share", sessions.long_share, (0, 1))
    yield from _within(f"{where}.think_ms", sessions.think_ms, THOUGHTS_MS)
    least, longest = sessions.rtt_min_ms, sessions.rtt_max_ms
    if (least is None) != (longest is None):
        yield f"{where}: rtt_min_ms and rtt_max_ms: both or neither"
    elif least is not None and longest is not None and not 0 <= least <= longest <= LONGEST_RTT_MS:
        yield f"{where}: rtt_min_ms, rtt_max_ms: rising, from 0 to {LONGEST_RTT_MS:g}"


def _times_faults(arrivals: Arrivals, where: str) -> Iterator[str]:
    times = arrivals.times_s
    if arrivals.load is not None or arrivals.per_s is not None:
        yield f"{where}: listed times have neither load nor per_s"
    if not 1 <= len(times) <= MAX_TRANSFERS:
        yield f"{where}.times_s: {len(times)} times; between 1 and {MAX_TRANSFERS}"
    for place, (one, other) in enumerate(itertools.pairwise((0.0, *times))):
        if not one <= other < math.inf:
            yield f"{where}.times_s[{place}]: {other:g} after {one:g}: in order, from 0 on"
            return


def _size_faults(sizes: Sizes, where: str) -> Iterator[str]:
    yield from _within(f"{where}.mean_bytes", sizes.mean_bytes, (1, LARGEST_BYTES))
    yield from _within(f"{where}.shape", sizes.shape, SHAPES)
    yield from _within(f"{where}.sigma", sizes.sigma, SIGMAS)
    yield from _within(f"{where}.scale", sizes.scale, SCALES)
    if sizes.file is not None:
        yield f"{where}.file: {quoted(sizes.file)} was not read: {READ}"
        return
    wanted = FIELDS[sizes.distribution]
    for name in ("mean_bytes", "shape", "sigma", "cdf"):
        given = getattr(sizes, name) not in (None, ())
        if given and name not in wanted:
            yield f"{where}.{name}: not of a {sizes.distribution} distribution"
        elif name in wanted and not given:
            yield f"{where}.{name}: missing for a {sizes.distribution} distribution"
    yield from _cdf_faults(sizes.cdf, f"{where}.cdf")


def _cdf_faults(cdf: tuple[tuple[float, ...], ...], where: str) -> Iterator[str]:
    """Points that are no distribution function."""
    if not cdf:
        return
    for place, point in enumerate(cdf):
        if len(point) != 2:
            yield f"{where}[{place}]: a point is a size in bytes and a part of the transfers"
            return
    for place, ((x, p), (y, q)) in enumerate(itertools.pairwise(cdf), start=1):
        if y < x or q < p:
            yield f"{where}[{place}]: [{y:g}, {q:g}] after [{x:g}, {p:g}]: sizes and parts rise"
            return
    if cdf[0][0] < 0 or cdf[0][1] != 0 or cdf[-1][1] != 1 or len(cdf) < 2:
        yield f"{where}: the parts rise from 0 to 1, the sizes from 0 or more"
    elif not 0 < cdf[-1][0] <= LARGEST_BYTES:
        yield f"{where}: the largest size is not between 1 and {LARGEST_BYTES}"
