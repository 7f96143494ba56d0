"""Asks for 20 kB and 100 kB by turns, ten times a second, and prints how long each answer takes."""

import socket
import sys
import time

with socket.create_connection((sys.argv[1], int(sys.argv[2]))) as server:
    for size in [20_000, 100_000] * 40:
        begin = time.monotonic()
        server.sendall(size.to_bytes(4, "big"))
        left = size
        while left:
            left -= len(server.recv(left))
        print(f"{size} bytes: {1000 * (time.monotonic() - begin):.1f} ms")
        time.sleep(0.1)
