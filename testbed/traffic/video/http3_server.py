"""An HTTP/3 file server on aioquic: `python -m testbed.traffic.video.http3_server …`."""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import json
import signal
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.asyncio.server import serve
from aioquic.h3.connection import H3Connection
from aioquic.h3.events import HeadersReceived
from aioquic.quic.congestion.base import QuicCongestionControl, register_congestion_control
from aioquic.quic.congestion.cubic import CubicCongestionControl
from aioquic.quic.congestion.reno import RenoCongestionControl
from aioquic.quic.connection import QuicConnection
from aioquic.quic.events import QuicEvent
from aioquic.quic.packet_builder import QuicSentPacket

from testbed.traffic.video.http3 import configuration
from testbed.video_site import CERTIFICATE, KEY, QUIC_CONTROLS


@dataclass
class LossCounts:
    """The losses reported to the congestion controls of all connections."""

    lost_packets: int = 0
    persistent_congestion: int = 0  # RFC 9002, 7.6: how often declared


LOSS_COUNTS = LossCounts()


class _LossCounting(QuicCongestionControl):
    def on_packets_lost(self, *, now: float, packets: Iterable[QuicSentPacket]) -> None:
        lost = list(packets)
        LOSS_COUNTS.lost_packets += len(lost)
        super().on_packets_lost(now=now, packets=lost)  # type: ignore[safe-super]

    def on_persistent_congestion(self) -> None:
        LOSS_COUNTS.persistent_congestion += 1
        super().on_persistent_congestion()  # type: ignore[safe-super]


class _Reno(_LossCounting, RenoCongestionControl):
    pass


class _Cubic(_LossCounting, CubicCongestionControl):
    pass


def register_controls() -> None:
    """Register controls that count losses under the names of aioquic's own."""
    register_congestion_control("reno", _Reno)
    register_congestion_control("cubic", _Cubic)


def register_bbr() -> None:
    """Register a BBR, of which aioquic has none."""
    from testbed.traffic.video.bbr import BbrCongestionControl

    class _Bbr(_LossCounting, BbrCongestionControl):
        pass

    register_congestion_control("bbr", _Bbr)


class FileServer(QuicConnectionProtocol):
    """The server end of a connection."""

    root = Path()

    def __init__(self, quic: QuicConnection, stream_handler: Any = None) -> None:
        super().__init__(quic, stream_handler)
        self._http = H3Connection(quic)

    def quic_event_received(self, event: QuicEvent) -> None:
        """Answer requests; HTTP/3's other events need no action."""
        for each in self._http.handle_event(event):
            if isinstance(each, HeadersReceived):
                self._answer(each.stream_id, dict(each.headers).get(b":path", b"/").decode())

    def _answer(self, stream: int, target: str) -> None:
        path = (self.root / target.lstrip("/")).resolve()
        if not path.is_relative_to(self.root) or not path.is_file():
            self._http.send_headers(stream, [(b":status", b"404")], end_stream=True)
            return
        body = path.read_bytes()
        length = str(len(body)).encode()
        headers = [(b":status", b"200"), (b"content-length", length)]
        self._http.send_headers(stream, headers)
        self._http.send_data(stream, body, end_stream=True)


async def run(options: argparse.Namespace) -> None:
    """Serve until SIGTERM, then report the losses."""
    register_controls()
    if options.control == "bbr":
        register_bbr()
    settings = configuration(is_client=False, control=options.control)
    settings.load_cert_chain(options.keys / CERTIFICATE, options.keys / KEY)
    FileServer.root = options.root.resolve()
    server = await serve(
        options.address, options.port, configuration=settings, create_protocol=FileServer
    )
    over = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, over.set)
    options.ready.touch()
    await over.wait()
    server.close()
    options.report.write_text(json.dumps(dataclasses.asdict(LOSS_COUNTS), indent=1) + "\n")


def options_of(argv: list[str]) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="http3_server", description=__doc__)
    parser.add_argument("--root", type=Path, required=True, help="what is served")
    parser.add_argument("--keys", type=Path, required=True, help="where certificate and key are")
    parser.add_argument("--address", default="0.0.0.0")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--control", choices=QUIC_CONTROLS, default="reno")
    parser.add_argument("--ready", type=Path, required=True, help="made when it listens")
    parser.add_argument("--report", type=Path, required=True, help="where losses are told")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(asyncio.run(run(options_of(sys.argv[1:]))))
