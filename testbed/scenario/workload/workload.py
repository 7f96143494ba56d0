"""Workloads as values: when transfers begin, their sizes, and the connections that carry them."""

from __future__ import annotations

import enum
from dataclasses import dataclass


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

    number: int
    """The number of sessions."""
    long_share: float = 0.0
    """The share of the sessions that are single transfers without an end."""
    think_ms: float = 500.0
    """The mean time between a session's transfers; the times are exponential."""
    rtt_min_ms: float | None = None
    """The least round trip of a session, its path's included: each session has its own, drawn
    uniformly. Unless given, all have the path's."""
    rtt_max_ms: float | None = None
    """The longest round trip of a session."""
    spread_s: float = 1.0
    """The time within which the sessions start, at instants drawn uniformly."""


@dataclass(frozen=True)
class Arrivals:
    """When transfers begin."""

    process: Process = Process.POISSON
    """Whether by chance, evenly, at listed times, or in sessions."""
    load: float | None = None
    """The rate of arrivals as the part of the slowest link on the data's way that they fill, in
    frames of full segments."""
    per_s: float | None = None
    """The rate of arrivals itself."""
    times_s: tuple[float, ...] = ()
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
    mean_bytes: float | None = None
    """The mean of a Pareto or lognormal distribution, or the constant."""
    shape: float | None = None
    """The shape of a Pareto distribution."""
    sigma: float | None = None
    """The standard deviation of the logarithm of a lognormal distribution."""
    cdf: tuple[tuple[float, ...], ...] = ()
    """Points of an empirical distribution function, with straight lines between them: each a size
    in bytes and the part of the transfers that are not larger."""
    file: str | None = None
    """A file with these points, one a line."""
    scale: float = 1.0
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
    pool: int = 10
    """The number of kept connections."""
    count: int | None = None
    """The number of transfers; unless given, as many as begin before the flow's end. Sessions go
    on until then."""
