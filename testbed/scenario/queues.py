"""The queue disciplines: one row each, and a queue's limit, tc's words and the kernel's answer.

A row holds everything about its discipline; nothing elsewhere asks for one by name.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace

from testbed.errors import nearest
from testbed.faults import Fault, unknown
from testbed.scenario import red
from testbed.scenario.discipline import (
    MAX_TC_NUMBER,
    OFF_ON,
    Discipline,
    Field,
    Limit,
    Marking,
    Option,
    OptionChoice,
    Setting,
    Values,
    codel_time,
    pie_time,
    timer_ticks,
)
from testbed.scenario.network import FRAME_BYTES, Change, Queue

ONE_LIMIT = '"queue": {"discipline": "pie", "limit_packets": 1000}'
MEMORY_BYTES = 32 << 20  # of fq_codel and fq_pie, as the kernel has it
LATE_TIMER_S = 200e-6  # on a busy host
MIN_QUEUE_TIME_MS = 0.02  # of times that the kernel keeps in units of about a microsecond
CODEL_MAX_MS = 2_199_000  # it compares times of 32 bits, in units of 1024 ns, with a sign
CODEL_NEVER = "2199023255us"  # the highest of them: CODEL_DISABLED_THRESHOLD
PIE_MAX_MS = 4294  # its target has 32 bits of nanoseconds
PIE_TICK_MS = 4  # its timer's, in the guest
PIE_MAX_TUPDATE_MS = 4_000_000  # more may not fit into 32 bits when the kernel reports it
FQ_CODEL_FLOWS = 65_536
FQ_CODEL_QUANTUM = (256, 1 << 20)  # the kernel raises a smaller one, and refuses a larger one
DUALPI2_PACKETS = 10_000  # the kernel's, of both of its queues
CAKE_RTT_MS = 100.0
CAKE_FLOW_MODES = (
    *("flowblind", "srchost", "dsthost", "hosts", "flows"),
    *("dual-srchost", "dual-dsthost", "triple-isolate"),
)
CAKE_TINS: Mapping[
    float, OptionChoice
] = {  # by how many there are; 0: no packet is told from another by its DSCP
    3: OptionChoice("diffserv3", 0),
    4: OptionChoice("diffserv4", 1),
    8: OptionChoice("diffserv8", 2),
    0: OptionChoice("besteffort", 3),
}
CAKE_ISOLATION: Mapping[float, OptionChoice] = {
    value: OptionChoice(word, CAKE_FLOW_MODES.index(word))
    for value, word in enumerate(("flows", "triple-isolate"))
}
CAKE_ACK_FILTERS: Mapping[float, OptionChoice] = {
    0: OptionChoice("no-ack-filter", 0),
    1: OptionChoice("ack-filter", 1),
    2: OptionChoice("ack-filter-aggressive", 2),
}
CAKE_TARGETS = 20  # tc: its target is that part of its rtt
POLICE = "police"
MAX_BUCKET_MS = 274_000  # of 32 bits of ticks, 64 ns each


def bucket_bytes(rate_mbit: float) -> int:
    """Return the size of htb's bucket: a frame, or 0.2 ms at the rate (a late timer)."""
    return max(FRAME_BYTES, math.ceil(rate_mbit * 1e6 / 8 * LATE_TIMER_S))


def at(attribute: int) -> Field:
    """Return the place of a number that is an attribute by itself."""
    return Field((attribute,))


def always(name: str, field: Field, value: int, *arguments: str) -> Setting:
    """Return a number that no option changes.

    `arguments` are what messages call 0, 1, 2 and so on.
    """
    return Setting(name, (field,), value, words=arguments)


def codel_option(keyword: str, attribute: int, default: float | None) -> Option:
    """Return one of CoDel's times as an option."""
    return Option(
        keyword,
        at(attribute),
        "ms",
        default,
        codel_time,
        least=MIN_QUEUE_TIME_MS,
        most=CODEL_MAX_MS,
        unset=CODEL_NEVER,
    )


def _cake_target(options: Values, _rate_mbit: float) -> Iterator[Setting]:
    target = int(options.get("rtt_ms", CAKE_RTT_MS) * 1000) // CAKE_TARGETS
    yield Setting("target", (at(8),), target, "us")


def _bucket_refusals(_options: Values, limit: Limit, _rate_mbit: float) -> Iterator[str]:
    if limit.ms > MAX_BUCKET_MS:
        yield f"its bucket of {limit} is of more than {MAX_BUCKET_MS} ms, the kernel's most"


