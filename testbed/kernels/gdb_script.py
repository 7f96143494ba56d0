"""What gdb runs in `testbed rewind`: the guest to an instant or a packet, and what is looked at.

gdb's own Python loads this file, without the testbed; a JSON file tells it what to do. The guest's
time stands while gdb holds it. To stop at an instant, the script puts an event into the kernel's
list of what happens when, in memory that the kernel needs no more after booting, with a function
that does nothing: the guest runs at full speed until then, and nothing in it changes.
"""

from __future__ import annotations

import contextlib
import fnmatch
import json
import os
import re
import struct
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import gdb

OUTPUT = os.dup(1)
ORDERS = json.loads(Path(os.environ["TESTBED_REWIND"]).read_text())
INSTANT = "free_initmem"  # UML's does nothing, and runs once, when the kernel has booted
SPARE = "boot_command_line"  # memory that is not needed any more from then on
TIME_EVENT = "struct time_travel_event"
NANOSECONDS = 1_000_000_000
DEEPEST = 64  # frames of a call of functions that are traced
# The functions that Linux's tracepoints of TCP are in: the guest's kernel has no tracepoints.
TRACEPOINTS = {
    "tcp:tcp_destroy_sock": "tcp_v4_destroy_sock",
    "tcp:tcp_probe": "tcp_rcv_established",
    "tcp:tcp_rcv_space_adjust": "tcp_rcv_space_adjust",
    "tcp:tcp_receive_reset": "tcp_reset",
    "tcp:tcp_retransmit_skb": "__tcp_retransmit_skb",
    "tcp:tcp_retransmit_synack": "tcp_rtx_synack",
    "tcp:tcp_send_reset": "tcp_v4_send_reset",
}
CONTROLS = {"cubic": "bictcp", "dctcp": "dctcp", "htcp": "htcp", "reno": ""}  # struct, if unlike
CONGESTION_STATES = ("open", "disorder", "CWR", "recovery", "loss")
PENDING_TIMERS = {
    1: "retransmission",
    2: "delayed ACK",
    3: "window probe",
    5: "loss probe",
    6: "RACK",
}
Value = Any  # gdb's types are not known outside it


def say(text: str) -> None:
    """Print a line, also where gdb is silent."""
    with contextlib.suppress(BrokenPipeError):
        os.write(OUTPUT, f"{text}\n".encode())


def set_silent(silent: bool) -> None:
    """Keep gdb from saying by itself where the guest has stopped, or let it again."""
    gdb.flush()
    if silent:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.close(nowhere)
    else:
        os.dup2(OUTPUT, 1)


def value(expression: str) -> Value:
    """Return the value of an expression in C."""
    return gdb.parse_and_eval(expression)


def number(expression: str) -> int:
    """Return the value of an expression in C as an integer."""
    return int(value(expression))


def now_s() -> float:
    """Return the trial's second."""
    clock_ns = number("time_travel_time") + number("time_travel_start")
    return (clock_ns - int(ORDERS["epoch_ns"])) / NANOSECONDS


def symbol(name: str) -> int:
    """Return the address of a function or an object."""
    return number(f"(unsigned long) &{name}")


