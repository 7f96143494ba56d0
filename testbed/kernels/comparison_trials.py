"""The three hundred short trials by which two kernels are compared: each variant in each condition.

A condition is a path with a queue, losses, and what else makes TCP do something special. Each
lasts one to four seconds, long enough for slow start, losses, recovery and some growth.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from testbed.errors import UsageError
from testbed.own_files.scenario_file import Document, in_document
from testbed.scenario.model import Scenario

EXPERIMENT = "kernel-compare"
COMPARED_VARIANTS = (
    *("tahoe", "reno", "newreno", "newreno-impatient", "sack", "vegas1995"),
    *("linux-reno", "cubic", "bbr", "vegas", "veno", "dctcp", "westwood", "htcp", "illinois"),
)
SAMPLING_MS = 1000  # samples are not what is compared

# A line each: name, Mbit/s, the path's delay to and fro in ms, seconds, the queue, and further
# words: of the link (reorder, loss, to the receiver), of the flow, and what else there is.
CONDITIONS = """
pfifo        10  20  2  pfifo:limit_packets=20
pfifo-long    8 120  4  pfifo:limit_packets=60
pfifo-deep    4  30  2  bfifo:limit_bdp=3
pfifo-tiny    4  40  2  pfifo:limit_packets=4
fast         60   4  1  bfifo:limit_bytes=60000
slow          1  50  3  bfifo:limit_bytes=15000
red           4  30  2  red:limit_bytes=60000
red-ecn       4  30  2  red:limit_bytes=60000,ecn
codel         4  30  2  codel:limit_packets=100
codel-ecn     4  30  2  codel:limit_packets=100,ecn
fq-codel      4  30  2  fq_codel:limit_packets=1000       beside=cubic
pie           4  30  2  pie:limit_packets=200
cake          4  30  2  cake:limit_bytes=200000
beside        6  30  2  pfifo:limit_packets=30            beside=linux-reno
bursts        4  30  3  bfifo:limit_bytes=100000          burst=0.01
scattered     4  40  3  bfifo:limit_bytes=100000          losses=0.02
one-window    4  40  2  bfifo:limit_bytes=100000          drops=15,25,27,29
tail          4  40  2  bfifo:limit_bytes=100000          bytes=60000 drops=38,39,40,41
reordered     4  40  2  bfifo:limit_bytes=100000          reorder=0.02
small         2  40  2  bfifo:limit_bytes=40000           mss=536 window_bytes=30000
"""


def comparison_trials() -> Iterator[Scenario]:
    """Yield all trials: the variants of one condition after the other."""
    for line in CONDITIONS.strip().splitlines():
        for variant in COMPARED_VARIANTS:
            yield _trial(line, variant)


def chosen_trials(text: str) -> list[Scenario]:
    """Return the trials with this text in their names."""
    chosen = [each for each in comparison_trials() if text in each.label]
    if not chosen:
        raise UsageError(f"--only {text}: no such trial", "a condition or a variant")
    return chosen


def _trial(line: str, variant: str) -> Scenario:
    """Return a variant's trial in the condition of a line."""
    name, rate_mbit, rtt_ms, duration_s, queue, *settings = line.split()
    more = dict(word.split("=", 1) for word in settings)
    receiver = "receiver1" if "beside" in more else "receiver"
    flows = [{**_flow(variant, "tcp", "sender1", receiver), **_settings(more)}]
    if "beside" in more:
        other = _flow(more["beside"], "beside", "sender2", "receiver2")
        flows.append({**other, "start_s": 0.2})
    bottleneck: dict[str, Any] = {"rate_mbit": float(rate_mbit), "queue": _queue(queue)}
    access: dict[str, Any] = {"delay_ms": float(rtt_ms) / 2}
    if "reorder" in more:
        access["reorder"] = float(more["reorder"])
    topology = {
        "kind": "dumbbell" if "beside" in more else "router-bottleneck",
        "bottleneck": bottleneck,
        "hosts": len(flows),
        "access": access,
    }
    document = {
        "experiment": EXPERIMENT,
        "label": f"{name}-{variant}",
        "topology": topology,
        "flows": flows,
        "duration_s": float(duration_s),
        "sample_interval_ms": SAMPLING_MS,
        "axes": {"condition": name, "variant": variant},
    }
    return in_document(Document(document), f"{name} {variant}").scenario


def _flow(variant: str, name: str, src: str, dst: str) -> dict[str, Any]:
    return {"name": name, "kind": "tcp", "variant": variant, "src": src, "dst": dst}


def _settings(texts: Mapping[str, str]) -> dict[str, Any]:
    """Return the flow's own settings of a condition."""
    settings: dict[str, Any] = {
        key: int(texts[key]) for key in ("bytes", "mss", "window_bytes") if key in texts
    }
    if "drops" in texts:
        settings["drops"] = [int(number) for number in texts["drops"].split(",")]
    if "burst" in texts:
        channel = {"to_bad": float(texts["burst"]), "to_good": 0.3, "loss_in_bad": 0.9}
        settings["loss"] = {"gilbert_elliott": channel, "spare_retransmissions": False}
    if "losses" in texts:
        settings["loss"] = {"events": {"rate": float(texts["losses"]), "losses": 1}}
    return settings


def _queue(text: str) -> dict[str, Any]:
    """Return the queue of `NAME:LIMIT=N[,ecn]`."""
    discipline, _, rest = text.partition(":")
    limit, *options = rest.split(",")
    key, _, number = limit.partition("=")
    return {"discipline": discipline, key: json.loads(number), "ecn": "ecn" in options}
