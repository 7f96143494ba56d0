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
    """When transfers begin, in seconds after the flow's start.

    Poisson and even arrivals come at `per_s`, or at the rate that makes `load`: that part of the
    slowest link on the data's way, in frames of full segments. Other times are listed in
    `times_s`, or in `file`, one a line.
    """

    process: Process = Process.POISSON
    load: float | None = None
    per_s: float | None = None
    times_s: tuple[float, ...] = ()
    file: str | None = None


@dataclass(frozen=True)
class Sizes:
    """How many bytes of data a transfer has.

    A Pareto distribution has `mean_bytes` and `shape`, a lognormal one `mean_bytes` and the
    standard deviation `sigma` of its logarithm. An empirical one is the distribution function
    through the points of `cdf`, each of a size in bytes and the part of the transfers that are not
    larger, with straight lines between them; or those of `file`, one a line. Every size drawn is
    multiplied by `scale`.
    """

    distribution: Distribution = Distribution.WEB_SEARCH
    mean_bytes: float | None = None
    shape: float | None = None
    sigma: float | None = None
    cdf: tuple[tuple[float, ...], ...] = ()
    file: str | None = None
    scale: float = 1.0


@dataclass(frozen=True)
class Workload:
    """A flow of kind workload: transfers that the flow's `dst` asks for and its `src` sends.

    A transfer of a `new` connection is one with it; of `kept` ones, the first that is idle takes
    it, and where none is, the one with the least that is still to come. There are `pool` of them.
    The last transfer is the `count`-th, or the last that begins before the flow's end.
    """

    arrivals: Arrivals = Arrivals(load=0.5)
    sizes: Sizes = Sizes()
    connections: Connections = Connections.NEW
    pool: int = 10
    count: int | None = None
