"""Answers requests: four bytes say how many to send."""

import socket
import sys

with socket.create_server(("0.0.0.0", int(sys.argv[1]))) as listener:
    while True:
        client, _ = listener.accept()
        with client:
            while request := client.recv(4):
                client.sendall(bytes(int.from_bytes(request, "big")))
