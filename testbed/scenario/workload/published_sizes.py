"""Published distributions of transfers' sizes: bytes, and the part of transfers not larger.

The numbers are those that the authors' own generator of such traffic has
(github.com/datacenter/empirical-traffic-gen, files DCTCP_CDF and VL2_CDF), with straight lines
between the points. The mean of the first is 1.71 MB, of the second 12.66 MB: the sizes of many
papers since, which scale them where links are slower.
"""

from __future__ import annotations

from collections.abc import Mapping

from testbed.scenario.workload.workload import Distribution

Points = tuple[tuple[float, ...], ...]

# Alizadeh and others, "Data Center TCP (DCTCP)", SIGCOMM 2010, figure 4: a cluster that searches
# the web; called web search in Alizadeh and others, "pFabric", SIGCOMM 2013, figure 4a.
WEB_SEARCH: Points = (
    (0, 0),
    (10_000, 0.15),
    (20_000, 0.2),
    (30_000, 0.3),
    (50_000, 0.4),
    (80_000, 0.53),
    (200_000, 0.6),
    (1_000_000, 0.7),
    (2_000_000, 0.8),
    (5_000_000, 0.9),
    (10_000_000, 0.97),
    (30_000_000, 1),
)

# Greenberg and others, "VL2", SIGCOMM 2009, figure 2: a cluster that mines data; "pFabric",
# figure 4b.
DATA_MINING: Points = (
    (0, 0),
    (180, 0.1),
    (216, 0.2),
    (560, 0.3),
    (900, 0.4),
    (1_100, 0.5),
    (1_870, 0.6),
    (3_160, 0.7),
    (10_000, 0.8),
    (400_000, 0.9),
    (3_160_000, 0.95),
    (100_000_000, 0.98),
    (1_000_000_000, 1),
)

PUBLISHED: Mapping[Distribution, Points] = {
    Distribution.WEB_SEARCH: WEB_SEARCH,
    Distribution.DATA_MINING: DATA_MINING,
}