class EventList:
    """The kernel's list of events in virtual time."""

    def __init__(self) -> None:
        self._head = symbol("time_travel_events")
        fields = {field.name: field.bitpos // 8 for field in gdb.lookup_type(TIME_EVENT).fields()}
        self._list, self._pending = fields["list"], fields["pending"]
        self._own = (symbol(SPARE) + 63) & ~63
        self._write(self._own + self._pending, b"\0\0")  # there is a text: not in the list yet

    def _read(self, address: int) -> int:
        memory = gdb.selected_inferior().read_memory(address, 8)
        return int.from_bytes(memory.tobytes(), "little")

    def _write(self, address: int, content: bytes) -> None:
        gdb.selected_inferior().write_memory(address, content)

    def _link(self, before: int, after: int) -> None:
        self._write(before, struct.pack("<Q", after))
        self._write(after + 8, struct.pack("<Q", before))

    def remove(self) -> None:
        """Take our event out of the list, if it is in it."""
        if self._read(self._own + self._pending) & 1:
            node = self._own + self._list
            self._link(self._read(node + 8), self._read(node))
            self._write(self._own + self._pending, b"\0\0")

    def add(self, second: float) -> None:
        """Stop before anything happens that happens at this second of the trial."""
        self.remove()
        since_boot_ns = (
            ORDERS["epoch_ns"] - number("time_travel_start") + round(second * NANOSECONDS)
        )
        if since_boot_ns < number("time_travel_time"):
            raise gdb.GdbError(f"it is {now_s():.6f} s already: trial back {second}")
        after = self._read(self._head)
        while after != self._head and self._read(after - self._list) < since_boot_ns:
            after = self._read(after)
        before, node = self._read(after + 8), self._own + self._list
        self._write(self._own, struct.pack("<QQ", since_boot_ns, symbol(INSTANT)))
        self._write(self._own + self._pending, b"\1\0")
        self._link(before, node)
        self._link(node, after)
        if before == self._head:
            self._write(symbol("time_travel_next_event"), struct.pack("<Q", since_boot_ns))


def sockets() -> dict[int, str]:
    """Return the addresses of both ends' sockets of the flow, with the ends' names."""
    ports, far = set(ORDERS["src_ports"]), ORDERS["dst_port"]
    bucket_count = number("tcp_hashinfo.ehash_mask") + 1
    step = gdb.lookup_type("struct inet_ehash_bucket").sizeof
    memory = gdb.selected_inferior().read_memory(
        number("(unsigned long) tcp_hashinfo.ehash"), bucket_count * step
    )
    node = number("(unsigned long) &((struct sock_common *) 0)->skc_nulls_node")
    roles = {}
    for (first,) in struct.iter_unpack("<Q", memory.tobytes()):
        address = first
        while address and not address & 1:  # an odd one ends the chain
            sock = value(f"(struct sock_common *) {address - node}")
            near = int(sock["skc_num"])
            other = int.from_bytes(int(sock["skc_dport"]).to_bytes(2, "little"), "big")
            if (near in ports or not ports) and other == far:
                roles[address - node] = "sender"
            elif near == far and (other in ports or not ports):
                roles[address - node] = "receiver"
            address = int(sock["skc_nulls_node"]["next"])
    return roles


def member(sock: str, path: str) -> int | None:
    """Return a field of a socket; None where this kernel has no such field."""
    try:
        return number(f"{sock}->{path}")
    except gdb.error:
        return None


def socket_lines(address: int, end: str) -> Iterator[str]:
    """Yield what a TCP socket knows, in words."""
    tp, icsk = (f"((struct {kind} *) {address})" for kind in ("tcp_sock", "inet_connection_sock"))
    seq = {n: member(tp, n) or 0 for n in ("snd_una", "snd_nxt", "write_seq", "rcv_nxt")}
    name = value(f"{icsk}->icsk_ca_ops->name").string()
    state = member(icsk, "icsk_ca_state") or 0
    timer = member(icsk, "icsk_pending") or 0
    hz_ms = 1000 / ORDERS["hz"]
    yield f"{end}: (struct tcp_sock *) {address:#x}, {name}, {CONGESTION_STATES[state]}"
    yield (
        f"  snd_una {seq['snd_una']}, snd_nxt {seq['snd_nxt']} "
        f"({(seq['snd_nxt'] - seq['snd_una']) % 2**32} bytes in flight, "
        f"{(seq['write_seq'] - seq['snd_nxt']) % 2**32} not yet sent), "
        f"snd_wnd {member(tp, 'snd_wnd')}, rcv_nxt {seq['rcv_nxt']}"
    )
    rto = member(icsk, "icsk_rto") or 0
    yield (
        f"  snd_cwnd {member(tp, 'snd_cwnd')}, snd_ssthresh {member(tp, 'snd_ssthresh')}, "
        f"srtt {(member(tp, 'srtt_us') or 0) / 8000:.3f} ms, "
        f"rttvar {(member(tp, 'rttvar_us') or 0) / 4000:.3f} ms, RTO {rto * hz_ms:.0f} ms, "
        f"timer: {PENDING_TIMERS.get(timer, timer or 'none')}"
    )
    counts = ("packets_out", "sacked_out", "lost_out", "retrans_out", "reordering", "total_retrans")
    yield "  " + ", ".join(f"{each} {member(tp, each)}" for each in counts)
    kind = CONTROLS.get(name, name)
    try:
        private = value(f"*(struct {kind} *) {icsk}->icsk_ca_priv")
        yield f"  struct {kind}: {' '.join(str(private).split())}"
    except gdb.error:  # this control has no such struct, or no debug information
        pass


def show(addresses: dict[int, str]) -> None:
    """Print what these sockets know."""
    if not addresses:
        say("the flow has no established socket at this instant")
    for address, end in sorted(addresses.items(), key=lambda each: each[1] != "sender"):
        for line in socket_lines(address, end):
            say(line)


def functions(pattern: str) -> list[str]:
    """Return the kernel's functions whose names match a shell's pattern, or tracepoints'."""
    if ":" in pattern:
        return [TRACEPOINTS[name] for name in fnmatch.filter(TRACEPOINTS, pattern)]
    if not set(pattern) & set("*?["):
        try:
            gdb.decode_line(pattern)
        except gdb.error:
            return []
        return [pattern]
    regex = fnmatch.translate(pattern).replace("(?s:", "^").replace(r")\Z", "$")
    listing = gdb.execute(f"info functions -q -n {regex}", to_string=True)
    return sorted(set(re.findall(r"(\w+)\(", listing)))


class PacketStop(gdb.Breakpoint):  # type: ignore[misc]
    """Stops when a packet is captured: the one of this number at this interface."""

    def __init__(self, interface: str, frame: int) -> None:
        super().__init__("packet_seen", internal=True)
        self._interface, self._frame = interface, frame

    def stop(self) -> bool:
        """Return whether this is the packet."""
        capture = value("*(struct capture *) hook")
        if capture["hook"]["dev"]["name"].string() != self._interface:
            return False
        return int(capture["written"]) + int(capture["pending"]) == self._frame - 1


class Probe(gdb.Breakpoint):  # type: ignore[misc]
    """Prints a line whenever a function is called for the flow, and never stops."""

    def __init__(self, function: str, expressions: Sequence[str], every: Sequence[str]) -> None:
        super().__init__(function, internal=True)
        self._function, self._expressions = function, expressions
        self._every = set(every)  # of a trace: the depth is counted in these

    def stop(self) -> bool:
        """Print the line, unless it is for another flow's socket."""
        frame = gdb.selected_frame()
        end = self._end(frame)
        if end is None:
            return False
        shown = ", ".join(f"{each}={self._shown(each)}" for each in self._expressions)
        if not shown and frame.name() == self._function:
            shown = ", ".join(arguments(frame))
        depth = "  " * self._depth(frame) if len(self._every) > 1 else ""
        say(f"{now_s():.9f} {end:8} {depth}{self._function}({shown})")
        return False

    def _end(self, frame: Value) -> str | None:
        try:
            sock = int(frame.read_var("sk"))
        except (ValueError, gdb.error):
            return ""
        return known(sock)

    def _shown(self, expression: str) -> str:
        try:
            return str(value(expression))
        except gdb.error as error:
            return f"<{error}>"

    def _depth(self, frame: Value) -> int:
        depth, frames = 0, 0
        while (frame := frame.older()) is not None and frames < DEEPEST:
            depth += frame.name() in self._every
            frames += 1
        return depth


FLOW_SOCKETS: dict[int, str] = {}


def known(sock: int) -> str | None:
    """Return which end of the flow a socket is; None for another's."""
    if sock not in FLOW_SOCKETS:
        FLOW_SOCKETS.update(sockets())
    return FLOW_SOCKETS.get(sock)


def arguments(frame: Value) -> Iterator[str]:
    """Yield a function's arguments with their values."""
    for each in frame.block():
        if each.is_argument:
            try:
                shown = str(frame.read_var(each))
            except gdb.error:
                shown = "?"
            yield f"{each.name}={shown}"


def run_until(reached: Callable[[], bool]) -> bool:
    """Let the guest run until it has stopped where it is to; False if the trial is over."""
    while True:
        gdb.execute("continue", to_string=True)
        if not gdb.selected_inferior().pid:
            return False
        if reached():
            return True


def at_instant() -> bool:
    """Return whether the guest has stopped at an instant that was set."""
    return bool(gdb.newest_frame().name() == INSTANT)


def second_of(word: str) -> float:
    """Return the second that the user typed."""
    try:
        return float(word)
    except ValueError:
        raise gdb.GdbError(f"{word or 'nothing'}: no second, such as 3.217") from None


class SessionCommands(gdb.Command):  # type: ignore[misc]
    """The commands of a session: `trial`, and what follows."""

    def __init__(self, events: EventList) -> None:
        super().__init__("trial", gdb.COMMAND_RUNNING)
        self._events = events

    def invoke(self, typed: str, _from_tty: bool) -> None:
        """Obey one of the commands."""
        what, _, rest = typed.partition(" ")
        acts = {"until": self._until, "back": self._back, "tcp": self._tcp, "time": self._time}
        if what not in acts:
            raise gdb.GdbError(
                "trial time: which second it is\n"
                "trial tcp: what the flow's sockets know\n"
                "trial until SECOND: let the guest run until then\n"
                "trial back SECOND: run the trial again until then, in a new session"
            )
        acts[what](rest.strip())

    def _until(self, second: str) -> None:
        self._events.add(second_of(second))
        set_silent(True)
        gdb.execute("continue", to_string=True)
        set_silent(False)
        self._time("")

    def _back(self, second: str) -> None:
        Path(ORDERS["back"]).write_text(f"{second_of(second)}\n")
        gdb.execute("quit")

    def _tcp(self, _words: str) -> None:
        show(sockets())

    def _time(self, _words: str) -> None:
        if gdb.selected_inferior().pid:
            say(f"second {now_s():.9f}")
        else:
            say("the trial is over")


def prepare() -> None:
    """Set gdb to leave the guest's signals and processes to the guest."""
    for gdb_command in (
        *("confirm off", "pagination off", "height 0", "width 0", "auto-solib-add off"),
        *("print thread-events off", "print inferior-events off", "debuginfod enabled off"),
        *("detach-on-fork on", "follow-fork-mode parent", "print frame-arguments scalars"),
        "sysroot /",  # an ordinary user's gdb may not enter the guest's namespaces
    ):
        gdb.execute(f"set {gdb_command}", to_string=True)
    gdb.execute("handle all nostop noprint pass", to_string=True)
    gdb.execute("handle SIGINT stop print nopass", to_string=True)
    gdb.execute("handle SIGTRAP stop noprint nopass", to_string=True)


def attach() -> EventList:
    """Take the guest before its kernel begins, and let it boot."""
    gdb.execute(f"attach {ORDERS['pid']}", to_string=True)
    gdb.execute("catch exec", to_string=True)
    Path(ORDERS["go"]).write_text("\n")
    run_until(lambda: (gdb.current_progspace().filename or "").endswith(ORDERS["linux"]))
    gdb.execute("delete", to_string=True)
    gdb.execute(f"symbol-file {ORDERS['symbols']}", to_string=True)
    gdb.Breakpoint(INSTANT, internal=True)
    run_until(lambda: gdb.newest_frame().name() == INSTANT)
    return EventList()


def look() -> None:
    """Go where the orders say, and show what they say."""
    prepare()
    set_silent(True)
    events = attach()
    SessionCommands(events)
    traced = [name for pattern in ORDERS["functions"] for name in functions(pattern)]
    if ORDERS["functions"] and not traced:
        raise gdb.GdbError(f"the kernel has no function {', '.join(ORDERS['functions'])}")
    events.add(ORDERS["at_s"])
    if not run_until(at_instant):
        raise gdb.GdbError(f"the trial was over before second {ORDERS['at_s']}")
    if packet := ORDERS.get("packet"):
        stop = PacketStop(packet["interface"], packet["frame"])
        run_until(lambda: gdb.newest_frame().name() == "packet_seen")
        stop.delete()
    FLOW_SOCKETS.update(sockets())
    if traced:
        for name in traced:
            Probe(name, ORDERS["expressions"], traced)
        if ORDERS["until_s"] is not None:
            events.add(ORDERS["until_s"])
        run_until(at_instant)
    else:
        say(f"second {now_s():.9f}")
        if packet:
            say(gdb.execute("backtrace -frame-arguments scalars", to_string=True).rstrip())
        show(sockets())


try:
    look()
except Exception as error:  # whatever it is, gdb is to end, and the guest to go on
    Path(ORDERS["why"]).write_text(f"{error}")
    gdb.execute("quit 1")
set_silent(False)
if not ORDERS["interactive"]:
    gdb.execute("quit")
