"""The idle path: echo requests from every flow's sender to its receiver before any traffic.

Flows between the same hosts share them, unless chance decides what each of them finds. They
compare the delay of the unused path with the planned one: the floor of every delay measured under
load.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from testbed.plan.commands import ipv4_addresses_of
from testbed.plan.flows import FlowPlan
from testbed.plan.network import radio_of
from testbed.plan.radio import IDLE_MS
from testbed.runner.programme import NS, Answers
from testbed.store.names import IDLE_RTTS
from testbed.store.writing import write_table
from testbed.trial.parts.part import Part, PlannedTrial

REQUESTS = 3
ECHO_FRAME_BYTES = 98  # as in echo.c
ECHO_PATIENCE_S = 1.0  # beyond the path's own delay


class IdleRtt(Part):
    """The round-trip times of every flow's idle path."""

    def __init__(self, trial: PlannedTrial) -> None:
        super().__init__(trial)
        self._asked: list[tuple[FlowPlan, int]] = []

    def watch(self) -> None:
        """Measure before any program is started, one flow after the other."""
        asked: dict[tuple[str, str], int] = {}
        for flow in self._trial.plan.flows:
            expected_ms, jitter_ms, lossy = self._expected(flow)
            patience_ns = round((ECHO_PATIENCE_S + (expected_ms + jitter_ms) / 1e3) * NS)
            ends = ipv4_addresses_of(self._trial.plan.network, flow.flow)
            number = asked.get(ends)
            if number is None or jitter_ms or lossy:
                number = self._programme.add("echo", flow.flow.src, *ends, REQUESTS, patience_ns)
                asked[ends] = number
            self._asked.append((flow, number))

    def _expected(self, flow: FlowPlan) -> tuple[float, float, bool]:
        """Return the delay both ways, how far it may be off, and whether packets get lost.

        An exact link takes its time to send a request and its reply; a full token bucket lets
        them go at once. Jitter may change the delay, as may a chance to overtake, a receiver that
        takes time, or a radio, the more so the busier its channel.
        """
        network = self._trial.plan.network
        path, back = (
            network.path(*ends)
            for ends in ((flow.flow.src, flow.flow.dst), (flow.flow.dst, flow.flow.src))
        )
        expected_ms = network.path_rtt_ms(flow.flow.src, flow.flow.dst)
        expected_ms += sum(hop.sending_ms(ECHO_FRAME_BYTES) for hop in (*path, *back))
        crossed = [direction for hop in path for direction in hop.link.directions]
        if network.graph.routes:
            crossed = [hop.direction for hop in (*path, *back)]
        jitter_ms = sum(each.delay_ms if each.reorder else each.jitter_ms for each in crossed)
        # a receiver's times are drawn, from nothing to twice the mean; it holds each packet as long
        expected_ms += sum(each.hold_us + each.cost_us + each.wake_us for each in crossed) / 1e3
        jitter_ms += sum(each.cost_us + each.wake_us for each in crossed) / 1e3
        radios = [radio for hop in path if (radio := radio_of(hop.link)) is not None]
        jitter_ms += sum(IDLE_MS / (1 - radio.busy) ** 2 for radio in radios)
        return expected_ms, jitter_ms, bool(radios) or any(each.loss for each in crossed)

    def write(self, folder: Path, answers: Answers) -> None:
        """Write one row per request; the round-trip time of a lost one is empty."""
        write_table(folder, IDLE_RTTS, self._rows(answers))

    def _rows(self, answers: Answers) -> Iterator[tuple[object, ...]]:
        for flow, number in self._asked:
            expected_ms, jitter_ms, lossy = self._expected(flow)
            planned = (f"{expected_ms:.9g}", f"{jitter_ms:g}", int(lossy))
            for rtt_ns in answers.numbers(number):
                rtt = "" if rtt_ns < 0 else f"{rtt_ns / 1e6:.6f}"
                yield (flow.flow.name, flow.src_address, flow.dst_address, rtt, *planned)
