"""The table of parts, in the order in which they take effect."""

from __future__ import annotations

from testbed.trial.parts.capture import GuestCaptures, HostCaptures
from testbed.trial.parts.cpu_load import CpuLoad
from testbed.trial.parts.flow_traffic import FlowTraffic
from testbed.trial.parts.idle_rtt import IdleRtt
from testbed.trial.parts.kernel_state import KernelState
from testbed.trial.parts.link_changes import LinkChanges
from testbed.trial.parts.losses import DeliberateLosses
from testbed.trial.parts.part import Part
from testbed.trial.parts.radio import RadioLink
from testbed.trial.parts.receivers import MisbehavingReceivers
from testbed.trial.parts.sampling import Sampling
from testbed.trial.parts.session_delays import SessionRoundTrips

PARTS: tuple[type[Part], ...] = (
    KernelState,  # before any other program runs
    IdleRtt,
    FlowTraffic,
    SessionRoundTrips,
    DeliberateLosses,
    MisbehavingReceivers,
    GuestCaptures,
    HostCaptures,
    Sampling,  # rehearses once all other programs are ready
    LinkChanges,
    CpuLoad,
    RadioLink,  # ends the medium once the kernel's final state has been read
)