def _other_dualpi2(_options: Values, limit: Limit, _rate_mbit: float) -> Iterator[str]:
    """Refuse a limit that Debian 12's tc, which takes no word of DualPI2's, cannot set."""
    if limit.packets != DUALPI2_PACKETS:
        yield f"dualpi2 has its own limit: limit_packets={DUALPI2_PACKETS}, not {limit.packets}"


DISCIPLINES = {
    row.name: row
    for row in (
        Discipline(
            "bfifo", "bytes", Option("limit", Field()), tail_drop=True, kernel="CONFIG_NET_SCHED"
        ),
        Discipline(
            "pfifo", "packets", Option("limit", Field()), tail_drop=True, kernel="CONFIG_NET_SCHED"
        ),
        Discipline(
            "red",
            "bytes",
            Option("limit", Field((red.RED_PARAMETERS,), 0)),
            {
                "min_bytes": Option("min", Field((red.RED_PARAMETERS,), 4), whole=True),
                "max_bytes": Option("max", Field((red.RED_PARAMETERS,), 8), whole=True),
                "avpkt_bytes": Option("avpkt", None, whole=True),
                "burst_packets": Option("burst", None, most=red.MAX_BURST, whole=True),
                "probability": Option(
                    "probability",
                    None,
                    least=red.MIN_MARKING_CHANCE,
                    most=red.MAX_MARKING_CHANCE,
                ),
            },
            Marking(
                Field((red.RED_PARAMETERS,), 15, "B", mask=1),
                off_again=(),
                counted_at=12,
                may_drop=True,
            ),
            rate_keyword="bandwidth",
            complete=red.complete,
            derived=red.derived,
            refusals=red.refusals,
            warnings=red.warnings,
        ),
        Discipline(
            "codel",
            "packets",
            Option("limit", at(2)),
            {
                "target_ms": codel_option("target", 1, 5),
                "interval_ms": codel_option("interval", 3, 100),
                "ce_threshold_ms": codel_option("ce_threshold", 5, None),
            },
            Marking(at(4), counted_at=24, step_counted_at=32),
            drops_old=True,
        ),
        Discipline(
            "fq_codel",
            "packets",
            Option("limit", at(2)),
            {
                "target_ms": codel_option("target", 1, 5),
                "interval_ms": codel_option("interval", 3, 100),
                "ce_threshold_ms": codel_option("ce_threshold", 7, None),
                "flows": Option(
                    *("flows", at(5), "", 1024, int, 1, FQ_CODEL_FLOWS), whole=True, from_start=True
                ),
                "quantum_bytes": Option(
                    *("quantum", at(6), "", FRAME_BYTES, int, *FQ_CODEL_QUANTUM), whole=True
                ),
            },
            # without a word it marks
            Marking(at(4), off=("noecn",), counted_at=12, step_counted_at=28),
            drops_old=True,
            fixed=(always("drop_batch", at(8), 64), always("memory_limit", at(9), MEMORY_BYTES)),
        ),
        Discipline(
            "pie",
            "packets",
            Option("limit", at(2)),
            {
                "target_ms": Option(
                    "target", at(1), "ms", 15, pie_time, least=MIN_QUEUE_TIME_MS, most=PIE_MAX_MS
                ),
                "tupdate_ms": Option(
                    "tupdate",
                    at(3),
                    "ms",
                    15,
                    timer_ticks,
                    least=PIE_TICK_MS,
                    most=PIE_MAX_TUPDATE_MS,
                ),
            },
            Marking(at(6), counted_at=36),
            fixed=(
                always("alpha", at(4), 2),
                always("beta", at(5), 20),
                always("bytemode", at(7), 0, *OFF_ON),
                always("dq_rate_estimator", at(8), 0, *OFF_ON),
            ),
        ),
        Discipline(
            "cake",
            "bytes",
            Option("memlimit", at(10)),
            {
                "rtt_ms": Option("rtt", at(7), "ms", CAKE_RTT_MS, least=MIN_QUEUE_TIME_MS),
                "diffserv": Option(
                    *("tins", at(3)),
                    choices=CAKE_TINS,
                    stored_words=("diffserv3", "diffserv4", "diffserv8", "besteffort"),
                ),
                "triple_isolate": Option(
                    *("flow mode", at(5)), choices=CAKE_ISOLATION, stored_words=CAKE_FLOW_MODES
                ),
                "ack_filter": Option(
                    *("ack-filter", at(16)),
                    choices=CAKE_ACK_FILTERS,
                    stored_words=("off", "on", "aggressive"),
                ),
            },
            Marking(on=()),  # marks every ECN-capable packet that it would drop
            drops_old=True,
            words=("unlimited", "besteffort", "flows"),
            fixed=(
                Setting("rate", (Field((2,), 0, "Q"),), 0, "bytes/s"),  # 0: unlimited
                always("overhead", at(6), 0),
            ),
            derived=_cake_target,
        ),
        Discipline(
            *(POLICE, "bytes", Option("burst", None)),
            polices=True,
            refusals=_bucket_refusals,
            kernel="CONFIG_NET_ACT_POLICE",
        ),
        Discipline(
            "dualpi2",
            "packets",
            Option("", at(1)),
            marking=Marking(on=(), counted_at=24, may_count_twice=True),
            fixed=(
                always("target", at(3), 15_000),
                always("tupdate", at(4), 16_000),
                always("step_thresh", at(8), 1000),
                always("coupling_factor", Field((10,), form="B"), 2),
                always("l4s_ect", Field((14,), form="B"), 1),
            ),
            refusals=_other_dualpi2,
        ),
    )
}


