"""HTTP/3 over QUIC with aioquic: the client end, and the configuration of both ends."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Iterator
from typing import Any, cast

from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.h3.connection import H3_ALPN, H3Connection
from aioquic.h3.events import DataReceived, H3Event, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection
from aioquic.quic.events import ConnectionTerminated, QuicEvent, StreamReset
from aioquic.tls import Epoch

from testbed.traffic.video.transfer import NAME, Transfer
from testbed.video_site import Site

# The frames of the paper's captures are 1392 bytes long: this much, and UDP, IP and Ethernet.
_DATAGRAM_BYTES = 1350
_WINDOW_BYTES = 15 << 20  # what a browser lets a server send unasked: Chromium's 15 MB
# aioquic acknowledges every packet after 1 ms. The player does it as Chromium does (QUICHE's
# QuicReceivedPacketManager): of the first hundred packets every second one, of the later ones every
# tenth, others after a quarter of the round trip, but no later than it has promised; a gap at once.
_EARLY_PACKETS, _EARLY_SHARE, _LATER_SHARE = 100, 2, 10
_ACK_DELAYS_S = (0.001, 0.025)
_IDLE_S = 300.0  # long, since a link may be down for a while


def configuration(*, is_client: bool, control: str = "reno") -> QuicConfiguration:
    """Make the QUIC configuration of the client or the server."""
    return QuicConfiguration(
        alpn_protocols=H3_ALPN,
        congestion_control_algorithm=control,
        idle_timeout=_IDLE_S,
        is_client=is_client,
        max_data=_WINDOW_BYTES,
        max_datagram_size=_DATAGRAM_BYTES,
        max_stream_data=_WINDOW_BYTES,
        server_name=NAME if is_client else None,
        verify_mode=ssl.CERT_REQUIRED if is_client else None,
    )


class Acknowledgements:
    """The client's acknowledgement policy: how often and how late it sends ACKs."""

    def __init__(self, quic: QuicConnection) -> None:
        self._quic = quic
        self._packets = 0
        self._unacknowledged = 0
        self._ranges = 0

    @contextlib.contextmanager
    def of_a_packet(self, now_s: float) -> Iterator[None]:
        """Around its arrival."""
        space = self._quic._spaces[Epoch.ONE_RTT]
        if space.ack_at is None:
            self._unacknowledged = 0
        self._quic._ack_delay = self._delay_s
        yield
        self._packets += 1
        gap = len(space.ack_queue) > max(1, self._ranges)
        self._ranges = len(space.ack_queue)
        if space.ack_at is None:
            return
        self._unacknowledged += 1
        share = _EARLY_SHARE if self._packets <= _EARLY_PACKETS else _LATER_SHARE
        if gap or self._unacknowledged >= share:
            space.ack_at = now_s

    @property
    def _delay_s(self) -> float:
        least_s, most_s = _ACK_DELAYS_S
        if self._packets < _EARLY_PACKETS:
            return most_s
        return min(max(self._quic._loss._rtt_min / 4, least_s), most_s)


class Http3(QuicConnectionProtocol):
    """The client end of a connection."""

    def __init__(self, quic: QuicConnection, stream_handler: Any = None) -> None:
        super().__init__(quic, stream_handler)
        self._http = H3Connection(quic)
        self._acks = Acknowledgements(quic)
        self._waiting: dict[int, Transfer] = {}
        self._over = ""  # why the connection is unusable

    def datagram_received(self, data: bytes | str, addr: Any) -> None:
        """Process a packet, applying the acknowledgement policy."""
        with self._acks.of_a_packet(self._loop.time()):
            self._quic.receive_datagram(cast(bytes, data), addr, now=self._loop.time())
        self._process_events()
        self.transmit()

    def request(self, path: str, *, keep: bool = False) -> Transfer:
        """Send a request on a new stream."""
        transfer = Transfer(path, keep, self._loop.time())
        if self._over:
            transfer.fail(self._over)
            return transfer
        stream = self._quic.get_next_available_stream_id()
        self._waiting[stream] = transfer
        fields = {
            ":method": "GET",
            ":scheme": "https",
            ":authority": NAME,
            ":path": f"/{path}",
            "accept": "*/*",
        }
        headers = [(key.encode(), value.encode()) for key, value in fields.items()]
        self._http.send_headers(stream, headers, end_stream=True)
        self._transmit_soon()
        return transfer

    def quic_event_received(self, event: QuicEvent) -> None:
        """Handle an event of the connection or of one of its streams."""
        if isinstance(event, ConnectionTerminated):
            self._fail(f"the connection ended ({event.reason_phrase or event.error_code})")
        elif isinstance(event, StreamReset) and event.stream_id in self._waiting:
            self._waiting.pop(event.stream_id).fail("the server reset the stream")
        for each in self._http.handle_event(event):
            self._handle(each)

    def _handle(self, event: H3Event) -> None:
        if not isinstance(event, HeadersReceived | DataReceived):
            return
        transfer = self._waiting.get(event.stream_id)
        if transfer is None:
            return
        now_s = self._loop.time()
        if isinstance(event, DataReceived):
            transfer.take(event.data, now_s)
        elif (status := dict(event.headers).get(b":status")) != b"200":
            transfer.fail(f"status {status!r}")
        if event.stream_ended:
            self._waiting.pop(event.stream_id).finish(now_s)

    def _fail(self, why: str) -> None:
        self._over = why
        for transfer in self._waiting.values():
            transfer.fail(why)
        self._waiting.clear()


async def connect(site: Site) -> Http3:
    """Open a connection and complete its handshake."""
    settings = configuration(is_client=True)
    settings.load_verify_locations(site.authority)
    _, client = await asyncio.get_running_loop().create_datagram_endpoint(
        lambda: Http3(QuicConnection(configuration=settings)),
        local_addr=site.local,
        remote_addr=(site.address, site.port),
    )
    client.connect((site.address, site.port))
    await client.wait_connected()
    return client
