"""Metrics tables and trials in which every claim of KS, JH and GYS holds, to be bent by tests."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import pandas as pd
import pyarrow as pa

from analysis.metrics.digest import SECOND_PREFIX, SECOND_VALUES, SERIES_COLUMNS
from analysis.metrics.metric_rows import write_axes
from analysis.results import reduction
from analysis.results.reduction import Reduction, typed_flows
from analysis.results.stored_tables import as_arrow
from testbed.store.names import RECORD, SCENARIO
from testbed.store.reading import open_trial
from testbed.store.records import Record, Status
from tests.report_writer import tables_of
from tests.scenarios import router
from tests.sealing import seal

SEEDS = 12
Numbers = dict[str, float]
World = Callable[[dict[str, str]], dict[str, Numbers]]  # a place on the axes → flow → metrics

# from trial to trial: not in step, so that samples are not alike, and of a mean near nought
SHAKE = (0.0, 0.8, -1.0, 0.5, -0.3)


def noise(seed: int, salt: str) -> float:
    """A part of a thousand, the same for the same trial and flow."""
    place = (seed + sum(map(ord, salt))) % len(SHAKE)
    return 1 + 1e-3 * SHAKE[place]


def metrics_of(
    experiment: str, axes: Mapping[str, Iterable[str]], world: World, seeds: int
) -> pd.DataFrame:
    """A table as `metrics.parquet` has it, with what the claims look at."""
    rows = []
    for values in itertools.product(*axes.values()):
        place = dict(zip(axes, values, strict=True))
        for seed in range(1, seeds + 1):
            trial = "-".join([*values, f"seed{seed}"]).replace("/", "-")
            for flow, numbers in world(place).items():
                shaken = {
                    name: value * noise(seed, name + trial) if isinstance(value, float) else value
                    for name, value in numbers.items()
                }
                rows.append(
                    {
                        "experiment": experiment,
                        "trial": trial,
                        "engine": "guest",
                        "status": "ok",
                        "flow": flow,
                        "variant": "" if flow == "cbr" else place.get("variant", flow),
                        "seed": float(seed),
                        "src": "sender",
                        "dst": "receiver",
                        "queue": place.get("queue", ""),
                        "axes": write_axes(place),
                        **shaken,
                    }
                )
    return pd.DataFrame(rows)


def same_latency(ms: float) -> Numbers:
    """By all three definitions."""
    return {"recovery_latency_mean_ms": ms, "srtt_mean_ms": ms, "owd_mean_ms": ms / 2}


SMALL = {  # throughput at CBR 7, 8, 9, 10, and before
    "vegas": (2.2, 2.2, 2.1, 2.1, 2.3),
    "newreno": (1.6, 1.3, 1.0, 0.8, 2.5),
    "reno": (1.2, 0.9, 0.6, 0.4, 2.5),
    "tahoe": (1.2, 0.9, 0.55, 0.4, 2.5),
}


def load_world(place: dict[str, str]) -> dict[str, Numbers]:
    """What both papers say of one flow beside CBR."""
    variant, load = place["variant"], int(place["cbr_mbit"])
    if place["window"] == "small":
        rate = SMALL[variant][load - 7 if load >= 7 else 4]
    else:
        left = 10.5 - load
        sags = {"vegas": 1.0, "newreno": 0.9, "reno": 0.9 if load < 7 else 0.3, "tahoe": 0.5}
        rate = left * sags[variant]
    steep = variant != "vegas"
    late = max(0, load - 7)
    drops = (2e-4 if steep else 1e-4) + (
        1e-3 * late**2 if steep else 1e-4 * (late == 1) + 4e-4 * (late == 2) + 2e-3 * (late == 3)
    )
    latency = 62.0 + (8.0 * late + 2 if steep else 0.1 * load)
    tcp = {"throughput_mbps": rate, "goodput_mbps": 0.95 * rate, "drop_rate": drops}
    return {
        "tcp": {**tcp, **same_latency(latency)},
        "cbr": {"throughput_mbps": float(load), "goodput_mbps": float(load)},
    }


def load_metrics(window: str, world: World = load_world, seeds: int = SEEDS) -> pd.DataFrame:
    """dumbbell-load, whole."""
    axes = {
        "variant": tuple(SMALL),
        "cbr_mbit": tuple(map(str, range(1, 11))),
        "order": ("cbr-first", "tcp-first"),
        "window": (window,),
        "profile": ("ns2",),
        "duration_s": ("60",),
    }
    return metrics_of("dumbbell-load", axes, world, seeds)


SHARES = {"vegas/vegas": 0.51, "reno/reno": 0.49, "newreno/reno": 0.65, "newreno/vegas": 0.8}


def pairs_world(place: dict[str, str], shares: Mapping[str, float] = SHARES) -> dict[str, Numbers]:
    """What both papers say of two flows beside CBR."""
    left = 10.5 - float(place["cbr_mbit"])
    share = shares[place["pair"]]
    return {
        "tcp1": {"throughput_mbps": left * share, "drop_rate": 0.02},
        "tcp2": {"throughput_mbps": left * (1 - share), "drop_rate": 0.01},
    }


def pairs_metrics(window: str, world: World = pairs_world, seeds: int = SEEDS) -> pd.DataFrame:
    """dumbbell-pairs, whole."""
    axes = {
        "pair": tuple(SHARES),
        "cbr_mbit": tuple(map(str, range(1, 11))),
        "second": ("n5-n6",),
        "window": (window,),
        "profile": ("ns2",),
        "duration_s": ("60",),
    }
    return metrics_of("dumbbell-pairs", axes, world, seeds)


RANKED = {
    ("sack", "red"): 7.3,
    ("reno", "red"): 7.25,
    ("sack", "droptail"): 7.0,
    ("reno", "droptail"): 6.5,
}
PRINTED_DROPS = {
    ("reno", "droptail"): 0.00154,
    ("reno", "red"): 0.00061,
    ("sack", "droptail"): 0.00161,
    ("sack", "red"): 0.00062,
}


def queues_world(place: dict[str, str]) -> dict[str, Numbers]:
    """What both papers say of queues."""
    case = place["variant"], place["queue"]
    return {
        "tcp": {
            "throughput_mbps": RANKED[case],
            "drop_rate": PRINTED_DROPS[case],
            "queue_mean_ms": 2.0,
            **same_latency(64.7 if place["queue"] == "red" else 65.7),
        },
        "cbr": {"start_s": 40, "duration_s": 20, "owd_mean_ms": 32.0 + (place["queue"] != "red")},
    }


def queues_metrics(world: World = queues_world, seeds: int = SEEDS) -> pd.DataFrame:
    """dumbbell-queues with the papers' two."""
    axes = {
        "variant": ("reno", "sack"),
        "queue": ("droptail", "red"),
        "cbr_stop": ("at-60",),
        "profile": ("ns2",),
        "duration_s": ("80",),
    }
    return metrics_of("dumbbell-queues", axes, world, seeds)


