"""The kernel features and programs that a scenario needs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from testbed.machine.process import CHROMIUM
from testbed.plan.delay_links import has_session_delays, is_delay_link
from testbed.plan.ect1_filters import relabelled_flows
from testbed.plan.host_settings import browsers, recipes
from testbed.plan.network import Hop, Network, radio_of
from testbed.plan.traffic_control import POLICED, TRACE
from testbed.runner.recorded_netlink import LINK, RECEIVE
from testbed.scenario import queues
from testbed.scenario.discipline import Discipline
from testbed.scenario.model import BASE_KERNEL, Scenario
from testbed.scenario.variants import Variant


@dataclass(frozen=True)
class Need:
    """A kernel feature, or a program, without which the scenario cannot run."""

    kind: str  # "congestion control", "queue discipline", "classifier", "radio", "program", …
    name: str
    symbol: str = ""
    module: str = ""


REALISM = "realism"  # a kind of needs: what a real machine does by itself
EXACT_LINK = Need("queue discipline", LINK, "CONFIG_NET_SCH_LINK", "sch_link")
# no symbol says that a kernel has it, from 6.18 on: DualPI2 came just before, in 6.17
GUESSED_ACCURATE_ECN = Need("accurate ECN", "tcp_ecn=3", "CONFIG_NET_SCH_DUALPI2")
TOKEN_BUCKET = Need("queue discipline", "htb", "CONFIG_NET_SCH_HTB", "sch_htb")
# features that only another kernel than the guest's default can have, by symbol, with the remedy
OTHER_KERNELS = {
    GUESSED_ACCURATE_ECN.symbol: "another kernel: --set kernel=7.3 (evaluate: --kernel 7.3)",
    "CONFIG_TCP_CONG_PRAGUE": "another kernel: 7.3 with Prague's file (docs/variants.md)",
}

# reno is part of TCP itself
ODD_SYMBOLS = {"reno": "CONFIG_INET", "highspeed": "CONFIG_TCP_CONG_HSTCP"}


def control_need(control: str) -> Need:
    """Return the kernel feature that provides a congestion control."""
    symbol = ODD_SYMBOLS.get(control, f"CONFIG_TCP_CONG_{control.upper()}")
    return Need("congestion control", control, symbol, f"tcp_{control}")


def variant_needs(variant: Variant) -> Iterator[Need]:
    """Yield the kernel features that a variant's recipe needs."""
    yield control_need(variant.control)
    if variant.needs_accurate_ecn:
        yield GUESSED_ACCURATE_ECN


def queue_need(row: Discipline) -> Need:
    """Return the kernel feature that provides a queue discipline, or a policer's action."""
    if row.polices:
        return Need("action", row.name, row.symbol, f"act_{row.name}")
    return Need("queue discipline", row.name, row.symbol, f"sch_{row.name}")


def needs(scenario: Scenario, network: Network) -> Iterator[Need]:
    """Yield all requirements of a scenario, some more than once."""
    if scenario.kernel != BASE_KERNEL:
        yield Need("kernel", scenario.kernel)
    if browsers(scenario):
        yield Need("program", CHROMIUM)
    for flow in scenario.flows:
        for argv in (flow.command.server, flow.command.client) if flow.command else ():
            if argv and not argv[0].startswith(("./", "{python}")):
                yield Need("program", argv[0])
    for recipe in recipes(scenario):
        yield from variant_needs(recipe)
    later = (change.control for flow in scenario.flows for change in flow.schedule)
    yield from map(control_need, later)
    if any(relabelled_flows(scenario.flows)):
        yield Need("queue discipline", "clsact", "CONFIG_NET_SCH_INGRESS", "sch_ingress")
        yield Need("classifier", "u32", "CONFIG_NET_CLS_U32", "cls_u32")
    for flow in scenario.flows:
        if flow.drops or flow.loss or flow.receiver:
            yield Need("queue discipline", "clsact", "CONFIG_NET_SCH_INGRESS", "sch_ingress")
            yield Need("classifier", "bpf", "CONFIG_NET_CLS_BPF", "cls_bpf")
    if network.switches:
        yield Need("switch", "bridge", "CONFIG_BRIDGE", "bridge")
    for hops in network.hops:
        yield from _link_needs(hops)
    if has_session_delays(scenario):
        yield Need("queue discipline", "fq", "CONFIG_NET_SCH_FQ", "sch_fq")
        yield Need("queue discipline", "clsact", "CONFIG_NET_SCH_INGRESS", "sch_ingress")
        yield Need("classifier", "bpf", "CONFIG_NET_CLS_BPF", "cls_bpf")


def _link_needs(hops: tuple[Hop, Hop]) -> Iterator[Need]:
    for hop in hops:
        if hop.is_shaped:
            row = queues.DISCIPLINES[hop.queue.discipline]
            if row.polices:
                yield Need("queue discipline", POLICED[0], "CONFIG_NET_SCH_PRIO", "sch_prio")
            elif hop.direction.trace is not None:
                yield Need("queue discipline", TRACE, "CONFIG_NET_SCH_TRACE", "sch_trace")
            else:
                yield EXACT_LINK if hop.is_exact else TOKEN_BUCKET
            yield queue_need(row)
    if any(hop.direction.aggregates for hop in hops):
        yield Need(REALISM, "aggregation", EXACT_LINK.symbol, EXACT_LINK.module)
    if any(hop.direction.takes_time_to_receive for hop in hops):
        yield Need(REALISM, RECEIVE, "CONFIG_NET_SCH_RECEIVE", "sch_receive")
    if radio_of(hops[0].link) is not None:
        yield Need("radio", "mac80211_hwsim", "CONFIG_MAC80211_HWSIM", "mac80211_hwsim")
    if is_delay_link(hops):
        yield Need("queue discipline", "netem", "CONFIG_NET_SCH_NETEM", "sch_netem")
        yield Need("queue discipline", "clsact", "CONFIG_NET_SCH_INGRESS", "sch_ingress")
