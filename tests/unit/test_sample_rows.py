"""The rows that rows.c makes of the kernel's answers, beside the same in Python."""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence
from contextlib import closing

import pytest

from testbed.machine.netlink import SOCK_DIAG_BY_FAMILY, attribute
from testbed.store.writing import csv_text
from testbed.trial.parts.sampling import (
    INET_DIAG_CONG,
    INET_DIAG_INFO,
    INET_DIAG_SKMEMINFO,
    OPTION_BITS,
    QueueRow,
    Rows,
    TableKind,
)

NEW_QDISC, NOTHING = 36, 2  # types of answers
BASIC, QUEUE, APP, STATS2 = 1, 3, 4, 7  # attributes (linux/gen_stats.h, linux/rtnetlink.h)
# struct tcp_info: state, ca_state, backoff, options, rto, snd_mss, unacked, sacked, lost, retrans,
# rtt, rttvar, ssthresh, cwnd, total_retrans, pacing, acked, notsent, min_rtt, delivery, busy,
# rwnd_limited, sndbuf_limited
INFO = struct.Struct("=BB2xBB2xI4xI4xIIII28x4I16xIQ8xQ16xII8xQQQQ")
INFO_PACING = 112  # of its max_pacing_rate
MEMORY = struct.Struct("=12xI4xI")  # SKMEMINFO: sndbuf, wmem_queued
STATES = {  # include/net/tcp_states.h, in ss's words
    1: "established",
    2: "syn-sent",
    3: "syn-recv",
    4: "fin-wait-1",
    5: "fin-wait-2",
    6: "time-wait",
    7: "close",
    8: "close-wait",
    9: "last-ack",
    10: "listen",
    11: "closing",
}
CA_STATES = {0: "open", 1: "disorder", 2: "cwr", 3: "recovery", 4: "loss"}
ESTABLISHED, CLOSE, TIMESTAMPS_AND_SACK = 1, 7, 3
RECOVERY = 3
MOST_32, MOST_64 = 2**32 - 1, 2**64 - 1
SOME = (
    *(
        ESTABLISHED,
        0,
        0,
        3,
        204000,
        1448,
        5,
        0,
        0,
        0,
        2500,
        1250,
        2**31 - 1,
        10,
        0,
        1000,
        7,
        0,
        900,
    ),
    *(2000, 8000, 4000, 0),
)


def answer(kind: int, head: int, attributes: bytes) -> bytes:
    body = bytes(head) + attributes
    return struct.pack("=IHHII", 16 + len(body), kind, 0, 0, 0) + body


def a_round(time_s: float, *answers: bytes) -> bytes:
    """A round as the runner writes it, all words new; before second 0 it is the rehearsal."""
    parts = b"".join(part(each) for each in answers)
    return struct.pack("=q", round(time_s * 1e9)) + parts


