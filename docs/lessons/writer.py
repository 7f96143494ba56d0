"""Answers each request with 200 bytes in two writes; with a second argument without Nagle."""

import socket
import sys

with socket.create_server(("0.0.0.0", int(sys.argv[1]))) as listener:
    while True:
        client, _ = listener.accept()
        if len(sys.argv) > 2:
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with client:
            while client.recv(1):
                client.sendall(bytes(100))
                client.sendall(bytes(100))
