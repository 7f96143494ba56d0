"""Send bytes to a receiver by aioquic until ended, or receive and discard them.

python flow.py receive PORT
python flow.py send ADDRESS PORT CONTROL
"""

import asyncio
import json
import ssl
import sys
import time

from aioquic.asyncio.client import connect
from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.asyncio.server import serve
from aioquic.quic.configuration import QuicConfiguration

BLOCK = bytes(1 << 16)
WINDOW = 1 << 26  # never limits the sender


class Receiver(QuicConnectionProtocol):
    """Discards what comes."""

    def quic_event_received(self, event):
        """Let go of every event's data."""


class Sender(QuicConnectionProtocol):
    """Keeps a stream full, and prints what it knows of its path every 100 ms."""

    stream = None

    def begin(self):
        """Open the stream."""
        self.stream, self.start = self._quic.get_next_available_stream_id(True), time.monotonic()
        self._quic.send_stream_data(self.stream, BLOCK)
        self.transmit()
        self.tell()

    def transmit(self):
        """Refill the stream's buffer before packets are made of it."""
        if self.stream is not None:
            while len(self._quic._streams[self.stream].sender._buffer) < len(BLOCK):
                self._quic.send_stream_data(self.stream, BLOCK)
        super().transmit()

    def tell(self):
        """Print a line, and come back."""
        loss = self._quic._loss
        line = {
            "time_s": time.monotonic() - self.start,
            "cwnd_bytes": loss.congestion_window,
            "rtt_ms": loss._rtt_smoothed * 1e3,
        }
        print(json.dumps(line), flush=True)
        asyncio.get_running_loop().call_later(0.1, self.tell)


def configuration(is_client, control="reno"):
    """Return the settings of either end."""
    return QuicConfiguration(
        is_client=is_client,
        alpn_protocols=["flow"],
        verify_mode=ssl.CERT_NONE,
        max_data=WINDOW,
        max_stream_data=WINDOW,
        idle_timeout=86_400.0,
        congestion_control_algorithm=control,
    )


async def receive(port):
    """Listen until ended."""
    settings = configuration(False)
    settings.load_cert_chain("certificate.pem", "key.pem")
    await serve("0.0.0.0", port, configuration=settings, create_protocol=Receiver)
    await asyncio.Event().wait()


async def send(address, port, control):
    """Connect, and send until ended."""
    settings = configuration(True, control)
    async with connect(address, port, configuration=settings, create_protocol=Sender) as sender:
        sender.begin()
        await asyncio.Event().wait()


match sys.argv[1:]:
    case ["receive", port]:
        asyncio.run(receive(int(port)))
    case ["send", address, port, control]:
        asyncio.run(send(address, int(port), control))
    case _:
        sys.exit("usage: flow.py receive PORT | flow.py send ADDRESS PORT CONTROL")