GYS_GOODPUTS = {"linux-reno": 0.951, "cubic": 1.0, "vegas": 1.0, "bbr": 1.05}
ROUTER_GOODPUTS = {"linux-reno": 90.0, "cubic": 80.0, "vegas": 90.0, "bbr": 91.0}


def router_world(place: dict[str, str]) -> dict[str, Numbers]:
    """What GYS say of one sender, possible or not."""
    variant, ecn = place["variant"], place["queue"] == "codel"
    if place["path"] == "router":
        return {
            "tcp": {
                "goodput_mbps": ROUTER_GOODPUTS[variant],
                "throughput_mbps": 94.0,
                "rtt_mean_ms": 2.0,
            }
        }
    change = (1.05 if variant == "bbr" else 0.9) if ecn else 1.0
    slower = 0.3 if ecn and variant == "cubic" else 1.0
    return {
        "tcp": {
            "throughput_mbps": 0.99,
            "goodput_mbps": GYS_GOODPUTS[variant] * change,
            "owd_mean_ms": 400.0 * slower,
            "rtt_mean_ms": 401.0 * slower,
        }
    }


def router_metrics(world: World = router_world, seeds: int = SEEDS) -> pd.DataFrame:
    """router-bottleneck."""
    axes = {
        "variant": tuple(GYS_GOODPUTS),
        "queue": ("bfifo", "codel"),
        "path": ("receiver", "router"),
        "rate_mbit": ("1",),
        "delay_ms": ("0.25",),
        "duration_s": ("60",),
    }
    return metrics_of("router-bottleneck", axes, world, seeds)


