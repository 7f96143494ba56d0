"""Lines of the kernel's trace become rows; what belongs to others does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.host import kernel_trace
from testbed.host.kernel_trace import (
    TraceEvent,
    buffer_kib,
    changes,
    confirmed,
    drop_filter,
    drops_counted,
    ours,
)
from testbed.plan.plan import Plan, make_plan
from tests.scenarios import router

PROBE = (
    "   iperf3-32043   [001] ..s3.  100.013682: tcp_probe: family=AF_INET src=10.0.1.2:40001"
    " dest=10.0.0.2:5201 mark=0x0 data_len=0 snd_nxt=0xbea6c9ff snd_una=0xbea6c9da snd_cwnd=10"
    " ssthresh=2147483647 snd_wnd=65160 srtt=41 rcv_wnd=64256 sock_cookie=1a2 skbaddr=00000000a"
    " skaddr=0000000025d53fcb"
)
RETRANSMIT = (
    "   <idle>-0       [000] ..s2.  100.145701: tcp_retransmit_skb: skbaddr=00000000b"
    " skaddr=0000000025d53fcb family=AF_INET sport=40001 dport=5201 saddr=10.0.1.2 daddr=10.0.0.2"
    " saddrv6=::ffff:10.0.1.2 daddrv6=::ffff:10.0.0.2 state=TCP_ESTABLISHED err=0"
)
STATE = (
    "   a b c-12       [000] ..s2.  100.145695: tcp_cong_state_set: family=AF_INET sport=40001"
    " dport=5201 saddr=10.0.1.2 daddr=10.0.0.2 saddrv6=::ffff:10.0.1.2 daddrv6=::ffff:10.0.0.2"
    " cong_state=3"
)
DROP = (
    "   <idle>-0       [000] ..s2.  101.334198: kfree_skb: skbaddr=00000000c rx_sk=0000000000000000"
    " protocol=2048 location=__dev_queue_xmit+0x9a/0xd20 reason: QDISC_DROP"
)
REASONS = (
    '{ 2, "NOT_SPECIFIED" }, { 33, "TCP_OLD_DATA" }, { 64, "QDISC_DROP" }, { 66, "QDISC_CONGESTED"'
    ' }, { 71, "CPU_BACKLOG" }'
)


@pytest.fixture
def plan() -> Plan:
    return make_plan(router())


def rows(plan: Plan, *lines: str) -> list[tuple[object, ...]]:
    """As they are written; second 0 is the kernel's second 100."""
    found = kernel_trace.read(lines, plan, lambda ns: (ns - 100 * 10**9) / 1e9)
    return [event.row() for event in found]


def test_every_kind_of_line(plan: Plan) -> None:
    assert rows(plan, PROBE, STATE, RETRANSMIT, DROP) == [
        ("0.013682", "tcp", "probe", 10, "", 0.041, "una=3198601690 nxt=3198601727"),
        ("0.145695", "tcp", "state", "", "", "", "recovery"),
        ("0.145701", "tcp", "retransmit", "", "", "", ""),
        ("1.334198", "tcp", "drop", "", "", "", "QDISC_DROP"),
    ]


def test_a_threshold_that_is_none_of_infinity(plan: Plan) -> None:
    assert rows(plan, PROBE.replace("ssthresh=2147483647", "ssthresh=51"))[0][4] == 51


def test_a_drop_has_no_flow_where_there_are_several() -> None:
    plan = make_plan(router(cbr_mbit=1))
    assert [row[1] for row in rows(plan, DROP, PROBE)] == ["", "tcp"]


@pytest.mark.parametrize(
    ("said", "instead"),
    [("40001", "40002"), ("5201", "5299"), ("10.0.1.2", "192.0.2.1"), ("10.0.0.2", "192.0.2.1")],
)
def test_other_connections_are_left_out(plan: Plan, said: str, instead: str) -> None:
    lines = [line.replace(said, instead) for line in (PROBE, STATE, RETRANSMIT)]
    assert rows(plan, *lines) == []


