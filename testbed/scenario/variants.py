"""The TCP variants: a table with one row for each."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from testbed.errors import UsageError, nearest, quoted


@dataclass(frozen=True)
class Variant:
    """A TCP variant: a congestion control of the kernel, and the settings of the stack with it.

    `sender` and `receiver` are settings of the two hosts (below net.ipv4); what they do not
    name is as the kernel ships. `receiver_route` are attributes of the receiver's route back to
    the sender: what the receiver does for this sender alone. `parameters` are the control's own,
    for the whole kernel. One that goes `by_marks` needs a queue that marks (ECN). `ect1`: its
    sockets send ECT(0), and a filter at its host makes ECT(1) of it, so that it is L4S traffic.
    """

    name: str
    control: str  # as the kernel names it
    about: str
    source: str  # what defines it
    sender: Mapping[str, str] = field(default_factory=dict)
    receiver: Mapping[str, str] = field(default_factory=dict)
    receiver_route: Mapping[str, str] = field(default_factory=dict)
    parameters: Mapping[str, int] = field(default_factory=dict)
    deviations: tuple[str, ...] = ()  # from what defines it, or from ns-2
    by_marks: bool = False
    ect1: bool = False

    @property
    def sysctls(self) -> dict[str, str]:
        """The sending host's settings by their full names."""
        names = {f"net.ipv4.{name}": value for name, value in self.sender.items()}
        return {"net.ipv4.tcp_congestion_control": self.control, **names}

    @property
    def needs_accurate_ecn(self) -> bool:
        """Whether it runs only on kernels that have accurate ECN, from Linux 6.18 on."""
        return self.sender.get("tcp_ecn") == ACCURATE_ECN


# What came into Linux after the variants of 1988 to 1999, each off. Profile ns2 has it for all.
PERIOD = {
    "tcp_sack": "0",
    "tcp_recovery": "0",  # RACK: with it a timeout does not go back over what was sent last
    "tcp_early_retrans": "0",  # tail loss probe
    "tcp_frto": "0",
    "tcp_timestamps": "0",
    "tcp_ecn": "0",
    "tcp_max_reordering": "3",  # three duplicate ACKs, whatever was seen before
}
ACCURATE_ECN = "3"  # of tcp_ecn, from Linux 6.18 on: asks for it and accepts it (RFC 9768)
LIMITED_TRANSMIT = "the first two duplicate ACKs each send a new segment (RFC 3042), as in ns-2"
RTO = "the retransmit timer follows RFC 6298 with a minimum of 200 ms and ticks of 4 ms"
PRR = "in recovery the window shrinks by proportional rate reduction (RFC 6937)"
COUNTING = "an ACK opens the window by what it covers (RFC 3465), in slow start without a limit"
MENDING = "losses are found and mended by Linux (SACK, RACK; in profile ns2 as NewReno does)"

