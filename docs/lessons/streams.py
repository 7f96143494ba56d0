"""Four answers at once over one connection, by HTTP/2 or HTTP/3; prints the longest pause of each
once they flow.

streams.py h2|h3 serve PORT
streams.py h2|h3 fetch ADDRESS PORT
"""

import asyncio
import itertools
import socket
import ssl
import sys
import time

STREAMS, PIECES, BYTES = 4, 300, 1000  # of each stream: pieces of that many bytes
DATA, HEADERS, SETTINGS, WINDOW_UPDATE = 0, 1, 4, 8  # RFC 9113, section 6
END_STREAM, END_HEADERS = 1, 4
GET = b"\x82\x86\x84\x41\x01a"  # HPACK: GET, http, /, :authority a
OK = b"\x88"  # :status 200
WINDOW = 1 << 24


def frame(kind, stream=0, payload=b"", flags=0):
    head = len(payload).to_bytes(3, "big") + bytes((kind, flags))
    return head + stream.to_bytes(4, "big") + payload


def serve_h2(port):
    with socket.create_server(("0.0.0.0", port)) as listener:
        while True:
            client, _ = listener.accept()
            with client:
                client.recv(65536)
                client.sendall(frame(SETTINGS))
                streams = range(1, 2 * STREAMS, 2)
                for each in streams:
                    client.sendall(frame(HEADERS, each, OK, END_HEADERS))
                for piece in range(PIECES):
                    for each in streams:
                        last = END_STREAM if piece == PIECES - 1 else 0
                        client.sendall(frame(DATA, each, bytes(BYTES), last))


def fetch_h2(address, port):
    arrived = {}
    with socket.create_connection((address, port)) as server:
        wide = (4).to_bytes(2, "big") + WINDOW.to_bytes(4, "big")  # the initial window of streams
        begin = [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", frame(SETTINGS, payload=wide)]
        begin.append(frame(WINDOW_UPDATE, payload=WINDOW.to_bytes(4, "big")))
        for each in range(1, 2 * STREAMS, 2):
            begin.append(frame(HEADERS, each, GET, END_STREAM | END_HEADERS))
        server.sendall(b"".join(begin))
        answer, left = server.makefile("rb"), STREAMS
        while left:
            head = answer.read(9)
            answer.read(int.from_bytes(head[:3], "big"))
            if head[3] == DATA:
                stream = int.from_bytes(head[5:], "big")
                arrived.setdefault(stream, []).append(time.monotonic())
                left -= head[4] & END_STREAM
    return arrived


def protocol(on_event):
    from aioquic.asyncio.protocol import QuicConnectionProtocol
    from aioquic.h3.connection import H3Connection

    class Http3(QuicConnectionProtocol):
        def __init__(self, *given, **named):
            super().__init__(*given, **named)
            self.http = H3Connection(self._quic)

        def quic_event_received(self, event):
            for each in self.http.handle_event(event):
                on_event(self, each)

    return Http3


def settings(is_client):
    from aioquic.quic.configuration import QuicConfiguration

    return QuicConfiguration(
        is_client=is_client, alpn_protocols=["h3"], verify_mode=ssl.CERT_NONE,
        max_data=WINDOW, max_stream_data=WINDOW,
    )  # fmt: skip


async def serve_h3(port):
    from aioquic.asyncio.server import serve
    from aioquic.h3.events import HeadersReceived

    from testbed.traffic.video import http3  # it has a certificate for tests beside it

    def answer(connection, event):
        if isinstance(event, HeadersReceived):
            connection.http.send_headers(event.stream_id, [(b":status", b"200")])
            connection.http.send_data(event.stream_id, bytes(PIECES * BYTES), end_stream=True)

    own, keys = settings(is_client=False), http3.__file__.rpartition("/")[0]
    own.load_cert_chain(f"{keys}/certificate.pem", f"{keys}/key.pem")
    await serve("0.0.0.0", port, configuration=own, create_protocol=protocol(answer))
    await asyncio.Event().wait()


async def fetch_h3(address, port):
    from aioquic.asyncio.client import connect
    from aioquic.h3.events import DataReceived

    arrived, ended = {}, asyncio.Semaphore(0)

    def take(_connection, event):
        if isinstance(event, DataReceived):
            arrived.setdefault(event.stream_id, []).append(time.monotonic())
            if event.stream_ended:
                ended.release()

    request = [
        (b":method", b"GET"),
        (b":scheme", b"https"),
        (b":authority", b"a"),
        (b":path", b"/"),
    ]
    own = settings(is_client=True)
    async with connect(address, port, configuration=own, create_protocol=protocol(take)) as server:
        for _ in range(STREAMS):
            stream = server._quic.get_next_available_stream_id()
            server.http.send_headers(stream, request, end_stream=True)
        server.transmit()
        for _ in range(STREAMS):
            await ended.acquire()
    return arrived


version, role, *where = sys.argv[1:]
if role == "serve":
    serve_h2(int(where[0])) if version == "h2" else asyncio.run(serve_h3(int(where[0])))
else:
    place = where[0], int(where[1])
    times = fetch_h2(*place) if version == "h2" else asyncio.run(fetch_h3(*place))
    for number, own_times in enumerate(times.values(), start=1):
        late = own_times[len(own_times) // 2 :]  # the first rounds have pauses of their own
        pauses = [later - earlier for earlier, later in itertools.pairwise(late)]
        at = pauses.index(max(pauses))
        print(f"stream {number}: {1e3 * pauses[at]:.0f} ms without data")