def part(answer: bytes, before: bytes | None = None) -> bytes:
    """An answer's part of a round: its size, and the words that differ from the one before."""
    words, old = ([of[i : i + 8] for i in range(0, len(of), 8)] for of in (answer, before or b""))
    new = [i for i in range(len(words)) if before is None or words[i] != old[i]]
    bits = sum(1 << i for i in new).to_bytes((len(words) + 7) // 8, "little")
    return struct.pack("=I", len(answer)) + bits + b"".join(words[i].ljust(8, b"\0") for i in new)


REHEARSAL = -1e-9
MULTI = 2  # a flag: one of several messages


def of_socket(info: Sequence[int], memory: tuple[int, int] = (0, 0)) -> bytes:
    found = attribute(INET_DIAG_INFO, INFO.pack(*info)) + attribute(INET_DIAG_CONG, b"cubic\0")
    found += attribute(INET_DIAG_SKMEMINFO, MEMORY.pack(*memory))
    return answer(SOCK_DIAG_BY_FAMILY, 72, found)


def of_queue(sent: tuple[int, int], waiting: tuple[int, ...], own: bytes = b"") -> bytes:
    packets, backlog, drops, over = waiting
    stats = attribute(BASIC, struct.pack("=QI4x", *sent))
    stats += attribute(QUEUE, struct.pack("=IIIII", packets, backlog, drops, 0, over))
    return answer(NEW_QDISC, 20, attribute(STATS2, stats + attribute(APP, own)))


def in_python(info: Sequence[int]) -> tuple[object, ...]:
    state, ca_state, backoff, _options, rto, _mss, unacked, _sacked, lost, retrans = info[:10]
    rtt, rttvar, ssthresh, cwnd, total_retrans, pacing, acked, _notsent, min_rtt = info[10:19]
    delivery, busy, rwnd_limited, sndbuf_limited = info[19:]
    return (
        STATES.get(state, state),
        CA_STATES.get(ca_state, ca_state),
        cwnd,
        "" if ssthresh >= 2**31 - 1 else ssthresh,
        rtt / 1e3,
        rttvar / 1e3,
        rto / 1e3,
        backoff,
        "" if min_rtt == MOST_32 else min_rtt / 1e3,
        retrans,
        total_retrans,
        lost,
        "" if pacing == MOST_64 else pacing * 8e-6,
        delivery * 8e-6,
        unacked,
        acked,
        busy / 1e3,
        rwnd_limited / 1e3,
        sndbuf_limited / 1e3,
    )


def some_info(draw: random.Random) -> tuple[int, ...]:
    """Numbers of every size, and all of one bit."""

    def number(bits: int) -> int:
        most = 2 ** draw.randint(0, bits)
        return draw.choice((draw.randrange(most), most - 1, most % 2**bits))

    small = (draw.choice((ESTABLISHED, draw.randrange(256))), draw.randrange(7), number(8), 0)
    words = [number(32) for _ in range(11)]
    times = [number(50) for _ in range(3)]  # us: exact as Python's ms up to there
    # as much waits to be sent as can, so that nobody starves the sender
    last = (number(64), number(64), MOST_32, number(32), number(64), *times)
    return (*small, *words, *last)


def test_numbers_are_written_as_python_writes_them() -> None:
    draw = random.Random(1)
    chosen = [some_info(draw) for _ in range(20_000)]
    with closing(Rows(["tcp"], [])) as made:
        made.read(b"".join(a_round(0.1, of_socket(info)) for info in chosen))
        written = made.text(TableKind.SOCKETS).decode().splitlines(keepends=True)
    assert written == [csv_text(("0.100000", "tcp", *in_python(info), "")) for info in chosen]


@pytest.mark.parametrize(
    ("unsent", "in_flight", "queued", "expected"),
    [
        (1448, 5, 60_000, b""),  # a segment waits for a window
        (1447, 5, 66_000, b"application"),  # a third of the buffer is free: it is woken
        (1447, 5, 67_000, b"send-buffer"),
        (0, 9, 0, b"application"),
        (0, 10, 67_000, b""),  # the congestion window is full
        (0, 12, 67_000, b"send-buffer"),  # three of them have left the network
    ],
)
def test_who_starves_a_sender(unsent: int, in_flight: int, queued: int, expected: bytes) -> None:
    sacked, lost = (2, 1) if in_flight == 12 else (0, 0)
    info = (*SOME[:6], in_flight, sacked, lost, *SOME[9:17], unsent, *SOME[18:])
    assert starver(info, queued) == expected
    assert starver((ESTABLISHED, RECOVERY, *info[2:]), queued) == b""


def starver(info: Sequence[int], queued: int) -> bytes:
    with closing(Rows(["tcp"], [])) as made:
        made.read(a_round(1.0, of_socket(info, (100_000, queued))))
        return made.text(TableKind.SOCKETS).removesuffix(b"\r\n").split(b",")[-1]


def test_times_are_rounded_as_python_rounds_them() -> None:
    draw = random.Random(2)
    times_ns = [draw.randrange(10 ** draw.randint(1, 16)) for _ in range(5_000)]
    times_ns += [1000 * draw.randrange(10**9) + 500 for _ in range(5_000)] + [0, 10**15 - 1]
    with closing(Rows(["tcp"], [])) as made:
        parts = part(of_socket(SOME))
        made.read(b"".join(struct.pack("=q", time_ns) + parts for time_ns in times_ns))
        written = made.text(TableKind.SOCKETS).decode().splitlines()
    assert [row.split(",")[0] for row in written] == [f"{ns / 1e9:.6f}" for ns in times_ns]


def test_a_round_says_what_is_new_in_it() -> None:
    """A size of 0 stands for an answer as before, be it a row or none; a cut one for nothing."""
    one, other = of_socket(SOME), of_socket((*SOME[:13], 77, *SOME[14:]))
    missing = answer(NOTHING, 20, b"")
    rounds = [part(one), part(other, one), part(b""), part(missing), part(b""), part(one)]
    with closing(Rows(["tcp"], [])) as made:
        times = (struct.pack("=q", at * 10**9) for at in range(len(rounds)))
        made.read(b"".join(map(bytes.__add__, times, rounds)))
        made.read(struct.pack("=q", 9 * 10**9) + part(other)[:-1])
        rows = [row.split(b",") for row in made.text(TableKind.SOCKETS).splitlines()]
    windows = [(row[0], row[4]) for row in rows]
    assert windows == [
        (b"0.000000", b"10"),
        (b"1.000000", b"77"),
        (b"2.000000", b"77"),
        (b"5.000000", b"10"),
    ]


def test_a_name_with_a_comma_is_quoted() -> None:
    with closing(Rows(["one, two"], [])) as made:
        made.read(a_round(1.0, of_socket(SOME)))
        assert made.text(TableKind.SOCKETS).startswith(
            b'1.000000,"one, two",established,open,10,,2.5,'
        )


def test_what_was_agreed_on_is_from_when_it_was_established() -> None:
    with closing(Rows(["tcp"], [])) as made:
        assert (made.socket_state(0).options, made.socket_state(0).variant) == (-1, b"")
        made.read(a_round(1.0, of_socket(SOME)))
        made.read(a_round(2.0, of_socket((CLOSE, 0, 0, 0, *SOME[4:]))))  # closed
        assert (made.socket_state(0).options, made.socket_state(0).variant) == (
            TIMESTAMPS_AND_SACK,
            b"cubic",
        )
        assert made.text(TableKind.SOCKETS).split(b"\r\n")[1].startswith(b"2.000000,tcp,close,")


def test_a_socket_or_queue_that_is_not_there_has_no_row() -> None:
    missing = answer(NOTHING, 20, b"")
    with closing(Rows(["tcp"], [QueueRow("router", "eth0", ())])) as made:
        made.read(a_round(1.0, missing, missing))
        bare = answer(SOCK_DIAG_BY_FAMILY, 72, b"")  # in TIME_WAIT it has no TCP_INFO
        made.read(a_round(2.0, bare, answer(NEW_QDISC, 20, b"")))
        assert (made.text(TableKind.SOCKETS), made.text(TableKind.QUEUES)) == (b"", b"")


@pytest.mark.parametrize("size", [0, 16, 40, 88, 90, 92, 200])
def test_an_answer_that_is_cut_is_not_read_beyond(size: int) -> None:
    with closing(Rows(["tcp"], [])) as made:
        cut = bytearray(of_socket(SOME))
        struct.pack_into("=I", cut, 0, size)
        made.read(a_round(1.0, bytes(cut)))
        assert made.text(TableKind.SOCKETS) == b""


def test_queues_count_from_the_beginning_and_add_their_marks() -> None:
    marks = struct.pack("=3I", 4, 99, 6)
    queues = [QueueRow("router", "eth0", (0, 8)), QueueRow("router", "eth1", (0, 400))]
    with closing(Rows([], queues)) as made:
        first = of_queue((1000, 10), (0, 0, 2, 3), marks)
        made.read(a_round(REHEARSAL, first, first))
        now = of_queue((2500, 11), (4, 6000, 3, 5), struct.pack("=3I", 5, 99, 8))
        made.read(a_round(0.1, first, now) + a_round(0.2, first, now) + bytes(7))
        assert made.text(TableKind.QUEUES).decode().splitlines() == [
            f"{time},router,{row}"
            for time in ("0.100000", "0.200000")
            for row in ("eth0,0,0,0,0,0,0,0", "eth1,6000,4,1,1,2,1500,1")
        ]
        assert made.text(TableKind.SOCKETS) == b""


def in_list(cookie: int, control: bytes, max_pacing: int = MOST_64, options: int = 3) -> bytes:
    info = [*SOME]
    info[3] = options
    packed = bytearray(INFO.pack(*info))
    packed[INFO_PACING : INFO_PACING + 8] = struct.pack("=Q", max_pacing)
    found = attribute(INET_DIAG_INFO, bytes(packed)) + attribute(INET_DIAG_CONG, control)
    found += attribute(INET_DIAG_SKMEMINFO, MEMORY.pack(0, 0))
    made = bytearray(answer(SOCK_DIAG_BY_FAMILY, 72, found))
    struct.pack_into("=H", made, 6, MULTI)
    struct.pack_into("=Q", made, 16 + 44, cookie)
    return bytes(made) + bytes(-len(made) % 4)


def test_a_list_has_a_row_for_each_of_a_programs_sockets() -> None:
    """The first round has none, the third is as the second."""
    both = in_list(1, b"cubic\0") + in_list(2, b"bbr\0", max_pacing=125_000, options=1)
    end = answer(3, 4, b"")  # NLMSG_DONE
    with closing(Rows(["up"], [])) as rows:
        same = struct.pack("=q", 20_000_000) + struct.pack("=I", 0)
        rows.read(a_round(REHEARSAL, end) + a_round(0.01, both) + same + a_round(0.03, end))
        text, state = rows.text(TableKind.SOCKETS).decode(), rows.socket_state(0)
        assert [line.split(",")[:2] for line in text.splitlines()] == [
            *[["0.010000", "up"]] * 2,
            *[["0.020000", "up"]] * 2,
        ]
        assert state.variant == b"cubic+bbr" and state.options == 1 | OPTION_BITS["paced"]
