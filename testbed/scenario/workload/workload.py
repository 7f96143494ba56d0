"""A workload as a scenario asks for it: when transfers arrive, how long they are, over what."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Process(enum.StrEnum):
    """How transfers arrive."""

    POISSON = "poisson"
    DETERMINISTIC = "deterministic"  # evenly
    TIMES = "times"  # a list


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
class Arrivals:
    """When transfers begin."""

    process: Process = Process.POISSON
    """Whether by chance, evenly, or at listed times."""
    load: float | None = None
    """The rate of arrivals as the part of the slowest link on the data's way that they fill, in
    frames of full segments."""
    per_s: float | None = None
    """The rate of arrivals itself."""
    times_s: tuple[float, ...] = ()
    """The listed times, after the flow's start."""
    file: str | None = None
    """A file with these times, one a line."""


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
    """New: each transfer is one with its connection. Kept: the first that is idle takes it, and
    where none is, the one with the least that is still to come."""
    pool: int = 10
    """The number of kept connections."""
    count: int | None = None
    """The number of transfers; unless given, as many as begin before the flow's end."""