VARIANTS = {
    variant.name: variant
    for variant in (
        Variant(
            "tahoe",
            "tahoe",
            "slow start from one segment after every loss; no fast recovery",
            "Jacobson 1988",
            sender=PERIOD,
            deviations=(LIMITED_TRANSMIT, RTO),
        ),
        Variant(
            "reno",
            "reno1990",
            "fast recovery that the first ACK of new data ends",
            "Jacobson 1990, RFC 2581",
            sender=PERIOD,
            deviations=(
                LIMITED_TRANSMIT,
                RTO,
                "after a timeout, duplicate ACKs count once all sent before it is acknowledged",
            ),
        ),
        Variant(
            "newreno",
            "newreno",
            "fast recovery until all is acknowledged; Slow-but-Steady",
            "RFC 3782",
            sender=PERIOD,
            deviations=(LIMITED_TRANSMIT, RTO, PRR),
        ),
        Variant(
            "newreno-impatient",
            "impatient",
            "NewReno whose retransmit timer only the first partial ACK restarts; ns-2's default",
            "RFC 3782, section 4",
            sender=PERIOD,
            deviations=(LIMITED_TRANSMIT, RTO, PRR),
        ),
        Variant(
            "sack",
            "newreno",
            "selective acknowledgements tell what to send again",
            "RFC 2018, RFC 6675",
            sender={**PERIOD, "tcp_sack": "1"},
            receiver={"tcp_sack": "1", "tcp_dsack": "0"},
            deviations=(LIMITED_TRANSMIT, RTO, PRR),
        ),
        Variant(
            "vegas",
            "vegas",
            "backs off when packets queue: between alpha and beta of them",
            "Brakmo, Peterson 1995",
            parameters={"alpha": 2, "beta": 4, "gamma": 1},
            deviations=(
                MENDING + ", not by Vegas's own timer",
                "judged by the least round trip of a window; a loss halves it (see vegas1995)",
                "alpha 2, beta 4 as Linux ships; ns-2 and profile ns2 have 1 and 3",
                COUNTING,
            ),
        ),
        Variant(
            "vegas1995",
            "vegas1995",
            "Vegas that judges by the mean round trip of a window; a loss takes a quarter of it",
            "Brakmo, Peterson 1995; ns-2",
            sender=PERIOD,
            parameters={"alpha": 1, "beta": 3, "gamma": 1},
            deviations=(
                LIMITED_TRANSMIT,
                RTO,
                PRR,
                "losses are found by duplicate ACKs, not by Vegas's own fine-grained timer",
            ),
        ),
        Variant(
            "veno",
            "veno",
            "Reno that asks Vegas's estimate whether a loss was congestion",
            "Fu, Liew 2003",
            deviations=(MENDING, COUNTING),
        ),
        Variant(
            "cubic",
            "cubic",
            "a cubic function of the time since the last loss; the default of Linux",
            "RFC 9438",
            parameters={"hystart": 1},
            deviations=(
                "HyStart (Ha, Rhee 2011) ends slow start early; profile ns2 has it off",
                MENDING,
                COUNTING,
            ),
        ),
        Variant(
            "bbr",
            "bbr",
            "version 1: paced at the bottleneck's rate as it estimates it",
            "Cardwell et al. 2016",
        ),
        Variant(
            "dctcp",
            "dctcp",
            "shrinks the window by the fraction of its packets that came marked (ECN)",
            "RFC 8257",
            sender={"tcp_ecn": "1"},
            # A listener takes DCTCP's SYN, which is ECT itself, only if it runs DCTCP for that
            # peer (tcp_ecn_create_request). By the route, so that other flows keep their ECN.
            receiver_route={"congctl": "dctcp"},
            deviations=(
                "without ECN the kernel runs Reno in its place (dctcp-reno): such a trial is "
                "invalid",
                MENDING,
            ),
            by_marks=True,
        ),
        Variant(
            "dctcp-l4s",
            "dctcp",
            "DCTCP as a scalable control of L4S: ECT(1) and accurate ECN; Linux 7.3",
            "RFC 8257, RFC 9331, RFC 9768",
            sender={"tcp_ecn": ACCURATE_ECN},
            receiver={"tcp_ecn": ACCURATE_ECN},
            receiver_route={"congctl": "dctcp"},
            deviations=(
                "Linux's DCTCP sends ECT(0): a filter at its host makes ECT(1) of it, but for SYNs",
                "of RFC 9331's requirements it meets a part (`testbed evaluate --suite l4s`)",
                MENDING,
            ),
            by_marks=True,
            ect1=True,
        ),
        Variant(
            "prague",
            "prague",
            "L4S's own control; no kernel of Debian's has it: add its file to 7.3",
            "draft-briscoe-iccrg-prague-congestion-control",
            sender={"tcp_ecn": ACCURATE_ECN},
            receiver={"tcp_ecn": ACCURATE_ECN},
            by_marks=True,
        ),
        Variant(
            "linux-reno",
            "reno",
            "Linux's reno as it ships: additive increase, halving; SACK and RACK mend losses",
            "RFC 5681, RFC 8985",
            deviations=(PRR, COUNTING),
        ),
    )
}

# Congestion controls of Linux 6.1: accepted by name wherever the kernel offers them.
LINUX_CONTROLS = frozenset(
    "bbr bic cdg cubic dctcp highspeed htcp hybla illinois lp nv reno scalable vegas veno "
    "westwood yeah".split()
)

# Names that are no slip of the pen, whatever a kernel offers.
KNOWN_VARIANTS = LINUX_CONTROLS | VARIANTS.keys() | {each.control for each in VARIANTS.values()}


SPELLINGS = VARIANTS.keys() | LINUX_CONTROLS


def can_be(name: str) -> bool:
    """Return whether a kernel may have a congestion control of that name, or we a variant."""
    return name in VARIANTS or re.fullmatch(r"[a-z][a-z0-9_]{0,14}", name) is not None


def variant(name: str) -> Variant:
    """Return the variant of that name; a name that only the kernel may know gets a new row."""
    if name in VARIANTS:
        return VARIANTS[name]
    if not can_be(name):
        raise UsageError(f"unknown variant {quoted(name)}", spelling_hint(name))
    return Variant(name, name, "a congestion control of the kernel, by name", "the kernel")


def spelling_hint(name: str) -> str:
    """Return a hint with a near name, for a variant that a kernel does not have."""
    return nearest(name, SPELLINGS)
