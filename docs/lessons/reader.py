"""Asks ten times for 200 bytes, and prints how long each answer takes."""

import socket
import sys
import time

with socket.create_connection((sys.argv[1], int(sys.argv[2]))) as server:
    for _ in range(10):
        begin, left = time.monotonic(), 200
        server.sendall(b"?")
        while left:
            left -= len(server.recv(left))
        print(f"answered after {1000 * (time.monotonic() - begin):.1f} ms")
