"""RED's own arithmetic: the thresholds that tc chooses, and what it makes of burst and probability.

tc turns `burst`, `probability` and the bandwidth into shifts, and the kernel reports only these;
they are computed here as tc does (tc/tc_red.c in iproute2).
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from testbed.scenario.discipline import (
    TICKS_PER_MICROSECOND,
    Field,
    Limit,
    Setting,
    Values,
    whole_microseconds,
)

RED_PARAMETERS = 1  # TCA_RED_PARMS: struct tc_red_qopt
MAX_PROBABILITY = 3  # TCA_RED_MAX_P: in units of 2^-32
MAX_IDLE = 31.0  # after that many halvings the average is 0
CELLS = 512
SHIFTS = 32
WORD_BITS = 32  # of the kernel's average, which is a threshold shifted by Wlog
MAX_BURST = 1_000_000  # packets; tc tries powers of a number next to 1
MIN_MARKING_CHANCE, MAX_MARKING_CHANCE = 1e-6, 1 - 2.0**-32  # tc makes 0 of 1


def complete(options: Values, limit: Limit) -> Values:
    """Return RED's thresholds as tc chooses them, written out so that the plan is complete."""
    maximum = options.get("max_bytes", limit.bytes // 4)
    minimum = options.get("min_bytes", maximum // 3)
    average = options.get("avpkt_bytes", 1000)
    burst = (2 * minimum + maximum) / (3 * average)
    return {
        "min_bytes": minimum,
        "max_bytes": maximum,
        "avpkt_bytes": average,
        "burst_packets": options.get("burst_packets", math.ceil(burst)),
        "probability": options.get("probability", 0.02),
    }


def derived(options: Values, rate_mbit: float) -> Iterator[Setting]:
    """Yield the shifts that tc computes, and the highest probability."""
    names = ("min_bytes", "max_bytes", "avpkt_bytes", "burst_packets")
    low, high, average, burst = (int(options[name]) for name in names)
    chance = options["probability"]
    weight = _weight_shift(low, burst, average)
    idle = _idle_shift(weight, average, rate_mbit)
    slope = _slope_shift(low, high, chance)
    yield _shift("Wlog (from burst)", 12, weight)
    yield _shift("Plog (from probability)", 13, slope)
    yield _shift("Scell_log (from avpkt)", 14, idle)
    yield Setting("probability", (Field((MAX_PROBABILITY,)),), chance, per_unit=2**32)


def refusals(options: Values, _limit: Limit, rate_mbit: float) -> Iterator[str]:
    """Yield why tc or the kernel (red_check_params in net/red.h) would refuse the thresholds."""
    names = ("min_bytes", "max_bytes", "avpkt_bytes", "burst_packets")
    low, high, average, burst = (int(options[name]) for name in names)
    if low < 1 or low >= high:
        yield f"RED's lower threshold of {low} B is not above 0 and below its upper one of {high} B"
        return
    if low < average:
        yield f"tc finds no average for RED: its min_bytes, {low}, are below avpkt_bytes, {average}"
        return
    if burst < low / average:
        least = math.ceil(low / average)
        yield f"tc finds no average for RED: burst_packets, {burst}, are below min_bytes, {least}"
        return
    weight = _weight_shift(low, burst, average)
    if not weight:
        yield f"tc finds no average for RED with min_bytes {low} and burst_packets {burst}"
    elif high.bit_length() + weight >= WORD_BITS:
        yield f"RED's upper threshold of {high} B is too large for an average over {burst} packets"
    elif not _slope_shift(low, high, options["probability"]):
        yield f"RED's probability rises too slowly from {low} B to {high} B"
    elif not 0 < _packet_ticks(average, rate_mbit) < 1 << WORD_BITS:
        yield f"tc cannot tell how long {average} B (avpkt_bytes) take at {rate_mbit:g} Mbit/s"
    elif _longest_idle(weight, average, rate_mbit) / 2 ** (SHIFTS - 1) >= CELLS:
        yield "RED's average would take longer to decay than the kernel can tell"


def _shift(name: str, offset: int, value: int) -> Setting:
    return Setting(name, (Field((RED_PARAMETERS,), offset, "B"),), value)


def _weight_shift(low: int, burst: int, average: int) -> int:
    """Return the shift of a new sample's weight, 2^-shift, so that a burst passes."""
    room = burst + 1 - low / average
    shifts = range(1, 32)
    return next((n for n in shifts if room <= (1 - (1 - 2.0**-n) ** burst) * 2**n), 0)


def _slope_shift(low: int, high: int, chance: float) -> int:
    """Return the power of 2 below the rise of the probability for each byte."""
    if high <= low:
        return 0
    each = chance / (high - low)
    return next((n for n in range(32) if each * 2**n > 1), 0)


def _packet_ticks(average: int, rate_mbit: float) -> int:
    """Return the ticks that a packet takes at the link's rate."""
    return whole_microseconds(average / (round(rate_mbit * 1e6) / 8) * 1e6 * TICKS_PER_MICROSECOND)


def _longest_idle(weight: int, average: int, rate_mbit: float) -> float:
    """Return the ticks in which the average decays to nothing."""
    packet = _packet_ticks(average, rate_mbit)
    return MAX_IDLE / (-math.log(1 - 2.0**-weight) / packet) if weight else 0


def _idle_shift(weight: int, average: int, rate_mbit: float) -> int:
    """Return the granularity of the table by which the average decays in an idle queue."""
    longest = _longest_idle(weight, average, rate_mbit)
    return next((n for n in range(SHIFTS) if longest / 2**n < CELLS), 0)


def warnings(options: Values, limit: Limit) -> Iterator[str]:
    """Yield thresholds between which RED cannot act."""
    high = options["max_bytes"]
    if high >= limit.bytes:
        yield f"RED's upper threshold of {high:g} B is not below its limit of {limit.bytes} B"