FOUR_SHARES = {"linux-reno": 0.15, "cubic": 0.08, "vegas": 0.12, "bbr": 0.65}


def fairness_world(place: dict[str, str]) -> dict[str, Numbers]:
    """What GYS say of four senders."""
    return {flow: {"share": share, "throughput_mbps": share} for flow, share in FOUR_SHARES.items()}


def fairness_metrics(world: World = fairness_world, seeds: int = SEEDS) -> pd.DataFrame:
    """router-fairness."""
    axes = {
        "queue": ("bfifo",),
        "within_s": ("0.1",),
        "rate_mbit": ("1",),
        "duration_s": ("60",),
    }
    return metrics_of("router-fairness", axes, world, seeds)


def over_time(flow: str, second: int, queue: str = "droptail") -> Numbers:
    """What the papers say happens when, possible or not: rates and delays of a second."""
    if flow in FOUR_SHARES:
        wave = 0.2 * (1 if second // 10 % 2 else -1) if flow == "bbr" else 0.0
        return {"throughput_mbps": FOUR_SHARES[flow] * (1 + wave) + (0.3 if second < 10 else 0.0)}
    on = 40 <= second < 60
    if flow == "cbr":
        return {"throughput_mbps": 7.0 if on else 0.0, "owd_ms": 12.0, "owd_n": 800.0 * on}
    return {"throughput_mbps": 6.5 if on else 9.5, "owd_ms": 33.0, "owd_n": 800.0}


def write_trials(
    folder: Path,
    metrics: pd.DataFrame,
    course: Callable[[str, int, dict[str, str]], Numbers],
    idle_ms: Callable[[dict[str, str]], float] | None = None,
    length_s: int = 80,
) -> Path:
    """Trials without captures, whose seconds were reduced before."""
    from analysis.metrics.metric_rows import read_axes

    scenario, record = router().to_json(), Record(Status.OK).to_json()
    tables: dict[str, pa.Table] = {}  # but for their series, the trials are alike
    for (name, axes, seed), rows in metrics.groupby(["trial", "axes", "seed"]):
        place, first = read_axes(str(axes)), int(str(seed)[0])
        trial = folder / str(name)
        (trial / "samples").mkdir(parents=True)
        (trial / SCENARIO).write_text(scenario)
        (trial / RECORD).write_text(record)
        if idle_ms:
            value = idle_ms(place) * noise(first, str(name))
            (trial / "samples" / "idle.csv").write_text(
                f"flow,src,dst,rtt_ms,expected_ms,jitter_ms,lossy\n"
                f"tcp,sender1,receiver,{value},0.9,0,0\n"
            )
        seal(trial)
        courses = {}
        for flow in rows["flow"]:
            shaken = noise(first, flow + str(name))
            courses[flow] = [
                {what: value * shaken for what, value in course(flow, second, place).items()}
                for second in range(length_s)
            ]
        stored = open_trial(trial)
        flows = pd.DataFrame({"flow": [flow.name for flow in stored.scenario.flows]})
        tables = tables or tables_of(stored, typed_flows(flows))
        series = as_arrow(_digest(courses))
        reduction.store(Reduction(stored, {**tables, "series": series}))
    return folder


def _digest(courses: Mapping[str, Sequence[Numbers]]) -> pd.DataFrame:
    """By flow, what happened in each second: as a digest has it."""
    rows = [
        (flow, SECOND_PREFIX + what, float(second), numbers.get(what, 0.0))
        for flow, course in courses.items()
        for what in SECOND_VALUES
        for second, numbers in enumerate(course)
    ]
    return pd.DataFrame(rows, columns=list(SERIES_COLUMNS))