def test_a_retransmission_that_did_not_leave(plan: Plan) -> None:
    assert rows(plan, RETRANSMIT.replace("err=0", "err=-16")) == []


def test_lines_of_another_form(plan: Plan) -> None:
    assert rows(plan, "CPU:0 [LOST 12 EVENTS]", "") == []


def test_older_kernels_tell_less(plan: Plan) -> None:
    """6.1: no cookie, no address of the socket in the probe, no err."""
    probe = PROBE.partition(" sock_cookie")[0].replace("family=AF_INET ", "")
    found = rows(plan, probe, RETRANSMIT.replace(" err=0", ""))
    assert [row[2] for row in found] == ["probe", "retransmit"]


def test_sockets_of_another_trial() -> None:
    """The same addresses and ports, in other namespaces."""
    mine = TraceEvent(0, "tcp", "probe", socket="a", cookie=1)
    theirs = TraceEvent(0, "tcp", "probe", socket="b", cookie=2)
    resent = [TraceEvent(1, "tcp", "retransmit", socket=name) for name in "ab"]
    dropped = TraceEvent(2, "", "drop")
    seen = [mine, theirs, *resent, dropped]
    assert list(ours(seen, frozenset({1}))) == [mine, resent[0], dropped]
    assert list(ours(seen, frozenset())) == seen  # nothing to tell them by


def test_drops_at_other_times_than_our_queues() -> None:
    drops = [TraceEvent(time_s, "tcp", "drop") for time_s in (0.005, 0.015, 0.0205, 0.035)]
    counted = [(0.0, 0), (0.01, 0), (0.02, 2), (0.03, 2), (0.04, 2)]
    assert list(confirmed(drops, counted)) == drops[1:3]
    assert list(confirmed(drops, [(0.0, 0), (0.01, 4)])) == drops  # as many as we count: ours


def test_drops_of_all_sampled_queues(tmp_path: Path) -> None:
    lines = ("time_s,node,interface,drops", "0.01,r,a,1", "0.01,r,b,2", "0.02,r,a,1", "0.02,r,b,3")
    (tmp_path / "queues.csv").write_text("\n".join(lines))
    assert drops_counted(tmp_path / "queues.csv") == [(0.0, 0), (0.01, 3), (0.02, 4)]


def test_a_state_that_is_set_again_is_no_event() -> None:
    states = ["open", "recovery", "recovery", "open", "loss"]
    seen = [TraceEvent(i, "tcp", "state", detail=state) for i, state in enumerate(states)]
    seen.insert(1, TraceEvent(0, "tcp", "state", detail="disorder", socket="another"))
    told = [(event.socket, event.detail) for event in changes(seen)]
    assert told == [("another", "disorder"), ("", "recovery"), ("", "open"), ("", "loss")]


def test_filters() -> None:
    plan = make_plan(router(cbr_mbit=1))
    flow = plan.flows[0]
    port = flow.src_ports[0]
    wanted = f"(dport=={flow.dst_port} && sport>={port} && sport<={port})"
    assert kernel_trace.socket_filter([flow]) == wanted
    assert drop_filter(REASONS) == "protocol==2048 && (reason==64 || reason==66)"
    assert drop_filter("") == ""  # before 5.17 drops had no reason


def test_the_buffers_hold_a_whole_trial_if_memory_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_trace, "_available_bytes", lambda: 10**12)
    quick, slow = (make_plan(router(rate_mbit=rate, duration_s=60)) for rate in (100, 1))
    assert buffer_kib(quick) * 1024 > 490_000 * kernel_trace.PROBE_BYTES  # an ACK for each of them
    assert buffer_kib(slow) < buffer_kib(quick) / 30
    monkeypatch.setattr(kernel_trace, "_available_bytes", lambda: 10**7)
    assert buffer_kib(quick) * 1024 <= 10**7 / 8


def test_a_kernel_without_tracing(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_arguments: object) -> None:
        raise OSError("No such device")

    monkeypatch.setattr("testbed.machine.tracefs._mount", none)
    assert kernel_trace.record(plan) is None
