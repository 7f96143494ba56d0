"""The table of parts, in the order in which they take effect."""

from __future__ import annotations

from collections.abc import Iterator

from testbed.plan.plan import Plan
from testbed.trial.parts.capture import Captures
from testbed.trial.parts.cpu_load import CpuLoad
from testbed.trial.parts.flow_traffic import FlowTraffic
from testbed.trial.parts.idle_rtt import IdleRtt
from testbed.trial.parts.kernel_state import KernelState
from testbed.trial.parts.kernel_trace import KernelTrace
from testbed.trial.parts.losses import DeliberateLosses
from testbed.trial.parts.part import Part
from testbed.trial.parts.radio import RadioLink
from testbed.trial.parts.sampling import Sampling
from testbed.trial.parts.session_delays import SessionRoundTrips

PARTS: tuple[type[Part], ...] = (
    KernelState,  # before any other program runs
    IdleRtt,
    FlowTraffic,
    SessionRoundTrips,
    DeliberateLosses,
    Captures,
    Sampling,  # rehearses once all other programs are ready
    CpuLoad,
    KernelTrace,  # compares its events with the written samples
    RadioLink,  # ends the medium once the kernel's final state has been read
)


def parts_of(plan: Plan) -> Iterator[type[Part]]:
    """Yield the parts of a trial.

    The module of changing links is imported only where a link changes: in the guest, one more
    import moves the first packets of other trials by some µs.
    """
    yield from (kind for kind in PARTS if kind.wanted(plan))
    if plan.has_changing_links:
        from testbed.trial.parts.link_changes import LinkChanges

        yield LinkChanges