def polices(discipline: str) -> bool:
    """Return whether packets do not wait: what exceeds the rate and the bucket is dropped."""
    row = DISCIPLINES.get(discipline)
    return row is not None and row.polices


def queue_faults(queue: Queue) -> Iterator[Fault]:
    """Yield what a queue's discipline does not know, and a limit in no unit or in several."""
    row = DISCIPLINES.get(queue.discipline)
    if row is None:
        yield unknown(("discipline",), "queue", queue.discipline, DISCIPLINES)
        return
    limits = (queue.limit_bytes, queue.limit_packets, queue.limit_bdp)
    if sum(limit is not None for limit in limits) != 1:
        yield Fault((), "give the limit in one unit: limit_bytes, _packets or _bdp", ONE_LIMIT)
    if queue.ecn and not row.ecn:
        yield Fault(("ecn",), f"{queue.discipline} can't mark packets")
    for name, value in queue.options.items():
        option = row.options.get(name)
        messages = option.faults(value) if option else [f"{row.name} has no such option"]
        yield from (Fault(("options", name), each) for each in messages)


def resolve(queue: Queue, rate_mbit: float, rtt_ms: float) -> Limit:
    """Return the limit in all units, rounded down to what the discipline counts."""
    bdp_bytes = rate_mbit * 1e6 / 8 * rtt_ms / 1e3
    if queue.limit_bdp is not None:
        size = max(FRAME_BYTES, math.floor(queue.limit_bdp * bdp_bytes))
    elif queue.limit_packets is not None:
        size = queue.limit_packets * FRAME_BYTES
    else:
        size = queue.limit_bytes or 0
    if DISCIPLINES[queue.discipline].counts == "packets":
        size = max(1, size // FRAME_BYTES) * FRAME_BYTES
    return Limit(
        bytes=size,
        packets=size // FRAME_BYTES,
        ms=size * 8 / (rate_mbit * 1e3),
        bdp=size / bdp_bytes if bdp_bytes else None,
    )


def in_own_unit(queue: Queue, limit: Limit) -> int:
    """Return the limit in the unit that the discipline counts in."""
    return limit.bytes if DISCIPLINES[queue.discipline].counts == "bytes" else limit.packets


def arguments(queue: Queue, limit: Limit, rate_mbit: float) -> tuple[str, ...]:
    """Return the discipline's name, a policer's action, and what follows it in tc's words."""
    row = DISCIPLINES[queue.discipline]
    if row.polices:
        rate = f"{round(rate_mbit * 1e6)}bit"
        bucket = (row.limit.keyword, str(limit.bytes))
        return (queue.discipline, "rate", rate, *bucket, "conform-exceed", "drop/ok")
    texts = _first_words(row, queue, limit)
    options = row.complete(queue.options, limit)
    for name, value in options.items():
        if not row.options[name].choices:
            texts += row.options[name].words(value)
    texts += _last_words(row, options, rate_mbit)
    if row.marking:
        texts += row.marking.on if queue.ecn else row.marking.off
    return (queue.discipline, *texts)


def _first_words(row: Discipline, queue: Queue, limit: Limit) -> list[str]:
    return [row.limit.keyword, str(in_own_unit(queue, limit))] if row.limit.keyword else []


def _last_words(row: Discipline, options: Values, rate_mbit: float) -> list[str]:
    """Return the rate and the row's words, with what is chosen in the place of what is usual."""
    rate = [row.rate_keyword, f"{round(rate_mbit * 1e6)}bit"] if row.rate_keyword else []
    chosen = dict[str, str]()
    for name, option in row.options.items():
        if option.choices:
            chosen[option.choices[0].word] = option.choices[options.get(name, 0)].word
    texts = [chosen.pop(word, word) for word in row.words]
    return [*rate, *texts, *(text for usual, text in chosen.items() if text != usual)]


def changed(queue: Queue, limit: Limit, rate_mbit: float, change: Change) -> tuple[Queue, Limit]:
    """Return a queue and its limit after a change; what tc chose at the start stays."""
    options = {**DISCIPLINES[queue.discipline].complete(queue.options, limit)}
    ecn = queue.ecn if change.ecn is None else change.ecn
    queue = replace(queue, ecn=ecn, options=options | dict(change.options or {}))
    if change.limit is None:
        return queue, limit
    queue = replace(
        queue,
        limit_bytes=change.limit_bytes,
        limit_packets=change.limit_packets,
        limit_bdp=None,
    )
    return queue, resolve(queue, rate_mbit, 0.0)


def change_arguments(queue: Queue, limit: Limit, rate_mbit: float) -> tuple[str, ...]:
    """Return what makes a queue that is there already like this one, in tc's words."""
    row = DISCIPLINES[queue.discipline]
    texts = _first_words(row, queue, limit)
    options = row.complete(queue.options, limit)
    for name, option in row.options.items():
        value = options.get(name, option.default)
        if value is None:
            texts += (option.keyword, option.unset)
        elif not option.from_start and not option.choices:
            texts += option.words(value)
    texts += _last_words(row, options, rate_mbit)
    if row.marking and row.marking.switch:
        texts += row.marking.on if queue.ecn else row.marking.off_again
    return (queue.discipline, *texts)


def change_words(queue: Queue, change: Change) -> Iterator[str]:
    """Yield what a change makes other, for people."""
    if change.limit is not None:
        yield f"limit {change.limit} {DISCIPLINES[queue.discipline].counts}"
    if change.ecn is not None:
        yield "ecn" if change.ecn else "noecn"
    for name, value in (change.options or {}).items():
        yield f"{name} {value:g}"


def change_faults(queue: Queue, change: Change) -> Iterator[Fault]:
    """Yield why a queue of that discipline cannot change so while packets wait in it."""
    row = DISCIPLINES[queue.discipline]
    for unit in ("bytes", "packets"):
        name = f"limit_{unit}"
        if getattr(change, name) is None:
            continue
        if row.counts != unit:
            message = f"the queue is a {row.name}, whose limit is in {row.counts}"
            yield Fault((name,), message, f"write limit_{row.counts}")
        elif not row.limit.keyword:
            yield Fault((name,), f"the limit of {row.name} cannot change")
    if change.ecn is not None and not (row.marking and row.marking.switch):
        message = "always marks" if row.marking else "can't mark packets"
        yield Fault(("ecn",), f"{row.name} {message}")
    for name, value in (change.options or {}).items():
        option, keys = row.options.get(name), ("options", name)
        if option is None:
            hint = nearest(name, row.options) if row.options else ""
            yield Fault(keys, f"{row.name} has no such option", hint)
        elif option.from_start:
            yield Fault(keys, f"{row.name} takes it only as it is made")
        else:
            yield from (Fault(keys, message) for message in option.faults(value))


def settings(queue: Queue, limit: Limit, rate_mbit: float) -> Iterator[Setting]:
    """Yield the numbers that the kernel must report of the queue once it is set up."""
    row = DISCIPLINES[queue.discipline]
    options = row.complete(queue.options, limit)
    yield from row.limit.settings(in_own_unit(queue, limit))
    for name, option in row.options.items():
        yield from option.settings(options.get(name, option.default))
    yield from row.derived(options, rate_mbit)
    yield from row.fixed
    if row.marking and row.marking.switch:
        yield Setting("ecn", (row.marking.switch,), int(queue.ecn), words=OFF_ON)


def refusals(queue: Queue, limit: Limit, rate_mbit: float) -> Iterator[str]:
    """Yield why tc or the kernel would refuse a queue whose numbers are valid one by one."""
    row = DISCIPLINES[queue.discipline]
    if in_own_unit(queue, limit) > MAX_TC_NUMBER:
        most = f"{MAX_TC_NUMBER} {row.counts}"
        yield f"its limit of {limit} is above {most}, all that the kernel can hold"
    yield from row.refusals(row.complete(queue.options, limit), limit, rate_mbit)


def warnings(queue: Queue, limit: Limit) -> Iterator[str]:
    """Yield settings with which a queue cannot act as its discipline should."""
    row = DISCIPLINES[queue.discipline]
    yield from row.warnings(row.complete(queue.options, limit), limit)
